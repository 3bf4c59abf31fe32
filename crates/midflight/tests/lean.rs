//! A dependent of the library builds few crates, and none that only the command, the studies or a switch's HTTP server need.

#![allow(clippy::unwrap_used, reason = "tests may")]

use std::collections::BTreeSet;
use std::process::Command;

/// Bound on the crates that a dependent builds, including the library. Before raising it, try to do without the new crate.
const CRATES_MAX: usize = 80;
/// Crates of other floors.
const NOT_OF_THE_LIBRARY: [&str; 9] = [
    "axum",
    "clap",
    "hyper",
    "midflight-control",
    "midflight-sim",
    "midflight-spec",
    "plotters",
    "prometheus-client",
    "stateright",
];

/// The crates that a build of the library compiles, for itself and for build scripts: names with versions.
fn crates() -> BTreeSet<String> {
    let tree = ["tree", "--offline", "--locked", "-p", "midflight", "-e", "normal,build", "--prefix", "none"];
    let output = Command::new(env!("CARGO")).args(tree).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let name_and_version = |line: &str| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    text.lines().map(name_and_version).filter(|line| !line.is_empty()).collect()
}

#[test]
fn a_dependent_builds_few_crates() {
    let crates = crates();
    assert!(crates.iter().any(|name| name.starts_with("midflight-host ")), "{crates:?}");
    assert!(crates.len() < CRATES_MAX, "{} crates: {crates:?}", crates.len());
    for name in NOT_OF_THE_LIBRARY {
        let found = crates.iter().find(|found| found.split(' ').next() == Some(name));
        assert_eq!(found, None, "`cargo tree -p midflight -i {name}` says who needs it");
    }
}
