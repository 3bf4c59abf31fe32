//! The interface between an executor and its driver: tasks to run, their ends, and other events.

use crate::resources::RESOURCE_BITS;
use midflight_endpoint::Nanos;
use midflight_wire::tasks::{BlobRef, Status, TaskInfo};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use zerocopy::IntoBytes;

/// Identifies a run; unique in an executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunKey {
    /// Slot, from 0.
    pub slot: u32,
    /// Counts the runs of this slot.
    pub run: u32,
}

/// Bundles of counted resources, at most one of each. A bundle is a number below [`super::ExecutorConfig::bundles`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bundles {
    mask: u8,
    numbers: [u16; RESOURCE_BITS as usize],
}

impl Bundles {
    /// Mask of the resources.
    #[must_use]
    pub fn mask(&self) -> u8 {
        self.mask
    }

    /// The bundle of this resource, by its bit.
    #[must_use]
    pub fn of(&self, bit: u8) -> Option<u16> {
        let is_there = bit < RESOURCE_BITS && self.mask & 1 << bit != 0;
        is_there.then(|| self.numbers[usize::from(bit)])
    }

    /// All bundles with the bits of their resources.
    pub fn iter(&self) -> impl Iterator<Item = (u8, u16)> {
        let this = *self;
        (0..RESOURCE_BITS).filter_map(move |bit| Some((bit, this.of(bit)?)))
    }

    pub(super) fn only(self, mask: u8) -> Self {
        Self { mask: self.mask & mask, ..self }
    }

    pub(super) fn add(&mut self, bit: usize, number: u16) {
        self.mask |= 1 << bit;
        self.numbers[bit] = number;
    }

    pub(super) fn remove(&mut self, bit: usize) -> Option<u16> {
        let number = self.of(bit as u8);
        self.mask &= !(1 << bit);
        number
    }
}

/// Keeps the last of several bundles of a resource; ignores bits beyond the mask.
impl FromIterator<(u8, u16)> for Bundles {
    fn from_iter<T: IntoIterator<Item = (u8, u16)>>(all: T) -> Self {
        let mut bundles = Self::default();
        let known = all.into_iter().filter(|(bit, _)| *bit < RESOURCE_BITS);
        known.for_each(|(bit, number)| bundles.add(usize::from(bit), number));
        bundles
    }
}

/// Use of the bundles of a counted resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BundleCounts {
    /// All bundles.
    pub total: u32,
    /// Bundles that tasks have.
    pub held: u32,
    /// Bundles that waits offer. The others are free, and no waiting slot could offer them.
    pub offered: u32,
}

/// A task to run now. It takes its slot until [`super::Executor::finish`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// For [`super::Executor::finish`].
    pub key: RunKey,
    /// Function, argument, priority and attempt (from 1).
    pub task: TaskInfo,
    /// The argument, if it was appended.
    pub appended: Option<Arc<Vec<u8>>>,
    /// The task's user.
    pub uid: u32,
    /// The task's job.
    pub jid: u32,
    /// The client's address as the switch sees it; an argument by reference is fetched from its IP.
    pub client: SocketAddr,
    /// From acceptance to assignment, by the switch's clock, in microseconds.
    pub waited_us: u32,
    /// When the ASSIGN arrived.
    pub arrived: Nanos,
    /// When the slot asked for this task; if it polls, when it first sent the answered wait.
    pub asked: Nanos,
    /// Bundles of the counted resources that the task requires; its own until it ends.
    pub bundles: Bundles,
}

// Larger ones are moved by calls of memcpy, which take a twelfth of an executor's time.
const _: () = assert!(size_of::<Run>() <= 128);

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// Status for the client.
    pub status: Status,
    /// The function's value, or the message of its failure.
    pub result: Output,
    /// When the function started.
    pub started: Nanos,
    /// When the function ended.
    pub ended: Nanos,
}

/// A result, inline or by reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// At most [`midflight_wire::tasks::RESULT_MAX`] bytes.
    Inline(Vec<u8>),
    /// The driver serves it over TCP until [`Event::Settled`]; that of a part, until its run ends.
    ByReference(BlobRef),
}

impl Output {
    pub(super) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Inline(bytes) => bytes,
            Self::ByReference(blob) => blob.as_bytes(),
        }
    }
}

/// What the driver must know or do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Run this task; exactly once for each assignment.
    Run(Run),
    /// The client stops this run: call [`super::Executor::finish`] soon, with [`Status::Cancelled`], or with the result if it
    /// ended by itself. Once per run.
    Stop(RunKey),
    /// The driver may drop this run's result by reference: the client has it, or it was given up.
    Settled {
        /// The run of the result.
        run: RunKey,
        /// Whether the client has it.
        delivered: bool,
    },
    /// Slots were registered at a switch, for the first time or again.
    Registered {
        /// Address of the switch.
        switch: SocketAddr,
        /// Number of registered slots.
        slots: u32,
        /// The executor's address as the switch sees it.
        seen: SocketAddr,
    },
    /// The switch refused some slots; they ask again later.
    SlotsFull {
        /// Number of registered slots.
        got: u32,
        /// Whether the cause is this address's share (T14), rather than a full switch.
        is_share: bool,
    },
    /// All slots register at another switch: the old one was silent for two leases, or a preferred one answers.
    SwitchChanged {
        /// Address of the switch.
        switch: SocketAddr,
    },
    /// The current switch uses another version of the format and accepts no packets. Once per switch and version.
    OtherVersion {
        /// Address of the switch.
        switch: SocketAddr,
        /// Its version.
        version: u8,
    },
    /// [`super::Executor::drain`] ended: no task runs, and no completion is unacknowledged. Once.
    Drained,
}

/// Counters of an executor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Assignments accepted: tasks run.
    pub runs: u64,
    /// Runs that ended.
    pub finished: u64,
    /// Completions acknowledged.
    pub delivered: u64,
    /// Completions given up unacknowledged.
    pub given_up: u64,
    /// COMPLETE records sent again.
    pub complete_repeats: u64,
    /// Waits sent again without a response.
    pub wait_repeats: u64,
    /// Assignments accepted while all workers were busy; these tasks start later or are returned.
    pub taken_early: u64,
    /// Of these, tasks returned because they did not start within two spans.
    pub given_back: u64,
    /// Waits withdrawn because they could offer more bundles.
    pub offers_renewed: u64,
    /// Runs that lent their slots because they waited for other tasks.
    pub waits_for_others: u64,
    /// Runs that could not, because of the bound.
    pub waits_refused: u64,
    /// Runs that returned a part of their tasks.
    pub parts: u64,
    /// Extra tasks: second assignments to one wait, kept and run next.
    pub extra_tasks: u64,
    /// NO_OPs received: polls without a task.
    pub polls: u64,
    /// NO_OPs to prefetch waits.
    pub polls_ahead: u64,
    /// Assignments ignored: no current wait.
    pub stale_assignments: u64,
    /// NO_OPs ignored: no current wait, or repeated.
    pub stale_no_ops: u64,
    /// Slots that a switch declared void.
    pub resets: u64,
    /// Void waits ignored: not current.
    pub stale_resets: u64,
    /// RELEASED ignored: the slot is not leaving.
    pub stale_releases: u64,
    /// Cookies received for a REGISTER.
    pub cookies: u64,
    /// Slots refused because the switch is full.
    pub slots_full: u64,
    /// Changes to another switch of the list.
    pub switch_changes: u64,
    /// Datagrams dropped: malformed, or not an operation for executors.
    pub rejected: u64,
    /// Datagrams of another version, and VERSION packets.
    pub other_versions: u64,
    /// Well-formed datagrams ignored: from another address, of an earlier epoch, or not a response to any request.
    pub foreign: u64,
    /// Acknowledgements ignored: completion unknown, or not from its client.
    pub unknown_acks: u64,
    /// Runs that their client stopped.
    pub stops: u64,
    /// STOP records ignored: no such run, stopped already, or not from its client.
    pub unknown_stops: u64,
    /// Calls of `finish` ignored: no such run.
    pub unknown_finishes: u64,
}

impl Counters {
    /// All counters by name.
    #[must_use]
    pub fn named(&self) -> [(&'static str, u64); 30] {
        [
            ("runs", self.runs),
            ("finished", self.finished),
            ("delivered", self.delivered),
            ("given_up", self.given_up),
            ("complete_repeats", self.complete_repeats),
            ("wait_repeats", self.wait_repeats),
            ("taken_early", self.taken_early),
            ("given_back", self.given_back),
            ("offers_renewed", self.offers_renewed),
            ("waits_for_others", self.waits_for_others),
            ("waits_refused", self.waits_refused),
            ("parts", self.parts),
            ("extra_tasks", self.extra_tasks),
            ("polls", self.polls),
            ("polls_ahead", self.polls_ahead),
            ("stale_assignments", self.stale_assignments),
            ("stale_no_ops", self.stale_no_ops),
            ("resets", self.resets),
            ("stale_resets", self.stale_resets),
            ("stale_releases", self.stale_releases),
            ("cookies", self.cookies),
            ("slots_full", self.slots_full),
            ("switch_changes", self.switch_changes),
            ("rejected", self.rejected),
            ("other_versions", self.other_versions),
            ("foreign", self.foreign),
            ("unknown_acks", self.unknown_acks),
            ("stops", self.stops),
            ("unknown_stops", self.unknown_stops),
            ("unknown_finishes", self.unknown_finishes),
        ]
    }
}

#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) events: VecDeque<Event>,
    pub(super) counters: Counters,
}
