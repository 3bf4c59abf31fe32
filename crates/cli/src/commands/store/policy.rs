//! `midflight store policy`: sets which replica gets a read, through the operator's sockets of switches on this machine.

use anyhow::{Result, bail};
use clap::Args as ClapArgs;
use midflight_control::admin;
use midflight_control::store::{SetAnswer, SetRequest, SetTable};
use midflight_dataplane::store::{Policy, ReplyCheck};
use midflight_terminal::stdout;
use midflight_terminal::store::WhichSet;
use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
EXAMPLES
  midflight store policy                                 what the switch does now
  midflight store policy load-aware --config store.toml
  midflight store policy --reply-check relaxed           the policy stays as it is

POLICIES
  random                        any replica that is up to date
  leader-avoidance              not the leader while writes are under way, if there is another
  load-aware                    fewer reads to replicas that have more of them waiting
  load-aware-leader-avoidance   both

REPLY CHECKS
  strict    replies that show the last write of their key group; for others the leader is asked
  relaxed   all
  direct    all, and most of them not through the switch: clients and replicas must reach each other

A change counts at once, and until the switch ends: the configuration says with what it starts.
Run it on the machine of each switch, as root or as the user who started it.

EXIT CODES
  0 done (what counts now is printed), 1 no switch there, or it cannot, 2 wrong usage";

#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    set: WhichSet,
    /// Which of the replicas that are up to date gets a read
    policy: Option<Policy>,
    /// Which replies go to the client: strict, relaxed or direct
    #[arg(long, value_name = "CHECK")]
    reply_check: Option<ReplyCheck>,
    /// Unix socket of the switch, if it is not where it usually is
    #[arg(long, value_name = "PATH")]
    admin: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let set = args.set.table()?;
    let request = SetRequest { set: set.number, policy: args.policy, reply_check: args.reply_check };
    let mut answered = false;
    for path in paths(args, &set) {
        let answer = match admin::ask::<SetAnswer>(&path, &request, admin::PATIENCE) {
            // No switch of the set runs on this machine at that port.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
                continue;
            }
            Err(error) => bail!("the switch at {} did not answer: {error}", path.display()),
            Ok(answer) => answer,
        };
        answered = true;
        match answer {
            Ok(now) => stdout::print(&format!(
                "set {} at {}: policy {}, reply check {}\n",
                set.number,
                path.display(),
                now.policy.name(),
                now.reply_check.name()
            ))?,
            Err(why) => bail!("{}: {why}", path.display()),
        }
    }
    if !answered {
        bail!(
            "no switch of set {} can be asked on this machine: run this where one is, as root or as the user who started it; if \
             its configuration names another socket (admin), say --admin",
            set.number
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Sockets of switches that may serve the set.
fn paths(args: &Args, set: &SetTable) -> Vec<PathBuf> {
    if let Some(path) = &args.admin {
        return vec![path.clone()];
    }
    let ports: BTreeSet<u16> = set.switches.iter().map(std::net::SocketAddr::port).collect();
    ports.into_iter().map(|port| admin::default_path("switch", port)).collect()
}
