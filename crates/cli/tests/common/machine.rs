//! Detects what this machine can do. A test that cannot run here prints SKIPPED.

use std::fmt::Display;
use std::io::Write;

/// Bypasses the test harness, which captures `eprintln!`.
pub(crate) fn skip(why: impl Display) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let _ = std::io::stderr().write_all(format!("SKIPPED: {test}: {why}\n").as_bytes());
}

/// Whether the kernel engine runs here; reports the skip if not.
pub(crate) fn kernel_works() -> bool {
    #[cfg(feature = "kernel")]
    {
        use midflight_dataplane::{TasksConfig, kernel::KernelTasks};
        let smallest = TasksConfig { queue: 1, slots: 1, clients: 1, ..TasksConfig::default() };
        let missing = KernelTasks::new(&smallest, 1, 0, 0).err();
        assert!(missing.as_ref().is_none_or(|why| why.is_unavailable()), "{missing:?}");
        missing.map(|why| skip(format!("the kernel engine's part: {why}"))).is_none()
    }
    #[cfg(not(feature = "kernel"))]
    {
        skip("the kernel engine's part: built without the feature kernel");
        false
    }
}
