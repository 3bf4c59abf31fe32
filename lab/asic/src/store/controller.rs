//! The switch's CPU: checks HELLO, HEARTBEAT and END_SESSION. Their effect on the pipeline is one packet, so one step.

use super::set::{Session, Set};
use super::{AsicStore, Came, Effect};
use midflight_dataplane::store::Verdict;
use midflight_endpoint::Nanos;
use midflight_rmt::store::NewSession;
use midflight_wire::Header;
use midflight_wire::store::{EndSession, Heartbeat, Hello, REPLICAS_MAX, Replica};
use siphasher::sip::SipHasher24;
use zerocopy::{FromZeros, IntoBytes};

/// SEQ from which a set asks for a new session: leaves room for all WRITEs between two HEARTBEATs.
pub const SEQ_MARK: u32 = u32::MAX - (1 << 24);

impl AsicStore {
    /// The place of the set of a packet from a replica.
    fn place_for(&self, came: Came, number: u16) -> Result<usize, Verdict> {
        let place = self.place_of(number).ok_or(Verdict::UnknownSet)?;
        let is_replica = self.sets[place].as_ref().is_some_and(|set| set.is_replica(came.from));
        if is_replica { Ok(place) } else { Err(Verdict::ForeignReplica) }
    }

    fn set_at(&mut self, place: usize) -> &mut Set {
        self.sets[place].as_mut().expect("place_of has found a set there, and only an order removes one")
    }

    fn answer_state(&self, came: Came, place: usize, verdict: Verdict, question: &Header) -> Effect {
        let Some(set) = &self.sets[place] else { return Effect::Nothing(verdict) };
        let seq = self.program.session_of(&self.machine, place as u8).seq;
        Effect::Answer(verdict, set.state(came.now, seq, question.sequence.get()).as_bytes().to_vec())
    }

    pub(super) fn hello(&mut self, came: Came, hello: &Hello) -> Effect {
        let place = match self.place_for(came, hello.set.get()) {
            Ok(place) => place,
            Err(verdict) => return Effect::Nothing(verdict),
        };
        let set = self.set_at(place);
        let (echo, slot) = (hello.echo.get(), usize::from(hello.slot) % REPLICAS_MAX);
        let is_later = hello.incarnation.get() == set.config.incarnation && echo <= came.now && echo > set.echoes[slot];
        if is_later {
            set.echoes[slot] = echo;
        }
        self.is_genuine = is_later;
        self.answer_state(came, place, Verdict::Ok, &hello.header)
    }

    pub(super) fn heartbeat(&mut self, came: Came, beat: &Heartbeat, replicas: &[Replica]) -> Effect {
        let place = match self.place_for(came, beat.set.get()) {
            Ok(place) => place,
            Err(verdict) => return Effect::Nothing(verdict),
        };
        let verdict = match check_heartbeat(self.set_at(place), came.now, beat, replicas) {
            Ok(()) if self.is_worn(place, beat, replicas) => {
                self.renew(place, came.now);
                Verdict::ForeignIncarnation
            }
            Ok(()) => {
                self.take_heartbeat(place, beat, replicas);
                Verdict::Ok
            }
            Err(verdict) => verdict,
        };
        self.answer_state(came, place, verdict, &beat.header)
    }

    pub(super) fn end_session(&mut self, came: Came, end: &EndSession) -> Effect {
        let place = match self.place_for(came, end.set.get()) {
            Ok(place) => place,
            Err(verdict) => return Effect::Nothing(verdict),
        };
        let set = self.set_at(place);
        if end.incarnation.get() != set.config.incarnation {
            return self.answer_state(came, place, Verdict::ForeignIncarnation, &end.header);
        }
        set.ended = set.ended.max(end.sid.get());
        if let Some(session) = set.session.as_mut().filter(|session| session.sid <= end.sid.get()) {
            session.lease_ends = 0;
            self.end(place, came.now);
        }
        self.answer_state(came, place, Verdict::Ok, &end.header)
    }

    fn take_heartbeat(&mut self, place: usize, beat: &Heartbeat, replicas: &[Replica]) {
        let replicas = std::array::from_fn(|slot| replicas.get(slot).copied().unwrap_or(Replica::new_zeroed()));
        let set = self.set_at(place);
        let begins = set.session.as_ref().is_none_or(|session| session.sid != beat.sid.get());
        let ends = beat.echo.get() + set.config.lease_ns;
        if begins {
            set.session = Some(Session::new(beat.sid.get(), beat.start.get(), beat.leader, replicas));
        }
        let Some(session) = &mut set.session else { return };
        let extends = ends > session.lease_ends;
        (session.lease_ends, session.replicas) = (session.lease_ends.max(ends), replicas);
        let (until, eligible) = (session.lease_ends, session.eligible());
        if begins {
            self.generations[place] += 1;
            self.stats.sets[place].sessions += 1;
        }
        self.is_genuine = extends;
        let session = NewSession {
            place: place as u8,
            begins,
            is_idle: beat.is_idle != 0,
            until: self.units(until),
            generation: self.generations[place],
            sid: beat.sid.get(),
            start: beat.start.get(),
            leader: beat.leader,
            eligible,
            matched: replicas.map(|replica| replica.matched.get()),
        };
        _ = self.machine.pass(self.program.session(&session));
    }

    /// Whether the session's numbers are almost used up: its SEQs, or the indices that have the upper half of its s.
    fn is_worn(&self, place: usize, beat: &Heartbeat, replicas: &[Replica]) -> bool {
        let session = self.sets[place].as_ref().and_then(|set| set.session.as_ref());
        let Some(session) = session.filter(|session| session.sid == beat.sid.get()) else { return false };
        let is_beyond = |replica: &Replica| replica.matched.get() >> 32 > session.start >> 32;
        self.program.session_of(&self.machine, place as u8).seq >= SEQ_MARK || replicas.iter().any(is_beyond)
    }

    /// Asks for a new session like a restarted switch: by another incarnation, which the leader understands.
    fn renew(&mut self, place: usize, now: Nanos) {
        let (low, high) = (self.secret as u64, (self.secret >> 64) as u64);
        let set = self.set_at(place);
        let former = set.config.incarnation;
        let incarnation = SipHasher24::new_with_keys(low, !high).hash(&former.to_le_bytes()).max(1);
        set.renew(incarnation);
        self.end(place, now);
    }

    /// Ends the lease in the pipeline. The program's times are serial numbers, so this is past for 2^31 units.
    pub(super) fn end(&mut self, place: usize, now: Nanos) {
        _ = self.machine.pass(self.program.end(place as u8, self.units(now)));
    }

    /// Ends any lease that a place had before its set was added: an order does not have the time.
    pub(super) fn settle(&mut self, now: Nanos) {
        self.now = now;
        for place in 0..self.sets.len() {
            if let Some(set) = self.sets[place].as_mut().filter(|set| !set.is_settled) {
                set.is_settled = true;
                self.end(place, now);
            }
        }
    }

    /// Keeps ended leases ended: advances their ends before they wrap into the future.
    pub(super) fn keep_past(&mut self, now: Nanos) {
        for place in 0..self.sets.len() {
            let session = self.sets[place].as_ref().and_then(|set| set.session.as_ref());
            if session.is_none_or(|session| session.lease_ends <= now) {
                self.end(place, now);
            }
        }
    }

    /// Checks that a place's registers match the controller's state, and that no key group is ahead of its session.
    pub(super) fn check_place(&self, place: usize) -> Result<(), String> {
        let Some(set) = &self.sets[place] else { return Ok(()) };
        let Some(session) = &set.session else { return Ok(()) };
        let registers = self.program.session_of(&self.machine, place as u8);
        let say = |what: &str| Err(format!("set {}: {what}: {registers:?}", set.config.number));
        if (registers.sid, registers.start) != (session.sid, session.start) {
            return say("another session");
        }
        if registers.generation != self.generations[place] || registers.answered > registers.seq {
            return say("numbers beyond the last");
        }
        let groups = (0..1u32 << set.config.kgroup_bits).map(|n| self.program.group_of(&self.machine, place as u8, n));
        for group in groups.filter(|group| group.generation == registers.generation) {
            if group.seq == 0 || group.seq > registers.seq || group.index < registers.start as u32 {
                return say(&format!("{group:?}"));
            }
        }
        Ok(())
    }
}

fn check_heartbeat(set: &Set, now: Nanos, beat: &Heartbeat, replicas: &[Replica]) -> Result<(), Verdict> {
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
    let leader = replicas.get(usize::from(beat.leader));
    let has_leader = leader.is_some_and(|replica| replica.address.port.get() != 0);
    let same = session.filter(|session| session.sid == sid);
    if !has_leader || same.is_some_and(|same| (same.start, same.leader) != (start, beat.leader)) {
        return Err(Verdict::BadSession);
    }
    if echo > now || now - echo >= set.config.lease_ns { Err(Verdict::OldEcho) } else { Ok(()) }
}
