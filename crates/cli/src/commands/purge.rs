//! `midflight purge`: removes queued tasks from a switch on this machine, and stops running ones of clients.

use crate::options;
use anyhow::{Context, Result, bail};
use clap::Args as ClapArgs;
use midflight_control::Config;
use midflight_control::admin::{self, Request, Which};
use midflight_control::config::DEFAULT_PORT;
use midflight_terminal::{stdout, usage};
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
EXAMPLES
  midflight purge --resources gpu         tasks that need a resource which no executor has
  midflight purge --address 10.0.0.17     tasks of all clients of a machine
  midflight purge --client 9f3c…          tasks of one client: its id in midflight top --json

Queued tasks are removed. With --client and --address, executors are told to stop those that run,
within a third of a lease (0.3 s). A client that is still running submits its tasks again, so end
it first. The tasks of a client that died are removed and stopped without a purge, after
client_idle (one minute).

Run it on the switch's machine, as root or as the user who started the switch.

EXIT CODES
  0 done (the number of tasks is printed), 1 no switch answers, or it refuses, 2 wrong usage";

#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
#[group(id = "which", required = true, multiple = false, args = ["client", "resources", "address"])]
pub(crate) struct Args {
    /// Tasks of the client with this id, which `midflight top --json` has, and the page where you point at the client
    #[arg(long, value_name = "ID", value_parser = client_id)]
    client: Option<String>,
    /// Tasks that need all of these resources (names of --config, or r0 to r7)
    #[arg(long, value_name = "NAMES")]
    resources: Option<String>,
    /// Tasks of the clients at this address; of IPv6, at its first 64 bits
    #[arg(long, value_name = "IP")]
    address: Option<IpAddr>,
    /// UDP port of the switch, by which its socket is found; default: 7700, or the configuration's
    #[arg(long)]
    port: Option<u16>,
    /// Unix socket of the switch, if it is not where it usually is
    #[arg(long, value_name = "PATH", conflicts_with = "port")]
    admin: Option<PathBuf>,
    /// One JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    file: options::ConfigFile,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let path = path(args)?;
    let request = Request::Purge(which(args)?);
    let answer = admin::ask::<u32>(&path, &request, admin::PATIENCE).with_context(|| {
        format!(
            "no switch can be asked at {}: run this on the switch's machine, as root or as the user who started it, and name \
             its port (--port) or socket (--admin)",
            path.display()
        )
    })?;
    match answer {
        Ok(tasks) if args.json => stdout::print(&format!("{}\n", serde_json::json!({ "purged": tasks })))?,
        Ok(tasks) => stdout::print(&format!("{tasks} {} taken out\n", if tasks == 1 { "task" } else { "tasks" }))?,
        Err(why) => bail!("{why}"),
    }
    Ok(ExitCode::SUCCESS)
}

fn path(args: &Args) -> Result<PathBuf> {
    if let Some(path) = &args.admin {
        return Ok(path.clone());
    }
    let config: Config = args.file.load()?;
    let configured = if args.file.config.is_some() { config.switch.listen.port() } else { DEFAULT_PORT };
    let path = config.switch.admin_path(args.port.unwrap_or(configured));
    path.ok_or_else(|| usage::error("the configuration switches the operator's socket off: admin = \"\""))
}

fn which(args: &Args) -> Result<Which> {
    Ok(match (&args.client, &args.resources, args.address) {
        (Some(label), ..) => Which::Client(label.clone()),
        (_, Some(names), _) => match args.file.mask(names)? {
            0 => return Err(usage::error("--resources names none: every task would be taken out")),
            mask => Which::Resources(mask),
        },
        (.., Some(address)) => Which::Address(address),
        _ => return Err(usage::error("say whose tasks: --client, --resources or --address")),
    })
}

fn client_id(text: &str) -> Result<String, String> {
    let is_digit = |digit: u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
    let is_id = text.len() == 16 && text.bytes().all(is_digit);
    is_id.then(|| text.to_owned()).ok_or_else(|| format!("{text:?} is no id of a client: it has 16 hexadecimal digits"))
}
