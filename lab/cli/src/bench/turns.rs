//! Servers that are measured in turns: waiting for them, and their results.

use super::ratio;
use crate::median::median;
use crate::store::cluster::{FIRST_CLIENT, Ground};
use anyhow::{Context, Result, ensure};
use midflight_terminal::envelope::Measure;
use midflight_terminal::progress::Progress;
use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

pub(super) const LOOK_EVERY: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(30);
/// Ratios are of this system by another one.
pub(super) const MIDFLIGHT: &str = "midflight";

/// Fails after a signal.
pub(super) fn unless(interrupted: &AtomicBool) -> Result<()> {
    ensure!(!interrupted.load(Relaxed), "interrupted");
    Ok(())
}

/// Waits until a server is ready.
pub(super) fn wait_until(interrupted: &AtomicBool, is_ready: impl Fn() -> bool) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while !is_ready() {
        unless(interrupted)?;
        ensure!(Instant::now() < deadline, "it is not ready after {PATIENCE:?}");
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

/// Waits until something listens at each of these addresses.
pub(super) fn wait_for(ground: Ground<'_>, addresses: &[SocketAddr], interrupted: &AtomicBool) -> Result<()> {
    let listens = || addresses.iter().all(|address| TcpStream::connect(address).is_ok());
    wait_until(interrupted, || ground.within(FIRST_CLIENT, listens).unwrap_or(false))
}

/// What was measured in a turn, by names such as `reads_per_s` and `p50_us`.
pub(super) type Sample = BTreeMap<String, f64>;

/// The samples of each system, in the order of the rounds.
pub(super) struct Turns(BTreeMap<&'static str, Vec<Sample>>);

impl Turns {
    pub(super) fn run(systems: &[&'static str], rounds: u32, turn: impl Fn(&str) -> Result<Sample>) -> Result<Self> {
        let total = u64::from(rounds) * systems.len() as u64;
        let progress = Progress::counted(Some(total), "turns", "{bar:40} {human_pos}/{human_len} {msg}, {elapsed}");
        let mut samples: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for round in 0..rounds as usize {
            // Each round starts with another system, so that drift affects all alike.
            for &system in systems.iter().cycle().skip(round).take(systems.len()) {
                samples.entry(system).or_default().push(turn(system).context(system)?);
                progress.advance_by(system);
            }
        }
        progress.finish();
        Ok(Self(samples))
    }

    fn of(&self, system: &str, what: &str) -> Vec<f64> {
        self.0.get(system).into_iter().flatten().filter_map(|sample| sample.get(what).copied()).collect()
    }

    /// The ratios, each with its name, the other system and what is compared; then all medians.
    pub(super) fn measures(&self, prefix: &str, ratios: &[(&str, &str, &str)]) -> Vec<Measure> {
        let mut measures = Vec::new();
        for (name, other, what) in ratios {
            measures.extend(ratio::measures(name, "", &self.of(MIDFLIGHT, what), &self.of(other, what)));
        }
        for (system, samples) in &self.0 {
            for what in samples.iter().take(1).flat_map(Sample::keys) {
                let unit = if what.ends_with("_us") { "us" } else { "1/s" };
                let name = format!("{prefix}{system}.{what}");
                measures.push(Measure::quantity(&name, median(self.of(system, what)), unit));
            }
        }
        measures
    }
}
