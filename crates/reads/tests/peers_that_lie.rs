//! Peers that say what no peer can say: raft-rs trusts them, and ends the process where one contradicts it. So nothing of it may reach
//! raft-rs.

#![allow(clippy::unwrap_used, reason = "tests may")]

use midflight_endpoint::{Durable, Endpoint, Lane, Link, Linked, MS, Nanos};
use midflight_reads::log::encode_message;
use midflight_reads::replica::{Event, Member, Replica, ReplicaConfig, StatusReport};
use protobuf::Message as _;
use raft::eraftpb::MessageType;
use raft::prelude::{ConfChangeSingle, ConfChangeType, ConfChangeV2, Entry, EntryType, Message};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::net::SocketAddr;

const SEEDS: u64 = 2000;
const MESSAGES: usize = 400;
/// The last byte of a letter with a message of Raft.
const OF_RAFT: u8 = 0;
const PEERS: [u64; 2] = [2, 3];
/// All but snapshots, which come in parts.
const KINDS: [MessageType; 9] = [
    MessageType::MsgAppend,
    MessageType::MsgAppendResponse,
    MessageType::MsgHeartbeat,
    MessageType::MsgHeartbeatResponse,
    MessageType::MsgRequestVote,
    MessageType::MsgRequestVoteResponse,
    MessageType::MsgRequestPreVote,
    MessageType::MsgRequestPreVoteResponse,
    MessageType::MsgTimeoutNow,
];

fn replica(now: Nanos) -> Replica {
    let member = |id: u64| {
        let at = |port| SocketAddr::from(([10, 0, 0, id as u8], port));
        Member { id, slot: id as u8 - 1, address: at(7000), links: at(7001) }
    };
    let switches = vec![SocketAddr::from(([10, 0, 1, 1], 7700))];
    let mut config = ReplicaConfig::new(42, 3, 1, (1..=3).map(member).collect(), switches, 7);
    config.founds = true;
    let mut replica = Replica::new(config, Vec::new(), now).unwrap();
    links().for_each(|link| replica.link_up(now, link));
    replica
}

fn links() -> impl Iterator<Item = Link> {
    let lanes = |peer| [Lane::Prompt, Lane::Bulk].map(|lane| Link { peer, lane, generation: 1 });
    PEERS.into_iter().flat_map(lanes)
}

/// Mostly a number that could be right, else one at the ends.
fn near(random: &mut StdRng, number: u64) -> u64 {
    match random.random_range(0..10) {
        0 => 0,
        1 => u64::MAX,
        2 => random.random_range(0..40),
        _ => number.saturating_add(random.random_range(0..5)).saturating_sub(2),
    }
}

fn lie(random: &mut StdRng, status: &StatusReport, now: Nanos) -> Message {
    let mut lie = Message { from: PEERS[random.random_range(0..PEERS.len())], to: 1, ..Message::default() };
    lie.set_msg_type(KINDS[random.random_range(0..KINDS.len())]);
    let right = random.random_bool(0.8);
    lie.term = if right { status.term + random.random_range(0..2) } else { near(random, status.term) };
    let right = random.random_bool(0.7);
    let log_term = status.term.saturating_sub(random.random_range(0..3));
    lie.log_term = if right { log_term } else { near(random, status.term) };
    (lie.index, lie.reject_hint) = (near(random, status.last_index), near(random, status.last_index));
    (lie.commit, lie.commit_term) = (near(random, status.committed), near(random, status.term));
    (lie.reject, lie.priority) = (random.random_bool(0.3), random.random_range(-1..2));
    lie.request_snapshot = if random.random_bool(0.1) { near(random, status.last_index) } else { 0 };
    match random.random_range(0..10) {
        0 => lie.set_context(b"CampaignTransfer".to_vec().into()),
        1 => lie.set_context(now.to_be_bytes().to_vec().into()),
        _ => {}
    }
    if lie.get_msg_type() == MessageType::MsgAppend {
        lie.entries = entries(random, &lie).into();
    }
    lie
}

fn entries(random: &mut StdRng, lie: &Message) -> Vec<Entry> {
    let count = random.random_range(0..4);
    let entry = |i: u64| {
        let index = lie.index.wrapping_add(1 + i);
        let term = if random.random_bool(0.8) { lie.term } else { near(random, lie.term) };
        let mut entry = Entry { index, term, ..Entry::default() };
        if random.random_bool(0.05) {
            let kinds = [ConfChangeType::AddNode, ConfChangeType::RemoveNode, ConfChangeType::AddLearnerNode];
            let mut single = ConfChangeSingle { node_id: random.random_range(0..5), ..ConfChangeSingle::default() };
            single.set_change_type(kinds[random.random_range(0..kinds.len())]);
            let change = ConfChangeV2 { changes: vec![single].into(), ..ConfChangeV2::default() };
            entry.set_entry_type(EntryType::EntryConfChangeV2);
            entry.set_data(change.write_to_bytes().unwrap().into());
        }
        entry
    };
    (0..count).map(entry).collect()
}

/// Until the replica ends itself with a message, or has heard enough.
fn run(seed: u64) {
    let (mut random, mut now) = (StdRng::seed_from_u64(seed), 1_000_000 * MS);
    let (mut replica, mut buffer) = (replica(now), Vec::new());
    for _ in 0..MESSAGES {
        now += random.random_range(0..30) * MS / 4;
        let lie = lie(&mut random, &replica.status(now), now);
        buffer.clear();
        encode_message(&lie, &mut buffer).unwrap();
        buffer.push(OF_RAFT);
        replica.handle_message(now, Link { peer: lie.from, lane: Lane::Prompt, generation: 1 }, &buffer);
        if replica.poll_timeout().is_some_and(|due| due <= now) {
            replica.handle_timeout(now);
        }
        while random.random_bool(0.7)
            && let Some(batch) = replica.poll_persist()
        {
            replica.persisted(now, batch.id);
        }
        links().for_each(|link| while replica.poll_message(now, link, &mut buffer) {});
        while replica.poll_transmit(now, &mut buffer).is_some() {}
        while let Some(event) = replica.poll_event() {
            if matches!(event, Event::Failed(_)) {
                return;
            }
        }
    }
}

#[test]
fn r7_no_lie_of_a_peer_ends_the_process() {
    for seed in 0..SEEDS {
        assert!(std::panic::catch_unwind(|| run(seed)).is_ok(), "seed {seed}");
    }
}
