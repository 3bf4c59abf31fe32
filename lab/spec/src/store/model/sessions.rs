//! HELLO, HEARTBEAT and END_SESSION.

use super::Model;
use super::packets::{Came, Effect, refused};
use super::set::{Session, Set};
use midflight_dataplane::store::Verdict;
use midflight_wire::store::{EndSession, Heartbeat, Hello, REPLICAS_MAX, Replica};
use std::collections::HashMap;
use zerocopy::FromZeros;

impl Model {
    pub(super) fn set_of_replica(&mut self, came: Came<'_>, number: u16) -> Result<&mut Set, Verdict> {
        let set = self.sets.get_mut(&number).ok_or(Verdict::UnknownSet)?;
        if set.is_replica(came.from) { Ok(set) } else { Err(Verdict::ForeignReplica) }
    }

    pub(super) fn hello(&mut self, came: Came<'_>, hello: &Hello) -> Effect {
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

    pub(super) fn heartbeat(&mut self, came: Came<'_>, beat: &Heartbeat, replicas: &[Replica]) -> Effect {
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

    pub(super) fn end_session(&mut self, came: Came<'_>, end: &EndSession) -> Effect {
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
        is_any: false,
        kgroups: HashMap::new(),
        sent: [0; REPLICAS_MAX],
        answered: [0; REPLICAS_MAX],
        probes: [0; REPLICAS_MAX],
    };
    let session = set.session.take().filter(|session| session.sid == sid).unwrap_or_else(new);
    let session = set.session.insert(session);
    session.lease_ends_ns = session.lease_ends_ns.max(lease_ends_ns);
    session.replicas = std::array::from_fn(|slot| replicas.get(slot).copied().unwrap_or(Replica::new_zeroed()));
    session.is_any = beat.any_replica != 0;
    session.probes = [4; REPLICAS_MAX];
    if beat.is_idle != 0 {
        session.answered_seq = session.seq;
    }
}
