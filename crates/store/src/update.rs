//! UPDATE: a condition on a key, a change of its value, and of its expiry, in one step.

use midflight_wire::store::{ChangeCode, ConditionCode, ExpiryCode, Stage, UPDATE_RETURNS_VALUE, Update as Wire};
#[cfg(feature = "replica")]
use serde::{Deserialize, Serialize};
use std::time::Duration;
use zerocopy::{FromBytes, IntoBytes};

/// What must hold for an update to take place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "replica", derive(Serialize, Deserialize))]
pub enum Condition<B = Vec<u8>> {
    /// Nothing.
    #[default]
    Always,
    /// The key does not exist.
    Absent,
    /// The key exists.
    Present,
    /// The key has this value.
    Equals(B),
    /// The key has expired. (It exists until a write removes it.)
    Due,
    /// The key exists and does not expire.
    Lasting,
    /// The key exists and expires.
    Expiring,
    /// The key exists, and would expire later than it does. One that does not expire is the last of all.
    Later,
    /// The key exists, and would expire earlier than it does.
    Earlier,
    /// The key exists, and the last entry that changed it has this index.
    Unchanged(u64),
}

/// What happens to the value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "replica", derive(Serialize, Deserialize))]
pub enum Change<B = Vec<u8>> {
    /// Nothing; a missing key stays missing.
    #[default]
    Keep,
    /// It is replaced, or the key is created.
    Set(B),
    /// This is appended; a missing key counts as empty.
    Append(B),
    /// The key is removed.
    Remove,
    /// This is added; a missing key counts as 0.
    Add(i64),
    /// The value that is staged under this number replaces it. It is gone then, whether the condition holds or not.
    SetStaged(u64),
    /// The same, but it is appended.
    AppendStaged(u64),
}

/// What happens to the time at which the key expires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "replica", derive(Serialize, Deserialize))]
pub enum Expiry {
    /// Nothing; a new key does not expire.
    #[default]
    Keep,
    /// It does not expire.
    Never,
    /// It expires this many milliseconds from now.
    After(u64),
}

impl Expiry {
    /// After this time, in whole milliseconds.
    #[must_use]
    pub fn of(ttl: Duration) -> Self {
        Self::After(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX))
    }
}

/// An update of one key. The default only asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "replica", derive(Serialize, Deserialize))]
pub struct Update<B = Vec<u8>> {
    /// The condition.
    pub condition: Condition<B>,
    /// The change of the value.
    pub change: Change<B>,
    /// The change of the expiry.
    pub expiry: Expiry,
    /// Whether the answer has the value that was there.
    pub returns: bool,
}

/// The answer to an [`Update`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Updated {
    /// Whether the condition held, so that the update took place.
    pub done: bool,
    /// Whether the key existed before.
    pub existed: bool,
    /// Milliseconds until the key expires, after the update; `None`: it does not exist, or does not expire.
    pub expires_in: Option<u64>,
    /// [`Change::Add`]: the sum. Else the length of the value after the update, 0 without one.
    pub number: i64,
    /// The value before, if the update returns it and the key existed.
    pub value: Option<Vec<u8>>,
}

impl<B> Default for Update<B> {
    fn default() -> Self {
        Self { condition: Condition::Always, change: Change::Keep, expiry: Expiry::Keep, returns: false }
    }
}

impl<B: AsRef<[u8]>> Update<B> {
    /// Bytes of the expected value.
    pub(crate) fn expected_length(&self) -> usize {
        match &self.condition {
            Condition::Equals(value) => value.as_ref().len(),
            Condition::Unchanged(revision) => size_of_val(revision),
            _ => 0,
        }
    }

    pub(crate) fn operand(&self) -> &[u8] {
        if let Change::Set(value) | Change::Append(value) = &self.change { value.as_ref() } else { &[] }
    }

    /// Bytes of the arguments of a WRITE.
    pub(crate) fn length(&self) -> usize {
        size_of::<Wire>().saturating_add(self.expected_length()).saturating_add(self.operand().len())
    }

    pub(crate) fn encode(&self, buffer: &mut Vec<u8>) {
        let (expiry, after) = match self.expiry {
            Expiry::Keep => (ExpiryCode::Keep, 0),
            Expiry::Never => (ExpiryCode::Never, 0),
            Expiry::After(ms) => (ExpiryCode::After, ms),
        };
        let (change, by) = match self.change {
            Change::Keep => (ChangeCode::Keep, 0),
            Change::Set(_) => (ChangeCode::Set, 0),
            Change::Append(_) => (ChangeCode::Append, 0),
            Change::Remove => (ChangeCode::Remove, 0),
            Change::Add(by) => (ChangeCode::Add, by),
            Change::SetStaged(number) => (ChangeCode::SetStaged, number.cast_signed()),
            Change::AppendStaged(number) => (ChangeCode::AppendStaged, number.cast_signed()),
        };
        let condition = match self.condition {
            Condition::Always => ConditionCode::Always,
            Condition::Absent => ConditionCode::Absent,
            Condition::Present => ConditionCode::Present,
            Condition::Equals(_) => ConditionCode::Equals,
            Condition::Due => ConditionCode::Due,
            Condition::Lasting => ConditionCode::Lasting,
            Condition::Expiring => ConditionCode::Expiring,
            Condition::Later => ConditionCode::Later,
            Condition::Earlier => ConditionCode::Earlier,
            Condition::Unchanged(_) => ConditionCode::Unchanged,
        };
        let wire = Wire {
            after: after.into(),
            addend: by.into(),
            condition: condition.into(),
            change: change.into(),
            expiry: expiry.into(),
            flags: if self.returns { UPDATE_RETURNS_VALUE } else { 0 },
            reserved: [0; 4],
        };
        buffer.extend_from_slice(wire.as_bytes());
        match &self.condition {
            Condition::Equals(value) => buffer.extend_from_slice(value.as_ref()),
            Condition::Unchanged(revision) => buffer.extend_from_slice(&revision.to_be_bytes()),
            _ => {}
        }
        buffer.extend_from_slice(self.operand());
    }
}

impl Update {
    pub(crate) fn borrowed(&self) -> Update<&[u8]> {
        self.map(Vec::as_slice)
    }
}

impl<B> Update<B> {
    fn map<'a, C>(&'a self, of: impl Fn(&'a B) -> C) -> Update<C> {
        let condition = match &self.condition {
            Condition::Always => Condition::Always,
            Condition::Absent => Condition::Absent,
            Condition::Present => Condition::Present,
            Condition::Equals(value) => Condition::Equals(of(value)),
            Condition::Due => Condition::Due,
            Condition::Lasting => Condition::Lasting,
            Condition::Expiring => Condition::Expiring,
            Condition::Later => Condition::Later,
            Condition::Earlier => Condition::Earlier,
            Condition::Unchanged(revision) => Condition::Unchanged(*revision),
        };
        let change = match &self.change {
            Change::Keep => Change::Keep,
            Change::Set(value) => Change::Set(of(value)),
            Change::Append(value) => Change::Append(of(value)),
            Change::Remove => Change::Remove,
            Change::Add(by) => Change::Add(*by),
            Change::SetStaged(number) => Change::SetStaged(*number),
            Change::AppendStaged(number) => Change::AppendStaged(*number),
        };
        Update { condition, change, expiry: self.expiry, returns: self.returns }
    }
}

impl<'a> Update<&'a [u8]> {
    pub(crate) fn owned(&self) -> Update {
        self.map(|value| value.to_vec())
    }

    /// `None` if they are no update's arguments.
    #[cfg_attr(not(feature = "replica"), expect(dead_code, reason = "replicas decode"))]
    pub(crate) fn decode(arguments: &'a [u8], expected: usize) -> Option<Self> {
        let (wire, rest) = Wire::ref_from_prefix(arguments).ok()?;
        let (expected, operand) = rest.split_at_checked(expected)?;
        let condition = match ConditionCode::from_number(wire.condition)? {
            ConditionCode::Always => Condition::Always,
            ConditionCode::Absent => Condition::Absent,
            ConditionCode::Present => Condition::Present,
            ConditionCode::Equals => Condition::Equals(expected),
            ConditionCode::Due => Condition::Due,
            ConditionCode::Lasting => Condition::Lasting,
            ConditionCode::Expiring => Condition::Expiring,
            ConditionCode::Later => Condition::Later,
            ConditionCode::Earlier => Condition::Earlier,
            ConditionCode::Unchanged => Condition::Unchanged(u64::from_be_bytes(expected.try_into().ok()?)),
        };
        let change = match ChangeCode::from_number(wire.change)? {
            ChangeCode::Keep => Change::Keep,
            ChangeCode::Set => Change::Set(operand),
            ChangeCode::Append => Change::Append(operand),
            ChangeCode::Remove => Change::Remove,
            ChangeCode::Add => Change::Add(wire.addend.get()),
            ChangeCode::SetStaged => Change::SetStaged(wire.addend.get().cast_unsigned()),
            ChangeCode::AppendStaged => Change::AppendStaged(wire.addend.get().cast_unsigned()),
        };
        let expiry = match ExpiryCode::from_number(wire.expiry)? {
            ExpiryCode::Keep => Expiry::Keep,
            ExpiryCode::Never => Expiry::Never,
            ExpiryCode::After => Expiry::After(wire.after.get()),
        };
        let update = Self { condition, change, expiry, returns: wire.flags & UPDATE_RETURNS_VALUE != 0 };
        let is_whole = update.expected_length() == expected.len() && update.operand().len() == operand.len();
        is_whole.then_some(update)
    }
}

/// A part of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "replica", derive(Serialize, Deserialize))]
pub(crate) struct Part<'a> {
    /// Random number of the value.
    pub(crate) staged: u64,
    /// Of the whole value.
    pub(crate) length: u32,
    /// Where the part begins.
    pub(crate) offset: u32,
    pub(crate) bytes: &'a [u8],
}

impl<'a> Part<'a> {
    pub(crate) fn encode(&self, buffer: &mut Vec<u8>) {
        let Self { staged, length, offset, bytes } = *self;
        let stage = Stage { staged: staged.into(), length: length.into(), offset: offset.into() };
        buffer.extend_from_slice(stage.as_bytes());
        buffer.extend_from_slice(bytes);
    }

    /// `None` if these are no part.
    #[cfg_attr(not(feature = "replica"), expect(dead_code, reason = "replicas decode"))]
    pub(crate) fn decode(arguments: &'a [u8]) -> Option<Self> {
        let (stage, bytes) = Stage::ref_from_prefix(arguments).ok()?;
        let (length, offset) = (stage.length.get(), stage.offset.get());
        Some(Self { staged: stage.staged.get(), length, offset, bytes })
    }
}

#[cfg(all(test, feature = "replica"))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(any::<u8>(), 0..20)
    }

    fn updates() -> impl Strategy<Value = Update> {
        let condition = prop_oneof![
            Just(Condition::Always),
            Just(Condition::Absent),
            Just(Condition::Present),
            bytes().prop_map(Condition::Equals),
            Just(Condition::Due),
            Just(Condition::Lasting),
            Just(Condition::Expiring),
            Just(Condition::Later),
            Just(Condition::Earlier),
            any::<u64>().prop_map(Condition::Unchanged),
        ];
        let change = prop_oneof![
            Just(Change::Keep),
            bytes().prop_map(Change::Set),
            bytes().prop_map(Change::Append),
            Just(Change::Remove),
            any::<i64>().prop_map(Change::Add),
            any::<u64>().prop_map(Change::SetStaged),
            any::<u64>().prop_map(Change::AppendStaged),
        ];
        let expiry = prop_oneof![Just(Expiry::Keep), Just(Expiry::Never), any::<u64>().prop_map(Expiry::After)];
        (condition, change, expiry, any::<bool>()).prop_map(|(condition, change, expiry, returns)| Update {
            condition,
            change,
            expiry,
            returns,
        })
    }

    proptest! {
        #[test]
        fn an_update_is_decoded_as_it_was_encoded(update in updates()) {
            let mut arguments = Vec::new();
            update.encode(&mut arguments);
            prop_assert_eq!(arguments.len(), update.length());
            let decoded = Update::decode(&arguments, update.expected_length()).unwrap();
            let mut again = Vec::new();
            decoded.encode(&mut again);
            prop_assert_eq!((again, decoded.returns), (arguments, update.returns));
        }

        #[test]
        fn arguments_that_are_no_update_are_refused_or_read(arguments in prop::collection::vec(any::<u8>(), 0..40), expected in 0usize..40) {
            let _ = Update::decode(&arguments, expected);
        }
    }

    #[test]
    fn r7_bytes_that_belong_to_nothing_are_refused() {
        let mut arguments = Vec::new();
        Update::<Vec<u8>>::default().encode(&mut arguments);
        assert!(Update::decode(&arguments, 0).is_some());
        arguments.push(1);
        assert_eq!(Update::decode(&arguments, 0), None, "a value that nothing sets");
        assert_eq!(Update::decode(&arguments, 1), None, "a value that nothing is compared with");
        assert_eq!(Update::decode(&arguments[..10], 0), None);
    }
}
