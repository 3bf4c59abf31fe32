//! Faults, as data: those that befall every program. A program adds its own.

use super::party::keep;
use super::{BadTrial, Net, Party};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;

/// No clock runs faster or slower than by this.
const PPM_MAX: u32 = 50_000;
/// No clock jumps farther.
const AHEAD_MAX_MS: u64 = 60_000;
/// Datagrams of an attacker, at most.
const ATTACKS_MAX: u32 = 10_000;

/// A fault that lasts for a while.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault<W> {
    /// When it begins.
    pub at_ms: u64,
    /// How long it lasts; it ends with all others at `heal_ms`.
    pub for_ms: u64,
    /// Its kind.
    pub what: W,
}

/// The kinds of faults of a program.
pub trait What: Clone + Debug + PartialEq + Serialize + DeserializeOwned + 'static {
    /// Its nodes.
    type Party: Party;

    /// What befalls every program; `None`: this is one of the program's own.
    fn common(&self) -> Option<&Common<Self::Party>>;

    /// Whether its effect stays after its end.
    fn has_no_end(&self) -> bool {
        false
    }

    /// Gives parties the places that they have when `gone` is not in the trial any more; `false`: nothing is left of the fault.
    fn without(&mut self, gone: Self::Party) -> bool;
}

/// Faults that befall every program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Common<P> {
    /// A process dies; at the end a new one starts in its place. Of what its disk had not made safe any part may be lost or torn.
    Crash(P),
    /// A process is paused; datagrams wait for it.
    Pause(P),
    /// A clock is ahead and runs at another rate; at the end the rate is right again.
    Drift {
        /// The party.
        party: P,
        /// Millionths by which it is too fast.
        ppm: i32,
        /// How far it jumps at first.
        ahead_ms: u64,
    },
    /// Datagrams and messages from some parties to others are lost.
    Partition {
        /// The senders.
        from: Vec<P>,
        /// The receivers.
        to: Vec<P>,
        /// Whether the other direction is lost too.
        both: bool,
    },
    /// The network has more faults than normally.
    Burst(Net),
    /// This many malformed datagrams come to all parties.
    Garbage(u32),
    /// This many packets come as their senders sent them, but from another address.
    Forged(u32),
    /// This many datagrams come again, some of them often, from their original address: an attacker on the path copies them.
    Replayed(u32),
    /// This many forged packets come from the address of a party that has sent such a packet, with guesses in place of all secrets:
    /// an attacker off the path knows formats and addresses.
    Guessed(u32),
}

/// A program may have no faults of its own.
impl<P: Party + Serialize + DeserializeOwned> What for Common<P> {
    type Party = P;

    fn common(&self) -> Option<&Self> {
        Some(self)
    }

    fn without(&mut self, gone: P) -> bool {
        match self {
            Self::Crash(party) | Self::Pause(party) | Self::Drift { party, .. } => keep(party, gone),
            Self::Partition { from, to, .. } => {
                for side in [&mut *from, &mut *to] {
                    side.retain_mut(|party| keep(party, gone));
                }
                !from.is_empty() && !to.is_empty()
            }
            Self::Burst(_) | Self::Garbage(_) | Self::Forged(_) | Self::Replayed(_) | Self::Guessed(_) => true,
        }
    }
}

impl<P: Party> Common<P> {
    /// Whether it is an attacker's.
    #[must_use]
    pub const fn is_attack(&self) -> bool {
        matches!(self, Self::Garbage(_) | Self::Forged(_) | Self::Replayed(_) | Self::Guessed(_))
    }

    /// Whether it makes sense; `is_known`: whether the trial has a party.
    ///
    /// # Errors
    /// Says what does not.
    pub fn validate(&self, is_known: impl Fn(P) -> bool) -> Result<(), BadTrial> {
        let parties: &[&[P]] = match self {
            Self::Crash(party) | Self::Pause(party) => &[&[*party]],
            Self::Drift { party, ppm, ahead_ms } => {
                if ppm.unsigned_abs() > PPM_MAX || *ahead_ms > AHEAD_MAX_MS {
                    return Err(BadTrial(format!("{self:?}: use ppm up to {PPM_MAX}, ahead_ms up to {AHEAD_MAX_MS}")));
                }
                &[&[*party]]
            }
            Self::Partition { from, to, .. } => &[from, to],
            Self::Burst(net) => return net.validate("burst"),
            Self::Garbage(count) | Self::Forged(count) | Self::Replayed(count) | Self::Guessed(count) => {
                if *count > ATTACKS_MAX {
                    return Err(BadTrial(format!("{self:?}: use up to {ATTACKS_MAX} datagrams")));
                }
                &[]
            }
        };
        match parties.concat().into_iter().find(|party| !is_known(*party)) {
            Some(party) => Err(BadTrial(format!("there is no {party:?}"))),
            None => Ok(()),
        }
    }
}
