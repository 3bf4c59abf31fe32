//! Chooses the engine from flags and configuration, and names it.

use super::program::SwitchProgram;
use anyhow::Result;
use clap::Args as ClapArgs;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use midflight_control::{Config, EngineConfig, EngineKind, EngineStatus};
use midflight_host::{KernelOptions, SwitchEngine, XdpMode};
use midflight_terminal::usage;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error as ValueError;

/// Flags of the engine; they win over the configuration.
#[derive(ClapArgs)]
pub(super) struct Options {
    /// Where the program runs: in this process, or by XDP and TC programs in the kernel (root, Linux 6.12); default: user
    #[arg(long, value_name = "ENGINE", value_parser = engine_kind())]
    engine: Option<EngineKind>,
    /// Interfaces that the kernel engine serves
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    interface: Vec<String>,
    /// How XDP is attached: in the driver, or behind it on any interface, slower; default: native
    #[arg(long, value_name = "MODE", value_parser = xdp_mode())]
    mode: Option<XdpMode>,
    /// Keep the kernel engine's queue and programs when this process ends; the next start with --keep takes them over
    #[arg(long)]
    keep: bool,
    /// Throw away what was kept before
    #[arg(long)]
    fresh: bool,
    /// Detach what was kept on the port of --listen, and end
    #[arg(long, conflicts_with_all = ["engine", "interface", "mode", "keep", "fresh"])]
    pub(super) detach: bool,
}

/// Accepts the names that the configuration uses.
fn engine_kind() -> impl TypedValueParser<Value = EngineKind> {
    PossibleValuesParser::new(["user", "kernel"])
        .try_map(|name| EngineKind::deserialize(name.as_str().into_deserializer()).map_err(|error: ValueError| error))
}

fn xdp_mode() -> impl TypedValueParser<Value = XdpMode> {
    PossibleValuesParser::new(XdpMode::ALL.map(XdpMode::name)).try_map(|name| name.parse())
}

impl Options {
    pub(super) fn apply<P: SwitchProgram>(&self, config: &Config<P::Table>) -> Result<SwitchEngine> {
        let EngineConfig { kind, interfaces, mode, keep, .. } = &config.switch.engine;
        let kind = self.engine.unwrap_or(*kind);
        if kind == EngineKind::User {
            let flags = [
                ("--interface", !self.interface.is_empty()),
                ("--mode", self.mode.is_some()),
                ("--keep", self.keep),
                ("--fresh", self.fresh),
            ];
            if let Some((flag, _)) = flags.into_iter().find(|(_, given)| *given) {
                return Err(usage::error(format!("{flag} is for the kernel engine: say --engine kernel")));
            }
            return Ok(SwitchEngine::User);
        }
        let interfaces = if self.interface.is_empty() { interfaces.clone() } else { self.interface.clone() };
        if interfaces.is_empty() || interfaces.iter().any(String::is_empty) {
            return Err(usage::error("the kernel engine serves interfaces: name them, --interface eth0 for example"));
        }
        let mode = self.mode.unwrap_or(*mode);
        let keep = self.keep || *keep;
        if keep && !P::CAN_BE_KEPT {
            return Err(usage::error(
                "an operator's rules end with its process: its controller sets them again; leave out --keep",
            ));
        }
        if keep && config.switch.listen.port() == 0 {
            return Err(usage::error(
                "--keep needs a port by which the next start finds the queue: --listen HOST:PORT",
            ));
        }
        let mut options = KernelOptions::default();
        (options.interfaces, options.mode, options.keep, options.fresh) = (interfaces, mode, keep, self.fresh);
        Ok(SwitchEngine::Kernel(options))
    }
}

pub(super) fn status(engine: &SwitchEngine) -> EngineStatus {
    match engine {
        SwitchEngine::User => EngineStatus::in_process("user"),
        SwitchEngine::Other(name) => EngineStatus::in_process(name),
        SwitchEngine::Kernel(KernelOptions { interfaces, mode, .. }) => {
            EngineStatus { kind: "kernel".into(), mode: Some(mode.name().into()), interfaces: interfaces.clone() }
        }
    }
}

/// Empty for user space.
pub(super) fn describe(engine: &SwitchEngine) -> String {
    let KernelOptions { interfaces, mode, keep, .. } = match engine {
        SwitchEngine::User => return String::new(),
        SwitchEngine::Other(name) => return format!(", engine {name}"),
        SwitchEngine::Kernel(options) => options,
    };
    let mode = match mode {
        XdpMode::Native => "native",
        XdpMode::Generic => "generic (slower than native)",
    };
    let kept = if *keep { ", kept" } else { "" };
    format!(", in the kernel on {}, XDP {mode}{kept}", interfaces.join(" and "))
}

/// Interfaces where programs stay after the process exits.
pub(super) fn kept_on(engine: &SwitchEngine) -> Option<String> {
    match engine {
        SwitchEngine::Kernel(options) if options.keep => Some(options.interfaces.join(", ")),
        _ => None,
    }
}
