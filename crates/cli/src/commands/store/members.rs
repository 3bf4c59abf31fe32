//! `midflight store members`: shows and changes a set's members through the leader's operator socket.

use super::status::on_this_machine;
use anyhow::{Result, anyhow};
use clap::{Args as ClapArgs, Subcommand};
use midflight_control::store::{MemberStatus, ReplicaAnswer, ReplicaRequest, ReplicaStatus, SetTable};
use midflight_terminal::columns::aligned;
use midflight_terminal::store::WhichSet;
use midflight_terminal::{stdout, usage};
use std::process::ExitCode;

const EXAMPLES: &str = "\
EXAMPLES
  midflight store members                            the members of the set
  midflight store members remove 2                   a replica that has lost its disk
  midflight store members add 4 --config store.toml  one of the configuration, started with --join
  midflight store members transfer 3                 replica 3 leads
  midflight store members flush                      all data goes

Run it on the machine of the replica that leads, as root or as the user who started it.

EXIT CODES
  0 begun (run it again without arguments to see when it is done); transfer: done, 1 failed,
  2 wrong usage";

#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    set: WhichSet,
    /// A list in JSON
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    change: Option<Change>,
}

/// What the leader is asked for.
#[derive(Subcommand)]
enum Change {
    /// Add a replica of the configuration
    Add {
        /// Its id: one that was never used
        id: u64,
    },
    /// Remove a replica
    Remove {
        /// Its id
        id: u64,
    },
    /// Make another replica the leader
    Transfer {
        /// Its id
        id: u64,
    },
    /// Remove all data
    Flush,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let set = args.set.table()?;
    let found = on_this_machine(&set);
    let newest = found.iter().max_by_key(|status| (status.term, status.role == "leader")).ok_or_else(|| {
        anyhow!(
            "no replica of the store can be asked on this machine: run this where one is, as the user who started it"
        )
    })?;
    match &args.change {
        None if args.json => stdout::print(&format!("{}\n", serde_json::to_string(&newest.members)?))?,
        None => stdout::print(&for_people(newest))?,
        Some(change) => {
            change.warn(newest);
            ask(&set, newest, change.request(&set)?)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl Change {
    /// Warns how many failures the changed set tolerates.
    fn warn(&self, newest: &ReplicaStatus) {
        let is_left = |member: &&MemberStatus| !matches!(self, Self::Remove { id } if *id == member.member.id);
        let left = newest.members.iter().filter(is_left).count();
        let said = match (left < newest.members.len(), left) {
            (true, 1) => "afterwards one replica has all data, and nothing takes over when it fails or loses its disk",
            (true, 2) => {
                "afterwards the set has two replicas and needs both: it serves nothing while one of them is away"
            }
            _ => return,
        };
        eprintln!("warning: {said}. `midflight store members add` adds another replica");
    }

    fn request(&self, set: &SetTable) -> Result<ReplicaRequest> {
        Ok(match self {
            Self::Add { id } => ReplicaRequest::Add(set.member(*id).map_err(usage::error)?),
            Self::Remove { id } => ReplicaRequest::Remove(*id),
            Self::Transfer { id } => ReplicaRequest::Transfer(*id),
            Self::Flush => ReplicaRequest::Flush,
        })
    }
}

fn ask(set: &SetTable, of: &ReplicaStatus, request: ReplicaRequest) -> Result<()> {
    match set.ask(of.replica, request)? {
        ReplicaAnswer::Done => stdout::print("done\n"),
        _ => stdout::print("begun\n"),
    }
}

fn for_people(status: &ReplicaStatus) -> String {
    let leads = status.role == "leader";
    let head = ["replica", "place", "address", "links", "has the log up to"].map(str::to_owned);
    let row = |MemberStatus { member, matched }: &MemberStatus| {
        let has = if leads { matched.to_string() } else { "-".into() };
        let id =
            if status.leader == Some(member.id) { format!("{} (leads)", member.id) } else { member.id.to_string() };
        [id, member.slot.to_string(), member.address.to_string(), member.links.to_string(), has]
    };
    let rows: Vec<_> = std::iter::once(head).chain(status.members.iter().map(row)).collect();
    let rest = if status.is_changing { "A change is under way. Who leaves must run until it is done.\n" } else { "" };
    aligned(&rows, "lrllr") + rest
}
