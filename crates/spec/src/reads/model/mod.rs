//! The reference model of the reads program: what each packet must cause at the switch, in plain Rust.
//!
//! It was written from `docs/internals/reads.md` and the packet formats, as simply as possible: maps, no counters that could be
//! computed, a session that begins with an empty map of key groups. With the same input as an engine it gives the same bytes,
//! verdicts and counts.

use midflight_dataplane::program::{Called, Engine};
use midflight_dataplane::reads::{
    LEASE_MAX_NS, NewSet, Outcome, Policy, ReadsConfig, ReadsProgram, ReplyCheck, SetOrder, SetStats, Stats, Verdict,
};
use midflight_dataplane::{Cookies, Datagram, Out};
use midflight_wire::reads::{
    EndSession, FLAG_EXISTS, FLAG_LEADER_ONLY, Heartbeat, Hello, NO_SLOT, Operation, Packet, REPLICAS_MAX, Replica,
    Request, State, Status, parse,
};
use midflight_wire::{Address, Header, MAGIC, PACKET_MAX, Reject, VERSION, VERSION_OPERATION, Version};
use std::collections::HashMap;
use std::net::SocketAddr;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

/// All requests are of one kind to a switch, so cookies are of addresses only.
const IDENTITY: u64 = 0;

/// A switch, as `docs/internals/reads.md` describes it.
#[derive(Clone, Debug)]
pub struct Model {
    config: ReadsConfig,
    cookies: Cookies,
    sets: HashMap<u16, Set>,
    stats: Stats,
    /// Whether the present datagram is a HEARTBEAT that begins a session or extends a lease: so it is no copy.
    is_genuine: bool,
}

#[derive(Clone, Debug)]
struct Set {
    /// Where its counts stand.
    place: usize,
    config: NewSet,
    /// The present or last session.
    session: Option<Session>,
    ended: u64,
    draws: u64,
    /// The latest echo of a HELLO from each place.
    echoes: [u64; REPLICAS_MAX],
}

#[derive(Clone, Debug)]
struct Session {
    sid: u64,
    start: u64,
    leader: u8,
    lease_ends_ns: u64,
    seq: u64,
    answered_seq: u64,
    replicas: [Replica; REPLICAS_MAX],
    /// Those to which a write or its answer has come in this session.
    kgroups: HashMap<u32, Kgroup>,
    sent: [u32; REPLICAS_MAX],
    answered: [u32; REPLICAS_MAX],
}

#[derive(Clone, Copy, Debug)]
struct Kgroup {
    stable: bool,
    seq: u64,
    index: u64,
    replicas: u8,
}

impl Session {
    fn kgroup(&self, number: u32) -> Kgroup {
        let untouched = Kgroup { stable: true, seq: 0, index: self.start, replicas: 0 };
        self.kgroups.get(&number).copied().unwrap_or(untouched)
    }

    fn replica(&self, slot: u8) -> Option<SocketAddr> {
        let replica = self.replicas.get(usize::from(slot))?;
        (replica.address.port.get() != 0).then(|| replica.address.into())
    }

    /// Consistent replicas with a weight, by their slots.
    fn eligible(&self, kgroup: Kgroup) -> Vec<(u8, u32)> {
        (0..REPLICAS_MAX as u8)
            .filter(|&slot| self.replica(slot).is_some())
            .map(|slot| (slot, self.replicas[usize::from(slot)]))
            .filter(|(slot, replica)| kgroup.replicas >> slot & 1 == 1 || replica.matched.get() >= kgroup.index)
            .map(|(slot, replica)| (slot, u32::from(replica.weight)))
            .filter(|&(_, weight)| weight > 0)
            .collect()
    }
}

impl Set {
    fn active(&self, now: u64) -> Option<&Session> {
        self.session.as_ref().filter(|session| now < session.lease_ends_ns)
    }

    fn epoch(&self) -> u32 {
        (self.config.incarnation as u32).max(1)
    }

    fn kgroup_of(&self, request: &Request) -> u32 {
        (u64::from(request.hash.get()) >> (32 - self.config.kgroup_bits)) as u32
    }

    fn is_replica(&self, address: SocketAddr) -> bool {
        let in_session =
            self.session.as_ref().is_some_and(|s| (0..REPLICAS_MAX as u8).any(|slot| s.replica(slot) == Some(address)));
        in_session || self.config.replicas.contains(&address)
    }

    /// The slot for a READ of a stable key group; `None`: only the leader will do.
    fn choose(&mut self, kgroup: Kgroup) -> Option<u8> {
        let session = self.session.as_ref()?;
        let mut eligible = session.eligible(kgroup);
        let has_follower = eligible.iter().any(|&(slot, _)| slot != session.leader);
        let writes_are_under_way = session.answered_seq < session.seq;
        if self.config.policy == Policy::LeaderAvoidance && writes_are_under_way && has_follower {
            eligible.retain(|&(slot, _)| slot != session.leader);
        }
        let total: u64 = eligible.iter().map(|&(_, weight)| u64::from(weight)).sum();
        if total == 0 {
            return None;
        }
        self.draws += 1;
        let mut lot = ((mix(self.draws) >> 32) * total) >> 32;
        for (slot, weight) in eligible {
            match lot.checked_sub(weight.into()) {
                None => return Some(slot),
                Some(rest) => lot = rest,
            }
        }
        None
    }

    fn state(&self, now: u64, sequence: u32) -> State {
        let mut state = State {
            incarnation: self.config.incarnation.into(),
            ended: self.ended.into(),
            now: now.into(),
            set: self.config.number.into(),
            kgroup_bits: self.config.kgroup_bits,
            lease_us: u32::try_from(self.config.lease_ns / 1_000).unwrap_or(u32::MAX).into(),
            ..State::new(self.epoch(), sequence)
        };
        if let Some(session) = &self.session {
            state.sid = session.sid.into();
            state.lease = session.lease_ends_ns.saturating_sub(now).into();
            state.seq = session.seq.into();
            state.sent = session.sent.map(Into::into);
            state.answered = session.answered.map(Into::into);
        }
        state
    }
}

/// The finaliser of splitmix64.
fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// What a datagram causes: the verdict on it, and what is sent.
type Said = (Verdict, Vec<Datagram>);

fn refused(verdict: Verdict) -> Said {
    (verdict, Vec::new())
}

/// A datagram that came: its sender, when, and its bytes.
#[derive(Clone, Copy)]
struct Came<'a> {
    from: SocketAddr,
    now: u64,
    bytes: &'a [u8],
}

impl Came<'_> {
    /// Forwards it with another beginning.
    fn forward(&self, to: impl Into<SocketAddr>, request: &Request) -> Said {
        let bytes = [request.as_bytes(), &self.bytes[size_of::<Request>()..]].concat();
        (Verdict::Forwarded, vec![(to.into(), bytes)])
    }

    fn answer_state(&self, verdict: Verdict, set: &Set, question: &Header) -> Said {
        (verdict, vec![(self.from, set.state(self.now, question.sequence.get()).as_bytes().to_vec())])
    }
}

/// What a client may see of a request or reply.
fn for_client(request: &Request) -> Request {
    let mut seen = Request {
        sid: 0.into(),
        seq: 0.into(),
        index: 0.into(),
        client: Address::new_zeroed(),
        replicas: 0,
        flags: request.flags & FLAG_EXISTS,
        ..*request
    };
    seen.header.epoch = 0.into();
    seen
}

/// An answer of the switch to a request.
fn answer(request: &Request, status: Status) -> Request {
    let operation = request.header.operation + 1;
    Request {
        header: Header::new(operation, 0, request.header.sequence.get()),
        key_length: 0.into(),
        slot: NO_SLOT,
        status: status as u8,
        ..for_client(request)
    }
}

impl Model {
    /// A switch that has just started.
    #[must_use]
    pub fn new(config: &ReadsConfig, secret: u128) -> Self {
        let cookies = Cookies::new(secret, config.cookie_ns);
        Self { config: *config, cookies, sets: HashMap::new(), stats: Stats::new_zeroed(), is_genuine: false }
    }

    fn take(&mut self, came: Came<'_>) -> Said {
        if let Some(operation) = valid_operation(came.bytes) {
            self.stats.packets[operation as usize] += 1;
            if operation == Operation::State {
                return refused(Verdict::NotForSwitch);
            }
        }
        if is_version(came.bytes) {
            return refused(Verdict::NotForSwitch);
        }
        match parse(came.bytes) {
            Ok(Packet::Read(request, _) | Packet::Write(request, ..)) => self.request(came, request),
            Ok(Packet::WriteReply(reply, status, _)) => self.write_reply(came, reply, status),
            Ok(Packet::ReadReply(reply, status, ..)) => self.read_reply(came, reply, status),
            Ok(Packet::Hello(hello)) => self.hello(came, hello),
            Ok(Packet::Heartbeat(beat, replicas)) => self.heartbeat(came, beat, replicas),
            Ok(Packet::EndSession(end)) => self.end_session(came, end),
            Ok(Packet::State(_) | Packet::Version(_)) => refused(Verdict::NotForSwitch),
            Err(Reject::BadVersion(_)) => (Verdict::BadVersion, vec![(came.from, Version::OURS.as_bytes().to_vec())]),
            Err(reject) => refused(verdict_of(reject)),
        }
    }

    /// READ and WRITE.
    fn request(&mut self, came: Came<'_>, request: &Request) -> Said {
        let Came { from, now, .. } = came;
        let answered = |answer: Request| vec![(from, answer.as_bytes().to_vec())];
        let Some(set) = self.sets.get_mut(&request.set.get()) else {
            return (Verdict::UnknownSet, answered(answer(request, Status::UnknownSet)));
        };
        let said = request.client.ip.first_chunk().map_or(0, |cookie| u64::from_be_bytes(*cookie));
        if !self.cookies.takes(now, IDENTITY, from, said) {
            let mut asks = answer(request, Status::Cookie);
            let cookie = self.cookies.give(now, IDENTITY, from);
            asks.client.ip[..8].copy_from_slice(&cookie.to_be_bytes());
            return (Verdict::NoCookie, answered(asks));
        }
        if set.active(now).is_none() {
            return (Verdict::Inactive, answered(answer(request, Status::Inactive)));
        }
        self.is_genuine = true;
        let request = Request { client: from.into(), ..*request };
        let stats = &mut self.stats.sets[set.place];
        if request.header.operation == Operation::Write as u8 {
            write(came, set, &request, stats)
        } else {
            read(came, set, &request, stats)
        }
    }

    /// The set and replica that a reply names, if it comes from there.
    fn set_of_reply(&mut self, came: Came<'_>, reply: &Request) -> Result<&mut Set, Verdict> {
        let set = self.sets.get_mut(&reply.set.get()).ok_or(Verdict::UnknownSet)?;
        let named = set.session.as_ref().and_then(|session| session.replica(reply.slot));
        if named != Some(came.from) {
            return Err(Verdict::ForeignReplica);
        }
        if reply.header.epoch.get() != set.epoch() {
            return Err(Verdict::ForeignEpoch);
        }
        Ok(set)
    }

    fn write_reply(&mut self, came: Came<'_>, reply: &Request, status: Status) -> Said {
        let set = match self.set_of_reply(came, reply) {
            Ok(set) => set,
            Err(verdict) => return refused(verdict),
        };
        let has_closed = close(came.now, set, reply, status);
        let place = set.place;
        self.stats.sets[place].closed += u64::from(has_closed);
        if reply.client.port.get() == 0 {
            return refused(Verdict::Ok);
        }
        came.forward(reply.client, &for_client(reply))
    }

    fn read_reply(&mut self, came: Came<'_>, reply: &Request, status: Status) -> Said {
        let now = came.now;
        let set = match self.set_of_reply(came, reply) {
            Ok(set) => set,
            Err(verdict) => return refused(verdict),
        };
        if reply.client.port.get() == 0 {
            return refused(Verdict::NoClient);
        }
        if let Some(session) = set.session.as_mut().filter(|session| session.sid == reply.sid.get()) {
            let answered = &mut session.answered[usize::from(reply.slot)];
            *answered = answered.wrapping_add(1);
        }
        let kgroup = set.kgroup_of(reply);
        let session = set.active(now);
        let own = session.filter(|session| session.sid == reply.sid.get());
        let is_current =
            own.is_some_and(|session| reply.slot == session.leader || session.kgroup(kgroup).seq == reply.seq.get());
        let is_for_leader_only = reply.flags & FLAG_LEADER_ONLY != 0;
        let is_good = match status {
            Status::Behind => false,
            _ if is_for_leader_only => own.is_some(),
            _ => set.config.reply_check == ReplyCheck::Relaxed || is_current,
        };
        if is_good {
            return came.forward(reply.client, &for_client(reply));
        }
        let (is_active, place) = (session.is_some(), set.place);
        if is_active && !is_for_leader_only {
            let stats = &mut self.stats.sets[place];
            stats.turned_back += 1;
            return self.turn_back(came, reply);
        }
        self.stats.sets[place].outdated += 1;
        let status = if is_active { Status::NotLeader } else { Status::Inactive };
        let told = Request { status: status as u8, key_length: 0.into(), ..for_client(reply) };
        (Verdict::Forwarded, vec![(reply.client.into(), told.as_bytes().to_vec())])
    }

    /// A READ for the leader again.
    fn turn_back(&mut self, came: Came<'_>, reply: &Request) -> Said {
        let end = size_of::<Request>() + usize::from(reply.key_length.get());
        let read = Came { bytes: &came.bytes[..end], ..came };
        let mut request = *reply;
        request.header.operation = Operation::Read as u8;
        match self.sets.get_mut(&reply.set.get()) {
            Some(set) => ask_leader(read, set, &request),
            None => refused(Verdict::UnknownSet),
        }
    }

    fn set_of_replica(&mut self, came: Came<'_>, number: u16) -> Result<&mut Set, Verdict> {
        let set = self.sets.get_mut(&number).ok_or(Verdict::UnknownSet)?;
        if set.is_replica(came.from) { Ok(set) } else { Err(Verdict::ForeignReplica) }
    }

    fn hello(&mut self, came: Came<'_>, hello: &Hello) -> Said {
        let set = match self.set_of_replica(came, hello.set.get()) {
            Ok(set) => set,
            Err(verdict) => return refused(verdict),
        };
        let (echo, place) = (hello.echo.get(), usize::from(hello.slot) % REPLICAS_MAX);
        let is_later =
            hello.incarnation.get() == set.config.incarnation && echo <= came.now && echo > set.echoes[place];
        if is_later {
            set.echoes[place] = echo;
        }
        let said = came.answer_state(Verdict::Ok, set, &hello.header);
        self.is_genuine = is_later;
        said
    }

    fn heartbeat(&mut self, came: Came<'_>, beat: &Heartbeat, replicas: &[Replica]) -> Said {
        let set = match self.set_of_replica(came, beat.set.get()) {
            Ok(set) => set,
            Err(verdict) => return refused(verdict),
        };
        if let Err(verdict) = check_heartbeat(set, came.now, beat, replicas) {
            return came.answer_state(verdict, set, &beat.header);
        }
        let before = set.session.as_ref().map(|session| (session.sid, session.lease_ends_ns));
        take_heartbeat(set, beat, replicas);
        let after = set.session.as_ref().map(|session| (session.sid, session.lease_ends_ns));
        let (said, place) = (came.answer_state(Verdict::Ok, set, &beat.header), set.place);
        self.is_genuine = after != before;
        self.stats.sets[place].sessions += u64::from(after.map(|now| now.0) != before.map(|then| then.0));
        said
    }

    fn end_session(&mut self, came: Came<'_>, end: &EndSession) -> Said {
        let set = match self.set_of_replica(came, end.set.get()) {
            Ok(set) => set,
            Err(verdict) => return refused(verdict),
        };
        if end.incarnation.get() != set.config.incarnation {
            return came.answer_state(Verdict::ForeignIncarnation, set, &end.header);
        }
        set.ended = set.ended.max(end.sid.get());
        if let Some(session) = set.session.as_mut().filter(|session| session.sid <= end.sid.get()) {
            session.lease_ends_ns = 0;
        }
        came.answer_state(Verdict::Ok, set, &end.header)
    }

    fn add(&mut self, new: NewSet) -> Outcome {
        let is_within_bounds = new.incarnation != 0
            && new.lease_ns <= LEASE_MAX_NS
            && u32::from(new.kgroup_bits) <= self.config.kgroup_bits;
        if !is_within_bounds {
            return Outcome::Bad;
        }
        if self.sets.contains_key(&new.number) {
            return Outcome::Exists;
        }
        let places = 0..self.config.sets as usize;
        let Some(place) = places.into_iter().find(|&place| self.stats.sets[place].is_used == 0) else {
            return Outcome::NoRoom;
        };
        self.stats.sets[place] = SetStats { set: new.number, is_used: 1, ..SetStats::new_zeroed() };
        let lease_ns = if new.lease_ns == 0 { self.config.lease_ns } else { new.lease_ns };
        let config = NewSet { lease_ns, ..new };
        self.sets
            .insert(config.number, Set { place, config, session: None, ended: 0, draws: 0, echoes: [0; REPLICAS_MAX] });
        Outcome::Done
    }

    fn remove(&mut self, number: u16) -> Outcome {
        let Some(set) = self.sets.remove(&number) else { return Outcome::Unknown };
        self.stats.sets[set.place].is_used = 0;
        Outcome::Done
    }

    /// Engines keep a counter; here they are counted.
    fn count_unstable(&mut self) {
        for set in self.sets.values() {
            let kgroups = set.session.iter().flat_map(|session| session.kgroups.values());
            self.stats.sets[set.place].unstable = kgroups.filter(|kgroup| !kgroup.stable).count() as u32;
        }
    }
}

/// The operation of a datagram whose header is right.
fn valid_operation(datagram: &[u8]) -> Option<Operation> {
    let (header, _) = Header::ref_from_prefix(datagram).ok()?;
    let is_valid = header.magic.get() == MAGIC && header.version == VERSION && header.key == 0;
    Operation::from_number(header.operation).filter(|_| is_valid && datagram.len() <= PACKET_MAX)
}

/// Whatever follows it: two switches that answered each other's VERSION would never stop.
fn is_version(datagram: &[u8]) -> bool {
    Version::ref_from_prefix(datagram)
        .is_ok_and(|(start, _)| start.magic.get() == MAGIC && start.operation == VERSION_OPERATION)
}

fn verdict_of(reject: Reject) -> Verdict {
    match reject {
        Reject::Truncated => Verdict::Truncated,
        Reject::Trailing => Verdict::Trailing,
        Reject::BadMagic => Verdict::BadMagic,
        Reject::BadVersion(_) => Verdict::BadVersion,
        Reject::UnknownKey => Verdict::UnknownKey,
        Reject::UnknownOperation => Verdict::UnknownOperation,
        Reject::BadCount => Verdict::BadCount,
        Reject::BadKey => Verdict::BadKey,
        Reject::BadStatus => Verdict::BadStatus,
        // Of other programs.
        Reject::BadPriority | Reject::BadArgument | Reject::BadResult => Verdict::NotForSwitch,
    }
}

/// A request as a replica gets it.
fn stamped(set: &Set, session: &Session, request: &Request, slot: u8, flags: u8) -> Request {
    let kgroup = session.kgroup(set.kgroup_of(request));
    let mut request = Request {
        sid: session.sid.into(),
        seq: kgroup.seq.into(),
        index: kgroup.index.into(),
        replicas: 0,
        slot,
        status: 0,
        flags: request.flags & FLAG_EXISTS | flags,
        ..*request
    };
    request.header.epoch = set.epoch().into();
    request
}

fn send_to(came: Came<'_>, set: &Set, request: &Request, slot: u8, flags: u8) -> Said {
    let Some(session) = &set.session else { return refused(Verdict::Inactive) };
    let Some(to) = session.replica(slot) else { return refused(Verdict::Inactive) };
    came.forward(to, &stamped(set, session, request, slot, flags))
}

fn write(came: Came<'_>, set: &mut Set, request: &Request, stats: &mut SetStats) -> Said {
    let number = set.kgroup_of(request);
    let Some(session) = &mut set.session else { return refused(Verdict::Inactive) };
    session.seq += 1;
    let kgroup = Kgroup { stable: false, seq: session.seq, ..session.kgroup(number) };
    session.kgroups.insert(number, kgroup);
    stats.writes += 1;
    let leader = session.leader;
    send_to(came, set, request, leader, 0)
}

fn read(came: Came<'_>, set: &mut Set, request: &Request, stats: &mut SetStats) -> Said {
    let number = set.kgroup_of(request);
    let Some((kgroup, leader)) = set.session.as_ref().map(|session| (session.kgroup(number), session.leader)) else {
        return refused(Verdict::Inactive);
    };
    let chosen = if kgroup.stable { set.choose(kgroup) } else { None };
    let Some(slot) = chosen else {
        stats.leader_only += 1;
        return ask_leader(came, set, request);
    };
    if slot == leader {
        stats.to_leader += 1;
    } else {
        stats.to_followers += 1;
    }
    count_sent(set, slot);
    send_to(came, set, request, slot, 0)
}

fn count_sent(set: &mut Set, slot: u8) {
    if let Some(session) = &mut set.session {
        let sent = &mut session.sent[usize::from(slot)];
        *sent = sent.wrapping_add(1);
    }
}

fn ask_leader(came: Came<'_>, set: &mut Set, request: &Request) -> Said {
    let leader = set.session.as_ref().map_or(NO_SLOT, |session| session.leader);
    count_sent(set, leader);
    send_to(came, set, request, leader, FLAG_LEADER_ONLY)
}

/// The closing rule. Returns whether it applied.
fn close(now: u64, set: &mut Set, reply: &Request, status: Status) -> bool {
    let (sid, seq, index) = (reply.sid.get(), reply.seq.get(), reply.index.get());
    let number = set.kgroup_of(reply);
    let Some(session) = set.session.as_mut().filter(|session| session.sid == sid && now < session.lease_ends_ns) else {
        return false;
    };
    if seq <= session.seq {
        session.answered_seq = session.answered_seq.max(seq);
    }
    let kgroup = session.kgroup(number);
    let closes = !matches!(status, Status::NotLeader | Status::Reordered) && kgroup.seq == seq && index >= kgroup.index;
    if closes {
        session.kgroups.insert(number, Kgroup { stable: true, seq, index, replicas: reply.replicas });
    }
    closes
}

fn check_heartbeat(set: &Set, now: u64, beat: &Heartbeat, replicas: &[Replica]) -> Result<(), Verdict> {
    let (sid, start, echo) = (beat.sid.get(), beat.start.get(), beat.echo.get());
    if beat.incarnation.get() != set.config.incarnation {
        return Err(Verdict::ForeignIncarnation);
    }
    if beat.kgroup_bits != set.config.kgroup_bits {
        return Err(Verdict::BadKgroups);
    }
    let session = set.session.as_ref();
    if sid <= set.ended || session.is_some_and(|session| sid < session.sid) {
        return Err(Verdict::OldSession);
    }
    let leader_has_address =
        replicas.get(usize::from(beat.leader)).is_some_and(|replica| replica.address.port.get() != 0);
    let same = session.filter(|session| session.sid == sid);
    if !leader_has_address || same.is_some_and(|same| (same.start, same.leader) != (start, beat.leader)) {
        return Err(Verdict::BadSession);
    }
    if echo > now || now - echo >= set.config.lease_ns {
        return Err(Verdict::OldEcho);
    }
    Ok(())
}

fn take_heartbeat(set: &mut Set, beat: &Heartbeat, replicas: &[Replica]) {
    let sid = beat.sid.get();
    let lease_ends_ns = beat.echo.get() + set.config.lease_ns;
    let new = || Session {
        sid,
        start: beat.start.get(),
        leader: beat.leader,
        lease_ends_ns,
        seq: 0,
        answered_seq: 0,
        replicas: [Replica::new_zeroed(); REPLICAS_MAX],
        kgroups: HashMap::new(),
        sent: [0; REPLICAS_MAX],
        answered: [0; REPLICAS_MAX],
    };
    let session = set.session.take().filter(|session| session.sid == sid).unwrap_or_else(new);
    let session = set.session.insert(session);
    session.lease_ends_ns = session.lease_ends_ns.max(lease_ends_ns);
    session.replicas = std::array::from_fn(|slot| replicas.get(slot).copied().unwrap_or(Replica::new_zeroed()));
    if beat.is_idle != 0 {
        session.answered_seq = session.seq;
    }
}

impl Engine for Model {
    type Program = ReadsProgram;

    fn packet(&mut self, now_ns: u64, from: SocketAddr, datagram: &mut [u8], out: &mut Out) -> Called<Verdict> {
        self.is_genuine = false;
        let (verdict, owed) = self.take(Came { from, now: now_ns, bytes: datagram });
        self.stats.reasons[verdict as usize] += 1;
        self.count_unstable();
        out.owe(&owed)?;
        if self.is_genuine {
            out.set_genuine();
        }
        Ok(verdict)
    }

    fn tick(&mut self, _now_ns: u64, out: &mut Out) -> Called<u32> {
        out.clear();
        Ok(0)
    }

    fn order(&mut self, order: &mut SetOrder) -> Called<bool> {
        let outcome = match order.added() {
            Some(set) => self.add(set),
            None => self.remove(order.number()),
        };
        order.set_outcome(outcome);
        Ok(true)
    }

    fn stats(&self) -> Stats {
        self.stats
    }

    fn check(&self) -> Result<(), String> {
        let mut places: Vec<usize> = self.sets.values().map(|set| set.place).collect();
        places.sort_unstable();
        places.dedup();
        if places.len() == self.sets.len() { Ok(()) } else { Err("two sets have one place".to_owned()) }
    }
}
