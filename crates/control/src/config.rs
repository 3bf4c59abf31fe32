//! The configuration file of a switch: keys that all switches have, and a table for its program. [`Config::default_toml`] documents every
//! key; `docs/configuration.md` says when to change which.

use crate::admin;
use crate::file::{self, FileError, Table, within};
use crate::tasks::TasksTable;
use midflight_dataplane::XdpMode;
use midflight_dataplane::duration::duration;
use serde::{Deserialize, Deserializer, de::Error as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

const DEFAULT_TOML: &str = include_str!("switch.toml");

const EXAMPLE: &str = "`midflight switch --print-config` prints a file to start from";

/// UDP port of a switch.
pub const DEFAULT_PORT: u16 = 7700;
/// TCP port of a switch's `/metrics`, `/healthz` and `/status`.
pub const DEFAULT_HTTP_PORT: u16 = 7701;

/// The table of a program in the configuration.
pub trait ProgramTable: Clone + Default + PartialEq {
    /// The table's name, which is the program's.
    const NAME: &'static str;
    /// Its commented default.
    const DEFAULT_TOML: &'static str;
    /// Says where there is a file to start from, for the error about a missing one.
    const EXAMPLE: &'static str = EXAMPLE;

    /// Parses the table.
    ///
    /// # Errors
    /// An unknown key, or a value of a wrong type.
    fn read(table: Table<'_>) -> Result<Self, toml::de::Error>;

    /// Checks every bound; the error names key, value and what is allowed.
    ///
    /// # Errors
    /// The first value that is outside its bounds.
    fn validate(&self) -> Result<(), String>;

    /// Resolves relative paths in the configuration against the directory of the configuration file.
    fn resolve(&mut self, _directory: &Path) {}
}

/// The configuration of a switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config<T = TasksTable> {
    /// The keys that all switches have.
    pub switch: SwitchTable,
    /// The program's bounds and times.
    pub program: T,
}

/// The keys that all switches have, whichever program they run.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SwitchTable {
    /// UDP address for clients and executors.
    #[serde(deserialize_with = "address")]
    pub listen: SocketAddr,
    /// TCP address of the HTTP server, if there is one.
    #[serde(deserialize_with = "optional_address")]
    pub http: Option<SocketAddr>,
    /// Host names, besides IP addresses and `localhost`, under which the page may be opened.
    pub http_names: Vec<String>,
    /// The program's engine, and its interfaces.
    pub engine: EngineConfig,
    /// The UDP socket.
    pub socket: SocketConfig,
    /// The socket for `midflight purge` and `midflight store policy`: a path, "auto" or "".
    pub admin: String,
}

/// The engine and its options.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EngineConfig {
    /// User space or kernel.
    pub kind: EngineKind,
    /// Interfaces that the kernel engine serves.
    pub interfaces: Vec<String>,
    /// How its XDP programs are attached.
    #[serde(deserialize_with = "xdp_mode")]
    pub mode: XdpMode,
    /// Whether its queue and programs outlive the process.
    pub keep: bool,
}

impl Default for EngineConfig {
    fn default() -> Self {
        let (kind, interfaces, mode) = (EngineKind::default(), Vec::new(), XdpMode::default());
        Self { kind, interfaces, mode, keep: false }
    }
}

/// The engine that makes the decisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EngineKind {
    /// In this process.
    #[default]
    User,
    /// In the kernel, as XDP and TC programs.
    Kernel,
}

/// Options of the UDP socket.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SocketConfig {
    /// SO_RCVBUF.
    pub receive_buffer_bytes: u32,
    /// SO_SNDBUF.
    pub send_buffer_bytes: u32,
    /// How long to poll the socket before sleeping.
    #[serde(deserialize_with = "duration")]
    pub busy_poll: Duration,
}

impl Default for SwitchTable {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([0, 0, 0, 0], DEFAULT_PORT)),
            http: Some(SocketAddr::from(([127, 0, 0, 1], DEFAULT_HTTP_PORT))),
            http_names: Vec::new(),
            engine: EngineConfig::default(),
            socket: SocketConfig::default(),
            admin: "auto".into(),
        }
    }
}

impl Default for SocketConfig {
    fn default() -> Self {
        Self { receive_buffer_bytes: 4 << 20, send_buffer_bytes: 4 << 20, busy_poll: Duration::from_micros(100) }
    }
}

impl SwitchTable {
    /// The path of the operator's socket for a switch on this port, if it has one.
    #[must_use]
    pub fn admin_path(&self, port: u16) -> Option<PathBuf> {
        match self.admin.as_str() {
            "" => None,
            "auto" => Some(admin::default_path("switch", port)),
            path => Some(path.into()),
        }
    }

    fn validate(&self) -> Result<(), String> {
        const MAX_BUFFER: u32 = 1 << 30;
        let socket = &self.socket;
        within("socket.receive_buffer_bytes", socket.receive_buffer_bytes, 65_536..=MAX_BUFFER)?;
        within("socket.send_buffer_bytes", socket.send_buffer_bytes, 65_536..=MAX_BUFFER)?;
        within_time("socket.busy_poll", socket.busy_poll, "0s", "10ms")?;
        self.engine.interfaces.iter().try_for_each(|name| interface(name))
    }
}

impl<T: ProgramTable> Config<T> {
    /// The commented default file.
    #[must_use]
    pub fn default_toml() -> String {
        format!("{DEFAULT_TOML}\n{}", T::DEFAULT_TOML)
    }

    /// Reads and checks a file.
    ///
    /// # Errors
    /// An unreadable file, an unknown key, a value of a wrong type or outside its bounds.
    pub fn load(file: &Path) -> Result<Self, FileError> {
        let text = file::read(file, T::EXAMPLE)?;
        let mut config = Self::parse(&text, file)?;
        config.program.resolve(file.parent().unwrap_or(Path::new("")));
        Ok(config)
    }

    /// As [`Config::load`], from text; errors call it `file`.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn parse(text: &str, file: &Path) -> Result<Self, FileError> {
        let config = file::parse_by(text, file, |mut table| {
            let program = T::read(table.take_table(T::NAME)?)?;
            Ok(Self { program, switch: table.rest()? })
        });
        let config = config.map_err(|error| error.with_known(T::NAME, "listen"))?;
        config.validate().map_err(|message| FileError::value(file, message))?;
        Ok(config)
    }

    /// Checks every bound; the error names key, value and what is allowed.
    ///
    /// # Errors
    /// The first value that is outside its bounds.
    pub fn validate(&self) -> Result<(), String> {
        self.program.validate()?;
        self.switch.validate()
    }
}

/// The tables among `names` that a file has.
///
/// # Errors
/// An unreadable file, or one that is not TOML.
pub fn tables_of(file: &Path, names: &[&'static str]) -> Result<Vec<&'static str>, FileError> {
    let text = file::read(file, EXAMPLE)?;
    file::parse_by(&text, file, |table| Ok(names.iter().copied().filter(|name| table.has(name)).collect()))
}

/// The kernel's own rule for names of interfaces, without names that a shell cannot handle.
fn interface(name: &str) -> Result<(), String> {
    const MAX: usize = 15; // IFNAMSIZ, less the NUL
    let plain = name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/');
    if plain && (1..=MAX).contains(&name.len()) {
        return Ok(());
    }
    Err(format!("engine.interfaces: {name:?} is no interface's name: it has 1 to {MAX} characters, no space and no /"))
}

/// Checks a time whose bounds are given as text, such as `5s`.
///
/// # Errors
/// Names key, value and bounds.
pub fn within_time(key: &str, value: Duration, least: &str, most: &str) -> Result<(), String> {
    let is_within = |bounds: (Duration, Duration)| (bounds.0..=bounds.1).contains(&value);
    if humantime::parse_duration(least).ok().zip(humantime::parse_duration(most).ok()).is_some_and(is_within) {
        return Ok(());
    }
    Err(format!("{key} = {value:?}: must be \"{least}\" to \"{most}\""))
}

fn xdp_mode<'de, D: Deserializer<'de>>(deserializer: D) -> Result<XdpMode, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}

fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    parsed(&String::deserialize(deserializer)?, "\"0.0.0.0:7700\" or \"[::]:7700\"")
}

fn optional_address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SocketAddr>, D::Error> {
    let text = String::deserialize(deserializer)?;
    (!text.is_empty()).then(|| parsed(&text, "\"127.0.0.1:7701\", nor \"\" for off")).transpose()
}

fn parsed<E: serde::de::Error>(text: &str, such_as: &str) -> Result<SocketAddr, E> {
    text.parse().map_err(|_| E::custom(format!("\"{text}\" is not an IP address with a port, such as {such_as}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::CacheTable;
    use crate::store::StoreTable;

    fn parse(text: &str) -> Result<Config, String> {
        Config::parse(text, Path::new("m.toml")).map_err(|error| error.to_string())
    }

    /// `table.key` of every line that sets one, also in a comment.
    fn documented_keys(text: &str) -> Vec<String> {
        let mut table = String::new();
        let mut keys = Vec::new();
        for line in text.lines().map(|line| line.strip_prefix("# ").unwrap_or(line)) {
            if line.starts_with('[') && line.ends_with(']') {
                table = format!("{}.", line.trim_matches(['[', ']']));
            } else if let Some((key, value)) = line.split_once(" = ").filter(|(key, _)| !key.contains([' ', '"', ':']))
            {
                match value.strip_prefix("{ ") {
                    Some(within) => {
                        let names = within.split(", ").filter_map(|pair| pair.split(' ').next());
                        keys.extend(names.map(|name| format!("{table}{key}.{name}")));
                    }
                    None => keys.push(format!("{table}{key}")),
                }
            }
        }
        // Names that users give.
        keys.retain(|key| !key.starts_with("tasks.resources."));
        keys
    }

    #[test]
    fn the_printed_default_is_the_default() {
        assert_eq!(parse(&Config::<TasksTable>::default_toml()), Ok(Config::default()));
        assert_eq!(parse(""), Ok(Config::default()));
        Config::<TasksTable>::default().validate().unwrap();
    }

    #[test]
    fn the_guide_lists_every_key() {
        let guide = include_str!("../../../docs/configuration.md");
        for (text, count) in [
            (Config::<TasksTable>::default_toml(), 24),
            (Config::<StoreTable>::default_toml(), 34),
            (Config::<CacheTable>::default_toml(), 33),
        ] {
            let keys = documented_keys(&text);
            assert_eq!(keys.len(), count, "{keys:?}");
            for key in keys {
                assert!(guide.contains(&format!("`{key}`")), "docs/configuration.md does not explain `{key}`");
            }
        }
    }

    #[test]
    fn every_key_has_a_comment_above_it() {
        let text = Config::<TasksTable>::default_toml();
        let lines: Vec<_> = text.lines().collect();
        for (above, line) in lines.iter().zip(&lines[1..]) {
            let sets = !line.starts_with('#') && line.contains(" = ");
            assert!(!sets || above.starts_with('#'), "no comment above: {line}");
        }
    }

    #[test]
    fn an_unknown_key_is_named_with_its_line_and_the_known_ones() {
        let error = parse("[task]\nqueue = 5\n").unwrap_err();
        assert!(error.starts_with("m.toml:1: unknown field `task`, expected one of `tasks`, `listen`, "), "{error}");
        let error = parse("[tasks]\nquue = 5\n").unwrap_err();
        assert!(error.starts_with("m.toml:2: unknown field `quue`, expected one of `queue`, `slots`"), "{error}");
        assert_eq!(error.lines().count(), 1);
    }

    #[test]
    fn a_value_of_a_wrong_type_is_named_with_its_key() {
        for (text, part) in [
            ("[tasks]\nqueue = \"many\"", "m.toml:2: key `queue`: invalid type: string \"many\""),
            ("[tasks]\nlease = \"soon\"", "m.toml:2: key `lease`: \"soon\" is not a duration"),
            ("listen = \"here\"", "m.toml:1: key `listen`: \"here\" is not an IP address with a port"),
            ("http = \"9000\"", "m.toml:1: key `http`: \"9000\" is not an IP address with a port"),
            ("listen = ", "m.toml:1: key `listen`: "),
            ("tasks = 5", "m.toml:1: key `tasks`: invalid type: integer `5`"),
            ("tasks = 1979-05-27", "m.toml:1: key `tasks`: expected a table"),
            ("[engine]\nkind = \"gpu\"", "m.toml:2: key `kind`: unknown variant `gpu`, expected `user` or `kernel`"),
            ("[engine]\nmode = \"fast\"", "m.toml:2: key `mode`: unknown mode `fast`, expected `native` or `generic`"),
            ("[engine]\ninterfaces = \"eth0\"", "m.toml:2: key `interfaces`: invalid type: string \"eth0\""),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.starts_with(part), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }

    #[test]
    fn a_value_out_of_bounds_is_named_with_the_bounds() {
        for (text, error) in [
            ("[tasks]\nqueue = 0", "m.toml: tasks.queue = 0: must be 1 to 4194304"),
            (
                "[tasks]\nslot_idle = \"6s\"",
                "m.toml: tasks.slot_idle = 6s is less than twice tasks.cookie: use 10s or more, or a shorter cookie",
            ),
            ("[tasks]\nlevels = 9", "m.toml: tasks.levels = 9: must be 1 to 8"),
            ("[tasks]\nlease = \"10ms\"", "m.toml: tasks.lease = 10ms: must be \"100ms\" to \"1h\""),
            ("[socket]\nsend_buffer_bytes = 1", "m.toml: socket.send_buffer_bytes = 1: must be 65536 to 1073741824"),
            ("[socket]\nbusy_poll = \"1s\"", "m.toml: socket.busy_poll = 1s: must be \"0s\" to \"10ms\""),
            ("[tasks.resources]\ngpu = 9", "m.toml: tasks.resources.gpu = 9: must be 0 to 7"),
            (
                "[engine]\ninterfaces = [\"eth0,eth1,eth2,eth3\"]",
                "m.toml: engine.interfaces: \"eth0,eth1,eth2,eth3\" is no interface's name: it has 1 to 15 characters, \
                 no space and no /",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err(), error);
        }
    }

    #[test]
    fn durations_and_addresses_are_as_people_write_them() {
        let config =
            parse("listen = \"[::1]:7\"\nhttp = \"\"\n[tasks]\nlease = \"1m 30s\"\n[tasks.resources]\ngpu = 2")
                .unwrap();
        let Config { switch, program } = config;
        assert_eq!((switch.listen, switch.http), ("[::1]:7".parse().unwrap(), None));
        assert_eq!(program.bounds.lease_ns, 90_000_000_000);
        assert_eq!(program.resources.mask("gpu"), Ok(4));
    }
}
