//! `midflight controller operator`: the configuration of an operator's switch.

use super::load;
use anyhow::Result;
use clap::Args as ClapArgs;
use midflight_cache::control::Network;
use midflight_cache::select::Algorithm;
use midflight_control::cache::ControllerFile;
use midflight_dataplane::cache::{CacheConfig, NUMBERS_MAX, PLACES_MAX, Selection};
use midflight_terminal::{stdout, usage};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXAMPLES: &str = "\
EXAMPLES
  midflight controller operator tor-0 --config controller.toml > tor-0.toml
  midflight switch --config tor-0.toml
  midflight controller operator tor-0 --config controller.toml --selector c3 --in-core > tor-0.toml

An operator at which the controllers' file names a selector gets one: a thread beside it, or
(--in-core) the choice is made in its core, in the kernel too, which is faster.

EXIT CODES
  0 printed, 2 wrong usage or configuration";

#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The switch, as the topology names it
    switch: String,
    /// Configuration of the controllers
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// How it selects, if it does
    #[arg(long, value_name = "SELECTOR", default_value = Algorithm::default().name())]
    selector: Algorithm,
    /// It selects in its core: random, least-outstanding, power-of-two or c3
    #[arg(long)]
    in_core: bool,
}

impl Args {
    pub(super) fn run(&self) -> Result<ExitCode> {
        if self.in_core && !in_core().any(|name| name == self.selector.name()) {
            let names: Vec<_> = in_core().collect();
            return Err(usage::error(format!("--in-core --selector {}: one of {}", self.selector, names.join(", "))));
        }
        let file = load(&self.config)?;
        let operators = file.network.topology().operators();
        let Some(operator) = operators.iter().position(|operator| operator.id == self.switch) else {
            let names: Vec<_> = operators.iter().map(|operator| operator.id.as_str()).collect();
            return Err(usage::error(format!("the topology has no switch {}, but {}", self.switch, names.join(", "))));
        };
        stdout::print(&self.toml(&file, operator))?;
        Ok(ExitCode::SUCCESS)
    }

    /// Only the keys that must match the controllers' file, and the selector.
    fn toml(&self, file: &ControllerFile, operator: usize) -> String {
        let ControllerFile { controllers, secret, network, control, config } = file;
        let from: BTreeSet<IpAddr> = controllers.iter().map(std::net::SocketAddr::ip).collect();
        let from: Vec<_> = from.iter().map(|ip| format!("\"{ip}\"")).collect();
        let masks = network.masks().map(|mask| format!("{mask:#x}")).join(", ");
        let (selection, selector) = match network.selector(operator) {
            None => Default::default(),
            Some(_) if self.in_core => (format!("selection = \"{}\"\n", self.selector), String::new()),
            Some(address) => {
                let table = format!("\n[cache.selector]\nlisten = \"{address}\"\nalgorithm = \"{}\"\n", self.selector);
                (String::new(), table)
            }
        };
        let switch = &network.topology().operators()[operator].id;
        let bounds = bounds(network);
        format!(
            "# The operator at switch {switch}. `midflight switch --program cache --print-config` explains every key.\n\
             listen = \"{}\"\n\n[cache]\n{bounds}{selection}masks = [{masks}]\nrsnodes = {}\n\n\
             [cache.control]\nlisten = \"{}\"\nfrom = [{}]\n{}{selector}",
            network.address(operator),
            config.rsnodes,
            control[operator],
            from.join(", "),
            secret.as_ref().map_or_else(String::new, |secret| format!("secret = {}\n", quoted(secret)))
        )
    }
}

fn quoted(path: &Path) -> String {
    // TOML's basic strings escape as JSON does.
    serde_json::Value::from(path.to_string_lossy()).to_string()
}

/// Selectors that run in an operator's core.
fn in_core() -> impl Iterator<Item = &'static str> {
    Selection::ALL.into_iter().filter(|selection| *selection != Selection::None).map(Selection::name)
}

/// Bounds above the defaults, doubled for growth.
fn bounds(network: &Network) -> String {
    let default = CacheConfig::default();
    let places = network.hosts().len() + network.servers().len() + network.operators();
    let needed = [
        ("places", places, default.places, PLACES_MAX),
        ("racks", network.racks().len(), default.racks, NUMBERS_MAX),
        ("groups", network.groups().len(), default.groups, NUMBERS_MAX),
    ];
    let beyond = needed.iter().filter(|(_, needed, default, _)| *needed > *default as usize);
    beyond.map(|(name, needed, _, most)| format!("{name} = {}\n", (2 * needed).min(*most as usize))).collect()
}
