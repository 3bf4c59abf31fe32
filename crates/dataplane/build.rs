//! Compiles the C core. With the feature `sanitize` it is compiled and linked with ASan and UBSan, for tests and fuzzers.

fn main() {
    let root = std::path::Path::new("../../dataplane");
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
    }
}

/// Compiles the programs for the kernel, or says in one line what is missing.
fn kernel_object(root: &std::path::Path) {
    println!("cargo:rerun-if-env-changed=CLANG");
    let clang = find_clang().unwrap_or_else(|| {
        panic!("the kernel engine needs clang {CLANG_MIN} or newer with its bpf target: install clang-{CLANG_MIN}, or name one in CLANG, or build without the feature `kernel`")
    });
    let out = std::path::PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default()).join("tasks.bpf.o");
    let libbpf = std::env::var("DEP_BPF_INCLUDE").unwrap_or_default();
    let architecture = match std::env::var("CARGO_CFG_TARGET_ARCH").as_deref() {
        Ok("x86_64") => "x86",
        Ok("aarch64") => "arm64",
        other => {
            panic!("the kernel engine runs on x86-64 and arm64, not on {other:?}; build without the feature `kernel`")
        }
    };
    let status = std::process::Command::new(&clang)
        .args([
            "-target",
            "bpf",
            "-mcpu=v4",
            "-O2",
            "-g",
            "-std=gnu11",
            "-ffreestanding",
            "-Wall",
            "-Wextra",
            "-Werror",
        ])
        .arg(format!("-D__TARGET_ARCH_{architecture}"))
        .arg(format!("-I{}", root.join("include").display()))
        .arg(format!("-isystem{libbpf}"))
        .arg(format!("-isystem/usr/include/{}-linux-gnu", std::env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default()))
        .arg("-c")
        .arg(root.join("xdp/tasks.bpf.c"))
        .arg("-o")
        .arg(&out)
        .status();
    assert!(status.is_ok_and(|status| status.success()), "{clang} could not compile dataplane/xdp/tasks.bpf.c");
}

/// The first clang that knows arenas.
const CLANG_MIN: u32 = 19;

fn find_clang() -> Option<String> {
    if let Ok(named) = std::env::var("CLANG") {
        return Some(named);
    }
    let numbered = (CLANG_MIN..CLANG_MIN + 12).rev().map(|version| format!("clang-{version}"));
    std::iter::once("clang".to_owned()).chain(numbered).find(|clang| clang_version(clang) >= Some(CLANG_MIN))
}

fn clang_version(clang: &str) -> Option<u32> {
    let said = std::process::Command::new(clang).arg("--version").output().ok()?;
    let text = String::from_utf8(said.stdout).ok()?;
    text.split("version ").nth(1)?.split('.').next()?.parse().ok()
}
