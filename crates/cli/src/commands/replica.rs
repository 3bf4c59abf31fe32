//! `midflight replica`: a replica of a store.

use crate::http;
use crate::options::http_address;
use crate::replica::{RunningReplica, Which};
use anyhow::{Result, bail};
use clap::Args as ClapArgs;
use midflight_control::store::ReplicaStart;
use midflight_control::{Config, StoreTable};
use midflight_terminal::signals::Shutdown;
use midflight_terminal::{stdout, usage};
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
EXAMPLES
  midflight store init > store.toml                               three replicas and a switch here
  midflight replica --config store.toml --id 1 --data /var/lib/midflight/1 --new    once
  midflight replica --config store.toml --id 1 --data /var/lib/midflight/1
  midflight replica --config store.toml --id 1 --data one --http 127.0.0.1:7712   with a page
  midflight replica --config store.toml --id 4 --data new --join  instead of one that lost its disk

All replicas, switches and clients of a store read the same file. docs/store.md goes through a
store with three replicas and two switches, and through the loss of a disk.

SIGINT and SIGTERM end it; its data stays, and the next start goes on with it. Without data it
starts only for a new store (--new). One that has lost its data would have forgotten what it
acknowledged: it must come back under an id that was never used (--join).

EXIT CODES
  0 ended by a signal, 1 failed (a port in use, a disk that is full or damaged, another replica's
  data), 2 wrong usage or configuration";

#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Configuration of the store, with a table [[store.set]]
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Which replica of the configuration this is
    #[arg(long, value_name = "ID")]
    id: u64,
    /// Directory of its log and snapshots; made if there is none
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Which set, if the configuration has several
    #[arg(long, value_name = "NUMBER")]
    set: Option<u16>,
    /// The store is new: begin without data. Where there is data, it changes nothing
    #[arg(long)]
    new: bool,
    /// The set does not know this id yet: wait until `midflight store members add` adds it
    #[arg(long, conflicts_with = "new")]
    join: bool,
    /// Do not wait for the disk: what was acknowledged is lost if all replicas lose power at once
    #[arg(long)]
    no_fsync: bool,
    /// TCP address of its page, /metrics, /healthz and /status; default: off
    #[arg(long, value_name = "HOST:PORT")]
    http: Option<String>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let config = Config::<StoreTable>::load(&args.config).map_err(usage::error)?;
    let set = config.program.find(args.set).map_err(usage::error)?;
    let http = args.http.as_deref().map(http_address).transpose()?.flatten();
    let mut shutdown = Shutdown::new()?;
    let (data, fsync) = (args.data.clone(), !args.no_fsync);
    let start = match (args.new, args.join) {
        (true, _) => ReplicaStart::IsNew,
        (_, true) => ReplicaStart::Joins,
        _ => ReplicaStart::GoesOn,
    };
    let (socket, http_names) = (&config.switch.socket, config.switch.http_names.clone());
    let which = Which { set, id: args.id, start, data, fsync, links: None, socket, http, http_names };
    // The replica first reads its files, which may take long.
    let at_once = shutdown.at_once()?;
    let replica = RunningReplica::start(which, shutdown.ender())?;
    drop(at_once);
    let process = &replica.process;
    stdout::print(&format!(
        "replica {} of set {} on {}, links on {}, data in {}, status {}\n",
        args.id,
        set.number,
        process.local_addr(),
        process.links_addr(),
        args.data.display(),
        http::describe(replica.http())
    ))?;
    let signal = shutdown.wait();
    if let Some(why) = process.failure() {
        bail!("{why}");
    }
    tracing::info!("{signal}: ending");
    Ok(ExitCode::SUCCESS)
}
