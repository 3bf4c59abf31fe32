//! The datagrams that one call must send, in order: first the answer itself; then one ASSIGN per executor address, in the
//! order in which the addresses were first used; then what must follow the ASSIGNs.

use midflight_dataplane::Datagram;
use midflight_wire::{Assign, Assignment, Builder, Header, Operation, SLOTS_MAX};
use std::net::SocketAddr;
use zerocopy::{Immutable, IntoBytes};

#[derive(Debug)]
pub(super) struct Answers {
    epoch: u32,
    first: Vec<Datagram>,
    assigns: Vec<(SocketAddr, Vec<Assignment>)>,
    last: Vec<Datagram>,
}

impl Answers {
    pub(super) fn new(epoch: u32) -> Self {
        Self { epoch, first: Vec::new(), assigns: Vec::new(), last: Vec::new() }
    }

    /// The header of an answer that repeats the sequence of its question.
    pub(super) fn header(&self, operation: Operation, question: &Header) -> Header {
        Header::new(operation, self.epoch, question.sequence.get())
    }

    /// The header of an answer to an operation that has no sequence.
    pub(super) fn plain_header(&self, operation: Operation) -> Header {
        Header::new(operation, self.epoch, 0)
    }

    /// Adds an answer that goes before the ASSIGNs. `count` is that of the answer's header: the number of its records, or,
    /// if it has none, the number of records in the packet that it answers.
    pub(super) fn answer<H, R>(&mut self, to: SocketAddr, fixed: &H, records: &[R], count: u8)
    where
        H: IntoBytes + Immutable,
        R: IntoBytes + Immutable,
    {
        self.first.push((to, write(fixed, records, count)));
    }

    /// Adds an answer that has no header.
    pub(super) fn answer_as_it_is(&mut self, to: SocketAddr, bytes: &[u8]) {
        self.first.push((to, bytes.to_vec()));
    }

    /// Adds an answer that goes after the ASSIGNs.
    pub(super) fn answer_last<H, R>(&mut self, to: SocketAddr, fixed: &H, records: &[R])
    where
        H: IntoBytes + Immutable,
        R: IntoBytes + Immutable,
    {
        self.last.push((to, write(fixed, records, records.len() as u8)));
    }

    /// Adds an assignment: to the last ASSIGN for this address, or to a new one if that is full.
    pub(super) fn assign(&mut self, to: SocketAddr, assignment: Assignment) {
        let open = self.assigns.iter_mut().rev().find(|(address, _)| *address == to);
        match open {
            Some((_, list)) if list.len() < SLOTS_MAX => list.push(assignment),
            _ => self.assigns.push((to, vec![assignment])),
        }
    }

    /// ASSIGN packets so far.
    pub(super) fn assigns(&self) -> usize {
        self.assigns.len()
    }

    pub(super) fn finish(self) -> Vec<Datagram> {
        let mut all = self.first;
        for (to, assignments) in &self.assigns {
            let fixed = Assign { header: Header::new(Operation::Assign, self.epoch, 0) };
            all.push((*to, write(&fixed, assignments, assignments.len() as u8)));
        }
        all.extend(self.last);
        all
    }
}

fn write<H, R>(fixed: &H, records: &[R], count: u8) -> Vec<u8>
where
    H: IntoBytes + Immutable,
    R: IntoBytes + Immutable,
{
    let mut bytes = Vec::new();
    let mut builder = Builder::new(&mut bytes, fixed);
    for record in records {
        builder.push(record);
    }
    builder.set_count(count);
    bytes
}
