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

/// A running program. Its registers are all that it keeps between packets, so two machines of one program are compared and
/// hashed by them.
#[derive(Clone, Debug)]
pub struct Machine {
    code: Arc<Code>,
    /// All cells of all registers, in the order of their declaration.
    words: Box<[u32]>,
}

/// Where a packet goes that leaves a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum To {
    /// Out of this port.
    Port(u32),
    /// To the receiver that its address fields name.
    Requester,
    /// Back into the switch, after the delay of recirculation.
    Recirculated,
    /// The same, and it is a mirrored copy: headers only.
    Copied,
    /// Nowhere, under this reason.
    Dropped(&'static str),
}

/// A packet that leaves a pass.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sent {
    /// Where it goes.
    pub to: To,
    /// As it is now.
    pub packet: Packet,
}

/// A packet between the pipelines, in the traffic manager: with what ingress bridged, and with a place to go to.
///
/// Packets to one port keep their order there; those to different ports do not.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Crossing {
    to: To,
    packet: Packet,
    bridged: Box<[u32]>,
}

impl Crossing {
    /// Where ingress sends it. Egress does nothing with a dropped packet.
    #[must_use]
    pub fn to(&self) -> To {
        self.to
    }

    /// As ingress left it.
    #[must_use]
    pub fn packet(&self) -> &Packet {
        &self.packet
    }

    /// What ingress bridged.
    #[cfg(feature = "check")]
    pub(crate) fn bridged(&self) -> &[u32] {
        &self.bridged
    }

    /// A crossing of these parts.
    #[cfg(feature = "check")]
    pub(crate) fn of(to: To, packet: Packet, bridged: Box<[u32]>) -> Self {
        Self { to, packet, bridged }
    }
}

/// What leaves a pass: the packet itself, then the copies of ingress and egress.
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

    /// An empty packet with records, each with one value for each field of the record, in the order of its declaration. The first
    /// is in the header; the others follow as passes remove records.
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

    /// A word of a register, as the controller reads it.
    #[must_use]
    pub fn read(&self, register: Register, cell: u32, word: Word) -> u32 {
        self.words[self.at(register, cell, word)]
    }

    /// Writes a word of a register, as the controller does.
    pub fn write(&mut self, register: Register, cell: u32, word: Word, value: u32) {
        let at = self.at(register, cell, word);
        self.words[at] = value;
    }

    /// All words of all registers, in the order of their declaration.
    #[cfg(feature = "check")]
    pub(crate) fn words(&self) -> &[u32] {
        &self.words
    }

    /// The same, to be replaced.
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
