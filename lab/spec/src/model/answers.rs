//! The datagrams that one call must send, in order: the answer, one ASSIGN per executor address (in order of first
//! use), then what follows the ASSIGNs.

use midflight_dataplane::Datagram;
use midflight_wire::{Assign, Assignment, SLOTS_MAX, packet};
use std::net::SocketAddr;

#[derive(Debug)]
pub(super) struct Answers {
    epoch: u32,
    number: u32,
    first: Vec<Datagram>,
    assigns: Vec<(SocketAddr, Vec<Assignment>)>,
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

    pub(super) fn assign(&mut self, to: SocketAddr, assignment: Assignment) {
        let open = self.assigns.iter_mut().rev().find(|(address, _)| *address == to);
        match open {
            Some((_, list)) if list.len() < SLOTS_MAX => list.push(assignment),
            _ => self.assigns.push((to, vec![assignment])),
        }
    }

    pub(super) fn assigns(&self) -> usize {
        self.assigns.len()
    }

    pub(super) fn finish(self) -> Vec<Datagram> {
        let mut all = self.first;
        for (to, assignments) in &self.assigns {
            all.push((*to, packet(&Assign::new(self.epoch, self.number), assignments)));
        }
        all.extend(self.last);
        all
    }
}
