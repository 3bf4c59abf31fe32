//! The controller's view of a set: the contents of its tables, and their counters.

use midflight_dataplane::store::{NewSet, Outcome, ReplyCheck, SetStats};
use midflight_endpoint::Nanos;
use midflight_rmt::store::{Answer, Did};
use midflight_wire::store::{FLAG_DIRECT, FLAG_UNSERVED, REPLICAS_MAX, Replica, Request, State};
use std::net::SocketAddr;

#[derive(Clone, Debug)]
pub(super) struct Set {
    pub(super) config: NewSet,
    pub(super) session: Option<Session>,
    /// The highest SID ended by END_SESSION.
    pub(super) ended: u64,
    /// The latest echo of a HELLO from each place.
    pub(super) echoes: [u64; REPLICAS_MAX],
    /// Whether its lease has been written to the pipeline, which may still have a former set's.
    pub(super) is_settled: bool,
    draws: u64,
    /// Requests without a session, of clients that no switch serves.
    unserved: u8,
}

#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) sid: u64,
    pub(super) start: u64,
    pub(super) leader: u8,
    pub(super) lease_ends: Nanos,
    pub(super) replicas: [Replica; REPLICAS_MAX],
    sent: [u32; REPLICAS_MAX],
    answered: [u32; REPLICAS_MAX],
}

impl Session {
    pub(super) fn new(sid: u64, start: u64, leader: u8, replicas: [Replica; REPLICAS_MAX]) -> Self {
        let (sent, answered) = ([0; REPLICAS_MAX], [0; REPLICAS_MAX]);
        Self { sid, start, leader, lease_ends: 0, replicas, sent, answered }
    }

    /// A bit for each replica with an address and a weight.
    pub(super) fn eligible(&self) -> u8 {
        let is_eligible = |replica: &Replica| replica.address.port.get() != 0 && replica.weight != 0;
        (0..).zip(&self.replicas).map(|(slot, replica)| u8::from(is_eligible(replica)) << slot).sum()
    }
}

impl Set {
    pub(super) fn new(config: NewSet) -> Self {
        Self { config, session: None, ended: 0, echoes: [0; REPLICAS_MAX], is_settled: false, draws: 0, unserved: 0 }
    }

    /// Resets the set as if newly added: another incarnation, without a session.
    pub(super) fn renew(&mut self, incarnation: u64) {
        let config = NewSet { incarnation, ..self.config.clone() };
        *self = Self { draws: self.draws, ..Self::new(config) };
    }

    pub(super) fn change(&mut self, new: NewSet) -> Outcome {
        if (self.config.lease_ns, self.config.kgroup_bits) != (new.lease_ns, new.kgroup_bits) {
            return Outcome::Frozen;
        }
        self.config = NewSet { incarnation: self.config.incarnation, ..new };
        Outcome::Done
    }

    /// The low half of the incarnation, never 0.
    pub(super) fn epoch(&self) -> u32 {
        (self.config.incarnation as u32).max(1)
    }

    pub(super) fn is_relaxed(&self) -> bool {
        self.config.reply_check != ReplyCheck::Strict
    }

    pub(super) fn replica(&self, slot: u8) -> Option<SocketAddr> {
        let replica = self.session.as_ref()?.replicas.get(usize::from(slot))?;
        (replica.address.port.get() != 0).then(|| replica.address.into())
    }

    /// Whether a sender is a replica of the set, named by the operator or by the leader.
    pub(super) fn is_replica(&self, from: SocketAddr) -> bool {
        (0..REPLICAS_MAX as u8).any(|slot| self.replica(slot) == Some(from)) || self.config.replicas.contains(&from)
    }

    /// The next random number. A switch has a generator; here it is a mixed counter as in the soft engine.
    pub(super) fn lot(&self) -> u32 {
        (mix(self.draws + 1) >> 32) as u32
    }

    /// Does not count a reply that is marked as direct but came through the switch.
    pub(super) fn count_answered(&mut self, reply: &Request) {
        let (sid, is_direct) = (reply.sid.get(), reply.flags & FLAG_DIRECT != 0);
        if let Some(session) = self.session.as_mut().filter(|session| session.sid == sid && !is_direct)
            && let Some(answered) = session.answered.get_mut(usize::from(reply.slot))
        {
            *answered = answered.wrapping_add(1);
        }
    }

    /// Counts a request that the pipeline has refused, from the digest for the controller.
    pub(super) fn count_refused(&mut self, stats: &mut SetStats, request: &Request) {
        let is_unserved = request.flags & FLAG_UNSERVED != 0;
        self.unserved = self.unserved.wrapping_add(is_unserved.into());
        stats.unserved += u64::from(is_unserved);
    }

    /// The counters of the pipeline's last table.
    pub(super) fn count(&mut self, stats: &mut SetStats, told: &Answer) {
        let leader = self.session.as_ref().map(|session| session.leader);
        match told.did {
            Did::Sent if told.to == leader => stats.to_leader += 1,
            Did::Sent => stats.to_followers += 1,
            Did::LeaderOnly => stats.leader_only += 1,
            Did::Written => stats.writes += 1,
            Did::Closed => stats.closed += 1,
            Did::TurnedBack => stats.turned_back += 1,
            Did::Outdated => stats.outdated += 1,
            Did::Refused | Did::Passed => {}
        }
        self.draws += u64::from(told.did == Did::Sent);
        let is_read = matches!(told.did, Did::Sent | Did::LeaderOnly | Did::TurnedBack);
        if let (Some(session), Some(slot), true) = (&mut self.session, told.to, is_read) {
            let sent = &mut session.sent[usize::from(slot) % REPLICAS_MAX];
            *sent = sent.wrapping_add(1);
        }
    }

    pub(super) fn state(&self, now: Nanos, seq: u32, sequence: u32) -> State {
        let mut state = State {
            incarnation: self.config.incarnation.into(),
            ended: self.ended.into(),
            now: now.into(),
            set: self.config.number.into(),
            kgroup_bits: self.config.kgroup_bits,
            unserved: self.unserved,
            lease_us: u32::try_from(self.config.lease_ns / 1_000).unwrap_or(u32::MAX).into(),
            ..State::new(self.epoch(), sequence)
        };
        if let Some(session) = &self.session {
            state.sid = session.sid.into();
            state.lease = session.lease_ends.saturating_sub(now).into();
            state.seq = u64::from(seq).into();
            state.sent = session.sent.map(Into::into);
            state.answered = session.answered.map(Into::into);
        }
        state
    }
}

/// The finaliser of splitmix64, `mf_mix` in the soft engine.
fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
