//! Processes of a store are killed and stopped, and disks fill up, while clients use it: three replicas, two switches.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{CommandOutput, Running, Store, assert_error, run, signal, skip, wait_until};
use midflight::store::StoreClient;
use rustix::process::Signal;
use std::io::Write;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// R5 requires 300 ms, which `midflight-lab bench failover` measures; here the machine may be busy.
const AGAIN: Duration = Duration::from_millis(1500);
/// The store must continue without the process.
const STOPPED: Duration = Duration::from_secs(3);
/// Increments before a fault, and after it.
const SOME: u64 = 50;

/// These tests assert times.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Increments one key, to detect lost and repeated increments.
#[derive(Default)]
struct Tally {
    acknowledged: AtomicU64,
    unknown: AtomicU64,
    stop: AtomicBool,
}

impl Tally {
    fn count(&self, client: &StoreClient) {
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

    fn check(&self, store: &Store) {
        let (acknowledged, unknown) = (self.acknowledged.load(Relaxed), self.unknown.load(Relaxed));
        let (code, text) = store.cli(&["get", "tally"]);
        let present: u64 = text.trim().parse().unwrap();
        assert_eq!(code, Some(0));
        let possible = acknowledged..=acknowledged + unknown;
        assert!(
            possible.contains(&present),
            "{present} increments are there, {acknowledged} were acknowledged, {unknown} unknown"
        );
    }
}

/// Killed with the test, even if it fails.
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
    let _ = child.kill();
    let _ = child.wait();
}

/// The history during `fault` must be linearizable (R1), with nothing lost or applied twice (R2, R3). Returns the longest time without a
/// response.
fn survives(store: &mut Store, fault: impl FnOnce(&mut Store, &Tally)) -> Duration {
    store.leader();
    let history = store.directory.path("history.jsonl");
    let client = StoreClient::builder()
        .switches(store.addresses.clone())
        .timeout(Duration::from_secs(2))
        .connect_lazy()
        .unwrap();
    let tally = Tally::default();
    let said: CommandOutput = std::thread::scope(|scope| {
        let mut clients = Clients { tally: &tally, load: Some(common::load(store, "100", &history)) };
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

/// A small file system mounted on a directory.
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

    fn filler(&self) -> std::path::PathBuf {
        std::path::Path::new(&self.0).join("of-somebody-else")
    }

    /// Leaves no byte free except the replica's reserve.
    fn fill(&self) {
        let mut filler = std::fs::File::create(self.filler()).unwrap();
        for step in [1 << 16, 1] {
            while filler.write_all(&vec![7; step]).is_ok() {}
        }
    }

    fn make_room(&self) {
        std::fs::remove_file(self.filler()).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // If it is in use, it disappears with its last user.
        let _ = Command::new("umount").args(["--lazy", &self.0]).status();
    }
}

/// Reads and deletes continue, also after a restart; writes resume when there is room.
#[test]
fn r1_r2_r5_full_disks_refuse_writes_until_there_is_room_and_nothing_else() {
    let _alone = alone();
    let mut store = Store::new("faults-full", 2);
    let disks: Vec<_> = (1..=3).map_while(|id| SmallDisk::mount(store.data(id), "48m")).collect();
    if disks.len() < 3 {
        return;
    }
    store.start_all();
    survives(&mut store, |store, tally| {
        for key in ["precious", "needless", "worthless"] {
            assert_eq!(store.cli(&["put", key, "value"]).0, Some(0));
        }
        disks[store.leader() - 1].fill();
        // The others have room: the leader hands over.
        tally.wait_for_more();
        disks.iter().for_each(SmallDisk::fill);
        wait_until("a put is refused", || store.cli(&["put", "other", "value"]).0 == Some(1));
        let refused = run(&["store", "put", "other", "value", "--config", &store.config]);
        assert_error(&refused, 1, &["disks of the store are full", "reads and deletes go on", "Free space"]);
        assert_eq!(store.cli(&["get", "precious"]), (Some(0), "value\n".into()));
        assert_eq!(store.cli(&["del", "needless"]).0, Some(0));
        (1..=3).for_each(|id| store.kill(id));
        (1..=3).for_each(|id| store.start_replica(id));
        store.wait_until_whole();
        assert_eq!(store.cli(&["get", "precious"]), (Some(0), "value\n".into()));
        assert_eq!(store.cli(&["del", "worthless"]).0, Some(0));
        disks.iter().for_each(SmallDisk::make_room);
        wait_until("a put is done", || store.cli(&["put", "other", "value"]).0 == Some(0));
    });
}
