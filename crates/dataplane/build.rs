//! Compiles the C core. With the feature `sanitize` it is compiled and linked with ASan and UBSan, for tests and fuzzers.

use std::path::Path;
use std::process::Command;

/// Programs of the soft engine, each with the files that say where something lies in an arena, and what it means there.
const PROGRAMS: [(&str, &[&str]); 1] = [(
    "tasks",
    &[
        "include/midflight/tasks.h",
        "include/midflight/tasks_wire.h",
        "src/tasks/index.h",
        "src/tasks/parking.h",
        "src/tasks/pools.h",
        "src/tasks/queue.h",
        "src/tasks/state.h",
        "src/tasks_setup.c",
    ],
)];

/// The same of all programs.
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

fn main() {
    let root = Path::new("../../dataplane");
    println!("cargo:rerun-if-changed={}", root.display());
    native_library(root);
    if std::env::var_os("CARGO_FEATURE_KERNEL").is_some() {
        for (program, files) in PROGRAMS {
            kernel_object(root, program);
            println!("cargo:rustc-env=MIDFLIGHT_LAYOUT_{}={:x}", program.to_uppercase(), layout(root, files));
        }
    }
}

fn native_library(root: &Path) {
    let mut build = cc::Build::new();
    for (program, _) in PROGRAMS {
        build.files(["", "_setup", "_check"].map(|part| root.join(format!("src/{program}{part}.c"))));
    }
    build
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
}

/// A hash of all that says where something lies in an arena: who takes a kept arena over compares it. A change of a comment
/// changes it too, which costs a queue at an upgrade; a change that it missed would cost more.
fn layout(root: &Path, files: &[&str]) -> u64 {
    SHARED.iter().chain(files).fold(FNV_OFFSET, |hash, file| {
        let text = std::fs::read(root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        text.iter().fold(hash, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME))
    })
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

/// Compiles a program for the kernel, or says in one line what is missing.
fn kernel_object(root: &Path, program: &str) {
    println!("cargo:rerun-if-env-changed=CLANG");
    let from_cargo = |name: &str| std::env::var_os(name).unwrap_or_default();
    let compiled = Command::new(root.join("xdp/compile"))
        .env("ARCH", from_cargo("CARGO_CFG_TARGET_ARCH"))
        .arg(from_cargo("DEP_BPF_INCLUDE"))
        .arg(root.join(format!("xdp/{program}.bpf.c")))
        .arg(Path::new(&from_cargo("OUT_DIR")).join(format!("{program}.bpf.o")))
        .status();
    if !compiled.is_ok_and(|status| status.success()) {
        eprintln!("cannot build the kernel engine; install what is missing, or build without the feature `kernel`");
        std::process::exit(1);
    }
}
