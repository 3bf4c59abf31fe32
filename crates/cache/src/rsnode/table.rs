//! Requests in flight, by the number that their answers repeat (RV): a slot and, in the remaining bits, a generation that changes with
//! each use of the slot.

use crate::select::Server;
use midflight_endpoint::Nanos;
use midflight_endpoint::mutants::planted;
use midflight_wire::Address;
use std::collections::VecDeque;

/// Everything that an answer must repeat, and when the request was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnderWay {
    pub(crate) server: Server,
    pub(crate) client: Address,
    pub(crate) request: u64,
    pub(crate) sent: Nanos,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    /// The last number issued for it.
    number: u16,
    entry: Option<UnderWay>,
    /// Neighbours in the order of sending; [`NONE`] at the ends.
    before: u32,
    after: u32,
}

const NONE: u32 = u32::MAX;

#[derive(Debug)]
pub(crate) struct Table {
    slots: Vec<Slot>,
    /// FIFO, so that a number recurs as late as possible.
    free: VecDeque<u16>,
    slot_bits: u32,
    oldest: u32,
    newest: u32,
}

impl Table {
    /// For `size` requests, at most 65,536, rounded up to a power of two. `generation` is random.
    pub(crate) fn new(size: u32, generation: u16) -> Self {
        let slot_bits = size.clamp(1, 1 << 16).next_power_of_two().ilog2();
        let size = 1_usize << slot_bits;
        Self {
            slots: vec![Slot { number: generation << (slot_bits % 16), entry: None, before: NONE, after: NONE }; size],
            free: (0..=u16::MAX).take(size).collect(),
            slot_bits,
            oldest: NONE,
            newest: NONE,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(crate) fn add(&mut self, entry: UnderWay) -> Option<u16> {
        let slot = self.free.pop_front()?;
        let generation = self.slots[usize::from(slot)].number.checked_shr(self.slot_bits).unwrap_or(0);
        let generation = generation.wrapping_add(u16::from(!planted(221)));
        let number = slot | generation.checked_shl(self.slot_bits).unwrap_or(0);
        let before = std::mem::replace(&mut self.newest, slot.into());
        self.slots[usize::from(slot)] = Slot { number, entry: Some(entry), before, after: NONE };
        match self.slots.get_mut(before as usize) {
            Some(before) => before.after = slot.into(),
            None => self.oldest = slot.into(),
        }
        Some(number)
    }

    /// Removes the request with this number, if the answer matches.
    pub(crate) fn take(&mut self, number: u16, is_its: impl FnOnce(&UnderWay) -> bool) -> Option<UnderWay> {
        let slot = u32::from(number) & (self.slots.len() as u32 - 1);
        let found = &self.slots[slot as usize];
        found.entry.filter(|entry| found.number == number && is_its(entry))?;
        self.remove(slot)
    }

    fn remove(&mut self, slot: u32) -> Option<UnderWay> {
        let Slot { before, after, .. } = self.slots[slot as usize];
        match self.slots.get_mut(before as usize) {
            Some(before) => before.after = after,
            None => self.oldest = after,
        }
        match self.slots.get_mut(after as usize) {
            Some(after) => after.before = before,
            None => self.newest = before,
        }
        self.free.push_back(slot as u16);
        self.slots[slot as usize].entry.take()
    }

    pub(crate) fn oldest(&self) -> Option<Nanos> {
        self.slots.get(self.oldest as usize)?.entry.map(|entry| entry.sent)
    }

    /// Removes the oldest request, if it was sent at this time or before.
    pub(crate) fn expire(&mut self, until: Nanos) -> Option<UnderWay> {
        self.oldest().filter(|&sent| sent <= until)?;
        self.remove(self.oldest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn entry(request: u64, sent: Nanos) -> UnderWay {
        UnderWay { server: Server(1), client: std::net::SocketAddr::from(([10, 0, 0, 1], 7000)).into(), request, sent }
    }

    #[test]
    fn a_full_table_takes_no_more_and_a_number_comes_again_with_another_generation() {
        let mut table = Table::new(2, 7);
        let numbers = [1, 2].map(|request| table.add(entry(request, 0)).unwrap());
        assert_eq!((table.add(entry(3, 0)), table.len()), (None, 2));
        assert_eq!(table.take(numbers[0], |entry| entry.request == 1).map(|entry| entry.request), Some(1));
        let again = table.add(entry(3, 5)).unwrap();
        assert_eq!(again & 1, numbers[0] & 1, "the same slot");
        assert_ne!(again, numbers[0]);
        assert_eq!(table.take(numbers[0], |_| true), None, "the former one's answer once more");
    }

    /// Slots are used in turn. Each gets all its possible numbers before one recurs.
    #[test]
    fn a_slots_number_is_another_one_each_time() {
        let mut table = Table::new(8_192, 7);
        let mut seen = std::collections::BTreeSet::new();
        for request in 0..1 << 16 {
            let number = table.add(entry(request, 0)).unwrap();
            assert!(seen.insert(number), "{number} came again as the {request}th");
            table.take(number, |_| true).unwrap();
        }
    }

    #[test]
    fn n7_an_answer_that_is_not_its_leaves_the_request_under_way() {
        let mut table = Table::new(4, 0);
        let number = table.add(entry(1, 0)).unwrap();
        assert_eq!(table.take(number, |entry| entry.request == 2), None);
        assert_eq!(table.len(), 1);
        assert!(table.take(number, |entry| entry.request == 1).is_some());
    }

    #[test]
    fn the_largest_table_uses_all_numbers() {
        let mut table = Table::new(1 << 16, 3);
        let mut numbers: Vec<u16> = (0..1 << 16).map(|request| table.add(entry(request, 0)).unwrap()).collect();
        numbers.sort_unstable();
        assert!(numbers.iter().copied().eq(0..=u16::MAX));
        assert_eq!(table.add(entry(0, 0)), None);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Add,
        Take(prop::sample::Index),
        Expire(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            5 => Just(Step::Add),
            4 => any::<prop::sample::Index>().prop_map(Step::Take),
            1 => (0..20_u64).prop_map(Step::Expire),
        ];
        prop::collection::vec(step, 0..400)
    }

    proptest! {
        /// Against a map: contents, and order of expiry.
        #[test]
        fn a_table_does_what_a_map_does(steps in steps(), generation: u16) {
            let (mut table, mut map) = (Table::new(16, generation), BTreeMap::new());
            for (now, step) in steps.into_iter().enumerate() {
                let now = now as u64;
                match step {
                    Step::Add => {
                        let number = table.add(entry(now, now));
                        prop_assert_eq!(number.is_none(), map.len() == 16);
                        if let Some(number) = number {
                            map.insert(now, number);
                        }
                    }
                    Step::Take(at) if !map.is_empty() => {
                        let (&request, &number) = map.iter().nth(at.index(map.len())).unwrap();
                        prop_assert_eq!(table.take(number, |entry| entry.request == request), Some(entry(request, request)));
                        map.remove(&request);
                    }
                    Step::Take(_) => {}
                    Step::Expire(age) => {
                        let until = now.saturating_sub(age);
                        while let Some(gone) = table.expire(until) {
                            prop_assert_eq!(map.pop_first().map(|(request, _)| request), Some(gone.request));
                        }
                        prop_assert!(map.first_key_value().is_none_or(|(&sent, _)| sent > until));
                    }
                }
                prop_assert_eq!((table.len(), table.oldest()), (map.len(), map.keys().next().copied()));
            }
        }
    }
}
