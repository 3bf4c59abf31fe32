//! `midflight store serve`: a gateway for Redis' clients.

use anyhow::{Result, bail};
use clap::Args as ClapArgs;
use midflight_host::store::gateway::{Gateway, GatewayOptions};
use midflight_terminal::signals::Shutdown;
use midflight_terminal::stdout;
use midflight_terminal::store::WhichStore;
use midflight_terminal::usage::resolve;
use std::process::ExitCode;

/// Writes under way at once.
const LANES: usize = 256;

const EXAMPLES: &str = "\
EXAMPLES
  midflight up --store                            in another terminal: three replicas and a switch
  midflight store serve                           then: redis-cli set greeting hello
  midflight store serve --config store.toml --listen 127.0.0.1:6380

Whoever reaches the port may read and write all data. docs/store.md has the commands that it knows,
and how they differ from Redis'. SIGINT and SIGTERM end it.

EXIT CODES
  0 ended by a signal, 1 failed (a port in use), 2 wrong usage";

#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    store: WhichStore,
    /// TCP address for Redis' clients
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:6379")]
    listen: String,
    /// TCP connections at once; one address gets 8/9 of them
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    connections: u32,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let connections_max = args.connections as usize;
    let options = GatewayOptions { connections_max, ..GatewayOptions::new(resolve(&args.listen)?) };
    let mut shutdown = Shutdown::new()?;
    let client = args.store.client()?.lanes(LANES).connect_lazy()?;
    let gateway = Gateway::start(client, &options, shutdown.ender())?;
    stdout::print(&format!("gateway on {}, for Redis' clients\n", gateway.local_addr()))?;
    let signal = shutdown.wait();
    if let Some(why) = gateway.failure() {
        bail!("{why}");
    }
    tracing::info!("{signal}: ending");
    Ok(ExitCode::SUCCESS)
}
