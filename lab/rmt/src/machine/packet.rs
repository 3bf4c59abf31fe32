//! A packet outside the pipelines: header fields, and the records that no pass has reached yet.

use crate::field::{Field, Space};

/// A packet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Packet {
    pub(super) header: Box<[u32]>,
    /// Records after the first, which is in the header; the last one first, so that removing one is a truncation.
    pub(super) tail: Vec<u32>,
}

impl Packet {
    pub(super) fn new(fields: usize) -> Self {
        Self { header: vec![0; fields].into(), tail: Vec::new() }
    }

    /// The value of a header field.
    #[must_use]
    pub fn get(&self, field: Field) -> u32 {
        assert!(field.space == Space::Header, "a packet has header fields only");
        self.header[usize::from(field.index)]
    }

    /// Writes a header field; bits beyond its width are lost.
    pub fn set(&mut self, field: Field, value: u32) {
        assert!(field.space == Space::Header, "a packet has header fields only");
        self.header[usize::from(field.index)] = value & field.width.mask();
    }

    /// The same packet with this value in a header field.
    #[must_use]
    pub fn with(mut self, field: Field, value: u32) -> Self {
        self.set(field, value);
        self
    }

    #[cfg(feature = "check")]
    pub(crate) fn header(&self) -> &[u32] {
        &self.header
    }

    #[cfg(feature = "check")]
    pub(crate) fn of(header: Box<[u32]>, tail: Vec<u32>) -> Self {
        Self { header, tail }
    }

    /// The words of the records after the first: one per field of the record, the last record first.
    #[must_use]
    pub fn tail(&self) -> &[u32] {
        &self.tail
    }
}
