//! `midflight-lab net`: hosts and a switch on this machine, in network namespaces.

mod down;
mod exec;
mod run;
mod status;
mod up;

use anyhow::Result;
use clap::{Args as ClapArgs, Subcommand};
use midflight_net::{Lab, LabError, Loss, Options};
use midflight_terminal::usage;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

/// Environment variable with the lab's name, the default of the option.
const NAME_VARIABLE: &str = "MIDFLIGHT_LAB";
const DEFAULT_NAME: &str = "demo";

const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab net up --hosts 4
  midflight-lab net up --hosts 6 --racks 2
  midflight-lab net exec switch -- midflight switch --listen 10.77.255.1:7700
  midflight-lab net status
  midflight-lab net down

A lab is a star of network namespaces: one is the switch, which forwards between the others, the
hosts; or a tree, where each rack has a switch of its own. Nothing leads out of it, and it needs
root and iproute2.

EXIT CODES
  0 done, 1 failed (no root, no such lab), 2 wrong usage, 130 interrupted";

#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Set a lab up, and say what to type next
    Up(up::Args),
    /// Run a command at one of its places
    Exec(exec::Args),
    /// Show the labs of this machine: places, namespaces, addresses
    Status(status::Args),
    /// Take a lab down, with all processes inside
    Down(down::Args),
    /// Set a lab up, run a command beside it, and take it down
    Run(run::Args),
}

impl Args {
    /// Whether a closed pipe ends the process at once.
    pub(crate) fn ends_with_its_reader(&self) -> bool {
        matches!(self.command, Command::Status(_))
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    match &args.command {
        Command::Up(args) => up::run(args),
        Command::Exec(args) => exec::run(args),
        Command::Status(args) => status::run(args),
        Command::Down(args) => down::run(args),
        Command::Run(args) => run::run(args),
    }
}

/// Which lab.
#[derive(ClapArgs)]
struct Name {
    /// Name of the lab [default: $MIDFLIGHT_LAB, or demo]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

impl Name {
    fn or_default(&self) -> String {
        let set = || std::env::var(NAME_VARIABLE).ok().filter(|name| !name.is_empty());
        self.name.clone().or_else(set).unwrap_or_else(|| DEFAULT_NAME.to_owned())
    }
}

/// The options of a new lab.
#[derive(ClapArgs)]
struct Wanted {
    /// Hosts
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = hosts)]
    hosts: usize,
    /// Racks with a switch each, between the hosts and the switch in the middle; 0: none
    #[arg(long, value_name = "N", default_value_t = 0)]
    racks: usize,
    /// Lose this part of the packets at random, on each link in each direction, such as 0.1%
    #[arg(long, value_name = "RATE", default_value_t = Loss::NONE)]
    loss: Loss,
    /// No XDP program at the hosts: faster for a switch in user space, but what XDP programs of the switch's namespace
    /// send back by XDP_TX is lost
    #[arg(long)]
    no_xdp: bool,
}

impl Wanted {
    /// Sets the lab up, unless a signal comes.
    fn up(&self, name: String, interrupted: &AtomicBool) -> Result<Lab> {
        let options = Options::new(name, self.hosts).racks(self.racks).loss(self.loss).xdp(!self.no_xdp);
        Lab::up_unless(&options, interrupted).map_err(lab_error)
    }
}

fn hosts(text: &str) -> Result<usize, String> {
    let range = 1..=midflight_net::HOSTS_MAX;
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| format!("a number from 1 to {}", midflight_net::HOSTS_MAX))
}

/// Wrong usage has its own exit code.
fn lab_error(error: LabError) -> anyhow::Error {
    if error.is_usage() { usage::error(error) } else { error.into() }
}

fn count_of_hosts(lab: &Lab) -> String {
    let count = |number: usize, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
    let hosts = count(lab.hosts().len(), "host");
    match lab.racks().len() {
        0 => hosts,
        racks => format!("{hosts} in {}", count(racks, "rack")),
    }
}
