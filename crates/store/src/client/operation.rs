use crate::transaction::Step;
use crate::update::Part;
use crate::update::Update;
use midflight_wire::store::{Command, Cursor, DATA_MAX, KEY_MAX, PlaceInValue, Stage, VALUE_MAX, key_hash};

/// Identifies an operation of this client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationKey(pub u64);

/// An operation on one key. A key has 1 to [`KEY_MAX`] bytes, and [`PlaceInValue::KEY_MAX`] if it and the values of the operation have
/// together more than [`DATA_MAX`]. A value has at most [`VALUE_MAX`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Reads a value.
    Get {
        /// The key.
        key: Vec<u8>,
    },
    /// Whether a key exists.
    Exists {
        /// The key.
        key: Vec<u8>,
    },
    /// Sets a value.
    Put {
        /// The key.
        key: Vec<u8>,
        /// The value.
        value: Vec<u8>,
    },
    /// Removes a key.
    Delete {
        /// The key.
        key: Vec<u8>,
    },
    /// Sets a value if the current one is as expected.
    Cas {
        /// The key.
        key: Vec<u8>,
        /// The expected value.
        expected: Vec<u8>,
        /// The new value.
        new: Vec<u8>,
    },
    /// Sets the value of a key that does not exist.
    Create {
        /// The key.
        key: Vec<u8>,
        /// The value.
        value: Vec<u8>,
    },
    /// Adds to a number; a missing key counts as 0.
    Incr {
        /// The key.
        key: Vec<u8>,
        /// The addend.
        by: i64,
    },
    /// Changes value and expiry if a condition holds.
    Update {
        /// The key.
        key: Vec<u8>,
        /// What it does.
        update: Update,
    },
    /// Lists keys of a key group. Each page is as linearizable as a GET.
    Scan {
        /// Where the page begins; [`Cursor::default`] is the first of all.
        from: Cursor,
    },
    /// Reads a piece of a value, and the key's revision. (A GET reads all pieces.)
    Piece {
        /// Where it begins.
        place: PlaceInValue,
    },
    /// Updates several keys in one step. Their hashes must be the same: they need a common part in braces, such as `{user 7}`. All together
    /// must fit a packet.
    Transact {
        /// What happens, in this order.
        steps: Vec<Step>,
    },
    /// Keeps a part of a value for [`Change::SetStaged`](crate::client::Change::SetStaged). (A PUT does both.)
    Stage {
        /// The key.
        key: Vec<u8>,
        /// Random number of the value.
        staged: u64,
        /// Bytes of the whole value.
        length: u32,
        /// Where the part begins.
        offset: u32,
        /// The part.
        part: Vec<u8>,
    },
}

/// Why an operation was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// A key without bytes.
    #[error("the key is empty: give it 1 to {KEY_MAX} bytes")]
    EmptyKey,
    /// A key that is too long.
    #[error("the key has {0} bytes: a key may have {KEY_MAX}")]
    KeyTooLong(usize),
    /// A value that is too long.
    #[error("the value has {0} bytes: a value may have {VALUE_MAX}")]
    TooLarge(usize),
    /// A key that is too long for a value of this length.
    #[error("the key has {0} bytes: with so long a value it may have {max}", max = PlaceInValue::KEY_MAX)]
    KeyTooLongForValue(usize),
    /// Keys of a transaction that may be in different key groups.
    #[error("the keys of a transaction must have the same part in braces, as {{user 7}}name and {{user 7}}mail have")]
    KeysApart,
    /// A transaction that is too long.
    #[error("the transaction has {0} bytes: it may have {DATA_MAX}")]
    TransactionTooLarge(usize),
    /// The queue is full.
    #[error("{0} operations wait, the bound `queued_max`: submit again when some have ended")]
    QueueFull(usize),
}

impl Operation {
    pub(super) fn hash(&self) -> u32 {
        match self {
            Self::Scan { from } => from.hash(),
            Self::Piece { place } => key_hash(place.key()),
            _ => key_hash(self.key()),
        }
    }

    /// The key; of a SCAN its cursor, of a piece its place.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        match self {
            Self::Get { key }
            | Self::Exists { key }
            | Self::Put { key, .. }
            | Self::Delete { key }
            | Self::Cas { key, .. }
            | Self::Create { key, .. }
            | Self::Incr { key, .. }
            | Self::Update { key, .. }
            | Self::Stage { key, .. } => key,
            Self::Piece { place } => place.as_bytes(),
            Self::Transact { steps } => steps.first().map_or(&[], |step| &step.key),
            Self::Scan { from } => from.as_bytes(),
        }
    }

    /// The command of a write.
    #[must_use]
    pub fn command(&self) -> Option<Command> {
        match self {
            Self::Get { .. } | Self::Exists { .. } | Self::Scan { .. } | Self::Piece { .. } => None,
            Self::Stage { .. } => Some(Command::Stage),
            Self::Transact { .. } => Some(Command::Transact),
            Self::Put { .. } => Some(Command::Put),
            Self::Delete { .. } => Some(Command::Delete),
            Self::Cas { .. } => Some(Command::Cas),
            Self::Create { .. } => Some(Command::Create),
            Self::Incr { .. } => Some(Command::Incr),
            Self::Update { .. } => Some(Command::Update),
        }
    }

    /// Whether it changes data.
    #[must_use]
    pub fn is_write(&self) -> bool {
        self.command().is_some()
    }

    /// Appends what follows the key in a WRITE.
    pub(super) fn write_arguments(&self, buffer: &mut Vec<u8>) {
        match self {
            Self::Get { .. } | Self::Exists { .. } | Self::Scan { .. } | Self::Piece { .. } | Self::Delete { .. } => {}
            Self::Stage { staged, length, offset, part, .. } => {
                Part { staged: *staged, length: *length, offset: *offset, bytes: part }.encode(buffer);
            }
            Self::Put { value, .. } | Self::Create { value, .. } => buffer.extend_from_slice(value),
            Self::Cas { expected, new, .. } => {
                buffer.extend_from_slice(expected);
                buffer.extend_from_slice(new);
            }
            Self::Incr { by, .. } => buffer.extend_from_slice(&by.to_be_bytes()),
            Self::Update { update, .. } => update.encode(buffer),
            Self::Transact { steps } => steps.iter().for_each(|step| step.encode(buffer)),
        }
    }

    /// Bytes of the value that it expects.
    pub(super) fn expected_length(&self) -> usize {
        match self {
            Self::Cas { expected, .. } => expected.len(),
            Self::Update { update, .. } => update.expected_length(),
            _ => 0,
        }
    }

    /// Bytes of what follows the key in a WRITE.
    fn arguments(&self) -> usize {
        match self {
            Self::Get { .. } | Self::Exists { .. } | Self::Scan { .. } | Self::Piece { .. } | Self::Delete { .. } => 0,
            Self::Put { value, .. } | Self::Create { value, .. } => value.len(),
            Self::Cas { expected, new, .. } => expected.len().saturating_add(new.len()),
            Self::Incr { by, .. } => size_of_val(by),
            Self::Update { update, .. } => update.length(),
            Self::Stage { part, .. } => size_of::<Stage>() + part.len(),
            Self::Transact { steps } => steps.iter().fold(0, |sum, step| step.length().saturating_add(sum)),
        }
    }

    /// Bytes of the longest value.
    fn longest_value(&self) -> usize {
        match self {
            Self::Put { value, .. } | Self::Create { value, .. } => value.len(),
            Self::Cas { expected, new, .. } => expected.len().max(new.len()),
            Self::Update { update, .. } => update.expected_length().max(update.operand().len()),
            Self::Stage { length, part, .. } => part.len().max(*length as usize),
            _ => 0,
        }
    }

    /// Bytes of its values.
    #[must_use]
    pub fn value_bytes(&self) -> usize {
        self.arguments()
    }

    /// Whether it does not fit a packet.
    pub(super) fn is_large(&self) -> bool {
        self.key().len().saturating_add(self.arguments()) > DATA_MAX
    }

    /// Whether its key and values are within the bounds.
    ///
    /// # Errors
    /// What is not.
    pub fn check(&self) -> Result<(), SubmitError> {
        let (key, value) = (self.key().len(), self.longest_value());
        if let Self::Transact { steps } = self {
            return check_steps(steps);
        }
        match key {
            _ if matches!(self, Self::Piece { place } if place.key().is_empty()) => Err(SubmitError::EmptyKey),
            0 => Err(SubmitError::EmptyKey),
            _ if key > KEY_MAX => Err(SubmitError::KeyTooLong(key)),
            _ if value > VALUE_MAX => Err(SubmitError::TooLarge(value)),
            _ if matches!(self, Self::Stage { .. }) && self.is_large() => Err(SubmitError::TooLarge(value)),
            _ if self.is_large() && key > PlaceInValue::KEY_MAX => Err(SubmitError::KeyTooLongForValue(key)),
            _ => Ok(()),
        }
    }
}

fn check_steps(steps: &[Step]) -> Result<(), SubmitError> {
    let first = steps.first().ok_or(SubmitError::EmptyKey)?;
    for Step { key, .. } in steps {
        match key.len() {
            0 => return Err(SubmitError::EmptyKey),
            length if length > KEY_MAX => return Err(SubmitError::KeyTooLong(length)),
            _ if key_hash(key) != key_hash(&first.key) => return Err(SubmitError::KeysApart),
            _ => {}
        }
    }
    let all = steps.iter().fold(first.key.len(), |sum, step| step.length().saturating_add(sum));
    if all > DATA_MAX { Err(SubmitError::TransactionTooLarge(all)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r7_sizes_are_checked_and_the_error_says_the_size_and_the_bound() {
        let key = |length| vec![b'k'; length];
        assert_eq!(Operation::Get { key: key(0) }.check(), Err(SubmitError::EmptyKey));
        assert_eq!(Operation::Incr { key: key(KEY_MAX), by: 1 }.check(), Ok(()));
        let too_long = Operation::Delete { key: key(KEY_MAX + 1) }.check().expect_err("too long");
        assert_eq!(too_long.to_string(), "the key has 1025 bytes: a key may have 1024");
        let put = |key, value| Operation::Put { key, value };
        assert_eq!(put(key(4), key(VALUE_MAX)).check(), Ok(()));
        let too_large = put(key(4), key(VALUE_MAX + 1)).check().expect_err("too large");
        assert_eq!(too_large.to_string(), "the value has 8388609 bytes: a value may have 8388608");
        assert_eq!(put(key(KEY_MAX), key(88)).check(), Ok(()), "it fits a packet");
        let too_long = put(key(KEY_MAX), key(89)).check().expect_err("too long");
        assert_eq!(too_long.to_string(), "the key has 1024 bytes: with so long a value it may have 1008");
        let cas = |expected, new| Operation::Cas { key: key(4), expected: key(expected), new: key(new) };
        assert!(!cas(DATA_MAX - 5, 1).is_large() && cas(DATA_MAX - 4, 1).is_large());
        assert!(cas(VALUE_MAX, VALUE_MAX).check().is_ok() && cas(VALUE_MAX + 1, 1).check().is_err());
    }
}
