//! Bundles of counted resources: which are free, which each slot has, and so what a wait offers. `docs/internals/tasks.md`
//! ("Counted resources") specifies the protocol.

use super::{Slots, State};
use crate::executor::{Bundles, ExecutorConfig};
use crate::mutants::planted;
use crate::resources::RESOURCE_BITS;
use midflight_endpoint::Nanos;
use std::cmp::Reverse;
use std::collections::BTreeSet;

const BITS: usize = RESOURCE_BITS as usize;

#[derive(Debug)]
pub(super) struct Pool {
    counted: u8,
    totals: [u16; BITS],
    free: [BTreeSet<u16>; BITS],
    /// The switch is polled and accepts no returns: a slot keeps its bundles from wait to wait.
    is_polled: bool,
    /// Since the last check, bundles became free or taken, or fewer slots will take some.
    has_changed: bool,
}

impl Pool {
    pub(super) fn new(config: &ExecutorConfig) -> Self {
        let free = config.bundles.map(|count| (0..count).collect());
        Self { counted: config.counted(), totals: config.bundles, free, is_polled: false, has_changed: false }
    }

    fn mask(&self) -> u8 {
        bits(self.counted).filter(|&bit| !self.free[bit].is_empty()).map(|bit| 1 << bit).sum()
    }

    fn take(&mut self, into: &mut Bundles, mask: u8) {
        for bit in bits(mask & !into.mask()) {
            if let Some(number) = self.free[bit].pop_first() {
                into.add(bit, number);
                self.has_changed = true;
            }
        }
    }

    /// Frees all bundles except those of `kept`.
    fn put(&mut self, from: &mut Bundles, kept: u8) {
        for bit in bits(from.mask() & !kept) {
            self.free[bit].extend(from.remove(bit));
            self.has_changed = true;
        }
    }
}

fn bits(mask: u8) -> impl Iterator<Item = usize> {
    (0..BITS).filter(move |bit| mask & 1 << bit != 0)
}

/// A wait that was sent, without prefetch.
#[derive(Clone, Copy, Debug)]
struct Offer {
    local: u32,
    mask: u8,
    asked: Nanos,
}

impl Slots {
    pub(in super::super) fn set_polled(&mut self, is_polled: bool) {
        self.pool.is_polled = is_polled;
    }

    pub(super) fn offer(&self, local: u32) -> u8 {
        self.uncounted() | self.slots[local as usize].bundles.mask()
    }

    pub(super) fn uncounted(&self) -> u8 {
        self.resources & !self.pool.counted
    }

    pub(super) fn counted_of(&self, resources: u8) -> u8 {
        resources & self.pool.counted
    }

    /// For the first transmission of a wait, its slot takes the free bundles. If two waits would each lack what the other offers,
    /// it leaves them to the larger offer, which is then withdrawn to take them.
    pub(super) fn take_bundles(&mut self, local: u32) {
        if self.pool.counted == 0 {
            return;
        }
        let free = self.pool.mask();
        let mut wanted = free;
        if !self.pool.is_polled && self.pool.counted.count_ones() > 1 && free != self.pool.counted {
            let offers = self.offers();
            let all = offers.iter().fold(free, |all, offer| all | offer.mask);
            if all != free {
                wanted &= offers.first().map_or(free, |most| most.mask);
                self.pool.has_changed = true; // check the other wait
            }
        }
        self.pool.take(&mut self.slots[local as usize].bundles, wanted);
    }

    /// Frees the bundles that a slot's task does not require. At a polled switch the slot keeps all, because it may get another
    /// task.
    pub(super) fn keep_required(&mut self, local: u32, required: u8) {
        let kept = if planted(41) { required & required.wrapping_neg() } else { required };
        if !self.pool.is_polled {
            self.pool.put(&mut self.slots[local as usize].bundles, kept);
        }
    }

    pub(super) fn ended(&mut self, local: u32) {
        if !self.pool.is_polled && self.slots[local as usize].extra.is_empty() {
            self.free_bundles(local);
        }
    }

    /// Frees a slot's bundles in a state without a wait or task.
    pub(super) fn free_unneeded(&mut self, local: u32, state: State) {
        let keeps = match state {
            State::Waiting | State::Ready | State::Running | State::Returning => true,
            State::Leaving => self.pool.is_polled, // a task may be on its way
            State::Unregistered | State::Idle | State::Gone => false,
        };
        if keeps || self.pool.counted == 0 {
            return;
        }
        if planted(40) && state == State::Idle && self.ordinary > 4 {
            self.slots[local as usize].bundles = Bundles::default(); // planted bug: a withdrawn wait loses its bundles
        }
        self.free_bundles(local);
    }

    pub(super) fn free_bundles(&mut self, local: u32) {
        self.pool.put(&mut self.slots[local as usize].bundles, 0);
    }

    /// Some slots will no longer take free bundles: check the waiting ones.
    pub(super) fn note_fewer_takers(&mut self) {
        self.pool.has_changed = self.pool.counted != 0;
    }

    /// Whether the possible offers changed since the last call.
    pub(in super::super) fn have_offers_changed(&mut self) -> bool {
        std::mem::take(&mut self.pool.has_changed)
    }

    /// Slots whose waits were first sent at `sent_before` or earlier and should be withdrawn: a bundle is free that no other slot
    /// is about to take, or another wait offers more bundles but lacks those of this one.
    pub(in super::super) fn waits_behind(&self, sent_before: Nanos) -> Vec<u32> {
        let offers = self.offers();
        let about_to_take = self.about_to_take(&offers);
        let mut spare: [usize; BITS] =
            std::array::from_fn(|bit| self.pool.free[bit].len().saturating_sub(about_to_take));
        let mut behind = Vec::new();
        for offer in &offers {
            let lacks: Vec<usize> = bits(self.pool.counted & !offer.mask).filter(|&bit| spare[bit] > 0).collect();
            lacks.iter().for_each(|&bit| spare[bit] -= 1);
            if !lacks.is_empty() {
                behind.push(*offer);
            }
        }
        if behind.is_empty()
            && let Some((most, others)) = offers.split_first()
        {
            behind.extend(others.iter().filter(|offer| offer.mask & !most.mask != 0));
        }
        behind.iter().filter(|offer| offer.asked <= sent_before).map(|offer| offer.local).collect()
    }

    /// The waits that were sent, without prefetch, the largest offers first.
    fn offers(&self) -> Vec<Offer> {
        let of = |local: u32| {
            let slot = &self.slots[local as usize];
            let is_sent = slot.state == State::Waiting && slot.sent;
            is_sent.then(|| Offer { local, mask: slot.bundles.mask(), asked: slot.asked })
        };
        let mut offers: Vec<_> = self.ordinary().chain(self.spares()).filter_map(of).collect();
        offers.sort_by_key(|offer| Reverse(offer.mask.count_ones()));
        offers
    }

    /// Number of slots that will soon send a wait and take free bundles.
    fn about_to_take(&self, sent: &[Offer]) -> usize {
        let unsent = self.census.parkable(State::Waiting) as usize - sent.len();
        unsent + usize::try_from(-self.census.surplus()).unwrap_or(0)
    }

    pub(in super::super) fn bundles(&self, bit: u8) -> u32 {
        self.pool.totals.get(usize::from(bit)).copied().map_or(0, u32::from)
    }

    /// Bundles of runs, and of waits.
    pub(in super::super) fn bundles_in_use(&self, bit: u8) -> (u32, u32) {
        let (mut held, mut offered) = (0, 0);
        for slot in self.slots.iter().filter(|slot| slot.bundles.of(bit).is_some()) {
            match slot.state {
                State::Ready | State::Running => held += 1,
                _ => offered += 1,
            }
        }
        (held, offered)
    }
}
