//! Helpers for tests that need labs.

use std::fmt::Display;
use std::io::Write;

/// Reports that the current test is skipped, and why. Writes to stderr directly, because the test harness captures `eprintln!`.
pub fn skip(why: impl Display) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    // A failed write does no harm.
    let _ = std::io::stderr().write_all(format!("SKIPPED: {test}: {why}\n").as_bytes());
}

/// Whether labs can run here; reports a skip if not.
pub fn labs_work() -> bool {
    crate::available().map_err(skip).is_ok()
}

/// A lab's remaining files in the directory of `ip netns` and in ours.
#[must_use]
pub fn traces_of(name: &str) -> Vec<String> {
    let files = ["/var/run/netns", "/run/midflight/labs"].into_iter().filter_map(|path| std::fs::read_dir(path).ok());
    let names = files.flatten().flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|file| file == name || file.starts_with(&format!("mf-{name}-"))).collect()
}
