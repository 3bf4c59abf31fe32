//! The cache that a command uses, and a client of it.

use crate::usage;
use anyhow::{Context, Result};
use clap::Args;
use midflight_control::cache::CacheFile;
use midflight_host::cache::{Algorithm, CacheBuilder, CacheClient};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Which cache, and who selects; without any option, that of `midflight up --cache`. Options win over the file.
#[derive(Args, Clone, Debug)]
pub struct WhichCache {
    /// Configuration of the cache's clients; default: the cache of `midflight up --cache`
    #[arg(long, value_name = "FILE")]
    cache: Option<PathBuf>,
    /// The operator of this machine's rack, which selects replicas
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "direct")]
    operator: Option<String>,
    /// Select here, with this algorithm, for example "c3": the operator is not asked
    #[arg(long, value_name = "SELECTOR")]
    direct: Option<Algorithm>,
    /// An agent of the cache; give it once for each, or with commas
    #[arg(long = "server", value_name = "HOST:PORT", value_delimiter = ',')]
    servers: Vec<String>,
    /// Servers that have each key [default: 3]
    #[arg(long, value_name = "N")]
    replicas: Option<usize>,
    /// Version of the servers [default: 0]
    #[arg(long, value_name = "N")]
    servers_version: Option<u16>,
    /// After this time without an answer an operation fails [default: 2s]
    #[arg(long, value_name = "DURATION", value_parser = usage::duration)]
    timeout: Option<Duration>,
}

impl WhichCache {
    /// A client, not started yet. `selectors`: clients of this command, each of which selects if there is no operator.
    pub fn client(&self, selectors: u32) -> Result<CacheBuilder> {
        let operator = self.operator.as_deref().map(usage::resolve).transpose()?;
        let table = match &self.cache {
            Some(file) => CacheFile::load(file).map_err(usage::error)?,
            None if !self.servers.is_empty() && operator.is_none() && self.direct.is_none() => {
                return Err(usage::error("who selects? Give --operator, or --direct with the name of a selector"));
            }
            None => CacheFile::of_up(operator),
        };
        let servers = match &self.servers[..] {
            [] => table.servers,
            names => names.iter().map(|name| usage::resolve(name)).collect::<Result<Vec<SocketAddr>>>()?,
        };
        let builder = CacheClient::builder()
            .servers(servers)
            .version(self.servers_version.unwrap_or(table.servers_version))
            .timeout(self.timeout.unwrap_or(table.timeout));
        let builder = match self.replicas.or(table.replicas) {
            Some(replicas) => builder.replicas(replicas),
            None => builder,
        };
        let direct = self.direct.map(|selector| (selector, selectors));
        let of_table = table.direct.map(|direct| (direct.selector, direct.selectors.max(selectors)));
        Ok(match (operator, direct.or(of_table), table.operator) {
            (Some(operator), ..) | (None, None, Some(operator)) => builder.operator(operator),
            (None, Some((selector, selectors)), _) => builder.direct(selector, selectors),
            (None, None, None) => builder,
        })
    }

    /// A started client.
    pub fn connect(&self) -> Result<CacheClient> {
        self.client(1)?.connect_lazy().context("cannot start a client of the cache")
    }
}
