//! Peer messages that no correct peer sends. raft-rs panics if a peer contradicts it, so none of these may reach it.

#![allow(clippy::unwrap_used, reason = "tests may")]

use midflight_endpoint::{Durable, Endpoint, Lane, Link, Linked, MS, Nanos};
use midflight_store::log::encode_message;
use midflight_store::replica::{Event, Member, Replica, ReplicaConfig, Role, StatusReport};
use protobuf::Message as _;
use raft::eraftpb::MessageType;
use raft::prelude::{ConfChangeSingle, ConfChangeType, ConfChangeV2, Entry, EntryType, Message};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::net::SocketAddr;

const SEEDS: u64 = 2000;
const MESSAGES: usize = 400;
/// The last byte of a peer message: Raft's, or another.
const OF_RAFT: u8 = 0;
const OTHER: u8 = 1;
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
    let members: Vec<Member> = (1..=3).map(member).collect();
    let founder = |id| {
        let config = ReplicaConfig::new(42, 3, id, members.clone(), switches.clone(), id);
        let mut founder = Replica::new(ReplicaConfig { founds: true, ..config }, Vec::new(), now).unwrap();
        links(id).for_each(|link| founder.link_up(now, link));
        founder
    };
    let (mut all, mut buffer) = ([1, 2, 3].map(founder), Vec::new());
    while all[0].status(now).role != Role::Follower {
        for from in 1..=3u64 {
            let own = from as usize - 1;
            while let Some(batch) = all[own].poll_persist() {
                all[own].persisted(now, batch.id);
            }
            for link in links(from) {
                while all[own].poll_message(now, link, &mut buffer) {
                    all[link.peer as usize - 1].handle_message(now, Link { peer: from, ..link }, &buffer);
                }
            }
        }
    }
    let [mut replica, ..] = all;
    while replica.poll_event().is_some() {}
    replica
}

fn links(of: u64) -> impl Iterator<Item = Link> {
    let lanes = |peer| [Lane::Prompt, Lane::Bulk].map(|lane| Link { peer, lane, generation: 1 });
    (1..=3).filter(move |peer| *peer != of).flat_map(lanes)
}

/// Usually a plausible number, otherwise an extreme one.
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

/// A peer message outside Raft, with plausible or random numbers.
fn other_lie(random: &mut StdRng, status: &StatusReport, now: Nanos) -> (Link, Vec<u8>) {
    let peer = PEERS[random.random_range(0..PEERS.len())];
    let [a, b, c] = [0; 3].map(|_: u8| {
        let right = [status.term, status.last_index, now][random.random_range(0..3)];
        near(random, right)
    });
    let kind = random.random_range(1..=11);
    let peer_message = match kind {
        1 | 10 | 11 => part(random, status, peer, (a, b, c)),
        2 | 6 => postcard::to_allocvec(&(kind, a, b, c)),
        7 => postcard::to_allocvec(&(kind, a)),
        // Origin: nothing, offers, accepts, or has begun with these members.
        9 => match random.random_range(0..4u8) {
            0 => postcard::to_allocvec(&(10u8, 0u8)),
            1 => postcard::to_allocvec(&(10u8, 1u8, a, Vec::<u64>::new())),
            2 => postcard::to_allocvec(&(10u8, 2u8, vec![(1, a), (2, b)])),
            _ => postcard::to_allocvec(&(10u8, 3u8, vec![(1, a), (2, b)], c, vec![2u64, 3], None::<u64>)),
        },
        _ => postcard::to_allocvec(&(kind, a, b)),
    };
    let lane = if kind == 1 || kind > 9 { Lane::Bulk } else { Lane::Prompt };
    let mut peer_message = peer_message.unwrap();
    peer_message.push(OTHER);
    (Link { peer, lane, generation: 1 }, peer_message)
}

/// A part of a snapshot.
fn part(
    random: &mut StdRng,
    status: &StatusReport,
    peer: u64,
    (a, b, c): (u64, u64, u64),
) -> postcard::Result<Vec<u8>> {
    let term = if random.random_bool(0.8) { status.term } else { a };
    match random.random_range(0..4u8) {
        0 | 3 => {
            let mut message = Message { from: peer, to: 1, term, ..Message::default() };
            message.set_msg_type(MessageType::MsgSnapshot);
            let metadata = message.mut_snapshot().mut_metadata();
            (metadata.index, metadata.term) = (b, if random.random_bool(0.5) { term } else { c });
            metadata.mut_conf_state().voters = (0..random.random_range(0..4)).collect();
            let mut bytes = Vec::new();
            encode_message(&message, &mut bytes).unwrap();
            postcard::to_allocvec(&(1u8, term, a, 0u64, 0u8, bytes))
        }
        1 => {
            // A version, then arbitrary bytes.
            let content: Vec<u8> = [0, random.random_range(0..4)].into_iter().chain(c.to_be_bytes()).collect();
            postcard::to_allocvec(&(1u8, term, a, b % 3, 1u8, content))
        }
        _ => postcard::to_allocvec(&(1u8, term, a, b % 3, 2u8)),
    }
}

fn run(seed: u64) {
    let (mut random, mut now) = (StdRng::seed_from_u64(seed), 1_000_000 * MS);
    let (mut replica, mut buffer) = (replica(now), Vec::new());
    for _ in 0..MESSAGES {
        now += random.random_range(0..30) * MS / 4;
        if random.random_bool(0.2) {
            let (link, peer_message) = other_lie(&mut random, &replica.status(now), now);
            replica.handle_message(now, link, &peer_message);
        } else {
            let lie = lie(&mut random, &replica.status(now), now);
            buffer.clear();
            encode_message(&lie, &mut buffer).unwrap();
            buffer.push(OF_RAFT);
            replica.handle_message(now, Link { peer: lie.from, lane: Lane::Prompt, generation: 1 }, &buffer);
        }
        if replica.poll_timeout().is_some_and(|due| due <= now) {
            replica.handle_timeout(now);
        }
        while random.random_bool(0.7)
            && let Some(batch) = replica.poll_persist()
        {
            replica.persisted(now, batch.id);
        }
        links(1).for_each(|link| while replica.poll_message(now, link, &mut buffer) {});
        while replica.poll_transmit(now, &mut buffer).is_some() {}
        while let Some(event) = replica.poll_event() {
            match event {
                Event::Failed(why) => panic!("{why}"),
                // The peer reconnects.
                Event::Ended(link) => replica.link_up(now, link),
                _ => {}
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

/// A heartbeat of the current term's leader with this commit index.
fn heartbeat(term: u64, commit: u64) -> Vec<u8> {
    let mut heartbeat = Message { from: 2, to: 1, term, commit, ..Message::default() };
    heartbeat.set_msg_type(MessageType::MsgHeartbeat);
    let mut bytes = Vec::new();
    encode_message(&heartbeat, &mut bytes).unwrap();
    bytes.push(OF_RAFT);
    bytes
}

#[test]
fn r7_an_absurd_commit_index_ends_the_connection_and_nothing_else() {
    let now = 1_000_000 * MS;
    let mut replica = replica(now);
    let link = Link { peer: 2, lane: Lane::Prompt, generation: 1 };
    let before = replica.status(now);
    for times in 1..=3 {
        replica.handle_message(now, link, &heartbeat(before.term, 1_000_000_000));
        let events: Vec<Event> = std::iter::from_fn(|| replica.poll_event()).collect();
        let told = Event::Contradicted { peer: 2, commit: 1_000_000_000, last: 1 };
        assert_eq!(events.contains(&told), times == 1, "it is said once: {events:?}");
        assert!(events.contains(&Event::Ended(link)) && !events.iter().any(|e| matches!(e, Event::Failed(_))));
        assert_eq!((replica.counters().contradictions, replica.status(now)), (times, before.clone()));
        replica.handle_message(now, link, &heartbeat(before.term, 1));
        assert_eq!(replica.status(now).leader, None, "nothing more is taken from that connection");
        replica.link_up(now, link);
    }
    replica.handle_message(now, link, &heartbeat(before.term, 1));
    assert_eq!(replica.status(now).leader, Some(2), "what a leader can say is taken");
}
