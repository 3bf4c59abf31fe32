use crate::update::Update;
use midflight_wire::store::{Command, Cursor, DATA_MAX, KEY_MAX, key_hash};

/// Identifies an operation of this client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationKey(pub u64);

/// An operation on one key. A key has 1 to [`KEY_MAX`] bytes; a key and its values together have at most [`DATA_MAX`].
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
    /// Changes value and expiry if a condition holds. Takes 24 bytes of [`DATA_MAX`].
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
    /// Key and values exceed [`DATA_MAX`].
    #[error("the key and its values have {0} bytes: together they may have {DATA_MAX}")]
    TooLarge(usize),
    /// The queue is full.
    #[error("{0} operations wait, the bound `queued_max`: submit again when some have ended")]
    QueueFull(usize),
}

impl Operation {
    pub(super) fn hash(&self) -> u32 {
        if let Self::Scan { from } = self { from.hash() } else { key_hash(self.key()) }
    }

    /// The key; of a SCAN its cursor.
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
            | Self::Update { key, .. } => key,
            Self::Scan { from } => from.as_bytes(),
        }
    }

    /// The command of a write.
    #[must_use]
    pub fn command(&self) -> Option<Command> {
        match self {
            Self::Get { .. } | Self::Exists { .. } | Self::Scan { .. } => None,
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
            Self::Get { .. } | Self::Exists { .. } | Self::Scan { .. } | Self::Delete { .. } => {}
            Self::Put { value, .. } | Self::Create { value, .. } => buffer.extend_from_slice(value),
            Self::Cas { expected, new, .. } => {
                buffer.extend_from_slice(expected);
                buffer.extend_from_slice(new);
            }
            Self::Incr { by, .. } => buffer.extend_from_slice(&by.to_be_bytes()),
            Self::Update { update, .. } => update.encode(buffer),
        }
    }

    /// Bytes of the value that it expects.
    pub(super) fn expected_length(&self) -> usize {
        match self {
            Self::Cas { expected, .. } => expected.len(),
            Self::Update { update, .. } => update.expected().len(),
            _ => 0,
        }
    }

    /// Whether its key and values are within the bounds.
    ///
    /// # Errors
    /// What is not.
    pub fn check(&self) -> Result<(), SubmitError> {
        let key = self.key().len();
        let arguments = match self {
            Self::Get { .. } | Self::Exists { .. } | Self::Scan { .. } | Self::Delete { .. } => 0,
            Self::Put { value, .. } | Self::Create { value, .. } => value.len(),
            Self::Cas { expected, new, .. } => expected.len().saturating_add(new.len()),
            Self::Incr { by, .. } => size_of_val(by),
            Self::Update { update, .. } => update.length(),
        };
        let all = key.saturating_add(arguments);
        match key {
            0 => Err(SubmitError::EmptyKey),
            _ if key > KEY_MAX => Err(SubmitError::KeyTooLong(key)),
            _ if all > DATA_MAX => Err(SubmitError::TooLarge(all)),
            _ => Ok(()),
        }
    }
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
        let room = DATA_MAX - 4;
        assert_eq!(Operation::Put { key: key(4), value: key(room) }.check(), Ok(()));
        let too_large = Operation::Put { key: key(4), value: key(room + 1) }.check().expect_err("too large");
        assert_eq!(too_large.to_string(), "the key and its values have 1113 bytes: together they may have 1112");
        assert_eq!(Operation::Cas { key: key(4), expected: key(room - 1), new: key(1) }.check(), Ok(()));
        assert!(Operation::Cas { key: key(4), expected: key(room), new: key(1) }.check().is_err());
    }
}
