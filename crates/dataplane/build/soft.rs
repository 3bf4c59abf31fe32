//! Compiles the soft engine natively and for the kernel, for build scripts.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Files common to all programs.
const SHARED: [&str; 8] = [
    "include/midflight/switch.h",
    "include/midflight/verdict.h",
    "include/midflight/wire.h",
    "src/shared/bytes.h",
    "xdp/arena.h",
    "xdp/lock.h",
    "xdp/maps.h",
    "xdp/next_hops.h",
];

/// Compiles a program's sources into a static library and links it. `root`: the directory `dataplane`. The feature `sanitize` adds ASan and
/// UBSan, for tests and fuzzers.
pub(crate) fn library(root: &Path, name: &str, sources: &[PathBuf]) {
    let mut build = cc::Build::new();
    build
        .files(sources)
        .include(root.join("include"))
        .include(root.join("src"))
        .std("gnu11")
        .flag("-Wall")
        .flag("-Wextra")
        .flag("-Werror")
        // It packs neighbouring fields into vector registers, which costs more than the stores that it saves.
        .flag("-fno-tree-slp-vectorize")
        .warnings_into_errors(true)
        .opt_level(2);
    if std::env::var_os("CARGO_FEATURE_MUTANTS").is_some() {
        build.define("MF_MUTANTS", None);
    }
    if std::env::var_os("CARGO_FEATURE_SANITIZE").is_some() {
        build.flag("-fsanitize=address,undefined").flag("-fno-sanitize-recover=all").flag("-g").opt_level(1);
        build.define("MF_REDZONE", "256");
        // Fuzzers bring the runtimes through rustc. Otherwise gcc's are named one by one: rustc links with -nodefaultlibs, which makes
        // -fsanitize add none.
        if std::env::var_os("CARGO_CFG_FUZZING").is_none() {
            build.compiler("gcc");
            println!("cargo:rustc-link-lib=dylib=asan");
            println!("cargo:rustc-link-lib=dylib=ubsan");
        }
    }
    build.compile(name);
}

/// Compiles a `NAME.bpf.c` into OUT_DIR/NAME.bpf.o, or reports in one line what is missing. The crate must depend on `libbpf-sys`. Sets
/// MIDFLIGHT_LAYOUT_NAME to a hash of the program's `files`, below `root`, and of the shared ones: a process compares it before it takes
/// over a kept arena. A changed comment also changes the hash and costs a queue at an upgrade; a missed change of the layout would cost
/// more.
pub(crate) fn kernel_object(root: &Path, source: &Path, name: &str, files: &[&str]) {
    println!("cargo:rerun-if-env-changed=CLANG");
    let from_cargo = |name: &str| std::env::var_os(name).unwrap_or_default();
    let compiled = Command::new(root.join("xdp/compile"))
        .env("ARCH", from_cargo("CARGO_CFG_TARGET_ARCH"))
        .arg(from_cargo("DEP_BPF_INCLUDE"))
        .arg(source)
        .arg(Path::new(&from_cargo("OUT_DIR")).join(format!("{name}.bpf.o")))
        .args(std::env::var_os("CARGO_FEATURE_MUTANTS").map(|_| "-DMF_MUTANTS"))
        .status();
    if !compiled.is_ok_and(|status| status.success()) {
        eprintln!("cannot build the kernel engine; install what is missing, or build without the feature `kernel`");
        std::process::exit(1);
    }
    let hash = SHARED.iter().chain(files).fold(FNV_OFFSET, |hash, file| {
        let text = std::fs::read(root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        text.iter().fold(hash, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME))
    });
    println!("cargo:rustc-env=MIDFLIGHT_LAYOUT_{}={hash:x}", name.to_uppercase());
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;
