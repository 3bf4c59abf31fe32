//! Checks that a run fits this machine's memory.

use anyhow::{Result, ensure};

/// `needed` is in bytes; `advice` says what would need less.
pub(crate) fn check(needed: u64, advice: &str) -> Result<()> {
    compare(needed, available_bytes(), advice)
}

/// `None` if unknown.
fn available_bytes() -> Option<u64> {
    kib("/proc/meminfo", "MemAvailable:").map(|kib| kib * 1024)
}

/// A KiB value in a file of `/proc`.
pub(crate) fn kib(file: &str, key: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| line.strip_prefix(key))?.trim().strip_suffix("kB")?.trim().parse().ok()
}

fn compare(needed: u64, available: Option<u64>, advice: &str) -> Result<()> {
    const GIB: f64 = (1u64 << 30) as f64;
    let gib = |bytes: u64| bytes as f64 / GIB;
    let available = available.unwrap_or(u64::MAX);
    ensure!(
        needed <= available,
        "this run needs about {:.1} GiB of memory, and {:.1} GiB are available: {advice}",
        gib(needed),
        gib(available)
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_memory_does_not_hold_says_so_and_what_to_do() {
        assert!(compare(1 << 30, Some(1 << 30), "").is_ok());
        assert!(compare(u64::MAX, None, "").is_ok(), "a system that does not say is believed to be large");
        let error = compare(48 << 30, Some(20 << 30), "fewer slots").unwrap_err().to_string();
        assert!(error.contains("48.0 GiB") && error.contains("20.0 GiB") && error.contains("fewer slots"), "{error}");
    }
}
