//! What an executor and its driver exchange: tasks to run, how they ended, and other events.

use crate::blob::TAG_BYTES;
use crate::proof::Token;
use crate::resources::RESOURCE_BITS;
use midflight_endpoint::Nanos;
use midflight_wire::{BlobRef, Status, TaskInfo};
use std::collections::VecDeque;
use std::net::SocketAddr;
use zerocopy::IntoBytes;

/// Identifies a run; unique as long as the executor lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunKey {
    /// The slot, from 0.
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
    /// The resources of which there is one.
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

    /// All of them: the bit of the resource, and the bundle.
    pub fn iter(&self) -> impl Iterator<Item = (u8, u16)> {
        let this = *self;
        (0..RESOURCE_BITS).filter_map(move |bit| Some((bit, this.of(bit)?)))
    }

    /// Those of the resources in `mask`.
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

/// Of several bundles of one resource, the last; bits beyond a mask are left out.
impl FromIterator<(u8, u16)> for Bundles {
    fn from_iter<T: IntoIterator<Item = (u8, u16)>>(all: T) -> Self {
        let mut bundles = Self::default();
        let known = all.into_iter().filter(|(bit, _)| *bit < RESOURCE_BITS);
        known.for_each(|(bit, number)| bundles.add(usize::from(bit), number));
        bundles
    }
}

/// How many bundles of a counted resource there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BundleCounts {
    /// All of them.
    pub total: u32,
    /// Tasks have them.
    pub held: u32,
    /// Waits offer them. The others are free, and no slot waits that could offer them.
    pub offered: u32,
}

/// A task to run now. Its slot is taken until [`super::Executor::finish`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// To be passed to [`super::Executor::finish`].
    pub key: RunKey,
    /// Function, argument, priority and attempt (from 1).
    pub task: TaskInfo,
    /// The user that it belongs to.
    pub uid: u32,
    /// The job it belongs to.
    pub jid: u32,
    /// The client's address, as the switch sees it; an argument by reference is fetched from its IP.
    pub client: SocketAddr,
    /// The token of the task's SUBMIT, by which its completion is proven.
    pub token: Token,
    /// From acceptance to assignment, by the switch's clock, in microseconds.
    pub waited_us: u32,
    /// When the ASSIGN arrived.
    pub arrived: Nanos,
    /// When the slot first asked for this task; if it polls, when it first sent the wait that this answers.
    pub asked: Nanos,
    /// The bundles of the counted resources that the task requires: its own until it has ended.
    pub bundles: Bundles,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The status for the client.
    pub status: Status,
    /// The function's value, or the message of its failure.
    pub result: Output,
    /// When the function started.
    pub started: Nanos,
    /// When it ended.
    pub ended: Nanos,
}

/// A result, or where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// At most [`midflight_wire::RESULT_MAX`] bytes.
    Inline(Vec<u8>),
    /// Served over TCP by the driver, until [`Event::Settled`].
    ByReference(BlobRef),
}

impl Output {
    /// As they stand in a completion.
    pub(super) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Inline(bytes) => bytes,
            Self::ByReference(blob) => blob.as_bytes(),
        }
    }
}

/// What the driver has to know or do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Run this task: exactly once for each assignment.
    Run(Run),
    /// The client of this run wants it to be stopped: end it soon by [`super::Executor::finish`], with [`Status::Cancelled`],
    /// or with its result if it has ended by itself. Once for each run.
    Stop(RunKey),
    /// A client has sent the argument of a task along, which probably comes next: then it need not be fetched. Anybody may have sent
    /// it, so it counts only for a task of a client at this address, whose reference has this name and decrypts the bytes
    /// ([`crate::blob`]).
    Argument {
        /// Where it came from.
        client: SocketAddr,
        /// [`crate::blob::argument_name`], it says.
        name: u64,
        /// Of [`crate::blob::seal_argument`], it says.
        tag: [u8; TAG_BYTES],
        /// As many as it says, encrypted.
        bytes: Vec<u8>,
    },
    /// The driver may drop the result by reference of this run: the client has it, or it was given up. There is no such
    /// event for inline results.
    Settled {
        /// The run.
        run: RunKey,
        /// Whether the client has it.
        delivered: bool,
    },
    /// Registered at a switch, for the first time or again.
    Registered {
        /// The switch.
        switch: SocketAddr,
        /// Slots that are registered now.
        slots: u32,
        /// Our address, as the switch sees it.
        seen: SocketAddr,
    },
    /// The switch has no room for some slots; they ask again later.
    SlotsFull {
        /// Slots that are registered.
        got: u32,
        /// Whether it has room, but this address already uses its share (T14).
        is_share: bool,
    },
    /// All slots now register at another switch, because the one before was silent for two leases, or a preferred one
    /// answers again.
    SwitchChanged {
        /// Its address.
        switch: SocketAddr,
    },
    /// The switch in use has another version of the wire format and accepts nothing of ours. Once for each switch and
    /// version.
    OtherVersion {
        /// Its address.
        switch: SocketAddr,
        /// Its version.
        version: u8,
    },
    /// [`super::Executor::drain`] has ended: no task runs, and no completion waits for an acknowledgement. Once.
    Drained,
}

/// The counters of an executor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Assignments accepted: tasks run.
    pub runs: u64,
    /// Runs that ended.
    pub finished: u64,
    /// Completions that their client has acknowledged.
    pub delivered: u64,
    /// Completions that were given up unacknowledged.
    pub given_up: u64,
    /// COMPLETE records sent again.
    pub complete_repeats: u64,
    /// Waits sent again because no answer came.
    pub wait_repeats: u64,
    /// Assignments accepted while all workers were busy: the tasks start later, or go back.
    pub taken_early: u64,
    /// Of these, tasks that went back because they could not start within two spans.
    pub given_back: u64,
    /// Waits that were taken back because they could offer more bundles.
    pub offers_renewed: u64,
    /// Runs that lent their slots, because they wait for other tasks.
    pub waits_for_others: u64,
    /// Those that could not: as many did as may.
    pub waits_refused: u64,
    /// Runs that gave back a part of their tasks.
    pub parts: u64,
    /// Extra tasks: second assignments to one wait, kept and run next.
    pub extra_tasks: u64,
    /// NO_OPs received: polls that found no task.
    pub polls: u64,
    /// NO_OPs to waits ahead.
    pub polls_ahead: u64,
    /// Assignments that answered no current wait, ignored.
    pub stale_assignments: u64,
    /// NO_OPs that answered no current wait, or were repeated, ignored.
    pub stale_no_ops: u64,
    /// Slots declared void by a switch.
    pub resets: u64,
    /// Waits declared void that are not current, ignored.
    pub stale_resets: u64,
    /// RELEASED for slots that are not leaving, ignored.
    pub stale_releases: u64,
    /// Cookies that answered a REGISTER.
    pub cookies: u64,
    /// Slots refused by a switch for lack of room.
    pub slots_full: u64,
    /// Changes to another switch of the list.
    pub switch_changes: u64,
    /// Datagrams that were malformed, or of an operation that is not for executors.
    pub rejected: u64,
    /// Datagrams of another version of the format, and VERSION packets.
    pub other_versions: u64,
    /// Well-formed datagrams that came from another address than the current switch's, had an earlier epoch, or answered
    /// nothing, ignored.
    pub foreign: u64,
    /// Acknowledgements of completions that are not kept, or no longer, or not of their client.
    pub unknown_acks: u64,
    /// Arguments that clients have sent along, or somebody in their place.
    pub arguments_came_along: u64,
    /// Runs that their client wanted to be stopped.
    pub stops: u64,
    /// Tasks in STOPs that do not run here, or whose run was to be stopped already, or not of their client, ignored.
    pub unknown_stops: u64,
    /// Calls of `finish` for a run that does not run, ignored.
    pub unknown_finishes: u64,
}

impl Counters {
    /// All of them, by name.
    #[must_use]
    pub fn named(&self) -> [(&'static str, u64); 31] {
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
            ("arguments_came_along", self.arguments_came_along),
            ("stops", self.stops),
            ("unknown_stops", self.unknown_stops),
            ("unknown_finishes", self.unknown_finishes),
        ]
    }
}

/// Events that wait for the driver, and the counters.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) events: VecDeque<Event>,
    pub(super) counters: Counters,
}
