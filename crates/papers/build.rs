//! Gives two things a number. What can change a cell's result: a hash of the sources of the simulator and of all that runs in it; results
//! that are kept are reused only with the same number. What cells do not use is left out; figures only choose them, and reduce their
//! results. And what decides a verdict: constants and rules.

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
const LEFT_OUT: [&str; 5] = [
    "crates/papers/src/differences.rs",
    "crates/papers/src/figures",
    "crates/papers/src/findings",
    "crates/sim/src/tasks/check",
    "crates/sim/src/tasks/scenario",
];

/// What decides a verdict, beside results: constants, and rules.
const RULES: [&str; 3] =
    ["crates/papers/src/calibration.rs", "crates/papers/src/figures", "crates/papers/src/findings"];

fn main() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    println!("cargo::rustc-env=MIDFLIGHT_CELLS_VERSION={:016x}", hash(&root, &SOURCES, &LEFT_OUT)?);
    println!("cargo::rustc-env=MIDFLIGHT_RULES_VERSION={:016x}", hash(&root, &RULES, &[])?);
    Ok(())
}

/// Of these files and folders. FNV-1a: no secret is kept with it, and it needs no library.
fn hash(root: &Path, sources: &[&str], left_out: &[&str]) -> io::Result<u64> {
    let mut files = Vec::new();
    for source in sources {
        let path = root.join(source);
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
            collect(&path, &mut files)?;
        }
    }
    files.retain(|file| !left_out.iter().any(|path| file.starts_with(root.join(path))));
    files.sort();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for file in files {
        let name = file.strip_prefix(root).unwrap_or(&file).to_string_lossy().into_owned();
        for byte in name.bytes().chain([0]).chain(std::fs::read(&file)?) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    Ok(hash)
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
