//! `midflight controller operator`: the configuration of an operator's switch.

use super::load;
use anyhow::Result;
use clap::Args as ClapArgs;
use midflight_control::replicas::ControllerFile;
use midflight_terminal::{stdout, usage};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
EXAMPLES
  midflight controller operator tor-0 --config controller.toml > tor-0.toml
  midflight switch --config tor-0.toml

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
}

impl Args {
    pub(super) fn run(&self) -> Result<ExitCode> {
        let file = load(&self.config)?;
        let operators = file.network.topology().operators();
        let Some(operator) = operators.iter().position(|operator| operator.id == self.switch) else {
            let names: Vec<_> = operators.iter().map(|operator| operator.id.as_str()).collect();
            return Err(usage::error(format!("the topology has no switch {}, but {}", self.switch, names.join(", "))));
        };
        stdout::print(&toml(&file, operator))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// What must fit the controllers' file; all else has its default.
fn toml(file: &ControllerFile, operator: usize) -> String {
    let ControllerFile { controllers, network, control, config } = file;
    let from: BTreeSet<IpAddr> = controllers.iter().map(std::net::SocketAddr::ip).collect();
    let from: Vec<_> = from.iter().map(|ip| format!("\"{ip}\"")).collect();
    let masks = network.masks().map(|mask| format!("{mask:#x}")).join(", ");
    let selector = network.selector(operator).map_or_else(String::new, |address| {
        format!("\n[replicas.selector]\nlisten = \"{address}\"\nalgorithm = \"c3\"\n")
    });
    let switch = &network.topology().operators()[operator].id;
    format!(
        "# The operator at switch {switch}. `midflight switch --program replicas --print-config` explains every key.\n\
         listen = \"{}\"\n\n[replicas]\nmasks = [{masks}]\nrsnodes = {}\n\n[replicas.control]\nlisten = \"{}\"\nfrom = [{}]\n{selector}",
        network.address(operator),
        config.rsnodes,
        control[operator],
        from.join(", ")
    )
}
