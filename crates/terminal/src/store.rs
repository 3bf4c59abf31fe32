//! Which store a command means, and a client of it.

use crate::usage;
use anyhow::Result;
use clap::Args;
use midflight_control::config::DEFAULT_PORT;
use midflight_control::reads::SetTable;
use midflight_control::{Config, ReadsTable};
use midflight_host::kv::{KvBuilder, KvClient};
use std::path::PathBuf;
use std::time::Duration;

/// Number of the set that `midflight up --store` and `midflight kv init` make.
const DEFAULT_SET: u16 = 1;

/// Which store; without any option, that of `midflight up --store`.
#[derive(Args, Clone, Debug)]
pub struct WhichStore {
    /// Configuration of the store; default: that of `midflight up --store`
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Switches of the store, the preferred one first; win over the configuration
    #[arg(long, value_name = "HOST:PORT,..")]
    switch: Option<String>,
    /// Number of the replica set, if the configuration has several
    #[arg(long, value_name = "NUMBER")]
    set: Option<u16>,
    /// After this time without an answer an operation fails
    #[arg(long, value_name = "DURATION", value_parser = usage::duration, default_value = "10s")]
    timeout: Duration,
}

impl WhichStore {
    /// The set as configured.
    pub fn table(&self) -> Result<SetTable> {
        let Some(file) = &self.config else { return Ok(SetTable::on_loopback(1, 3, 1, DEFAULT_PORT)) };
        let config = Config::<ReadsTable>::load(file).map_err(usage::error)?;
        config.program.find(self.set).cloned().map_err(usage::error)
    }

    /// A client of it, not started yet.
    pub fn client(&self) -> Result<KvBuilder> {
        let (switches, set) = match (&self.switch, &self.config) {
            (Some(list), None) => (usage::resolve_all(list)?, self.set.unwrap_or(DEFAULT_SET)),
            (list, _) => {
                let table = self.table()?;
                let switches = list.as_deref().map_or_else(|| Ok(table.switches), usage::resolve_all)?;
                (switches, if self.config.is_some() { table.number } else { self.set.unwrap_or(DEFAULT_SET) })
            }
        };
        Ok(KvClient::builder().switches(switches).set(set).timeout(self.timeout))
    }
}
