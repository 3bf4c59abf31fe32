//! What `midflight switch` must know of a program.

use super::running::{Beside, Prepared};
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
    Reads,
    /// An operator of NetRS: each read of a replicated store goes to the replica that answers soonest
    Replicas,
}

/// How long a view waits for what the switch's thread copies for it; that takes a millisecond, unless it carries out a long order.
pub(crate) const SURVEYED_WITHIN: Duration = Duration::from_millis(250);

/// What a program adds to each view of a switch, as JSON; `None`: nothing, or there was no time for it. Remembers what it needs for the
/// next view.
pub(crate) type Details<P> =
    Box<dyn FnMut(&Switch<P>, Option<&dyn Beside>, &<P as SwitchProgram>::Status) -> Detail + Send>;
/// One of them.
pub(crate) type Detail = serde_json::Result<Option<serde_json::Value>>;

/// A program that `midflight switch` runs.
pub(crate) trait SwitchProgram: SoftProgram + Sized {
    /// Its table in the configuration.
    type Table: ProgramTable + Debug + Send + Sync + 'static;
    /// What it reports.
    type Status: ProgramStatus<Program = Self>;
    /// What the process does for it beside serving: made while there are privileges.
    type Beside;

    /// Whether its state in the kernel may outlive the process (`--keep`).
    const CAN_BE_KEPT: bool = true;

    /// Its bounds.
    fn limits(table: &Self::Table) -> Self::Config;

    /// Its status at one moment.
    fn status(stats: &Self::Stats, table: &Self::Table, engine: &SwitchEngine) -> Self::Status;

    /// What it shows to those who watch, beside its status.
    fn details(_table: &Self::Table, _engine: &SwitchEngine) -> Details<Self> {
        Box::new(|_, _, _| Ok(None))
    }

    /// What it has taken over from a former process.
    fn inherited(stats: &Self::Stats) -> String;

    /// Prepares what the process does beside serving. `port`: the UDP port of the switch.
    fn beside(config: &Config<Self::Table>, port: u16) -> Result<Self::Beside>;

    /// What of it has to do with the switch before this serves.
    fn attach(_beside: &mut Self::Beside, _prepared: &mut Prepared<Self>) {}

    /// Begins with that; the switch serves. `on_failure` is called where a thread of it has to end by itself.
    fn begin(
        beside: Self::Beside,
        switch: &Arc<Switch<Self>>,
        on_failure: impl FnOnce() + Send + 'static,
    ) -> Result<()>;
}
