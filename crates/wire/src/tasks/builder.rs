//! Writes what only packets of tasks have behind their records.

use super::{APPENDED_UNIT, COMPLETE_MAX, Completion, Preference};
use crate::mutants::planted;
use crate::{Builder, PACKET_MAX};
use zerocopy::IntoBytes;

impl Builder<'_> {
    /// Appends an argument behind the records, in the order of their tasks. No record may follow it.
    pub fn append(&mut self, argument: &[u8]) {
        self.buffer.extend_from_slice(argument);
        let padding = argument.len().next_multiple_of(APPENDED_UNIT) - argument.len();
        self.buffer.resize(self.buffer.len() + padding, 0);
        debug_assert!(self.buffer.len() <= PACKET_MAX);
    }

    /// Ends a SUBMIT with a preference. No record may follow it.
    pub fn prefer(&mut self, preference: &Preference) {
        self.buffer.extend_from_slice(preference.as_bytes());
    }

    /// Appends a completion with its result, padded to four bytes. Returns `false`, and appends nothing, if the packet has no
    /// room.
    #[must_use]
    pub fn push_completion(&mut self, completion: &Completion, result: &[u8]) -> bool {
        debug_assert_eq!(result.len(), usize::from(completion.result_length.get()));
        let padded = result.len().next_multiple_of(4);
        let full = self.count() >= COMPLETE_MAX;
        let bytes = if planted(53) { padded } else { size_of::<Completion>() + padded };
        let is_unbounded = planted(27) && self.count() >= 2;
        if full || (self.buffer.len() + bytes > PACKET_MAX && !is_unbounded) {
            return false;
        }
        self.push(completion);
        self.buffer.extend_from_slice(result);
        self.buffer.resize(self.buffer.len() + padded - result.len(), 0);
        true
    }
}
