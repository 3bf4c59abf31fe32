//! The survey: sessions and replicas of each set, for people who watch.

use super::{Policy, ReplyCheck, SETS_MAX};
use midflight_endpoint::Nanos;
use midflight_wire::Address;
use midflight_wire::reads::REPLICAS_MAX;
use std::net::SocketAddr;
use zerocopy::FromZeros;

#[cfg(test)]
pub(super) const LAYOUT: [usize; 2] = [size_of::<SurveyedSet>(), size_of::<SurveyedReplica>()];

unsafe extern "C" {
    fn mf_reads_survey(state: *const u8, place: u32, found: *mut SurveyedSet) -> i32;
}

/// What a switch knows of its replica sets.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// In the order of their places.
    pub sets: Vec<SurveyedSet>,
}

/// A set: `struct mf_surveyed_set`.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromZeros)]
pub struct SurveyedSet {
    /// Of the present or last session; 0: there was none.
    pub sid: u64,
    /// The session is active before, by the switch's clock.
    pub lease_ends_ns: Nanos,
    /// T.
    pub lease_ns: Nanos,
    /// Writes without an answer of theirs or of a later one.
    pub under_way: u64,
    /// Its number.
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
    /// When the switch sent what the replica's last packet answers, by its clock; 0: it was never heard.
    pub heard_ns: Nanos,
    /// Its log is the leader's up to this index.
    pub matched: u64,
    /// READs that it was sent, and whose replies pass the switch, since the session began. It wraps.
    pub sent: u32,
    /// Their replies. It wraps.
    pub answered: u32,
    address: Address,
    /// Its chance of a READ by that of all; 0: it gets none.
    pub weight: u16,
    is_taken: u16,
}

impl Default for SurveyedSet {
    fn default() -> Self {
        Self::new_zeroed()
    }
}

impl SurveyedSet {
    /// Whether each replica may answer each READ.
    #[must_use]
    pub fn is_any_replica(&self) -> bool {
        self.any_replica != 0
    }

    /// Which replica gets a READ.
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
    /// Where it is, as the session or else the operator says; `None`: no replica has this slot.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        let address = SocketAddr::from(self.address);
        (address.port() != 0).then_some(address)
    }

    /// Whether it is in the session: the leader takes it for alive.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        self.is_taken != 0
    }

    /// For tests: puts it there, in the session or not.
    #[must_use]
    pub fn at(self, address: SocketAddr, is_taken: bool) -> Self {
        Self { address: address.into(), is_taken: is_taken.into(), ..self }
    }
}

/// Copies all sets, which are few.
///
/// # Safety
/// The state of a switch, which was initialised.
pub(crate) unsafe fn go_on(state: *const u8, survey: &mut Survey) -> bool {
    for place in 0..SETS_MAX as u32 {
        let mut set = SurveyedSet::default();
        // SAFETY: the caller's; the structure is that of C.
        if unsafe { mf_reads_survey(state, place, &mut set) } != 0 {
            survey.sets.push(set);
        }
    }
    true
}
