//! Writes packets.

use crate::PACKET_MAX;
use zerocopy::{Immutable, IntoBytes};

const COUNT_OFFSET: usize = 4;

/// A packet of a fixed part and records (at most 255). Sets `count` to their number.
pub fn packet<H, R>(fixed: &H, records: &[R]) -> Vec<u8>
where
    H: IntoBytes + Immutable,
    R: IntoBytes + Immutable,
{
    let mut bytes = counting(fixed, records.len() as u8);
    bytes.extend_from_slice(records.as_bytes());
    bytes
}

/// A packet without records, with this `count`.
pub fn counting<H: IntoBytes + Immutable>(fixed: &H, count: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    Builder::new(&mut bytes, fixed).set_count(count);
    bytes
}

/// Appends records to a packet and updates its `count`. Clears the buffer first and never fills it beyond [`PACKET_MAX`].
///
/// ```
/// use midflight_wire::{Builder, Header};
/// use midflight_wire::tasks::{Operation, Probe, parse, Packet};
/// let mut buffer = Vec::new();
/// Builder::new(&mut buffer, &Probe { header: Header::new(Operation::Probe, 0, 7), client: 1.into(), cookie: 0.into() });
/// assert!(matches!(parse(&buffer), Ok(Packet::Probe(p, [])) if p.header.sequence.get() == 7));
/// ```
#[derive(Debug)]
pub struct Builder<'a> {
    pub(crate) buffer: &'a mut Vec<u8>,
}

impl<'a> Builder<'a> {
    /// Writes the fixed part, which begins with the [`crate::Header`].
    pub fn new<H: IntoBytes + Immutable>(buffer: &'a mut Vec<u8>, fixed: &H) -> Self {
        buffer.clear();
        buffer.extend_from_slice(fixed.as_bytes());
        Self { buffer }
    }

    /// Sets `count` without adding records, for REGISTER and SUBMIT_ACK.
    pub fn set_count(&mut self, count: u8) {
        self.buffer[COUNT_OFFSET] = count;
    }

    /// Number of records so far.
    #[must_use]
    pub fn count(&self) -> usize {
        usize::from(self.buffer[COUNT_OFFSET])
    }

    /// Appends a record.
    pub fn push<R: IntoBytes + Immutable>(&mut self, record: &R) {
        self.buffer.extend_from_slice(record.as_bytes());
        self.buffer[COUNT_OFFSET] += 1;
        debug_assert!(self.buffer.len() <= PACKET_MAX);
    }
}
