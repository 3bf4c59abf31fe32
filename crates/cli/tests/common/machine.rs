//! What this machine can do. A test that it cannot run reports that, even if the test harness captures output, and is
//! skipped.

#![allow(clippy::unwrap_used, reason = "tests may")]

use std::io::Write;

/// Says that something of this test is left out, and why.
pub(crate) fn skip(why: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    std::io::stderr().write_all(format!("SKIPPED: {test}: {why}\n").as_bytes()).unwrap();
}

/// Whether there can be labs here; if not, says so.
pub(crate) fn labs_work() -> bool {
    midflight_lab::available().map_err(|why| skip(&why.to_string())).is_ok()
}

/// Whether a switch can run the kernel engine here; if not, says so.
pub(crate) fn kernel_works() -> bool {
    #[cfg(feature = "kernel")]
    {
        use midflight_dataplane::{TasksConfig, kernel::KernelTasks};
        let smallest = TasksConfig { queue: 1, slots: 1, clients: 1, ..TasksConfig::default() };
        let works = KernelTasks::new(&smallest, 1, 0, 0);
        works.map_err(|why| skip(&format!("the kernel engine's part: {why}"))).is_ok()
    }
    #[cfg(not(feature = "kernel"))]
    {
        skip("the kernel engine's part: built without the feature kernel");
        false
    }
}
