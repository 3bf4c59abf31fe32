//! The datagrams that one call must send, in order: the answer, one ASSIGN per executor address (in order of first
//! use), then what follows the ASSIGNs.

use midflight_dataplane::Datagram;
use midflight_wire::tasks::{APPENDED_MAX, Assign, Assignment, SLOTS_MAX};
use midflight_wire::{PACKET_MAX, packet};
use std::net::SocketAddr;

#[derive(Debug)]
pub(super) struct Answers {
    epoch: u32,
    number: u32,
    first: Vec<Datagram>,
    assigns: Vec<(SocketAddr, Vec<Assignment>, Vec<u8>)>,
    last: Vec<Datagram>,
}

impl Answers {
    pub(super) fn new(epoch: u32) -> Self {
        Self { epoch, number: 0, first: Vec::new(), assigns: Vec::new(), last: Vec::new() }
    }

    /// The ASSIGNs answer prefetch waits, whose RETRIEVE has this number.
    pub(super) fn number_assigns(&mut self, number: u32) {
        self.number = number;
    }

    pub(super) fn answer(&mut self, to: SocketAddr, packet: Vec<u8>) {
        self.first.push((to, packet));
    }

    pub(super) fn answer_last(&mut self, to: SocketAddr, packet: Vec<u8>) {
        self.last.push((to, packet));
    }

    /// Adds an assignment with an appended argument, perhaps empty, to the last ASSIGN to this address if it has room.
    pub(super) fn assign(&mut self, to: SocketAddr, assignment: Assignment, appended: &[u8]) {
        match self.assigns.iter_mut().rev().find(|(address, ..)| *address == to) {
            Some((_, list, appendix)) if has_room(list, appendix, appended.len()) => {
                list.push(assignment);
                appendix.extend(appended);
            }
            _ => self.assigns.push((to, vec![assignment], appended.to_vec())),
        }
    }

    /// Whether the only ASSIGN has room for any further assignment.
    pub(super) fn has_room_for_any(&self) -> bool {
        self.assigns.first().is_none_or(|(_, list, appendix)| has_room(list, appendix, APPENDED_MAX))
    }

    pub(super) fn assigns(&self) -> usize {
        self.assigns.len()
    }

    pub(super) fn finish(self) -> Vec<Datagram> {
        let mut all = self.first;
        for (to, assignments, appendix) in &self.assigns {
            let records = packet(&Assign::new(self.epoch, self.number), assignments);
            all.push((*to, [&records[..], appendix].concat()));
        }
        all.extend(self.last);
        all
    }
}

fn has_room(list: &[Assignment], appendix: &[u8], appended: usize) -> bool {
    let bytes = size_of::<Assign>() + size_of_val(list) + appendix.len();
    list.len() < SLOTS_MAX && bytes + size_of::<Assignment>() + appended <= PACKET_MAX
}
