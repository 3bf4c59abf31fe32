//! Effort of the kernel's verifier for the programs.

use crate::shells::skip;
use midflight_dataplane::cache::{CacheConfig, CacheProgram};
use midflight_dataplane::kernel::Kernel;
use midflight_dataplane::program::SoftProgram;
use midflight_dataplane::store::{StoreConfig, StoreProgram};
use midflight_dataplane::{TasksConfig, TasksProgram};

/// The verifier gives up after 1,000,000. Other versions of kernel and compiler need more or fewer.
const INSTRUCTIONS_MAX: u64 = 400_000;

/// Instructions that the verifier processed for each BPF program of this process.
fn verified() -> Vec<u64> {
    let descriptors = std::fs::read_dir("/proc/self/fdinfo").unwrap();
    let told = descriptors.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path()).ok());
    told.filter_map(|told| told.lines().find_map(|line| line.strip_prefix("verified_insns:")?.trim().parse().ok()))
        .collect()
}

/// False if this machine cannot load the program.
fn check<P: SoftProgram>(config: &P::Config) -> bool {
    let _loaded = match Kernel::<P>::new(config, 1, 1, 0) {
        Err(missing) if missing.is_unavailable() => {
            skip(&missing.to_string());
            return false;
        }
        loaded => loaded.unwrap(),
    };
    let verified = verified();
    assert!(verified.len() >= 3, "{verified:?}");
    assert!(verified.iter().all(|&instructions| (1..=INSTRUCTIONS_MAX).contains(&instructions)), "{verified:?}");
    true
}

#[test]
fn no_program_comes_near_what_the_verifier_allows() {
    let _ = check::<TasksProgram>(&TasksConfig::default())
        && check::<StoreProgram>(&StoreConfig::default())
        && check::<CacheProgram>(&CacheConfig::default());
}
