//! The survey: sessions and replicas of each set.

use super::{Policy, ReplyCheck, SETS_MAX};
use midflight_endpoint::Nanos;
use midflight_wire::Address;
use midflight_wire::store::REPLICAS_MAX;
use std::net::SocketAddr;
use zerocopy::FromZeros;

#[cfg(test)]
pub(super) const LAYOUT: [usize; 2] = [size_of::<SurveyedSet>(), size_of::<SurveyedReplica>()];

unsafe extern "C" {
    fn mf_store_survey(state: *const u8, place: u32, found: *mut SurveyedSet) -> i32;
}

/// A switch's replica sets.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// In the order of their places.
    pub sets: Vec<SurveyedSet>,
}

/// A set: `struct mf_surveyed_set`.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromZeros)]
pub struct SurveyedSet {
    /// Current or last session; 0: none.
    pub sid: u64,
    /// End of the session's lease, by the switch's clock.
    pub lease_ends_ns: Nanos,
    /// Lease T in nanoseconds.
    pub lease_ns: Nanos,
    /// Writes without a reply to them or to a later one.
    pub under_way: u64,
    /// Number of the set.
    pub number: u16,
    /// The leader's slot.
    pub leader: u8,
    any_replica: u8,
    policy: u8,
    reply_check: u8,
    reserved: u16,
    /// By slot.
    pub replicas: [SurveyedReplica; REPLICAS_MAX],
}

/// A replica: `struct mf_surveyed_replica`.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromZeros)]
pub struct SurveyedReplica {
    /// When the switch sent what the replica's last packet echoes, by its clock; 0: never heard.
    pub heard_ns: Nanos,
    /// Its log equals the leader's up to this index.
    pub matched: u64,
    /// READs since the session began whose replies come through the switch. Wraps.
    pub sent: u32,
    /// Replies received for them. Wraps.
    pub answered: u32,
    address: Address,
    /// Share of the READs, relative to the others; 0: none.
    pub weight: u16,
    is_taken: u16,
}

impl Default for SurveyedSet {
    fn default() -> Self {
        Self::new_zeroed()
    }
}

impl SurveyedSet {
    /// Whether every replica may answer every READ.
    #[must_use]
    pub fn is_any_replica(&self) -> bool {
        self.any_replica != 0
    }

    /// How a replica is chosen for a READ.
    #[must_use]
    pub fn policy(&self) -> Policy {
        Policy::ALL.get(usize::from(self.policy)).copied().unwrap_or_default()
    }

    /// Which replies pass.
    #[must_use]
    pub fn reply_check(&self) -> ReplyCheck {
        ReplyCheck::ALL.get(usize::from(self.reply_check)).copied().unwrap_or_default()
    }
}

impl SurveyedReplica {
    /// Address from the session, or else from the operator; `None`: the slot is free.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        let address = SocketAddr::from(self.address);
        (address.port() != 0).then_some(address)
    }

    /// Whether it is in the session: the leader considers it alive.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        self.is_taken != 0
    }

    /// For tests: sets its address and whether it is in the session.
    #[must_use]
    pub fn at(self, address: SocketAddr, is_taken: bool) -> Self {
        Self { address: address.into(), is_taken: is_taken.into(), ..self }
    }
}

/// Copies all sets, which are few.
///
/// # Safety
/// `state` is an initialised state of a switch.
pub(crate) unsafe fn go_on(state: *const u8, survey: &mut Survey) -> bool {
    for place in 0..SETS_MAX as u32 {
        let mut set = SurveyedSet::default();
        // SAFETY: the caller's; the structure is that of C.
        if unsafe { mf_store_survey(state, place, &mut set) } != 0 {
            survey.sets.push(set);
        }
    }
    true
}
