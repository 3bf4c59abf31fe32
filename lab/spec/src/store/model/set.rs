//! A set, its session and its key groups.

use super::packets::for_client;
use midflight_dataplane::store::{NewSet, Policy, ReplyCheck};
use midflight_wire::store::{FLAG_OFFERS_DIRECT, REPLICAS_MAX, Replica, Request, State};
use std::collections::HashMap;
use std::net::SocketAddr;

#[derive(Clone, Debug)]
pub(super) struct Set {
    pub(super) place: usize,
    pub(super) config: NewSet,
    pub(super) session: Option<Session>,
    pub(super) ended: u64,
    pub(super) draws: u64,
    pub(super) echoes: [u64; REPLICAS_MAX],
    /// Requests without a session, of clients that no switch serves.
    pub(super) unserved: u8,
}

#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) sid: u64,
    pub(super) start: u64,
    pub(super) leader: u8,
    pub(super) lease_ends_ns: u64,
    pub(super) seq: u64,
    pub(super) answered_seq: u64,
    pub(super) replicas: [Replica; REPLICAS_MAX],
    pub(super) is_any: bool,
    /// Key groups with a write or its reply in this session.
    pub(super) kgroups: HashMap<u32, Kgroup>,
    pub(super) sent: [u32; REPLICAS_MAX],
    pub(super) answered: [u32; REPLICAS_MAX],
    /// By replica: READs that must still be answered through the switch before the next HEARTBEAT.
    pub(super) probes: [u32; REPLICAS_MAX],
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Kgroup {
    pub(super) stable: bool,
    pub(super) seq: u64,
    pub(super) index: u64,
    pub(super) replicas: u8,
}

impl Session {
    pub(super) fn kgroup(&self, number: u32) -> Kgroup {
        let untouched = Kgroup { stable: true, seq: 0, index: self.start, replicas: 0 };
        self.kgroups.get(&number).copied().unwrap_or(untouched)
    }

    pub(super) fn replica(&self, slot: u8) -> Option<SocketAddr> {
        let replica = self.replicas.get(usize::from(slot))?;
        (replica.address.port.get() != 0).then(|| replica.address.into())
    }

    /// Consistent replicas (all, if READs go to any) with a nonzero weight, by slot, and the weight that counts.
    fn eligible(&self, kgroup: Kgroup, policy: Policy) -> Vec<(u8, u32)> {
        (0..REPLICAS_MAX as u8)
            .filter(|&slot| self.replica(slot).is_some())
            .map(|slot| (slot, self.replicas[usize::from(slot)]))
            .filter(|(slot, replica)| {
                self.is_any || kgroup.replicas >> slot & 1 == 1 || replica.matched.get() >= kgroup.index
            })
            .map(|(slot, replica)| (slot, u32::from(replica.weight)))
            .filter(|&(_, weight)| weight > 0)
            .map(|(slot, weight)| (slot, if policy.is_load_aware() { weight } else { 1 }))
            .collect()
    }
}

impl Set {
    pub(super) fn active(&self, now: u64) -> Option<&Session> {
        self.session.as_ref().filter(|session| now < session.lease_ends_ns)
    }

    /// What a client may see of a reply, including whether direct replies are offered.
    pub(super) fn for_client(&self, reply: &Request) -> Request {
        let offers = if self.config.reply_check == ReplyCheck::Direct { FLAG_OFFERS_DIRECT } else { 0 };
        let seen = for_client(reply);
        Request { flags: seen.flags | offers, ..seen }
    }

    pub(super) fn epoch(&self) -> u32 {
        (self.config.incarnation as u32).max(1)
    }

    pub(super) fn kgroup_of(&self, request: &Request) -> u32 {
        (u64::from(request.hash.get()) >> (32 - self.config.kgroup_bits)) as u32
    }

    pub(super) fn is_replica(&self, address: SocketAddr) -> bool {
        let in_session =
            self.session.as_ref().is_some_and(|s| (0..REPLICAS_MAX as u8).any(|slot| s.replica(slot) == Some(address)));
        in_session || self.config.replicas.contains(&address)
    }

    /// The slot for a READ; `None` if only the leader will do.
    pub(super) fn choose(&mut self, kgroup: Kgroup) -> Option<u8> {
        let session = self.session.as_ref()?;
        let mut eligible = session.eligible(kgroup, self.config.policy);
        let has_follower = eligible.iter().any(|&(slot, _)| slot != session.leader);
        let writes_are_under_way = session.answered_seq < session.seq;
        if self.config.policy.avoids_leader() && !session.is_any && writes_are_under_way && has_follower {
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

    pub(super) fn state(&self, now: u64, sequence: u32) -> State {
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
