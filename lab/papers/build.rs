//! Computes a hash per family of schemes of the sources that can change a cell's result: kept results are reused only under the same hash,
//! so a change of one scheme leaves the others' results valid. Figures only choose cells and reduce results. Another hash covers the
//! constants and rules that decide a verdict.

use std::io;
use std::path::{Path, PathBuf};

/// Used by every cell.
const COMMON: &[&str] = &[
    "crates/endpoint/src",
    "lab/papers/src/calibration.rs",
    "lab/papers/src/cell",
    "lab/sim/src",
    "crates/workload/src",
];
/// Used by cells with this project's switch and endpoints.
const MIDFLIGHT: &[&str] = &[
    "crates/dataplane/src",
    "lab/papers/src/cell/midflight.rs",
    "lab/papers/src/cell/site.rs",
    "lab/sim/src/tasks",
    "crates/tasks/src",
    "crates/wire/src",
    "dataplane/include",
    "dataplane/src",
];
/// Used by cells with a pipeline, in addition to `MIDFLIGHT`.
const PIPELINE: &[&str] = &["lab/asic/src", "lab/papers/src/cell/passes.rs", "lab/rmt/src"];
const SPARROW: &[&str] = &["lab/baselines/src", "lab/papers/src/cell/sparrow.rs", "lab/papers/src/schemes/sparrow.rs"];
const BOLT: &[&str] = &["lab/papers/src/schemes/bolt"];
const SPARK: &[&str] = &["lab/papers/src/schemes/spark.rs"];
/// Used by no cell. (`lib.rs` only names modules.)
const NOWHERE: &[&str] = &[
    "lab/asic/src/store",
    "lab/asic/src/cache",
    "crates/dataplane/src/kernel",
    "crates/dataplane/src/lib.rs",
    "crates/dataplane/src/store",
    "crates/dataplane/src/cache",
    "lab/rmt/src/lib.rs",
    "lab/rmt/src/store",
    "lab/rmt/src/cache",
    "lab/rmt/src/tasks/check",
    "lab/sim/src/check",
    "lab/sim/src/lib.rs",
    "lab/sim/src/store",
    "lab/sim/src/cache",
    "lab/sim/src/tasks/check",
    "lab/sim/src/tasks/scenario",
    "crates/tasks/src/functions/exec.rs",
    "crates/tasks/src/functions/python.rs",
    "crates/tasks/src/lib.rs",
    "crates/wire/src/store",
    "crates/wire/src/cache",
    "crates/workload/src/lib.rs",
    "dataplane/include/midflight/store.h",
    "dataplane/include/midflight/store_verdict.h",
    "dataplane/include/midflight/store_wire.h",
    "dataplane/include/midflight/cache.h",
    "dataplane/include/midflight/cache_verdict.h",
    "dataplane/include/midflight/cache_wire.h",
    "dataplane/src/store",
    "dataplane/src/store.c",
    "dataplane/src/store_check.c",
    "dataplane/src/store_setup.c",
    "dataplane/src/store_survey.c",
    "dataplane/src/cache",
    "dataplane/src/cache.c",
    "dataplane/src/cache_check.c",
    "dataplane/src/cache_setup.c",
    "dataplane/src/cache_survey.c",
];
/// Used by a store's cells, which do not use `COMMON`.
const FLAIR: &[&str] = &[
    "crates/dataplane/src/store",
    "crates/endpoint/src",
    "crates/store/src",
    "crates/wire/src",
    "dataplane/include",
    "dataplane/src/shared",
    "dataplane/src/store",
    "dataplane/src/store.c",
    "lab/papers/src/calibration.rs",
    "lab/papers/src/cell/percentiles.rs",
    "lab/papers/src/cell/testbed.rs",
    "lab/papers/src/flair",
    "lab/sim/src/network",
    "lab/sim/src/store",
    "lab/sim/src/time",
    "lab/sim/src/world",
];
/// Used by replica selection, which does not use `COMMON`.
const NETRS: &[&str] = &["lab/papers/src/cell/percentiles.rs", "lab/papers/src/netrs", "crates/cache/src/select"];
/// Used by replica selection with a plan.
const PLANNED: &[&str] =
    &["lab/papers/src/cell/percentiles.rs", "lab/papers/src/netrs", "crates/placement/src", "crates/cache/src/select"];
/// Each family, with the folders and files its cells use besides `COMMON`.
const FAMILIES: [(&str, &[&[&str]]); 5] = [
    ("MIDFLIGHT", &[MIDFLIGHT]),
    ("PIPELINE", &[MIDFLIGHT, PIPELINE]),
    ("SPARROW", &[SPARROW]),
    ("BOLT", &[BOLT]),
    ("SPARK", &[SPARK]),
];
/// Libraries whose version can change a result.
const LIBRARIES: [&str; 5] = ["hdrhistogram", "rand", "rand_core", "rand_distr", "rand_pcg"];
/// The same for replica selection, for stores, and for plans.
const NETRS_LIBRARIES: [&str; 4] = ["rand", "rand_core", "rand_distr", "rand_pcg"];
const FLAIR_LIBRARIES: [&str; 6] = ["hdrhistogram", "raft", "rand", "rand_core", "rand_distr", "rand_pcg"];
const PLANNED_LIBRARIES: [&str; 6] = ["highs", "highs-sys", "rand", "rand_core", "rand_distr", "rand_pcg"];

/// What decides a verdict, besides results: constants and rules.
const RULES: [&str; 3] = ["lab/papers/src/calibration.rs", "lab/papers/src/figures", "lab/papers/src/findings"];

fn main() -> io::Result<()> {
    // At run time: with a shared build directory, the script may have been compiled elsewhere.
    let directory = std::env::var_os("CARGO_MANIFEST_DIR").ok_or(io::ErrorKind::NotFound)?;
    let root = Path::new(&directory).join("../..");
    let parts: Vec<&str> =
        FAMILIES.iter().flat_map(|(_, parts)| parts.iter().flat_map(|part| part.iter().copied())).collect();
    for (family, own) in FAMILIES {
        let own: Vec<&str> = own.iter().flat_map(|part| part.iter().copied()).collect();
        let sources: Vec<&str> = COMMON.iter().copied().chain(own.iter().copied()).collect();
        let others = parts.iter().copied().filter(|part| !own.contains(part));
        let left_out: Vec<&str> = NOWHERE.iter().copied().chain(others).collect();
        let version = hash(&root, &sources, &left_out)? ^ libraries(&root, &LIBRARIES)?;
        println!("cargo::rustc-env=MIDFLIGHT_CELLS_{family}={version:016x}");
    }
    let others: [(&str, &[&str], &[&str]); 3] = [
        ("NETRS", NETRS, &NETRS_LIBRARIES),
        ("PLANNED", PLANNED, &PLANNED_LIBRARIES),
        ("FLAIR", FLAIR, &FLAIR_LIBRARIES),
    ];
    let checks = ["lab/sim/src/store/check"];
    for (family, sources, used) in others {
        let version = hash(&root, sources, &checks)? ^ libraries(&root, used)?;
        println!("cargo::rustc-env=MIDFLIGHT_CELLS_{family}={version:016x}");
    }
    println!("cargo::rustc-env=MIDFLIGHT_RULES_VERSION={:016x}", hash(&root, &RULES, &[])?);
    Ok(())
}

fn libraries(root: &Path, libraries: &[&str]) -> io::Result<u64> {
    let path = root.join("Cargo.lock");
    println!("cargo::rerun-if-changed={}", path.display());
    let lock = std::fs::read_to_string(path)?;
    let is_one = |package: &&str| libraries.iter().any(|name| package.starts_with(&format!("name = \"{name}\"\n")));
    let packages = lock.split("[[package]]\n").filter(is_one);
    Ok(packages.fold(FNV_OFFSET, |hash, package| fnv(hash, package.bytes())))
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;

fn fnv(hash: u64, bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn hash(root: &Path, sources: &[&str], left_out: &[&str]) -> io::Result<u64> {
    let mut files = Vec::new();
    for source in sources {
        let path = root.join(source);
        println!("cargo::rerun-if-changed={}", path.display());
        collect(&path, &mut files)?;
    }
    files.retain(|file| !left_out.iter().any(|path| file.starts_with(root.join(path))));
    files.sort();
    files.dedup();
    let mut hash = FNV_OFFSET;
    for file in files {
        let name = file.strip_prefix(root).unwrap_or(&file).to_string_lossy().into_owned();
        hash = fnv(hash, name.bytes().chain([0]).chain(std::fs::read(&file)?));
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
