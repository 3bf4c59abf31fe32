//! RETRIEVE, RELEASE and KEEPALIVE. Each has the next counter, which the caller then increments.

use super::super::link::Link;
use super::ahead::Asked;
use super::{Slots, State};
use crate::mutants::planted;
use midflight_endpoint::Nanos;
use midflight_wire::tasks::{
    APPENDED_MAX, Assign, Assignment, Keepalive, Leave, LeaveHow, REGISTER_MAX, Release, Retrieve, SLOTS_MAX,
};
use midflight_wire::{Builder, PACKET_MAX};

/// Waits in a RETRIEVE of prefetch waits that repeats one: as many as an ASSIGN has room for, whatever is appended to it.
const REPEATS_MAX: usize = (PACKET_MAX - size_of::<Assign>()) / (size_of::<Assignment>() + APPENDED_MAX);

impl Slots {
    /// Writes a RETRIEVE of waits with the same offer, or with one wait for a polled switch, which sends one packet per packet.
    /// The repeat interval grows up to a third of the lease.
    pub(in super::super) fn transmit_retrieve(&mut self, now: Nanos, link: &Link, buffer: &mut Vec<u8>) -> bool {
        let Some(resources) = self.next_offer() else { return false };
        let counter = link.next_counter().into();
        let mut packet = Builder::new(buffer, &Retrieve { counter, resources, ..Retrieve::new(link.epoch(), 0) });
        let (most, least) = if link.poll.is_some() { (1, self.poll_repeat_min) } else { (SLOTS_MAX, self.repeat_min) };
        let base = link.round_trip.twice(least);
        while packet.count() < most
            && self.next_offer() == Some(resources)
            && let Some(local) = self.waits.pop_front()
        {
            self.push_wait(&mut packet, local, now, base, link.lease / 3);
        }
        packet.count() > 0
    }

    /// Offer of the next wait to send. For the first transmission its slot takes its bundles now.
    fn next_offer(&mut self) -> Option<u8> {
        while let Some(&local) = self.waits.front() {
            let slot = &self.slots[local as usize];
            if slot.state == State::Waiting && slot.queued {
                if !slot.sent {
                    self.take_bundles(local);
                }
                return Some(self.offer(local));
            }
            self.waits.pop_front();
        }
        None
    }

    /// Writes a RETRIEVE of prefetch waits only, because each gets one response. Its number is the lower half of the counter,
    /// which is hard to guess. The response must list the tasks of all repeats, so there are few.
    pub(in super::super) fn transmit_asks(&mut self, now: Nanos, link: &Link, buffer: &mut Vec<u8>) -> bool {
        if self.asks.is_empty() {
            return false;
        }
        let (counter, resources) = (link.next_counter(), self.uncounted());
        let number = number_of(counter);
        let fixed = Retrieve { counter: counter.into(), resources, ahead: 1, ..Retrieve::new(link.epoch(), number) };
        let mut packet = Builder::new(buffer, &fixed);
        let base = link.round_trip.twice(self.repeat_min);
        let mut asked = Asked::new(number, now);
        let mut most = SLOTS_MAX;
        while packet.count() < most
            && let Some(&local) = self.asks.front()
        {
            if self.slots[local as usize].tries > 0 {
                most = REPEATS_MAX;
                if packet.count() >= most {
                    break;
                }
            }
            self.asks.pop_front();
            if self.push_wait(&mut packet, local, now, base, link.lease / 3) {
                asked.push(local);
                self.slots[local as usize].asked_in = number;
            }
        }
        let is_sent = packet.count() > 0;
        if is_sent {
            self.asked(asked);
        }
        is_sent
    }

    /// Appends a slot's wait if it is still due, and returns whether it was. Repeats are `base` to `most` apart.
    fn push_wait(&mut self, packet: &mut Builder, local: u32, now: Nanos, base: Nanos, most: Nanos) -> bool {
        let slot = &mut self.slots[local as usize];
        if slot.state != State::Waiting || !slot.queued {
            return false;
        }
        if slot.tries == 0 {
            slot.asked = now;
        }
        packet.push(&slot.wait());
        (slot.queued, slot.sent) = (false, true);
        self.timers.arm(local, now, slot.tries, base, most);
        slot.tries = slot.tries.saturating_add(1);
        true
    }

    pub(in super::super) fn transmit_release(&mut self, now: Nanos, link: &Link, buffer: &mut Vec<u8>) -> bool {
        let counter = link.next_counter();
        let mut packet = Builder::new(buffer, &Release { counter: counter.into(), ..Release::new(link.epoch(), 0) });
        let base = link.round_trip.twice(self.repeat_min);
        while packet.count() < SLOTS_MAX
            && let Some(local) = self.leaves.pop_front()
        {
            let slot = &mut self.slots[local as usize];
            let how = match slot.state {
                State::Leaving if slot.done => LeaveHow::Done,
                State::Leaving => LeaveHow::Withdrawn,
                State::Returning => LeaveHow::Stays,
                _ => continue,
            };
            if !slot.queued {
                continue;
            }
            if slot.tries == 0 {
                slot.released_in = counter;
            }
            packet.push(&Leave {
                slot: slot.name.number.into(),
                generation: slot.name.generation.into(),
                sequence: slot.sequence.into(),
                done: how.into(),
                reserved: [0; 3],
            });
            slot.queued = false;
            self.timers.arm(local, now, slot.tries, base, link.lease / 3);
            slot.tries = slot.tries.saturating_add(1);
        }
        packet.count() > 0
    }

    /// Names the slots that must stay registered.
    pub(in super::super) fn transmit_keepalive(&mut self, link: &Link, buffer: &mut Vec<u8>) -> bool {
        if self.keepalive >= self.slots.len() {
            return false;
        }
        let counter = link.next_counter().into();
        let mut packet = Builder::new(buffer, &Keepalive { counter, ..Keepalive::new(link.epoch(), 0) });
        while packet.count() < REGISTER_MAX
            && let Some(slot) = self.slots.get(self.keepalive)
        {
            self.keepalive += 1;
            let has_task = matches!(slot.state, State::Running | State::Ready);
            let is_lent = slot.state == State::Idle && self.keepalive <= self.ordinary as usize; // it must stay registered
            // A switch ignores a RELEASE from an unknown address, but answers KEEPALIVE by RESET.
            let is_unheard = slot.state == State::Returning && slot.tries > 1;
            if (has_task || is_lent || is_unheard) && slot.registered {
                packet.push(&slot.wait());
            }
            if planted(22) && packet.count() == 8 && self.slots.len() < REGISTER_MAX {
                self.keepalive = self.slots.len(); // planted bug: names no further slots
            }
        }
        packet.count() > 0
    }
}

/// Lower half of the counter. 0 means none, so it becomes a number that no recent packet has.
fn number_of(counter: u64) -> u32 {
    match counter as u32 {
        0 => 1 << 31,
        half => half,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t1_no_two_retrieves_sent_lately_have_one_number() {
        let mut numbers: Vec<u32> = ((5 << 32) - 64..(5_u64 << 32) + 64).map(number_of).collect();
        numbers.sort_unstable();
        assert!(numbers.iter().all(|&number| number != 0) && numbers.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
