//! `./do` on machines without some tools.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{CommandOutput, Directory};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

/// All that it uses before it installs anything.
const TOOLS: [&str; 11] = ["sh", "dirname", "sed", "grep", "sort", "tr", "head", "mktemp", "rm", "env", "cat"];

/// Runs `./do setup` as root without a compiler; `apt_get` is the script used as apt-get.
fn without_a_compiler(name: &str, apt_get: &str) -> (Directory, CommandOutput) {
    on_an_empty_machine(name, 0, "setup", apt_get)
}

/// Runs `./do` for this target as this user.
fn on_an_empty_machine(name: &str, user: u32, target: &str, apt_get: &str) -> (Directory, CommandOutput) {
    let directory = Directory::new(name);
    for tool in TOOLS {
        let path = std::env::var("PATH").unwrap();
        let found = path.split(':').map(|folder| Path::new(folder).join(tool)).find(|file| file.exists());
        symlink(found.unwrap(), directory.path(tool)).unwrap();
    }
    directory.script("id", &format!("echo {user}"));
    directory.script("sleep", &format!("echo \"$1\" >>{}", directory.path("sleeps")));
    directory.script("apt-get", apt_get);
    let door = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../do");
    let said = Command::new("/bin/sh").arg(door).arg(target).env("PATH", directory.path("")).output().unwrap();
    (directory, said.into())
}

#[test]
fn another_apt_get_is_waited_for() {
    // The lock is held on the first two tries; then a package is really missing.
    let apt_get = r#"
        held='E: Could not get lock /var/lib/apt/lists/lock. It is held by process 1 (apt-get)'
        case $(cat "$0.calls" 2>/dev/null) in
        '') echo once >"$0.calls"; echo "$held"; exit 100 ;;
        once) echo twice >"$0.calls"; echo "$held"; exit 100 ;;
        *) echo 'E: Unable to locate package make'; exit 100 ;;
        esac"#;
    let (directory, said) = without_a_compiler("front-door-lock", apt_get);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert_eq!(said.stderr.matches("waiting for another apt-get").count(), 1, "{said:?}");
    assert!(said.stderr.contains("Unable to locate package make"), "{said:?}");
    assert_eq!(std::fs::read_to_string(directory.path("sleeps")).unwrap(), "3\n3\n");
}

#[test]
fn a_lock_that_stays_is_an_error_after_five_minutes() {
    let (directory, said) =
        without_a_compiler("front-door-stuck", "echo 'E: Could not get lock /var/lib/dpkg/lock-frontend.'; exit 100");
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("apt-get update failed: E: Could not get lock"), "{said:?}");
    assert_eq!(std::fs::read_to_string(directory.path("sleeps")).unwrap().lines().count(), 100);
}

#[test]
fn who_may_not_install_packages_is_told_of_all_of_them_at_once() {
    for (target, python) in [("python", true), ("wheel", true), ("test", false)] {
        let (_directory, said) = on_an_empty_machine(&format!("front-door-{target}"), 1000, target, "exit 1");
        assert_eq!(said.code, Some(1), "{said:?}");
        assert!(said.stderr.starts_with("do: please run as root: apt-get install -y build-essential"), "{said:?}");
        assert_eq!(said.stderr.lines().count(), 1, "{said:?}");
        assert_eq!(said.stderr.contains(" make python3 python3-venv"), python, "{said:?}");
    }
}
