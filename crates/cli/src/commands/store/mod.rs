//! `midflight store`: operations on a store, and its administration.

mod backup;
mod escape;
mod init;
mod members;
mod operations;
mod policy;
pub(super) mod serve;
mod status;

use clap::{Args as ClapArgs, Subcommand};
use std::process::ExitCode;

const EXAMPLES: &str = "\
EXAMPLES
  midflight up --store                           in another terminal: three replicas and a switch
  midflight store put greeting hello
  midflight store get greeting
  midflight store incr visits 5
  midflight store cas greeting hello 'good day'  only if it is hello
  midflight store create lock me                 only if there is no such key
  midflight store put session 17 --ttl 30s       gone after 30 seconds
  midflight store put photo - < photo.bin        the value as it is on stdin
  midflight store get --raw photo > photo.bin    without a line's end behind it
  midflight store get --escaped 'a\\x00b'        a key of any bytes
  midflight store scan user:                     the keys that begin with user:
  midflight store status                         the replicas of this machine

docs/store.md says what is promised, and how to run a store on several machines.

EXIT CODES
  0 done; 1 failed: one line on stderr says why; 2 wrong usage; 3 done, and the answer is no: there
  is no such key, there is one, or it has another value";

#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Print the value of a key
    Get(operations::Get),
    /// Set the value of a key
    Put(operations::Put),
    /// Remove a key
    Del(operations::Del),
    /// Set the value of a key if it has the expected one
    Cas(operations::Cas),
    /// Set the value of a key that does not exist
    Create(operations::Create),
    /// Add to a number; a key that does not exist counts as 0
    Incr(operations::Incr),
    /// Whether there is such a key
    Exists(operations::Exists),
    /// Print how long a key lives
    Ttl(operations::Ttl),
    /// Change how long a key lives
    Expire(operations::Expire),
    /// Print the keys, in no order
    Scan(operations::Scan),
    /// Let Redis' clients use the store
    Serve(serve::Args),
    /// Write all data to a file
    Backup(backup::Backup),
    /// Write the keys of a backup to an empty store
    Restore(backup::Restore),
    /// Show how replicas are
    Status(status::Args),
    /// Show the members of a set, or change them
    Members(members::Args),
    /// Show which replica gets a read, or change it
    Policy(policy::Args),
    /// Print a configuration for a store on this machine, to start from
    Init(init::Args),
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.command {
        Command::Get(args) => args.run(),
        Command::Put(args) => args.run(),
        Command::Del(args) => args.run(),
        Command::Cas(args) => args.run(),
        Command::Create(args) => args.run(),
        Command::Incr(args) => args.run(),
        Command::Exists(args) => args.run(),
        Command::Ttl(args) => args.run(),
        Command::Expire(args) => args.run(),
        Command::Scan(args) => args.run(),
        Command::Serve(args) => serve::run(args),
        Command::Backup(args) => args.run(),
        Command::Restore(args) => args.run(),
        Command::Status(args) => status::run(args),
        Command::Members(args) => members::run(args),
        Command::Policy(args) => policy::run(args),
        Command::Init(args) => init::run(args),
    }
}
