//! Linearizable reads from all replicas, as `midflight switch` runs them.

use super::program::SwitchProgram;
use anyhow::{Result, bail};
use midflight_control::{Config, EngineKind, ReadsStatus, ReadsTable};
use midflight_dataplane::reads::{NewSet, Outcome, ReadsConfig, ReadsProgram, SetOrder, Stats};
use midflight_host::{Switch, SwitchEngine};
use midflight_terminal::usage;
use std::sync::Arc;

impl SwitchProgram for ReadsProgram {
    type Table = ReadsTable;
    type Status = ReadsStatus;
    /// The replica sets of the configuration.
    type Beside = Vec<NewSet>;

    fn limits(table: &ReadsTable) -> ReadsConfig {
        table.bounds()
    }

    fn in_process(_config: &Config<ReadsTable>, kind: EngineKind) -> Result<SwitchEngine> {
        if kind == EngineKind::User {
            return Ok(SwitchEngine::User);
        }
        Err(usage::error("the program reads has no asic engine: say --engine user or --engine kernel"))
    }

    fn status(stats: &Stats, _table: &ReadsTable, _engine: &SwitchEngine) -> ReadsStatus {
        ReadsStatus::new(stats)
    }

    fn inherited(stats: &Stats) -> String {
        format!("{} of its replica sets", stats.present().count())
    }

    /// Each set under an incarnation of its own: what the switch knew before it started is lost.
    fn beside(config: &Config<ReadsTable>, _port: u16) -> Result<Vec<NewSet>> {
        let sets = &config.program.set;
        if sets.is_empty() {
            return Err(usage::error(
                "the configuration has no replica set: add a table [[reads.set]] and name the file (--config); `midflight kv \
                 init` prints one",
            ));
        }
        Ok(sets.iter().map(|set| set.at_switch(rand::random())).collect())
    }

    /// Adds the sets. Those that a former process has kept go on, with what may be changed as it is configured now.
    fn begin(sets: Vec<NewSet>, switch: &Arc<Switch<Self>>) -> Result<()> {
        for kept in switch.stats().present().filter(|kept| sets.iter().all(|set| set.number != kept.set)) {
            tracing::info!("the replica set {} was kept, and is not configured any more: it is removed", kept.set);
            switch.order(SetOrder::remove(kept.set))?;
        }
        for set in &sets {
            let mut done = switch.order(SetOrder::change(set))?;
            if done.outcome() == Outcome::Unknown {
                done = switch.order(SetOrder::add(set))?;
            }
            check(done)?;
        }
        Ok(())
    }
}

/// Whether an order about a set was carried out.
fn check(done: SetOrder) -> Result<()> {
    let set = done.number();
    match done.outcome() {
        Outcome::Done => Ok(()),
        Outcome::Frozen => bail!(
            "the replica set {set}, which was kept, has another session_lease or number of key groups than the configuration: \
             both are frozen; --fresh throws away what was kept"
        ),
        Outcome::NoRoom => bail!("no room for the replica set {set}: raise reads.sets"),
        outcome => bail!("the switch does not take the replica set {set}: {outcome:?}"),
    }
}
