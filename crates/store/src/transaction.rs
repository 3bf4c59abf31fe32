//! TRANSACT: updates of several keys in one step.

use crate::update::{Change, Update};
use midflight_wire::store::{STEP_REQUIRED, Step as Wire};
use zerocopy::{FromBytes, IntoBytes};

/// A step of a transaction. Steps run in their order, each on what the earlier ones have left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step<B = Vec<u8>> {
    /// The key.
    pub key: B,
    /// What becomes of it.
    pub update: Update<B>,
    /// Whether no step runs unless the condition of this one holds at the beginning.
    pub required: bool,
}

impl Step {
    /// A step that is not required.
    pub fn new(key: impl Into<Vec<u8>>, update: Update) -> Self {
        Self { key: key.into(), update, required: false }
    }

    /// A step that changes nothing, but is required.
    pub fn check(key: impl Into<Vec<u8>>, condition: crate::update::Condition) -> Self {
        Self { key: key.into(), update: Update { condition, ..Update::default() }, required: true }
    }
}

impl<B: AsRef<[u8]>> Step<B> {
    /// Bytes of it in the arguments of a WRITE.
    pub(crate) fn length(&self) -> usize {
        size_of::<Wire>().saturating_add(self.key.as_ref().len()).saturating_add(self.update.length())
    }

    /// Key and values must be shorter than a packet.
    pub(crate) fn encode(&self, buffer: &mut Vec<u8>) {
        let step = Wire {
            key_length: (self.key.as_ref().len() as u16).into(),
            expected_length: (self.update.expected_length() as u16).into(),
            value_length: (self.update.operand().len() as u16).into(),
            flags: if self.required { STEP_REQUIRED } else { 0 },
            reserved: 0,
        };
        buffer.extend_from_slice(step.as_bytes());
        buffer.extend_from_slice(self.key.as_ref());
        self.update.encode(buffer);
    }
}

impl<'a> Step<&'a [u8]> {
    /// All steps; `None` if these are no steps, or one uses a staged value.
    #[cfg_attr(not(feature = "replica"), expect(dead_code, reason = "replicas decode"))]
    pub(crate) fn decode_all(mut arguments: &'a [u8]) -> Option<Vec<Self>> {
        let mut steps = Vec::new();
        while !arguments.is_empty() {
            let (wire, rest) = Wire::ref_from_prefix(arguments).ok()?;
            let (key, rest) = rest.split_at_checked(wire.key_length.get().into())?;
            let (expected, value) = (usize::from(wire.expected_length.get()), usize::from(wire.value_length.get()));
            let update = size_of::<midflight_wire::store::Update>() + expected + value;
            let (update, rest) = rest.split_at_checked(update)?;
            let update = Update::decode(update, expected)?;
            if matches!(update.change, Change::SetStaged(_) | Change::AppendStaged(_)) {
                return None;
            }
            steps.push(Self { key, update, required: wire.flags & STEP_REQUIRED != 0 });
            arguments = rest;
        }
        Some(steps)
    }
}

#[cfg(all(test, feature = "replica"))]
mod tests {
    use super::*;
    use crate::update::{Condition, Expiry};

    fn steps() -> Vec<Step> {
        let set = Update {
            condition: Condition::Equals(b"old".to_vec()),
            change: Change::Set(b"newer".to_vec()),
            expiry: Expiry::After(7),
            returns: true,
        };
        vec![Step::check("a", Condition::Unchanged(9)), Step::new("bc", set), Step::new("", Update::default())]
    }

    #[test]
    fn steps_are_decoded_as_they_were_encoded() {
        let mut arguments = Vec::new();
        steps().iter().for_each(|step| step.encode(&mut arguments));
        assert_eq!(arguments.len(), steps().iter().map(Step::length).sum::<usize>());
        let decoded = Step::decode_all(&arguments).expect("steps");
        let all = steps();
        let wanted: Vec<_> = all
            .iter()
            .map(|step| Step { key: &step.key[..], update: step.update.borrowed(), required: step.required })
            .collect();
        assert_eq!(decoded, wanted);
    }

    #[test]
    fn r7_what_is_cut_or_staged_is_no_step() {
        let mut arguments = Vec::new();
        steps().iter().for_each(|step| step.encode(&mut arguments));
        let ends: Vec<usize> =
            (0..arguments.len()).filter(|end| Step::decode_all(&arguments[..*end]).is_some()).collect();
        let lengths: Vec<usize> = steps().iter().map(Step::length).collect();
        assert_eq!(ends, [0, lengths[0], lengths[0] + lengths[1]], "only between two steps");
        let mut staged = Vec::new();
        Step::new("a", Update { change: Change::SetStaged(1), ..Update::default() }).encode(&mut staged);
        assert_eq!(Step::decode_all(&staged), None);
    }
}
