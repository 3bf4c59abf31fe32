//! The machine: a compiled program, its registers, and a packet's pass through it.

mod code;
mod packet;
mod run;
#[cfg(test)]
mod tests;

use crate::program::Program;
use crate::register::{Register, Word};
use code::Code;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

pub use packet::Packet;
pub(crate) use run::SLOTS;

/// A running program. It keeps only its registers between packets, so two machines of one program are compared and hashed by them.
#[derive(Clone, Debug)]
pub struct Machine {
    code: Arc<Code>,
    /// All cells of all registers, in declaration order.
    words: Box<[u32]>,
}

/// Destination of a packet that leaves a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum To {
    /// An egress port.
    Port(u32),
    /// The receiver in its address fields.
    Requester,
    /// Back into the switch, after the delay of recirculation.
    Recirculated,
    /// Like `Recirculated`, for a mirrored copy: headers only.
    Copied,
    /// Dropped for this reason.
    Dropped(&'static str),
}

/// A packet that leaves a pass.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sent {
    /// Destination of the packet.
    pub to: To,
    /// The packet after the pass.
    pub packet: Packet,
}

/// A packet between the pipelines, in the traffic manager, with its bridged metadata and destination.
///
/// Packets to one port keep their order there; those to different ports do not.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Crossing {
    to: To,
    packet: Packet,
    bridged: Box<[u32]>,
}

impl Crossing {
    /// The destination from ingress. Egress does nothing with a dropped packet.
    #[must_use]
    pub fn to(&self) -> To {
        self.to
    }

    /// The packet after ingress.
    #[must_use]
    pub fn packet(&self) -> &Packet {
        &self.packet
    }

    #[cfg(feature = "check")]
    pub(crate) fn bridged(&self) -> &[u32] {
        &self.bridged
    }

    #[cfg(feature = "check")]
    pub(crate) fn of(to: To, packet: Packet, bridged: Box<[u32]>) -> Self {
        Self { to, packet, bridged }
    }
}

/// The packets that leave a pass: the packet itself, then the copies of ingress and egress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outputs {
    /// The packet that came in.
    pub packet: Sent,
    /// Copies: of ingress, of egress.
    pub copies: [Option<Packet>; 2],
}

impl IntoIterator for Outputs {
    type Item = Sent;
    type IntoIter = std::iter::Chain<
        std::iter::Once<Sent>,
        std::iter::FlatMap<std::array::IntoIter<Option<Packet>, 2>, Option<Sent>, fn(Option<Packet>) -> Option<Sent>>,
    >;

    fn into_iter(self) -> Self::IntoIter {
        let sent: fn(Option<Packet>) -> Option<Sent> = |copy| copy.map(|packet| Sent { to: To::Copied, packet });
        std::iter::once(self.packet).chain(self.copies.into_iter().flat_map(sent))
    }
}

impl Machine {
    /// Compiles a program; all registers are zero.
    #[must_use]
    pub fn load(program: &Program) -> Self {
        let code = Code::compile(program);
        let words = vec![0; code.words].into();
        Self { code: Arc::new(code), words }
    }

    /// An empty packet.
    #[must_use]
    pub fn packet(&self) -> Packet {
        Packet::new(self.code.headers)
    }

    /// A packet with these records and no other content. A record has one value per field, in declaration order. The first record is in
    /// the header; when a pass removes it, the next one takes its place.
    #[must_use]
    pub fn packet_with_records(&self, records: &[&[u32]]) -> Packet {
        let mut packet = self.packet();
        let Some((first, rest)) = records.split_first() else { return packet };
        let width = self.code.record.len();
        assert!(records.iter().all(|record| record.len() == width), "a record has {width} fields");
        self.code.record.iter().zip(*first).for_each(|(&slot, &value)| packet.header[usize::from(slot)] = value);
        packet.tail = rest.iter().rev().flat_map(|record| record.iter().copied()).collect();
        packet
    }

    /// One pass of one packet: ingress, traffic manager, egress. Allocates only for a mirrored copy.
    #[must_use]
    pub fn pass(&mut self, packet: Packet) -> Outputs {
        run::pass(&self.code, &mut self.words, packet)
    }

    /// The first half of a pass, and its copy. Other packets may run before the second half.
    #[must_use]
    pub fn ingress(&mut self, packet: Packet) -> (Crossing, Option<Packet>) {
        run::ingress(&self.code, &mut self.words, packet)
    }

    /// The second half, and its copy.
    #[must_use]
    pub fn egress(&mut self, crossing: Crossing) -> (Sent, Option<Packet>) {
        run::egress(&self.code, &mut self.words, crossing)
    }

    /// Reads a word of a register, as the controller does.
    #[must_use]
    pub fn read(&self, register: Register, cell: u32, word: Word) -> u32 {
        self.words[self.at(register, cell, word)]
    }

    /// Writes a word of a register, as the controller does.
    pub fn write(&mut self, register: Register, cell: u32, word: Word, value: u32) {
        let at = self.at(register, cell, word);
        self.words[at] = value;
    }

    /// All words of all registers, in declaration order.
    #[cfg(feature = "check")]
    pub(crate) fn words(&self) -> &[u32] {
        &self.words
    }

    #[cfg(feature = "check")]
    pub(crate) fn words_mut(&mut self) -> &mut [u32] {
        &mut self.words
    }

    fn at(&self, register: Register, cell: u32, word: Word) -> usize {
        let (base, words) = self.code.registers[usize::from(register.0)];
        (base + cell * words + u32::from(word == Word::High)) as usize
    }
}

impl PartialEq for Machine {
    fn eq(&self, other: &Self) -> bool {
        self.words == other.words
    }
}

impl Eq for Machine {}

impl Hash for Machine {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.words.hash(state);
    }
}
