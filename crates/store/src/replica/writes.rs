//! A session's writes at its leader: order, answers, and how key groups become stable again.
//!
//! Closing rule: whatever closes a key group carries an index at least that of every write accepted before its SEQ was processed, and is
//! sent only once that index is committed and applied. Here every answer waits for the log's last index at its creation, so answers leave
//! in order.

use super::clients::Source;
use super::entry::{ClientWrite, Record, What};
use super::node::Node;
use super::packets;
use super::room::may_use_reserve;
use super::session::Datagrams;
use super::state::{State, of_known};
use super::store::Outcome;
use midflight_endpoint::mutants::planted;
use midflight_endpoint::{MS, Nanos};
use midflight_wire::store::{Command, DATA_MAX, Operation, Request, Status, Write, key_hash};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::net::SocketAddr;

/// After this long without writes, reads may go to the leader too.
const IDLE: Nanos = 20 * MS;

pub(super) struct Writes {
    kgroup_bits: u8,
    processed: Vec<u64>,
    waiting: VecDeque<Waiting>,
    outcomes: HashMap<u64, Outcome>,
    /// The unapplied write in the log, by client.
    in_log: HashMap<u64, u64>,
    opening_sources: Vec<Source>,
    /// Key groups that READs show to be unstable: SEQ of the last write, and time of the first such READ.
    open: BTreeMap<u32, (u64, Nanos)>,
    last_write: Nanos,
}

struct Waiting {
    /// The command and its arrival; `None` for a REFRESH.
    came: Option<(Command, Nanos)>,
    index: u64,
    request: Request,
    answer: Answer,
}

enum Answer {
    /// The outcome of the entry at `index`.
    Entry,
    /// What the client table knows of this write.
    Lookup { client: u64, number: u64 },
    /// A refusal with this status.
    Refusal(Status),
}

pub(super) struct Arrived<'a> {
    pub(super) from: SocketAddr,
    pub(super) request: &'a Request,
    pub(super) write: &'a Write,
    pub(super) key: &'a [u8],
    pub(super) arguments: &'a [u8],
}

#[derive(Clone, Copy)]
pub(super) struct Bounds {
    pub(super) waiting_max: usize,
    pub(super) unsafe_bytes_max: usize,
    pub(super) has_room: bool,
}

impl Writes {
    pub(super) fn new(kgroup_bits: u8) -> Self {
        Self {
            kgroup_bits,
            processed: vec![0; 1 << kgroup_bits],
            waiting: VecDeque::new(),
            outcomes: HashMap::new(),
            in_log: HashMap::new(),
            opening_sources: Vec::new(),
            open: BTreeMap::new(),
            last_write: 0,
        }
    }

    fn kgroup(&self, hash: u32) -> u32 {
        kgroup_of(hash, self.kgroup_bits)
    }

    /// Whether no write is in flight and the last one was at least [`IDLE`] ago.
    pub(super) fn is_idle(&self, now: Nanos) -> bool {
        self.waiting.is_empty() && now >= self.last_write + IDLE
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Key groups known to be unstable at the switch: with a write in flight or lost.
    pub(super) fn unstable(&self) -> usize {
        let under_way = self.waiting.iter().map(|waiting| self.kgroup(waiting.request.hash.get()));
        self.open.keys().copied().chain(under_way).collect::<HashSet<u32>>().len()
    }

    /// Handles a WRITE of this session. Its SEQ counts as processed before any other check, so a refused packet can never run later.
    /// `None`: the answer waits. The order of the checks is part of the protocol.
    pub(super) fn take(
        &mut self,
        now: Nanos,
        arrived: &Arrived<'_>,
        node: &mut Node,
        state: &State,
        bounds: Bounds,
        time: u64,
    ) -> Option<Status> {
        let seq = arrived.request.seq.get();
        let kgroup = self.kgroup(arrived.request.hash.get()) as usize;
        if seq <= self.processed[kgroup] && !planted(141) {
            return Some(Status::Reordered);
        }
        self.processed[kgroup] = seq;
        self.last_write = now;
        let answer = match self.accept(arrived, node, state, bounds, time) {
            Ok(answer) => answer,
            Err(status) => Answer::Refusal(status),
        };
        let (mut index, mut request) = (node.last_index(), *arrived.request);
        if matches!(answer, Answer::Lookup { .. }) {
            if planted(143) {
                request.seq = 0.into();
            }
            if planted(144) {
                index = node.committed();
            }
        }
        self.wait(arrived.write.command().map(|command| (command, now)), index, request, answer, bounds);
        None
    }

    /// Proposes the write unless it is invalid or has run. Accepting it and appending it to the log are one step.
    fn accept(
        &mut self,
        arrived: &Arrived<'_>,
        node: &mut Node,
        state: &State,
        bounds: Bounds,
        time: u64,
    ) -> Result<Answer, Status> {
        let Arrived { request, write, key, arguments, .. } = arrived;
        let is_open = write.command() == Some(Command::Open);
        if !is_open && key_hash(key) != request.hash.get() {
            return Err(Status::BadHash);
        }
        if self.waiting.len() >= bounds.waiting_max || node.unsafe_bytes() >= bounds.unsafe_bytes_max {
            return Err(Status::Busy);
        }
        if is_open {
            let source = Source::of(request.client.ip);
            if !(key.is_empty() && arguments.is_empty()) {
                return Err(Status::BadRequest);
            }
            if !state.clients.may_open(time, source, &self.opening_sources) {
                return Err(Status::ClientsFull);
            }
            let answer = self.propose(node, &Record::Open { time, source })?;
            self.opening_sources.push(source);
            return Ok(answer);
        }
        let (client, number) = (write.client.get(), write.number.get());
        let what = What::of(write, key, arguments).ok_or(Status::BadRequest)?;
        if key.len() + arguments.len() > DATA_MAX {
            return Err(Status::TooLarge);
        }
        let record = ClientWrite { client, number, time, what };
        if record.is_expiry() {
            return self.propose(node, &Record::Write(request.seq.get(), record));
        }
        let is_new = state.clients.knows(client, number) == super::clients::Known::New;
        if !is_new || self.in_log.get(&client).is_some_and(|&last| last >= number) {
            return Ok(Answer::Lookup { client, number });
        }
        if !bounds.has_room && !may_use_reserve(arrived) {
            return Err(Status::DiskFull);
        }
        let answer = self.propose(node, &Record::Write(request.seq.get(), record))?;
        self.in_log.insert(client, number);
        Ok(answer)
    }

    fn propose(&mut self, node: &mut Node, record: &Record<'_>) -> Result<Answer, Status> {
        node.propose(record.encode()).map(|_| Answer::Entry).ok_or(Status::Busy)
    }

    /// If the queue is full, drops the answer: the client repeats, and a REFRESH makes the group stable.
    fn wait(&mut self, came: Option<(Command, Nanos)>, index: u64, request: Request, answer: Answer, bounds: Bounds) {
        if self.waiting.len() < bounds.waiting_max {
            self.waiting.push_back(Waiting { came, index, request, answer });
        }
    }

    pub(super) fn applied(&mut self, index: u64, record: &Record<'_>, outcome: Outcome) {
        if let Record::Write(_, ClientWrite { client, number, .. }) = record
            && self.in_log.get(client) == Some(number)
        {
            self.in_log.remove(client);
        }
        if let Record::Open { source, .. } = record
            && let Some(place) = self.opening_sources.iter().position(|other| other == source)
        {
            self.opening_sources.swap_remove(place);
        }
        if self.waiting.back().is_some_and(|last| last.index >= index) {
            self.outcomes.insert(index, outcome);
        }
    }

    pub(super) fn answer(
        &mut self,
        applied: u64,
        slot: u8,
        node: &Node,
        state: &State,
        to: SocketAddr,
        out: &mut Datagrams,
    ) -> Vec<(Command, Nanos)> {
        let mut answered = Vec::new();
        while let Some(waiting) = self.waiting.pop_front_if(|waiting| waiting.index <= applied) {
            let Waiting { came, index, mut request, answer } = waiting;
            answered.extend(came);
            let outcome = match answer {
                // Cannot happen: the outcome would be missing only if the entry was applied before the queue existed.
                Answer::Entry => self.outcomes.remove(&index).unwrap_or(Outcome::plain(Status::Busy)),
                Answer::Lookup { client, number } => of_known(state.clients.knows(client, number)),
                Answer::Refusal(status) => Outcome::plain(status),
            };
            request.index = index.into();
            request.replicas = holders(index, node, state);
            let packet = packets::reply(&request, Operation::WriteReply, slot, outcome.status, [&outcome.value, &[]]);
            out.push_back((to, packet));
        }
        self.outcomes.clear();
        answered
    }

    /// A leader-only READ carries the SEQ of its key group's last write. Either that write has not come yet, or its answer has not
    /// reached the switch. (A client may have the answer to another copy of it, and not repeat it.)
    pub(super) fn note_read(&mut self, now: Nanos, request: &Request) {
        let (kgroup, seq) = (self.kgroup(request.hash.get()), request.seq.get());
        let is_answered = seq == self.processed[kgroup as usize] && planted(143);
        if seq < self.processed[kgroup as usize] || is_answered || planted(146) {
            return;
        }
        let open = self.open.entry(kgroup).or_insert((seq, now));
        if open.0 < seq {
            *open = (seq, now);
        }
    }

    /// REFRESH: makes key groups stable that READs have shown to be unstable for a while. A write that has not come by now is refused
    /// later.
    pub(super) fn refresh(&mut self, now: Nanos, after: Nanos, name: &Refresh, node: &Node, bounds: Bounds) -> u64 {
        let is_due = |(_, since): &(u64, Nanos)| now >= since + after;
        let due: Vec<(u32, u64)> =
            self.open.iter().filter(|(_, open)| is_due(open)).map(|(&k, open)| (k, open.0)).collect();
        let mut refreshed = 0;
        for (kgroup, seq) in due {
            self.open.remove(&kgroup);
            let processed = &mut self.processed[kgroup as usize];
            if seq < *processed {
                continue;
            }
            *processed = seq;
            refreshed += 1;
            let mut request = Request::new(Operation::WriteReply);
            request.header.epoch = name.epoch.into();
            (request.sid, request.seq, request.set) = (name.sid.into(), seq.into(), name.set.into());
            request.hash = kgroup.checked_shl(32 - u32::from(self.kgroup_bits)).unwrap_or(0).into();
            self.wait(None, node.last_index(), request, Answer::Refusal(Status::Done), bounds);
        }
        refreshed
    }

    pub(super) fn timeout(&self, after: Nanos) -> Option<Nanos> {
        self.open.values().map(|(_, since)| since + after).min()
    }
}

/// The key group of a hash among 2^`bits` groups.
pub(super) fn kgroup_of(hash: u32, bits: u8) -> u32 {
    hash.checked_shr(32 - u32::from(bits)).unwrap_or(0)
}

pub(super) struct Refresh {
    pub(super) epoch: u32,
    pub(super) sid: u64,
    pub(super) set: u16,
}

/// A bit for each replica whose log has this index.
fn holders(index: u64, node: &Node, state: &State) -> u8 {
    let has = |id| node.matched(id) >= index;
    state.members.iter().filter(|member| has(member.id)).fold(0, |bits, member| bits | 1 << member.slot)
}
