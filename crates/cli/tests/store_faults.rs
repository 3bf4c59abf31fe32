//! A store whose processes are killed and stopped, and whose disks are full, while clients use it: three replicas, two switches.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{Running, Said, Store, assert_error, midflight, run, signal, skip, wait_until};
use midflight::store::KvClient;
use rustix::process::Signal;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Operations succeed again within this time. R5 says 300 ms, which `midflight bench failover` measures; this machine may have
/// other things to do.
const AGAIN: Duration = Duration::from_millis(1500);
/// How long a process is stopped: the store must go on without it.
const STOPPED: Duration = Duration::from_secs(3);
/// Increments before a fault, and after it.
const SOME: u64 = 50;

/// One store at a time, as the times are asserted.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts up one key, whose value says whether an increment was lost or done twice.
#[derive(Default)]
struct Tally {
    acknowledged: AtomicU64,
    unknown: AtomicU64,
    stop: AtomicBool,
}

impl Tally {
    fn count(&self, client: &KvClient) {
        let mut last = 0;
        while !self.stop.load(Relaxed) {
            match client.incr("tally", 1) {
                Ok(sum) => {
                    assert!(sum > last, "{sum} after {last}");
                    last = sum;
                    self.acknowledged.fetch_add(1, Relaxed);
                }
                Err(error) if error.is_unknown() => {
                    self.unknown.fetch_add(1, Relaxed);
                }
                Err(_) => {}
            }
        }
    }

    fn wait_for_more(&self) {
        let wanted = self.acknowledged.load(Relaxed) + SOME;
        wait_until("operations succeed", || self.acknowledged.load(Relaxed) >= wanted);
    }

    /// Waits for one more, and says how long.
    fn again_after(&self) -> Duration {
        let (from, before) = (Instant::now(), self.acknowledged.load(Relaxed));
        wait_until("an operation succeeds", || self.acknowledged.load(Relaxed) > before);
        from.elapsed()
    }

    fn check(&self, store: &Store) {
        let (acknowledged, unknown) = (self.acknowledged.load(Relaxed), self.unknown.load(Relaxed));
        let (code, text) = store.kv(&["get", "tally"]);
        let present: u64 = text.trim().parse().unwrap();
        assert_eq!(code, Some(0));
        let possible = acknowledged..=acknowledged + unknown;
        assert!(
            possible.contains(&present),
            "{present} increments are there, {acknowledged} were acknowledged, {unknown} unknown"
        );
    }
}

/// What must end with a test, also with one that fails.
struct Clients<'a> {
    tally: &'a Tally,
    load: Option<Child>,
}

impl Drop for Clients<'_> {
    fn drop(&mut self) {
        self.tally.stop.store(true, Relaxed);
        self.load.iter_mut().for_each(end);
    }
}

fn end(child: &mut Child) {
    // It may have ended already.
    let _ = child.kill();
    let _ = child.wait();
}

/// What clients saw while `fault` happened must be linearizable (R1), with nothing lost or done twice (R2, R3). Returns the
/// longest time in which no client had an answer.
fn survives(store: &mut Store, fault: impl FnOnce(&mut Store, &Tally)) -> Duration {
    store.leader();
    let history = store.directory.path("history.jsonl");
    let client =
        KvClient::builder().switches(store.addresses.clone()).timeout(Duration::from_secs(2)).connect().unwrap();
    let tally = Tally::default();
    let said: Said = std::thread::scope(|scope| {
        let mut clients = Clients { tally: &tally, load: Some(store.load("100", &history)) };
        scope.spawn(|| tally.count(&client));
        tally.wait_for_more();
        fault(store, &tally);
        tally.wait_for_more();
        let load = clients.load.take().unwrap();
        signal(&load, Signal::INT);
        load.wait_with_output().unwrap().into()
    });
    assert_eq!(said.code, Some(0), "{said:?}");
    tally.check(store);
    let checked = run(&["check", "history", &history]);
    assert!(checked.stdout.starts_with("linearizable: ") && checked.code == Some(0), "{checked:?}");
    Duration::from_secs_f64(said.results()["load.gap_max_ms"].as_f64().unwrap() / 1e3)
}

#[test]
fn r1_r2_r5_a_killed_leader_then_follower_are_missed_for_a_moment_and_come_back() {
    let _alone = alone();
    let mut store = Store::new("faults-kill", 2);
    store.start_all();
    let gap = survives(&mut store, |store, tally| {
        let leader = store.leader();
        for victim in [leader, leader % 3 + 1] {
            store.kill(victim);
            tally.wait_for_more();
            store.start_replica(victim);
            store.wait_until_whole();
        }
    });
    assert!(gap < AGAIN, "{gap:?}");
}

fn leader(store: &Store) -> &Running {
    store.replicas[store.leader() - 1].as_ref().unwrap()
}

fn follower(store: &Store) -> &Running {
    store.replicas[store.leader() % 3].as_ref().unwrap()
}

fn switch(store: &Store) -> &Running {
    store.switches[store.active_switch() - 1].as_ref().unwrap()
}

#[test]
fn r1_r2_r4_r5_a_leader_a_follower_and_a_switch_that_are_stopped_and_go_on() {
    let _alone = alone();
    let mut store = Store::new("faults-stop", 2);
    store.start_all();
    let gap = survives(&mut store, |store, tally| {
        for choose in [leader, follower, switch] {
            let victim = choose(store);
            signal(&victim.child, Signal::STOP);
            std::thread::sleep(STOPPED);
            signal(&victim.child, Signal::CONT);
            store.wait_until_whole();
            tally.wait_for_more();
        }
    });
    assert!(gap < AGAIN, "{gap:?}");
}

#[test]
fn r1_r2_all_processes_are_killed_at_once_and_started_again() {
    let _alone = alone();
    let mut store = Store::new("faults-all", 2);
    store.start_all();
    let gap = survives(&mut store, |store, _| {
        let switches = store.switches.iter().flatten();
        switches.chain(store.replicas.iter().flatten()).for_each(|process| signal(&process.child, Signal::KILL));
        (1..=2).for_each(|number| store.kill_switch(number));
        (1..=3).for_each(|id| store.kill(id));
        store.start_all();
        store.wait_until_whole();
    });
    assert!(gap < 2 * AGAIN, "{gap:?}");
}

/// A small file system in the place of a directory.
struct SmallDisk(String);

impl SmallDisk {
    fn mount(path: String, size: &str) -> Option<Self> {
        std::fs::create_dir_all(&path).unwrap();
        let options = format!("size={size}");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "midflight-test", &path]).output();
        let why = match mounted {
            Ok(said) if said.status.success() => return Some(Self(path)),
            Ok(said) => String::from_utf8_lossy(&said.stderr).trim().to_owned(),
            Err(error) => error.to_string(),
        };
        skip(format!("it mounts a small file system, which needs root: {why}"));
        None
    }

    fn make_room(&self) {
        let done = Command::new("mount").args(["-o", "remount,size=64m", &self.0]).status().unwrap();
        assert!(done.success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // What is still in use goes with its last user.
        let _ = Command::new("umount").args(["--lazy", &self.0]).status();
    }
}

#[test]
fn r1_r2_r7_a_full_disk_ends_a_replica_with_a_precise_error_and_nothing_is_forgotten() {
    let _alone = alone();
    let mut store = Store::new("faults-full", 2);
    // One is full before the others: the store goes on without it, and stops when the second one is full.
    let disks: Vec<_> = [(1, "1m"), (2, "3m"), (3, "3m")]
        .into_iter()
        .map_while(|(id, size)| SmallDisk::mount(store.data(id), size))
        .collect();
    if disks.len() < 3 {
        return;
    }
    store.start_all();
    store.kill(1);
    store.replicas[0] = Some(Running::spawn(piped(store.replica(1))));
    store.wait_until_whole();
    if store.leader() != 1 {
        assert_eq!(store.kv(&["members", "transfer", "1"]), (Some(0), "done\n".into()));
        wait_until("the one with the least room leads", || store.leader() == 1);
    }
    survives(&mut store, |store, tally| {
        let mut filler = fill(store);
        let said = end_of(&mut store.replicas[0]);
        assert_error(
            &said,
            1,
            &["cannot write", "data-1/log-", "No space left", "free space", "start this process again"],
        );
        let again = tally.again_after();
        assert!(again < AGAIN, "{again:?}");
        wait_until("a second disk is full", || [1, 2].into_iter().any(|at| has_ended(&mut store.replicas[at])));
        end(&mut filler);
        (2..=3).for_each(|id| store.kill(id));
        disks.iter().for_each(SmallDisk::make_room);
        (1..=3).for_each(|id| store.start_replica(id));
        let again = tally.again_after();
        assert!(again < 2 * AGAIN, "{again:?}");
        store.wait_until_whole();
    });
}

fn piped(mut command: Command) -> Command {
    command.stderr(Stdio::piped());
    command
}

/// Writes until the disks are full.
fn fill(store: &Store) -> Child {
    let args = ["kv", "load", "--config", &store.config, "--seconds", "100", "--reads", "0", "--value-bytes", "1000"];
    midflight(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn has_ended(process: &mut Option<Running>) -> bool {
    process.as_mut().unwrap().child.try_wait().unwrap().is_some()
}

/// How it has ended by itself, and why.
fn end_of(process: &mut Option<Running>) -> Said {
    wait_until("it has ended", || has_ended(process));
    let mut child = process.take().unwrap();
    let stderr = std::io::read_to_string(child.child.stderr.take().unwrap()).unwrap();
    let (code, stdout) = child.end();
    Said { code, stdout, stderr }
}
