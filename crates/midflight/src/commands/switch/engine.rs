//! Which engine serves: flags, configuration, and how it is named.

use crate::usage;
use anyhow::Result;
use clap::{Args as ClapArgs, ValueEnum};
use midflight_control::{Config, EngineConfig, EngineKind, EngineStatus, XdpMode};
use midflight_host::{Engine, KernelOptions};

/// Flags of the engine; they win over the configuration.
#[derive(ClapArgs)]
pub(super) struct Options {
    /// Who decides: this process, or XDP and TC programs in the kernel (root, Linux 6.12); default: user
    #[arg(long, value_name = "ENGINE")]
    engine: Option<Kind>,
    /// Interfaces that the kernel engine serves
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    interface: Vec<String>,
    /// How XDP is attached: in the driver, or behind it on any interface, slower; default: native
    #[arg(long, value_name = "MODE")]
    mode: Option<Mode>,
    /// The kernel engine's queue and programs outlive this process, and the next start with --keep takes them over
    #[arg(long)]
    keep: bool,
    /// Throw away what was kept before
    #[arg(long)]
    fresh: bool,
    /// Detach what was kept on the port of --listen, and end
    #[arg(long, conflicts_with_all = ["engine", "interface", "mode", "keep", "fresh"])]
    pub(super) detach: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    User,
    Kernel,
}

#[derive(Clone, Copy, ValueEnum)]
enum Mode {
    Native,
    Generic,
}

impl Options {
    /// The engine that flags and configuration ask for together.
    pub(super) fn apply(&self, config: &Config) -> Result<Engine> {
        let EngineConfig { kind, interfaces, mode, keep } = &config.engine;
        let kernel = match self.engine {
            Some(kind) => matches!(kind, Kind::Kernel),
            None => *kind == EngineKind::Kernel,
        };
        if !kernel {
            let flags = [
                ("--interface", !self.interface.is_empty()),
                ("--mode", self.mode.is_some()),
                ("--keep", self.keep),
                ("--fresh", self.fresh),
            ];
            return match flags.into_iter().find(|(_, given)| *given) {
                Some((flag, _)) => Err(usage::error(format!("{flag} is for the kernel engine: add --engine kernel"))),
                None => Ok(Engine::User),
            };
        }
        let interfaces = if self.interface.is_empty() { interfaces.clone() } else { self.interface.clone() };
        if interfaces.is_empty() || interfaces.iter().any(String::is_empty) {
            return Err(usage::error("the kernel engine serves interfaces: name them, --interface eth0 for example"));
        }
        let generic = self.mode.map_or(*mode == XdpMode::Generic, |mode| matches!(mode, Mode::Generic));
        let keep = self.keep || *keep;
        if keep && config.listen.port() == 0 {
            return Err(usage::error(
                "--keep needs a port by which the next start finds the queue: --listen HOST:PORT",
            ));
        }
        let mode = if generic { midflight_host::XdpMode::Generic } else { midflight_host::XdpMode::Native };
        Ok(Engine::Kernel(KernelOptions { interfaces, mode, keep, fresh: self.fresh }))
    }
}

/// For `/status` and metrics.
pub(super) fn status(engine: &Engine) -> EngineStatus {
    match engine {
        Engine::User => EngineStatus::user(),
        Engine::Kernel(KernelOptions { interfaces, mode, .. }) => {
            EngineStatus { kind: "kernel".into(), mode: Some(mode.name().into()), interfaces: interfaces.clone() }
        }
    }
}

/// For the first line; nothing for user space.
pub(super) fn describe(engine: &Engine) -> String {
    let Engine::Kernel(KernelOptions { interfaces, mode, keep, .. }) = engine else { return String::new() };
    let mode = match mode {
        midflight_host::XdpMode::Native => "native",
        midflight_host::XdpMode::Generic => "generic (slower than native)",
    };
    let kept = if *keep { ", kept" } else { "" };
    format!(", in the kernel on {}, XDP {mode}{kept}", interfaces.join(" and "))
}

/// The interfaces on which a switch stays that ends now.
pub(super) fn kept_on(engine: &Engine) -> Option<String> {
    match engine {
        Engine::Kernel(options) if options.keep => Some(options.interfaces.join(", ")),
        _ => None,
    }
}
