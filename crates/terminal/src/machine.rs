//! This machine.

/// Number of threads that run in parallel.
#[must_use]
pub fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX))
}

/// Memory in bytes, if the kernel reports it.
#[must_use]
pub fn memory() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let total = info.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    total.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
}

#[cfg(test)]
mod tests {
    #[test]
    fn this_machine_has_memory() {
        assert!(super::memory().is_some_and(|bytes| bytes > 1 << 20));
    }
}
