//! The store that a command uses, and a client of it.

use crate::usage;
use anyhow::Result;
use clap::Args;
use midflight_control::config::DEFAULT_PORT;
use midflight_control::store::{ANY_CLUSTER, SetTable};
use midflight_control::{Config, StoreTable};
use midflight_host::store::{StoreBuilder, StoreClient};
use std::path::PathBuf;
use std::time::Duration;

/// Which replica set; without any option, that of `midflight up --store`.
#[derive(Args, Clone, Debug)]
pub struct WhichSet {
    /// Configuration of the store; default: that of `midflight up --store`
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// Number of the replica set, if the configuration has several
    #[arg(long, value_name = "NUMBER", global = true)]
    set: Option<u16>,
}

impl WhichSet {
    /// The set as configured.
    pub fn table(&self) -> Result<SetTable> {
        let Some(file) = &self.config else { return Ok(SetTable::on_loopback(ANY_CLUSTER, 3, 1, DEFAULT_PORT)) };
        let config = Config::<StoreTable>::load(file).map_err(usage::error)?;
        config.program.find(self.set).cloned().map_err(usage::error)
    }
}

/// Which store, and how to reach it.
#[derive(Args, Clone, Debug)]
pub struct WhichStore {
    #[command(flatten)]
    set: WhichSet,
    /// Switches of the store, the preferred one first; win over the configuration
    #[arg(long, value_name = "HOST:PORT,..")]
    switch: Option<String>,
    /// After this time without an answer an operation fails
    #[arg(long, value_name = "DURATION", value_parser = usage::duration, default_value = "10s")]
    timeout: Duration,
}

impl WhichStore {
    /// A client, not started yet.
    pub fn client(&self) -> Result<StoreBuilder> {
        let table = self.set.table()?;
        // Without a configuration, the number may differ from the default.
        let number = if self.set.config.is_some() { table.number } else { self.set.set.unwrap_or(table.number) };
        let switches = self.switch.as_deref().map_or_else(|| Ok(table.switches), usage::resolve_all)?;
        Ok(StoreClient::builder().switches(switches).set(number).timeout(self.timeout))
    }
}
