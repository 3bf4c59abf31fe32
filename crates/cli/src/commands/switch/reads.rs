//! Linearizable reads from all replicas, as `midflight switch` runs them.

use super::program::SwitchProgram;
use anyhow::{Result, bail};
use midflight_control::{Config, EngineKind, ReadsStatus, ReadsTable};
use midflight_dataplane::reads::{Outcome, ReadsConfig, ReadsProgram, SetOrder, Stats};
use midflight_host::{Switch, SwitchEngine};
use midflight_terminal::usage;
use std::sync::Arc;

impl SwitchProgram for ReadsProgram {
    type Table = ReadsTable;
    type Status = ReadsStatus;
    /// The replica sets, to be added.
    type Beside = Vec<SetOrder>;

    fn limits(table: &ReadsTable) -> ReadsConfig {
        table.bounds()
    }

    fn in_process(_config: &Config<ReadsTable>, kind: EngineKind) -> Result<SwitchEngine> {
        if kind == EngineKind::User { Ok(SwitchEngine::User) } else { Err(only_in_user_space()) }
    }

    fn check_kernel() -> Result<()> {
        Err(only_in_user_space())
    }

    fn status(stats: &Stats, _table: &ReadsTable, _engine: &SwitchEngine) -> ReadsStatus {
        ReadsStatus::new(stats)
    }

    fn inherited(stats: &Stats) -> String {
        format!("{} replica sets", stats.present().count())
    }

    /// Each set under an incarnation of its own: what the switch knew before it started is lost.
    fn beside(config: &Config<ReadsTable>, _port: u16) -> Result<Vec<SetOrder>> {
        let sets = &config.program.set;
        if sets.is_empty() {
            return Err(usage::error(
                "the configuration has no replica set: add a table [[reads.set]] and name the file (--config); `midflight kv \
                 init` prints one",
            ));
        }
        Ok(sets.iter().map(|set| SetOrder::add(&set.at_switch(rand::random()))).collect())
    }

    fn begin(sets: Vec<SetOrder>, switch: &Arc<Switch<Self>>) -> Result<()> {
        for set in sets {
            let done = switch.order(set)?;
            if done.outcome() != Outcome::Done {
                bail!("the switch does not take the replica set {}: {:?}", done.number(), done.outcome());
            }
        }
        Ok(())
    }
}

fn only_in_user_space() -> anyhow::Error {
    usage::error("the program reads runs in user space only: say --engine user, or leave `kind` out of [engine]")
}
