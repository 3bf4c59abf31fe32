//! The table `[cache]` of a switch's configuration.

use crate::config::{ProgramTable, within_time};
use crate::file::{Table, within};
use midflight_cache::select::Algorithm;
use midflight_dataplane::cache::{
    CacheConfig, NUMBERS_MAX, PLACES_MAX, REPLICA_GROUPS_MAX, SERVERS_MAX, Selection, UNDER_WAY_MAX,
};
use midflight_dataplane::duration::duration;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Bounds of an operator, its control connection, and its selector.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheTable {
    /// The keys of `[cache]` itself.
    pub bounds: CacheConfig,
    /// `[cache.control]`
    pub control: ControlTable,
    /// `[cache.selector]`, if there is one.
    pub selector: Option<SelectorTable>,
}

/// The control connection of an operator.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ControlTable {
    /// TCP address for controllers.
    pub listen: SocketAddr,
    /// Addresses of the controllers.
    pub from: BTreeSet<IpAddr>,
    /// The file with the secret that it shares with them.
    pub secret: Option<PathBuf>,
}

/// The selector of an operator.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SelectorTable {
    /// UDP address.
    pub listen: SocketAddr,
    /// Its algorithm.
    #[serde(default)]
    pub algorithm: Algorithm,
    /// Most servers that it knows.
    #[serde(default = "servers")]
    pub servers: u16,
    /// Most replica groups that it knows.
    #[serde(default = "replica_groups")]
    pub replica_groups: u32,
    /// Most requests in flight that it remembers.
    #[serde(default = "under_way")]
    pub under_way: u32,
    /// A request without an answer for this long no longer counts as outstanding.
    #[serde(default = "expire", deserialize_with = "duration")]
    pub expire: Duration,
    /// Most requests that wait for rate control.
    #[serde(default = "waiting")]
    pub waiting: u32,
    /// How long a request may wait for rate control.
    #[serde(default = "hold", deserialize_with = "duration")]
    pub hold: Duration,
}

fn servers() -> u16 {
    1_024
}

fn replica_groups() -> u32 {
    65_536
}

fn under_way() -> u32 {
    8_192
}

fn expire() -> Duration {
    Duration::from_secs(1)
}

fn waiting() -> u32 {
    1_024
}

fn hold() -> Duration {
    Duration::from_millis(20)
}

impl Default for ControlTable {
    fn default() -> Self {
        let from = [IpAddr::from([127, 0, 0, 1]), IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1])];
        Self { listen: SocketAddr::from(([0, 0, 0, 0], DEFAULT_CONTROL_PORT)), from: from.into(), secret: None }
    }
}

/// TCP port on which an operator takes orders.
pub const DEFAULT_CONTROL_PORT: u16 = 7702;

impl SelectorTable {
    /// A selector with the defaults.
    #[must_use]
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            algorithm: Algorithm::default(),
            servers: servers(),
            replica_groups: replica_groups(),
            under_way: under_way(),
            expire: expire(),
            waiting: waiting(),
            hold: hold(),
        }
    }

    fn validate(&self) -> Result<(), String> {
        if self.listen.ip().is_unspecified() {
            return Err(format!(
                "cache.selector.listen = \"{}\": name one address of this machine, by which servers know it",
                self.listen
            ));
        }
        if self.listen.port() == 0 {
            return Err("cache.selector.listen: name a port, by which controllers know it".into());
        }
        within("cache.selector.servers", self.servers, 1..=u16::MAX)?;
        within("cache.selector.replica_groups", self.replica_groups, 1..=1 << 24)?;
        within("cache.selector.under_way", self.under_way, 1..=1 << 16)?;
        within("cache.selector.waiting", self.waiting, 0..=1 << 16)?;
        within_time("cache.selector.expire", self.expire, "1ms", "1m")?;
        within_time("cache.selector.hold", self.hold, "1ms", "1s")
    }
}

impl ProgramTable for CacheTable {
    const NAME: &'static str = "cache";
    const DEFAULT_TOML: &'static str = include_str!("cache.toml");
    const EXAMPLE: &'static str = "`midflight switch --program cache --print-config` prints a file to start from";

    fn read(mut table: Table<'_>) -> Result<Self, toml::de::Error> {
        let control = table.take_table("control")?.rest()?;
        let selector = if table.has("selector") { Some(table.take_table("selector")?.rest()?) } else { None };
        Ok(Self { bounds: table.rest()?, control, selector })
    }

    fn resolve(&mut self, directory: &Path) {
        self.control.secret = self.control.secret.take().map(|secret| directory.join(secret));
    }

    fn validate(&self) -> Result<(), String> {
        let bounds = &self.bounds;
        within("cache.places", bounds.places, 1..=PLACES_MAX)?;
        within("cache.racks", bounds.racks, 1..=NUMBERS_MAX)?;
        within("cache.groups", bounds.groups, 1..=NUMBERS_MAX)?;
        within("cache.rsnodes", bounds.rsnodes, 1..=NUMBERS_MAX)?;
        if bounds.masks[0] != 0 {
            return Err("cache.masks: the first is of the topmost tier, and is 0".into());
        }
        within_time("cache.cookie", Duration::from_nanos(bounds.cookie_ns), "50ms", "1h")?;
        within("cache.servers", bounds.servers, 1..=SERVERS_MAX)?;
        within("cache.replica_groups", bounds.replica_groups, 1..=REPLICA_GROUPS_MAX)?;
        within("cache.under_way", bounds.under_way, 1..=UNDER_WAY_MAX)?;
        within_time("cache.expire", Duration::from_nanos(bounds.expire_ns), "1ms", "1m")?;
        if bounds.selection != Selection::None && self.selector.is_some() {
            return Err(
                "cache.selection: the operator selects by itself, so leave out [cache.selector], or selection".into()
            );
        }
        if self.control.from.is_empty() {
            return Err("cache.control.from is empty: name the addresses of controllers".into());
        }
        self.selector.as_ref().map_or(Ok(()), SelectorTable::validate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    fn parse(text: &str) -> Result<Config<CacheTable>, String> {
        Config::parse(text, Path::new("o.toml")).map_err(|error| error.to_string())
    }

    #[test]
    fn the_printed_default_is_the_default() {
        assert_eq!(parse(&Config::<CacheTable>::default_toml()), Ok(Config::default()));
        assert_eq!(parse(""), Ok(Config::default()));
    }

    /// A key in a comment shows the value that it has if it is left out.
    #[test]
    fn the_printed_selector_has_the_defaults() {
        let (_, selector) = CacheTable::DEFAULT_TOML.split_once("# [cache.selector]\n").unwrap();
        let is_key = |line: &&str| line.starts_with("# ") && line.contains(" = ") && !line.contains(": ");
        let keys: Vec<_> = selector.lines().filter(is_key).map(|line| &line[2..]).collect();
        assert_eq!(keys.len(), 8);
        let config = parse(&format!("[cache.selector]\n{}", keys.join("\n"))).unwrap();
        let expected = SelectorTable::new("10.0.1.1:7703".parse().unwrap());
        assert_eq!(config.program.selector, Some(expected));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, expected) in [
            ("[cache]\nplaces = 0", "o.toml: cache.places = 0: must be 1 to 1048576"),
            ("[cache]\nmasks = [1, 0, 0, 0]", "o.toml: cache.masks: the first is of the topmost tier"),
            ("[cache]\ncookie = \"1ms\"", "o.toml: cache.cookie = 1ms: must be \"50ms\" to \"1h\""),
            ("[cache]\nunder_way = 0", "o.toml: cache.under_way = 0: must be 1 to 65536"),
            (
                "[cache]\nselection = \"c3\"\n[cache.selector]\nlisten = \"10.0.0.1:1\"",
                "o.toml: cache.selection: the operator selects by itself",
            ),
            ("[cache.control]\nfrom = []", "o.toml: cache.control.from is empty"),
            ("[cache.control]\nfrom = [\"here\"]", "o.toml:2: key `from`: "),
            ("[cache.selector]\nalgorithm = \"c3\"", "o.toml:1: missing field `listen`"),
            ("[cache.selector]\nlisten = \"0.0.0.0:1\"", "o.toml: cache.selector.listen = \"0.0.0.0:1\": name one"),
            (
                "[cache.selector]\nlisten = \"10.0.0.1:1\"\nalgorithm = \"c4\"",
                "o.toml:3: key `algorithm`: unknown variant",
            ),
            ("[cache.selector]\nlisten = \"10.0.0.1:1\"\nexpire = \"0s\"", "o.toml: cache.selector.expire = 0ns"),
            ("[cache.select]\nlisten = \"10.0.0.1:1\"", "o.toml:1: unknown field `select`"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
