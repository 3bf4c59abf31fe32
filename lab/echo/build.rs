//! Compiles the toy program, natively and for the kernel.

#[path = "../../crates/dataplane/build/soft.rs"]
mod soft;

use std::path::Path;

fn main() {
    let root = Path::new("../../dataplane");
    println!("cargo:rerun-if-changed=.\ncargo:rerun-if-changed={}", root.display());
    soft::library(root, "midflight_echo", &["echo.c".into()]);
    if std::env::var_os("CARGO_FEATURE_KERNEL").is_some() {
        soft::kernel_object(root, Path::new("echo.bpf.c"), "echo", &["../lab/echo/echo.h"]);
    }
}
