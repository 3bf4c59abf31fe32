//! The configuration file of a cache's clients.

use crate::config::{DEFAULT_PORT, within_time};
use crate::file::{self, FileError, within};
use midflight_cache::keyspace::{Keyspace, VERSION_MAX};
use midflight_cache::select::{Algorithm, CANDIDATES_MAX};
use midflight_dataplane::duration::duration;
use serde::Deserialize;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

/// A configuration with comments.
pub const EXAMPLE_TOML: &str = include_str!("clients.toml");
const REPLICAS: usize = 3;
/// Of `midflight up --cache`: the first agent's port is the operator's plus this; the others follow.
const FIRST_AGENT: u16 = 10;
/// Number of agents of `midflight up --cache`.
pub const AGENTS: u16 = 3;

/// A cache, and how its replicas are selected.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheFile {
    /// The operator of this machine's rack.
    pub operator: Option<SocketAddr>,
    /// Clients select: there is no operator.
    pub direct: Option<DirectTable>,
    /// Agents.
    pub servers: Vec<SocketAddr>,
    /// Servers that have each key; `None`: 3, or all if there are fewer.
    pub replicas: Option<usize>,
    /// Version of the list of servers.
    #[serde(default)]
    pub servers_version: u16,
    /// Timeout of each operation.
    #[serde(default = "timeout", deserialize_with = "duration")]
    pub timeout: Duration,
}

/// How clients select.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DirectTable {
    /// The algorithm.
    pub selector: Algorithm,
    /// Number of clients that select among the same servers.
    #[serde(default = "one")]
    pub selectors: u32,
}

fn timeout() -> Duration {
    Duration::from_secs(2)
}

fn one() -> u32 {
    1
}

impl CacheFile {
    /// The cache of `midflight up --cache` with this operator; default: its default address.
    #[must_use]
    pub fn of_up(operator: Option<SocketAddr>) -> Self {
        let operator = operator.unwrap_or_else(|| (Ipv4Addr::LOCALHOST, DEFAULT_PORT).into());
        let port = |agent| operator.port().saturating_add(FIRST_AGENT + agent);
        Self {
            operator: Some(operator),
            direct: None,
            servers: (0..AGENTS).map(|agent| SocketAddr::new(operator.ip(), port(agent))).collect(),
            replicas: None,
            servers_version: 0,
            timeout: timeout(),
        }
    }

    /// Parses a configuration; errors call it `file`.
    ///
    /// # Errors
    /// Names file, line or key, what is wrong, and what is allowed.
    pub fn parse(text: &str, file: &Path) -> Result<Self, FileError> {
        let table: Self = file::parse(text, file)?;
        table.check().map_err(|message| FileError::value(file, message))?;
        Ok(table)
    }

    /// Reads it from a file.
    ///
    /// # Errors
    /// As [`parse`](Self::parse), or the file cannot be read.
    pub fn load(file: &Path) -> Result<Self, FileError> {
        Self::parse(&file::read(file, "`midflight cache --print-config` prints one to start from")?, file)
    }

    fn check(&self) -> Result<(), String> {
        if self.operator.is_some() == self.direct.is_some() {
            return Err("say one of operator and direct: who selects".into());
        }
        if let Some(direct) = self.direct {
            within("direct.selectors", direct.selectors, 1..=1_000_000)?;
        }
        if let Some(replicas) = self.replicas {
            within("replicas", replicas, 1..=CANDIDATES_MAX)?;
        }
        within("servers_version", self.servers_version, 0..=VERSION_MAX)?;
        within_time("timeout", self.timeout, "1ms", "1h")?;
        let replicas = self.replicas.unwrap_or(REPLICAS.min(self.servers.len()));
        Keyspace::new(&self.servers, replicas, self.servers_version).map_err(|error| error.to_string())?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<CacheFile, String> {
        CacheFile::parse(text, Path::new("c.toml")).map_err(|error| error.to_string())
    }

    #[test]
    fn the_printed_example_has_the_defaults() {
        let example = parse(EXAMPLE_TOML).unwrap();
        let least = parse(
            "operator = \"10.0.1.1:7700\"\nservers = [\"10.0.2.10:7800\", \"10.0.2.11:7800\", \"10.0.2.12:7800\"]",
        );
        assert_eq!(CacheFile { replicas: None, ..example.clone() }, least.unwrap());
        assert_eq!(example.replicas, Some(REPLICAS));
        let direct = EXAMPLE_TOML.replace("operator = ", "# ").replace("# direct", "direct");
        let expected = DirectTable { selector: Algorithm::C3, selectors: 20 };
        assert_eq!(parse(&direct).unwrap(), CacheFile { operator: None, direct: Some(expected), ..example });
        assert!(Algorithm::ALL.iter().all(|algorithm| EXAMPLE_TOML.contains(algorithm.name())));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (from, to, expected) in [
            ("# direct", "direct", "c.toml: say one of operator and direct"),
            ("operator = ", "# ", "c.toml: say one of operator and direct"),
            ("replicas = 3", "replicas = 4", "c.toml: 4 replicas of each key on 3 servers"),
            ("replicas = 3", "replicas = 9", "c.toml: replicas = 9: must be 1 to 8"),
            ("10.0.2.12", "10.0.2.11", "c.toml: server 10.0.2.11:7800 is there twice"),
            ("servers_version = 0", "servers_version = 4096", "c.toml: servers_version = 4096: must be 0 to 4095"),
            ("servers_version = 0", "version = 0", "c.toml:14: "),
            ("timeout = \"2s\"", "timeout = \"2h\"", "c.toml: timeout = 7200s: must be \"1ms\" to \"1h\""),
        ] {
            assert!(EXAMPLE_TOML.contains(from), "{from}");
            let error = parse(&EXAMPLE_TOML.replace(from, to)).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
        let error = parse("direct = { selector = \"c4\" }\nservers = [\"10.0.0.1:1\"]").unwrap_err();
        assert!(error.starts_with("c.toml:1: ") && error.contains("c3"), "{error}");
        assert!(CacheFile::load(Path::new("/nonexistent")).unwrap_err().to_string().contains("--print-config"));
    }
}
