//! Snapshot transfers to a replica that is far behind: parts are lost, repeated, late, and truncated.

use super::done;
use super::world::World;
use midflight_endpoint::MS;
use midflight_wire::store::{Command, Status};
use std::cell::RefCell;
use std::rc::Rc;

/// Enough keys of 1,000 bytes for about ten parts of 256 KiB.
const KEYS: u64 = 2500;

/// `late` is down and can only catch up by a snapshot. Includes the client and the number of its last write.
struct Behind {
    world: World,
    client: u64,
    number: u64,
    late: u64,
}

impl Behind {
    fn new() -> Self {
        let mut world = World::with(3, |config| config.snapshot_after = 256 << 10);
        world.run(400 * MS);
        let client = world.open(1);
        let late = world.leader().unwrap() % 3 + 1;
        world.kill(late);
        let mut behind = Self { world, client, number: 0, late };
        behind.write(KEYS);
        behind
    }

    fn write(&mut self, count: u64) {
        for _ in 0..count {
            self.number += 1;
            let key = format!("key-{}", self.number % KEYS);
            let written = self.world.write(1, self.client, self.number, Command::Put, &key, &[b'x'; 1000]);
            assert_eq!(written, done(""), "{:?}", self.world.events);
        }
    }

    fn start(&mut self) {
        self.world.start(self.late);
    }

    fn has_caught_up(&mut self) {
        self.world.run(2000 * MS);
        let leader = self.world.leader().unwrap();
        let (theirs, ours) = (self.world.replica(leader).status(0), self.world.replica(self.late).status(0));
        assert_eq!((ours.applied, ours.keys), (theirs.applied, KEYS as usize), "{ours:?}");
        assert_eq!(self.world.get(1, "key-7"), Some((Status::Done, vec![b'x'; 1000])));
    }
}

#[test]
fn r5_replicas_make_their_snapshots_one_after_the_other() {
    let mut world = World::with(3, |config| config.snapshot_after = 256 << 10);
    world.run(400 * MS);
    let client = world.open(1);
    let mut first = [0; 3];
    for number in 1..=400 {
        assert_eq!(world.write(1, client, number, Command::Put, "a", &[b'x'; 1000]), done(""));
        for (id, first) in (1..).zip(&mut first).filter(|(_, first)| **first == 0) {
            *first = world.replica(id).counters().snapshots * number;
        }
    }
    let apart = first.windows(2).all(|pair| pair[1] > pair[0] + 20);
    assert!(first[0] > 0 && apart, "they came after writes {first:?}");
}

/// Notes the length of each message on bulk lanes, and replaces it by what `change` returns for its number.
fn with(
    world: &mut World,
    mut change: impl FnMut(usize, Vec<u8>) -> Vec<Vec<u8>> + 'static,
) -> Rc<RefCell<Vec<usize>>> {
    let lengths = Rc::new(RefCell::new(Vec::new()));
    let noted = Rc::clone(&lengths);
    world.mischief = Some(Box::new(move |message| {
        noted.borrow_mut().push(message.len());
        let number = noted.borrow().len();
        change(number, message)
    }));
    lengths
}

#[test]
fn r5_a_snapshot_goes_in_bounded_parts_and_costs_no_lease() {
    let mut behind = Behind::new();
    let lengths = with(&mut behind.world, |_, message| vec![message]);
    behind.start();
    let leader = behind.world.leader().unwrap();
    for _ in 0..200 {
        behind.world.run(MS);
        let now = behind.world.now;
        assert!(behind.world.replica(leader).status(now).has_lease, "{:?}", behind.world.events);
    }
    behind.has_caught_up();
    let long: Vec<usize> = lengths.borrow().iter().copied().filter(|length| *length > 10_000).collect();
    assert!(long.len() >= 9 && long.iter().all(|length| *length < 512 << 10), "{long:?}");
    assert_eq!(behind.world.replica(leader).counters().snapshots_sent, 1);
    assert_eq!(behind.world.replica(behind.late).counters().restored, 1);
}

#[test]
fn parts_that_come_twice_or_late_change_nothing() {
    let mut behind = Behind::new();
    let first = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&first);
    with(&mut behind.world, move |number, message| {
        if number < 4 {
            seen.borrow_mut().push(message.clone());
        }
        let late = seen.borrow()[number % seen.borrow().len()].clone();
        vec![message.clone(), message, late]
    });
    behind.start();
    behind.has_caught_up();
    assert_eq!(behind.world.replica(behind.late).counters().restored, 1);
}

#[test]
fn parts_in_another_order_begin_the_transfer_again() {
    let mut behind = Behind::new();
    let mut held = None;
    with(&mut behind.world, move |number, message| match number {
        5 => {
            held = Some(message);
            Vec::new()
        }
        _ => std::iter::once(message).chain(held.take()).collect(),
    });
    behind.start();
    behind.has_caught_up();
    assert!(behind.world.replica(behind.late).counters().transfers_refused > 0);
}

#[test]
fn the_leader_waits_with_its_next_snapshot_while_one_is_on_its_way() {
    let mut behind = Behind::new();
    // No bulk message arrives, so the transfer never ends.
    with(&mut behind.world, |number, message| if number < 4 { vec![message] } else { Vec::new() });
    behind.start();
    let leader = behind.world.leader().unwrap();
    behind.world.run(10 * MS);
    let before = behind.world.replica(leader).counters().snapshots;
    behind.write(600);
    assert_eq!(behind.world.replica(leader).counters().snapshots, before, "600 KB are less than four times 256 KiB");
    behind.write(1500);
    assert!(behind.world.replica(leader).counters().snapshots > before, "it does not wait for ever");
    behind.world.mischief = None;
    let late = behind.late;
    behind.world.link(leader, late, false);
    behind.world.link(leader, late, true);
    behind.has_caught_up();
}
