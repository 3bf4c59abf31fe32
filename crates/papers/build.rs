//! Gives what can change a cell's result a number: a hash of the sources of the simulator and of all that runs in it. Results that
//! are kept are reused only with the same number. What cells do not use is left out; figures only choose them, and reduce their results.

use std::io;
use std::path::{Path, PathBuf};

const SOURCES: [&str; 12] = [
    "Cargo.lock",
    "dataplane",
    "crates/wire/src",
    "crates/dataplane/src",
    "crates/rmt/src",
    "crates/tasks/src",
    "crates/endpoint/src",
    "crates/baselines",
    "crates/workload/src",
    "crates/papers/Cargo.toml",
    "crates/papers/src",
    "crates/sim/src",
];
const LEFT_OUT: [&str; 4] = [
    "crates/papers/src/figures",
    "crates/papers/src/findings",
    "crates/sim/src/tasks/check",
    "crates/sim/src/tasks/scenario",
];

fn main() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for source in SOURCES {
        let path = root.join(source);
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
            collect(&path, &mut files)?;
        }
    }
    let left_out = LEFT_OUT.map(|path| root.join(path));
    files.retain(|file| !left_out.iter().any(|path| file.starts_with(path)));
    files.sort();
    // FNV-1a: no secret is kept with it, and it needs no library.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for file in files {
        let name = file.strip_prefix(&root).unwrap_or(&file).to_string_lossy().into_owned();
        for byte in name.bytes().chain([0]).chain(std::fs::read(&file)?) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    println!("cargo::rustc-env=MIDFLIGHT_CELLS_VERSION={hash:016x}");
    Ok(())
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if path.is_file() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in std::fs::read_dir(path)? {
        collect(&entry?.path(), files)?;
    }
    Ok(())
}
