//! Errors of usage end with another exit code than failures, and option groups that several subcommands share.

use anyhow::Result;
use clap::Args;
use midflight_control::{Config, ResourceNames};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What was asked for does not make sense; the message says what would.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(String);

/// A usage error with this message.
pub(crate) fn error(message: impl std::fmt::Display) -> anyhow::Error {
    UsageError(message.to_string()).into()
}

/// Exit code after Ctrl-C: 128 + SIGINT.
pub(crate) const INTERRUPTED: u8 = 130;

/// Where names of resources come from.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ConfigFile {
    /// Configuration of the cluster: its [resources] table names resources (see docs/configuration.md)
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

impl ConfigFile {
    /// The file, or the defaults without one.
    pub(crate) fn load(&self) -> Result<Config> {
        self.config.as_deref().map_or_else(|| Ok(Config::default()), |file| Config::load(file).map_err(error))
    }

    /// The mask of a list of names.
    pub(crate) fn mask(&self, list: &str) -> Result<u8> {
        let names: ResourceNames = self.load()?.resources;
        names.mask(list).map_err(error)
    }
}

/// What tasks ask for.
#[derive(Args, Clone, Debug)]
pub(crate) struct TaskOptions {
    /// Priority: 1 (the highest) to 8
    #[arg(long, short, value_name = "LEVEL", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=8))]
    pub priority: u8,
    /// Resources that the executor must have, such as gpu,ssd (names of --config, or r0 to r7)
    #[arg(long, value_name = "NAMES", default_value = "")]
    pub resources: String,
    /// How long one attempt may take, such as 500ms or 2m; default: for ever
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// How often a task that failed is tried again
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub retries: u32,
}

/// Parses what people write for a duration.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text).map_err(|_| "write it like 500ms, 2s or 1m 30s".to_owned())?;
    if duration.is_zero() { Err("must be more than 0".into()) } else { Ok(duration) }
}

/// A file that cannot be written is known before the work, not after it.
pub(crate) fn check_output(flag: &str, path: &Path) -> Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if directory.is_some_and(|directory| !directory.is_dir()) || path.is_dir() {
        return Err(error(format!("{flag} {}: name a file in a directory that exists", path.display())));
    }
    Ok(())
}

/// Flags win over the file.
pub(crate) fn override_addresses(config: &mut Config, listen: Option<&str>, http: Option<&str>) -> Result<()> {
    if let Some(listen) = listen {
        config.listen = resolve(listen)?;
    }
    match http {
        Some("off" | "") => config.http = None,
        Some(http) => config.http = Some(resolve(http)?),
        None => {}
    }
    Ok(())
}

/// The addresses of a comma-separated list of HOST:PORT.
pub(crate) fn resolve_all(list: &str) -> Result<Vec<SocketAddr>> {
    list.split(',').map(resolve).collect()
}

/// The first address of HOST:PORT.
pub(crate) fn resolve(name: &str) -> Result<SocketAddr> {
    midflight_host::resolve(name.trim()).map_err(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_without_port_says_how_to_write_it() {
        let error = resolve("localhost").unwrap_err();
        assert!(error.is::<UsageError>());
        assert!(error.to_string().contains("as HOST:PORT"), "{error}");
    }

    #[test]
    fn lists_of_switches_keep_their_order() {
        let expected: Vec<SocketAddr> = vec!["127.0.0.1:1".parse().unwrap(), "127.0.0.2:2".parse().unwrap()];
        assert_eq!(resolve_all("127.0.0.1:1, 127.0.0.2:2").unwrap(), expected);
    }

    #[test]
    fn durations_are_more_than_zero() {
        assert_eq!(duration("1m 30s"), Ok(Duration::from_secs(90)));
        assert!(duration("0s").is_err() && duration("5").is_err());
    }
}
