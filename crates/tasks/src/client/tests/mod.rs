//! Tests that drive the client by hand, in the roles of switch, executors and clock.

mod answers;
mod appended;
mod attacks;
mod came_back;
mod cancel;
mod completions;
mod cookies;
mod durable;
mod epochs;
mod faults;
mod forger;
mod no_record;
mod probes;
mod submit;
mod switch;
mod world;

use super::token::Tokens;
use super::{Argument, CancelledHow, Client, ClientConfig, Event, Task, TaskKey};
use crate::proof::Token;
use midflight_endpoint::{Endpoint, MS, Nanos};
use midflight_wire::tasks::{
    BlobRef, CancelAck, Complete, Completion, Cookie, Holder, Known, Operation, Packet, ProbeAck, Reason, Status,
    SubmitAck, TaskInfo, parse,
};
use midflight_wire::{Address, Builder, counting, packet};
use std::net::SocketAddr;
use zerocopy::{FromBytes, IntoBytes};

const IDENTITY: u64 = 77;
const SECRET: u128 = 78;
const EPOCH: u32 = 5;

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn switch_a() -> SocketAddr {
    address("10.0.0.1:1")
}

fn switch_b() -> SocketAddr {
    address("10.0.0.2:1")
}

fn executor() -> SocketAddr {
    address("10.0.1.1:9")
}

#[derive(Clone, Debug, PartialEq)]
enum Sent {
    Submit {
        to: SocketAddr,
        sequence: u32,
        cookie: u64,
        token: u64,
        jid: u32,
        /// Place, and patience in milliseconds.
        prefers: Option<(u32, u32)>,
        tasks: Vec<TaskInfo>,
    },
    Cancel {
        to: SocketAddr,
        sequence: u32,
        cookie: u64,
        names: Vec<(u32, u8)>,
    },
    Probe {
        to: SocketAddr,
        sequence: u32,
        cookie: u64,
        names: Vec<(u32, u8)>,
    },
    /// (submission, index, state)
    CompleteAck {
        to: SocketAddr,
        records: Vec<(u32, u8, u8)>,
    },
    Stop {
        to: SocketAddr,
        names: Vec<(u32, u8)>,
    },
}

fn read(to: SocketAddr, datagram: &[u8]) -> Sent {
    let names =
        |names: &[midflight_wire::tasks::TaskName]| names.iter().map(|n| (n.submission.get(), n.index)).collect();
    match parse(datagram).expect("the client sends well-formed packets") {
        Packet::Submit(fixed, tasks, _, prefers) => {
            assert_eq!(fixed.client.get(), IDENTITY);
            let (sequence, cookie) = (fixed.header.sequence.get(), fixed.cookie.get());
            let (token, jid) = (fixed.token.get(), fixed.jid.get());
            let prefers = prefers.map(|it| (it.place.get(), it.patience_ms.get()));
            Sent::Submit { to, sequence, cookie, token, jid, prefers, tasks: tasks.to_vec() }
        }
        Packet::Cancel(fixed, n) => {
            let (sequence, cookie) = (fixed.header.sequence.get(), fixed.cookie.get());
            Sent::Cancel { to, sequence, cookie, names: names(n) }
        }
        Packet::Probe(fixed, n) => {
            let (sequence, cookie) = (fixed.header.sequence.get(), fixed.cookie.get());
            Sent::Probe { to, sequence, cookie, names: names(n) }
        }
        Packet::CompleteAck(_, records) => {
            Sent::CompleteAck { to, records: records.iter().map(|r| (r.submission.get(), r.index, r.state)).collect() }
        }
        Packet::Stop(_, names) => {
            let name = |n: &midflight_wire::tasks::RunName| {
                assert_eq!(*n, token(n.submission.get()).run_name(n.submission.get(), n.index), "T13: proven");
                (n.submission.get(), n.index)
            };
            Sent::Stop { to, names: names.iter().map(name).collect() }
        }
        other => panic!("a client sends no {other:?}"),
    }
}

fn submit_ack(epoch: u32, sequence: u32, count: usize, taken: u32, reason: Reason) -> Vec<u8> {
    let all = u32::MAX >> (32 - count);
    let fixed = SubmitAck {
        client: IDENTITY.into(),
        taken: taken.into(),
        not_taken: (all & !taken).into(),
        reason: reason as u8,
        ..SubmitAck::new(epoch, sequence)
    };
    counting(&fixed, count as u8)
}

/// `held`: indices of the tasks that an executor has.
fn cancel_ack(epoch: u32, sequence: u32, taken_out: u32, held: &[u8]) -> Vec<u8> {
    let (client, taken_out) = (IDENTITY.into(), taken_out.into());
    let holder = |&index| Holder { executor: executor().into(), index, reserved: [0; 3] };
    let holders: Vec<_> = held.iter().map(holder).collect();
    packet(&CancelAck { client, taken_out, ..CancelAck::new(epoch, sequence) }, &holders)
}

fn probe_ack(epoch: u32, sequence: u32, count: usize, open: u32) -> Vec<u8> {
    probe_ack_of(Known::Yes, epoch, sequence, count, open)
}

fn probe_ack_of(known: Known, epoch: u32, sequence: u32, count: usize, open: u32) -> Vec<u8> {
    let fixed = ProbeAck {
        client: IDENTITY.into(),
        seen: Address::from(address("10.0.9.9:99")),
        open: open.into(),
        known: known as u8,
        ..ProbeAck::new(epoch, sequence)
    };
    counting(&fixed, count as u8)
}

fn cookie_for(identity: u64, epoch: u32, sequence: u32, cookie: u64) -> Vec<u8> {
    let (identity, cookie) = (identity.into(), cookie.into());
    counting(&Cookie { identity, cookie, ..Cookie::new(epoch, sequence) }, 0)
}

fn token(submission: u32) -> Token {
    Tokens::new(SECRET).of(submission)
}

fn complete(name: (u32, u8), attempt: u8, status: Status, by_reference: bool, result: &[u8]) -> Vec<u8> {
    complete_with(token(name.0), name, attempt, status, by_reference, result)
}

fn complete_with(
    token: Token,
    name: (u32, u8),
    attempt: u8,
    status: Status,
    by_reference: bool,
    result: &[u8],
) -> Vec<u8> {
    let mut datagram = Vec::new();
    let mut packet = Builder::new(&mut datagram, &Complete { executor: 1.into(), ..Complete::new(EPOCH, 0) });
    let mut completion = Completion {
        proof: 0.into(),
        submission: name.0.into(),
        index: name.1,
        attempt,
        status: status as u8,
        by_reference: u8::from(by_reference),
        waited_us: 11.into(),
        held_us: 12.into(),
        ran_ns: 13.into(),
        result_length: (result.len() as u16).into(),
        reserved: 0.into(),
    };
    let proof = token.completion_proof(1, &completion, result);
    completion.proof = proof.into();
    let hidden = BlobRef::read_from_bytes(result).ok().filter(|_| by_reference).map(|blob| token.hide(proof, &blob));
    assert!(packet.push_completion(&completion, hidden.as_ref().map_or(result, |blob| blob.as_bytes())));
    datagram
}

fn task() -> Task {
    Task::new(1, Argument::NONE)
}

struct Hand {
    client: Client,
    now: Nanos,
}

impl Hand {
    fn new(change: impl FnOnce(&mut ClientConfig)) -> Self {
        let mut config = ClientConfig::new(IDENTITY, 3, vec![switch_a(), switch_b()]);
        config.secret = SECRET;
        change(&mut config);
        let now = 1_000 * MS;
        Self { client: Client::new(config, now).unwrap(), now }
    }

    fn settled() -> Self {
        Self::settled_at(Known::Yes, |_| {})
    }

    fn settled_at(known: Known, change: impl FnOnce(&mut ClientConfig)) -> Self {
        let mut hand = Self::new(change);
        let [Sent::Probe { sequence, .. }] = hand.sent()[..] else { panic!("the client begins with a probe") };
        hand.switch_says(&probe_ack_of(known, EPOCH, sequence, 0, 0));
        assert!(matches!(hand.events()[..], [Event::SwitchChanged { epoch: EPOCH, .. }, Event::SeenAs(_)]));
        hand
    }

    /// A client that left the first switch and probes it; the sequences of that PROBE, and of the last that the second switch
    /// answered.
    fn that_left_a() -> (Self, u32, u32) {
        let mut hand = Self::settled();
        hand.open(&[task()]);
        let (mut sent, mut asked) = (hand.pass(1_100 * MS), 0);
        loop {
            for (to, sequence) in probes::probes(&sent) {
                if to == switch_a() && asked > 0 {
                    return (hand, sequence, asked);
                } else if to == switch_b() {
                    hand.client.handle(hand.now, to, &probe_ack(EPOCH + 1, sequence, 0, 0));
                    asked = sequence;
                }
            }
            hand.sent();
            sent = hand.pass(100 * MS);
        }
    }

    fn sent(&mut self) -> Vec<Sent> {
        let mut buffer = Vec::new();
        let mut sent = Vec::new();
        while let Some(to) = self.client.poll_transmit(self.now, &mut buffer) {
            sent.push(read(to, &buffer));
        }
        sent
    }

    fn submits(&mut self) -> Vec<(u32, Vec<TaskInfo>)> {
        let of_submit = |sent| match sent {
            Sent::Submit { sequence, tasks, .. } => Some((sequence, tasks)),
            _ => None,
        };
        self.sent().into_iter().filter_map(of_submit).collect()
    }

    /// Submits tasks in one packet; returns its sequence and the keys.
    fn submit(&mut self, tasks: &[Task]) -> (u32, Vec<TaskKey>) {
        let keys = self.client.submit(self.now, 1, tasks).unwrap().map(TaskKey).collect();
        let [(sequence, _)] = self.submits()[..] else { panic!("one SUBMIT") };
        (sequence, keys)
    }

    fn open(&mut self, tasks: &[Task]) -> (u32, Vec<TaskKey>) {
        self.open_in(EPOCH, tasks)
    }

    fn open_in(&mut self, epoch: u32, tasks: &[Task]) -> (u32, Vec<TaskKey>) {
        let (sequence, keys) = self.submit(tasks);
        self.switch_says(&submit_ack(epoch, sequence, tasks.len(), u32::MAX >> (32 - tasks.len()), Reason::None));
        (sequence, keys)
    }

    fn switch_says(&mut self, datagram: &[u8]) {
        self.client.handle(self.now, switch_a(), datagram);
    }

    fn executor_says(&mut self, datagram: &[u8]) {
        self.client.handle(self.now, executor(), datagram);
    }

    fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.client.poll_event()).collect()
    }

    /// Lets time pass, handles timers when due, and returns what was sent.
    fn pass(&mut self, time: Nanos) -> Vec<Sent> {
        let end = self.now + time;
        let mut sent = Vec::new();
        while let Some(due) = self.client.poll_timeout()
            && due <= end
        {
            assert!(due >= self.now || !sent.is_empty() || self.now == 0, "what was due has been done");
            self.now = due.max(self.now);
            self.client.handle_timeout(self.now);
            sent.extend(self.sent());
            assert!(self.client.poll_timeout().is_none_or(|next| next > self.now), "the client spins");
        }
        self.now = end;
        sent
    }

    /// The same, while the switch reports in each PROBE_ACK that all tasks are open.
    fn pass_with_open_tasks(&mut self, time: Nanos) -> Vec<Sent> {
        let end = self.now + time;
        let mut all = Vec::new();
        while self.now < end {
            for sent in self.pass(MS) {
                if let Sent::Probe { sequence, names, .. } = &sent {
                    self.switch_says(&probe_ack(EPOCH, *sequence, names.len(), u32::MAX));
                }
                all.push(sent);
            }
        }
        all
    }
}
