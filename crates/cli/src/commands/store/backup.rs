//! `midflight store backup` and `restore`.

use super::status::on_this_machine;
use anyhow::{Context, Result, bail};
use clap::Args as ClapArgs;
use midflight_control::store::{ReplicaAnswer, ReplicaRequest, SetTable};
use midflight_host::Handle;
use midflight_host::store::backup::{BackupReader, Record};
use midflight_host::store::{Answer, Change, Expiry, Operation, StoreClient, Update};
use midflight_terminal::progress::Progress;
use midflight_terminal::stdout;
use midflight_terminal::store::{WhichSet, WhichStore};
use midflight_terminal::units::thousands;
use std::collections::VecDeque;
use std::path::{PathBuf, absolute};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Writes under way at once.
const AT_ONCE: usize = 256;
const LEADER_PATIENCE: Duration = Duration::from_secs(1);

#[derive(ClapArgs)]
#[command(after_help = "\
EXAMPLES
  midflight store backup monday.backup --config store.toml
  midflight store restore monday.backup --config other.toml

The leader writes a consistent snapshot, including every acknowledged write, to a new file,
while it serves. Run it on the leader's machine, as root or as the user who started it. The file
belongs to the user of the replica.

EXIT CODES
  0 the file is whole and on the disk, 1 failed: nothing is left, 2 wrong usage")]
pub(super) struct Backup {
    /// The new file
    file: PathBuf,
    #[command(flatten)]
    set: WhichSet,
}

impl Backup {
    pub(super) fn run(&self) -> Result<ExitCode> {
        let set = self.set.table()?;
        let path = absolute(&self.file).context("where is this directory?")?;
        let leads = leader(&set)?;
        let progress = Progress::counted(None, "writing", "{spinner} {msg}, {elapsed}");
        let answer = set.ask(leads, ReplicaRequest::Backup(path))?;
        progress.finish();
        let ReplicaAnswer::Keys(keys) = answer else { bail!("the replica gave another answer: {answer:?}") };
        stdout::print(&format!("{} keys\n", thousands(keys)))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Waits for a moment, as the status of a new leader is late.
fn leader(set: &SetTable) -> Result<u64> {
    let end = Instant::now() + LEADER_PATIENCE;
    loop {
        let found = on_this_machine(set);
        let leads = found.iter().filter(|status| status.role == "leader").max_by_key(|status| status.term);
        match leads {
            Some(status) => return Ok(status.replica),
            None if Instant::now() < end => std::thread::sleep(LEADER_PATIENCE / 10),
            None => bail!("no replica on this machine leads: run this where the leader is"),
        }
    }
}

#[derive(ClapArgs)]
#[command(after_help = "\
EXAMPLES
  midflight store restore monday.backup
  midflight store restore monday.backup --config store.toml

Checks the whole file, then writes all its keys to an empty store. Keys that expire do so as
long after the restore as they would have after the backup.

EXIT CODES
  0 all keys are written, 1 failed (the store has keys, the file was cut), 2 wrong usage")]
pub(super) struct Restore {
    /// The file
    file: PathBuf,
    #[command(flatten)]
    store: WhichStore,
}

impl Restore {
    pub(super) fn run(&self) -> Result<ExitCode> {
        let name = self.file.display();
        let keys = BackupReader::check(&self.file).with_context(|| format!("{name} cannot be restored"))?;
        let client = self.store.client()?.lanes(AT_ONCE).connect()?;
        if client.scan().next().transpose()?.is_some() {
            bail!(
                "the store has keys already: restore into an empty one, or remove them (midflight store members flush)"
            );
        }
        let progress = Progress::counted(Some(keys), "restored", "{bar:40} {human_pos}/{human_len}, {elapsed}");
        let mut open = VecDeque::new();
        for record in BackupReader::open(&self.file)? {
            if open.len() == AT_ONCE {
                end(&mut open, &progress)?;
            }
            open.push_back(begin(&client, record?)?);
        }
        while !open.is_empty() {
            end(&mut open, &progress)?;
        }
        progress.finish();
        stdout::print(&format!("{} keys\n", thousands(keys)))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn begin(client: &StoreClient, record: Record) -> Result<Handle<Answer>> {
    let Record { key, value, expires_in } = record;
    let operation = match expires_in {
        None => Operation::Put { key, value },
        Some(ms) => {
            let (change, expiry) = (Change::Set(value), Expiry::After(ms));
            Operation::Update { key, update: Update { change, expiry, ..Update::default() } }
        }
    };
    Ok(client.submit(operation)?)
}

fn end(open: &mut VecDeque<Handle<Answer>>, progress: &Progress) -> Result<()> {
    if let Some(oldest) = open.pop_front() {
        oldest.wait().context("some keys are written: empty the store before the next try")?;
        progress.advance();
    }
    Ok(())
}
