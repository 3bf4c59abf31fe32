//! Compiles the C core. With the feature `sanitize` it is compiled and linked with ASan and UBSan, for tests and fuzzers.

use std::path::Path;
use std::process::Command;

fn main() {
    let root = Path::new("../../dataplane");
    let sources = [root.join("src/tasks.c"), root.join("src/tasks_setup.c"), root.join("src/tasks_check.c")];
    println!("cargo:rerun-if-changed={}", root.display());
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
    if std::env::var_os("CARGO_FEATURE_KERNEL").is_some() {
        build.file(root.join("xdp/arena_check.c"));
    }
    if std::env::var_os("CARGO_FEATURE_MUTANTS").is_some() {
        build.define("MF_MUTANTS", None);
    }
    if std::env::var_os("CARGO_FEATURE_SANITIZE").is_some() {
        build.flag("-fsanitize=address,undefined").flag("-fno-sanitize-recover=all").flag("-g").opt_level(1);
        build.define("MF_REDZONE", "256");
        // Fuzzers bring the runtimes themselves, through rustc. Else they are gcc's, named one by one: rustc links with
        // -nodefaultlibs, which makes -fsanitize add none.
        if std::env::var_os("CARGO_CFG_FUZZING").is_none() {
            build.compiler("gcc");
            println!("cargo:rustc-link-lib=dylib=asan");
            println!("cargo:rustc-link-lib=dylib=ubsan");
        }
    }
    build.compile("midflight_dataplane");
    if std::env::var_os("CARGO_FEATURE_KERNEL").is_some() {
        kernel_object(root);
        println!("cargo:rustc-env=MIDFLIGHT_LAYOUT={:x}", layout(root));
    }
}

/// A hash of all that says where something lies in an arena, and what it means there: who takes a kept arena over compares
/// it. A change of a comment changes it too, which costs a queue at an upgrade; a change that it missed would cost more.
fn layout(root: &Path) -> u64 {
    const FILES: [&str; 13] = [
        "include/midflight/tasks.h",
        "include/midflight/wire.h",
        "src/tasks/bytes.h",
        "src/tasks/index.h",
        "src/tasks/parking.h",
        "src/tasks/pools.h",
        "src/tasks/queue.h",
        "src/tasks/state.h",
        "src/tasks_setup.c",
        "xdp/arena.h",
        "xdp/lock.h",
        "xdp/maps.h",
        "xdp/ways.h",
    ];
    FILES.iter().fold(FNV_OFFSET, |hash, file| {
        let text = std::fs::read(root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        text.iter().fold(hash, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME))
    })
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

/// Compiles the programs for the kernel, or says in one line what is missing.
fn kernel_object(root: &Path) {
    println!("cargo:rerun-if-env-changed=CLANG");
    let from_cargo = |name: &str| std::env::var_os(name).unwrap_or_default();
    let compiled = Command::new(root.join("xdp/compile"))
        .env("ARCH", from_cargo("CARGO_CFG_TARGET_ARCH"))
        .arg(from_cargo("DEP_BPF_INCLUDE"))
        .arg(Path::new(&from_cargo("OUT_DIR")).join("tasks.bpf.o"))
        .status();
    if !compiled.is_ok_and(|status| status.success()) {
        eprintln!("cannot build the kernel engine; install what is missing, or build without the feature `kernel`");
        std::process::exit(1);
    }
}
