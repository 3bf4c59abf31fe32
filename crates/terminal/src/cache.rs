//! Which cache a command means, and a client of it.

use crate::usage;
use anyhow::{Context, Result};
use clap::Args;
use midflight_control::replicas::CacheFile;
use midflight_host::cache::{Algorithm, CacheBuilder, CacheClient};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Which cache, and who selects. Options win over the file.
#[derive(Args, Clone, Debug)]
pub struct WhichCache {
    /// Configuration of the cache's clients
    #[arg(long, value_name = "FILE")]
    cache: Option<PathBuf>,
    /// The operator of this machine's rack, which selects replicas
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "direct")]
    operator: Option<String>,
    /// Select here, with this algorithm, for example "c3": there is no operator
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
    /// A client of it, not started yet. `selectors`: clients of this command, each of which selects if there is no operator.
    pub fn client(&self, selectors: u32) -> Result<CacheBuilder> {
        let file = self.cache.as_ref().map(|file| CacheFile::load(file)).transpose().map_err(usage::error)?;
        let servers = match &file {
            Some(file) if self.servers.is_empty() => file.servers.clone(),
            _ => self.servers.iter().map(|name| usage::resolve(name)).collect::<Result<Vec<SocketAddr>>>()?,
        };
        if servers.is_empty() {
            return Err(usage::error(
                "which cache? Give --cache FILE (`midflight cache --print-config` prints one), or --server for each of its agents, \
                 and --operator or --direct",
            ));
        }
        let of_file = file.as_ref();
        let builder = CacheClient::builder().servers(servers);
        let mut builder = match (&self.operator, self.direct) {
            (Some(operator), _) => builder.operator(usage::resolve(operator)?),
            (None, Some(selector)) => builder.direct(selector, selectors),
            (None, None) => match of_file.map(|file| (file.operator, file.direct)) {
                Some((Some(operator), _)) => builder.operator(operator),
                Some((None, Some(direct))) => builder.direct(direct.selector, direct.selectors.max(selectors)),
                _ => return Err(usage::error("who selects? Give --operator, or --direct with the name of a selector")),
            },
        };
        if let Some(replicas) = self.replicas.or(of_file.and_then(|file| file.replicas)) {
            builder = builder.replicas(replicas);
        }
        if let Some(version) = self.servers_version.or(of_file.map(|file| file.servers_version)) {
            builder = builder.version(version);
        }
        if let Some(timeout) = self.timeout.or(of_file.map(|file| file.timeout)) {
            builder = builder.timeout(timeout);
        }
        Ok(builder)
    }

    /// The same, started.
    pub fn connect(&self) -> Result<CacheClient> {
        self.client(1)?.connect().context("cannot start a client of the cache")
    }
}
