use super::running::{Companion, Prepared};
use anyhow::Result;
use clap::ValueEnum;
use midflight_control::{Config, ProgramStatus, ProgramTable};
use midflight_dataplane::program::SoftProgram;
use midflight_host::{Switch, SwitchEngine};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

/// The programs, by their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Named {
    /// The task queue
    Tasks,
    /// Linearizable reads from all replicas of a store
    Store,
    /// An operator of NetRS: each read of a replicated store goes to the replica that answers soonest
    Cache,
}

/// Longest wait of a view for data that the switch's thread copies. A copy takes a millisecond, unless the thread executes a long order.
pub(crate) const SURVEYED_WITHIN: Duration = Duration::from_millis(250);

/// A program's addition to each view, as JSON; may keep state. `None` if there is nothing, or the copy timed out.
pub(crate) type Details<P> =
    Box<dyn FnMut(&Switch<P>, Option<&dyn Companion>, &<P as SwitchProgram>::Status) -> Detail + Send>;
pub(crate) type Detail = serde_json::Result<Option<serde_json::Value>>;

pub(crate) trait SwitchProgram: SoftProgram + Sized {
    type Table: ProgramTable + Debug + Send + Sync + 'static;
    type Status: ProgramStatus<Program = Self>;
    /// Runs in addition to the switch. Prepared with privileges.
    type Companion;

    /// Whether its kernel state may outlive the process (`--keep`).
    const CAN_BE_KEPT: bool = true;

    fn limits(table: &Self::Table) -> Self::Config;

    fn status(stats: &Self::Stats, table: &Self::Table, engine: &SwitchEngine) -> Self::Status;

    /// Additions to the status, for views.
    fn details(_table: &Self::Table, _engine: &SwitchEngine) -> Details<Self> {
        Box::new(|_, _, _| Ok(None))
    }

    /// What it took over from an earlier process.
    fn inherited(stats: &Self::Stats) -> String;

    /// `port` is the switch's UDP port.
    fn companion(config: &Config<Self::Table>, port: u16) -> Result<Self::Companion>;

    /// Called before the switch serves.
    fn attach(_companion: &mut Self::Companion, _prepared: &mut Prepared<Self>) {}

    /// Called once the switch serves. Calls `on_failure` if one of its threads has to stop by itself.
    fn begin(
        companion: Self::Companion,
        switch: &Arc<Switch<Self>>,
        on_failure: impl FnOnce() + Send + 'static,
    ) -> Result<()>;
}
