//! `midflight store serve`: a gateway for Redis' clients.

use anyhow::{Result, bail};
use clap::Args as ClapArgs;
use midflight_files::{BoundedReader, open_secret};
use midflight_host::store::gateway::{Gateway, GatewayOptions};
use midflight_terminal::signals::Shutdown;
use midflight_terminal::stdout;
use midflight_terminal::store::WhichStore;
use midflight_terminal::usage::{self, resolve};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Bytes of a file with a password.
const PASSWORD_MAX: u64 = 1024;
/// Writes under way at once.
pub(crate) const LANES: usize = 256;

const EXAMPLES: &str = "\
EXAMPLES
  midflight store serve --config store.toml       then: redis-cli set greeting hello
  midflight store serve --listen 127.0.0.1:6380   to a switch on 127.0.0.1:7700
  midflight store serve --password password.txt   then: redis-cli --askpass get greeting

`midflight up --store` has a gateway of its own. Whoever reaches the port of this one, such as
each user of this machine, may read and write all data, unless --password names a file.
docs/store.md has the commands that it knows, and how they differ from Redis'. SIGINT and SIGTERM
end it.

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
    /// A file with the password that clients must give (AUTH); no other user may read it
    #[arg(long, value_name = "FILE")]
    password: Option<PathBuf>,
    /// TCP connections at once; one address gets 8/9 of them
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    connections: u32,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let options = GatewayOptions {
        connections_max: args.connections as usize,
        password: args.password.as_deref().map(password).transpose()?,
        ..GatewayOptions::new(resolve(&args.listen)?)
    };
    let mut shutdown = Shutdown::new()?;
    let client = args.store.client()?.lanes(LANES).connect_lazy()?;
    let gateway = Gateway::start(client, options, shutdown.ender())?;
    stdout::print(&format!("gateway on {}, for Redis' clients\n", gateway.local_addr()))?;
    let signal = shutdown.wait();
    if let Some(why) = gateway.failure() {
        bail!("{why}");
    }
    tracing::info!("{signal}: ending");
    Ok(ExitCode::SUCCESS)
}

/// Without a line's end, as `echo` writes it.
fn password(path: &Path) -> Result<Vec<u8>> {
    let failed = |why: &dyn std::fmt::Display| usage::error(format!("{}: {why}", path.display()));
    let file = open_secret(path).map_err(|error| failed(&error))?;
    let mut text = Vec::new();
    BoundedReader::new(file, PASSWORD_MAX).read_to_end(&mut text).map_err(|error| failed(&error))?;
    let text = text.strip_suffix(b"\n").map(<[u8]>::to_vec).unwrap_or(text);
    if text.is_empty() { Err(failed(&"is empty: write the password into it")) } else { Ok(text) }
}
