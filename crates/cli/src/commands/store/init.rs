//! `midflight store init`: writes a configuration for a store on this machine.

use anyhow::Result;
use clap::Args as ClapArgs;
use midflight_control::config::DEFAULT_PORT;
use midflight_control::store::SetTable;
use midflight_terminal::{stdout, usage};
use std::process::ExitCode;

const EXAMPLES: &str = "\
EXAMPLES
  midflight store init > store.toml                    three replicas and a switch on loopback
  midflight store init --replicas 5 --switches 2 > store.toml

For several machines, replace the addresses. `midflight switch --program store --print-config`
explains each key, those that have defaults too.

EXIT CODES
  0 printed, 2 wrong usage";

#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Replicas: 1, 3, 5 or 7
    #[arg(long, value_name = "N", default_value_t = 3)]
    replicas: u16,
    /// Switches
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=16))]
    switches: u16,
    /// UDP port of the first switch; the others follow
    #[arg(long, value_name = "PORT", default_value_t = DEFAULT_PORT, value_parser = clap::value_parser!(u16).range(1..=60_000))]
    port: u16,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    if ![1, 3, 5, 7].contains(&args.replicas) {
        return Err(usage::error(format!(
            "--replicas {}: take 1, 3, 5 or 7; an even number tolerates no more failures than one less",
            args.replicas
        )));
    }
    // TOML integers are signed.
    let cluster = rand::random_range(1..=i64::MAX as u64);
    let set = SetTable::on_loopback(cluster, args.replicas, args.switches, args.port);
    stdout::print(&format!(
        "# A store on this machine. Each process of it, and each client, reads this file:\n\
         #   midflight switch --config FILE\n\
         #   midflight replica --config FILE --id 1 --data DIRECTORY --new      (--new: the first time only)\n\
         #   midflight store get KEY --config FILE\n\
         # A second switch on this machine needs --listen and --http of its own.\n\
         listen = \"{}\"\n\n\
         # The number `cluster` is random: replicas listen to no other store's.\n{}",
        set.switches[0],
        set.to_toml()
    ))?;
    Ok(ExitCode::SUCCESS)
}
