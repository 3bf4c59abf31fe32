//! What an UPDATE does to the data.

use super::item::{Item, NEVER};
use super::store::{Outcome, Store};
use crate::update::{Change, Condition, Expiry, Update};
use midflight_endpoint::mutants::planted;
use midflight_wire::store::{DATA_MAX, Status, Updated};
use zerocopy::{FromZeros, IntoBytes};

/// Bytes of a value that fits the reply.
const RETURNED_MAX: usize = DATA_MAX;

impl Store {
    /// `time` is the store's.
    pub(super) fn update(&mut self, key: &[u8], update: &Update<&[u8]>, time: u64) -> Outcome {
        let staged;
        let change = match update.change {
            Change::SetStaged(number) | Change::AppendStaged(number) => {
                let Some(value) = self.staged.take(number) else { return Outcome::plain(Status::NotStaged) };
                staged = value;
                if matches!(update.change, Change::SetStaged(_)) {
                    Change::Set(&staged[..])
                } else {
                    Change::Append(&staged[..])
                }
            }
            change => change,
        };
        let before = self.get(key).cloned();
        let present = before.as_ref();
        if update.returns && present.is_some_and(|item| item.value().len() > RETURNED_MAX) {
            return Outcome::plain(Status::TooLong);
        }
        let expires = expires(update, present, time);
        let (status, sum) = match holds(&update.condition, present, expires, time) {
            false => (Status::Conflict, None),
            true => match self.change(key, &change, present, expires) {
                Ok(sum) => (Status::Done, sum),
                Err(status) => return Outcome::plain(status),
            },
        };
        let after = self.get(key);
        let left = after.map(Item::expires).filter(|at| *at != NEVER).map(|at| at.saturating_sub(time));
        let mut reply = Updated::new_zeroed();
        reply.left = left.unwrap_or(u64::MAX).into();
        reply.number = sum.unwrap_or_else(|| after.map_or(0, |item| item.value().len() as i64)).into();
        reply.existed = present.is_some().into();
        let value = present.filter(|_| update.returns).map_or(&[][..], Item::value);
        Outcome { status, value: [reply.as_bytes(), value].concat().into() }
    }

    fn change(
        &mut self,
        key: &[u8],
        change: &Change<&[u8]>,
        present: Option<&Item>,
        expires: u64,
    ) -> Result<Option<i64>, Status> {
        match (*change, present) {
            (Change::Keep, None) => {}
            (Change::Keep, Some(item)) if item.expires() == expires => {}
            (Change::Keep, Some(item)) => self.put(key, item.value(), expires)?,
            (Change::Set(value), _) => self.put(key, value, expires)?,
            (Change::SetStaged(_) | Change::AppendStaged(_), _) => return Err(Status::NotStaged),
            (Change::Append(tail), _) => {
                let head = present.map_or(&[][..], Item::value);
                self.put(key, &[head, tail].concat(), expires)?;
            }
            (Change::Remove, _) => {
                self.remove(key);
            }
            (Change::Add(by), _) => {
                let sum = self.sum(key, by)?;
                self.put(key, sum.to_string().as_bytes(), expires)?;
                return Ok(Some(sum));
            }
        }
        Ok(None)
    }
}

/// When the key expires if the update takes place.
pub(super) fn expires(update: &Update<&[u8]>, present: Option<&Item>, time: u64) -> u64 {
    match update.expiry {
        Expiry::Keep => present.map_or(NEVER, Item::expires),
        Expiry::Never => NEVER,
        Expiry::After(ms) => time.saturating_add(ms).min(NEVER - 1),
    }
}

/// `expires` is when the key expires if the update takes place.
pub(super) fn holds(condition: &Condition<&[u8]>, item: Option<&Item>, expires: u64, time: u64) -> bool {
    match (condition, item) {
        (Condition::Always, _) | (Condition::Absent, None) | (Condition::Present, Some(_)) => true,
        (Condition::Equals(expected), Some(item)) => item.value() == *expected,
        (Condition::Due, Some(item)) => item.expires() <= time,
        (Condition::Lasting, Some(item)) => item.expires() == NEVER,
        (Condition::Expiring, Some(item)) => item.expires() != NEVER,
        (Condition::Later, Some(item)) => expires > item.expires(),
        (Condition::Earlier, Some(item)) => expires < item.expires(),
        (Condition::Unchanged(revision), Some(item)) => item.revision() == *revision || planted(157),
        (Condition::Absent, Some(_)) | (_, None) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::FromBytes;

    const KEY: &[u8] = b"k";

    fn store() -> Store {
        Store::new(1 << 20, 1)
    }

    /// Whether it was done, whether the key existed, the milliseconds left, the number, and the value before.
    type Seen = (bool, bool, Option<u64>, i64, Vec<u8>);

    fn run(store: &mut Store, time: u64, update: Update<&[u8]>) -> Seen {
        let outcome = store.update(KEY, &Update { returns: true, ..update }, time);
        let (reply, value) = Updated::ref_from_prefix(&outcome.value).expect("a reply");
        let left = Some(reply.left.get()).filter(|left| *left != u64::MAX);
        (outcome.status == Status::Done, reply.existed == 1, left, reply.number.get(), value.to_vec())
    }

    fn change(change: Change<&'static [u8]>, expiry: Expiry) -> Update<&'static [u8]> {
        Update { change, expiry, ..Update::default() }
    }

    fn when(condition: Condition<&'static [u8]>) -> Update<&'static [u8]> {
        Update { condition, expiry: Expiry::After(50), ..Update::default() }
    }

    #[test]
    fn changes_of_value_and_expiry() {
        let mut store = store();
        let none = Vec::new;
        assert_eq!(run(&mut store, 0, Update::default()), (true, false, None, 0, none()));
        let set = change(Change::Set(b"one"), Expiry::After(100));
        assert_eq!(run(&mut store, 5, set), (true, false, Some(100), 3, none()));
        let append = change(Change::Append(b" two"), Expiry::Keep);
        assert_eq!(run(&mut store, 25, append), (true, true, Some(80), 7, b"one".to_vec()));
        let lasts = change(Change::Keep, Expiry::Never);
        assert_eq!(run(&mut store, 30, lasts), (true, true, None, 7, b"one two".to_vec()));
        assert_eq!(store.update(KEY, &change(Change::Add(1), Expiry::Keep), 30).status, Status::NotANumber);
        let remove = change(Change::Remove, Expiry::Keep);
        assert_eq!(run(&mut store, 31, remove), (true, true, None, 0, b"one two".to_vec()));
        let add = change(Change::Add(-7), Expiry::After(9));
        assert_eq!(run(&mut store, 32, add), (true, false, Some(9), -7, none()));
        assert_eq!(run(&mut store, 33, add), (true, true, Some(9), -14, b"-7".to_vec()));
        assert_eq!((store.keys(), store.expiring().next()), (1, Some((42, KEY))));
    }

    #[test]
    fn each_condition_holds_when_it_says_and_else_nothing_changes() {
        use Condition::{Absent, Always, Due, Earlier, Equals, Expiring, Lasting, Later, Present};
        let all: [Condition<&[u8]>; 10] =
            [Always, Absent, Present, Equals(b"v"), Equals(b"w"), Due, Lasting, Expiring, Later, Earlier];
        // At 100; an update's expiry would be 150.
        let cases: [(_, Vec<Condition<&[u8]>>); 6] = [
            (None, vec![Always, Absent]),
            (Some(NEVER), vec![Always, Present, Equals(b"v"), Lasting, Earlier]),
            (Some(101), vec![Always, Present, Equals(b"v"), Expiring, Later]),
            (Some(100), vec![Always, Present, Equals(b"v"), Due, Expiring, Later]),
            (Some(150), vec![Always, Present, Equals(b"v"), Expiring]),
            (Some(151), vec![Always, Present, Equals(b"v"), Expiring, Earlier]),
        ];
        for (expires, held) in cases {
            for condition in &all {
                let mut store = store();
                if let Some(expires) = expires {
                    store.put(KEY, b"v", expires).expect("room");
                }
                let (done, ..) = run(&mut store, 100, when(*condition));
                assert_eq!(done, held.contains(condition), "{condition:?} of {expires:?}");
                let now = store.get(KEY).map(Item::expires);
                assert_eq!(now, if done { expires.map(|_| 150) } else { expires }, "{condition:?} of {expires:?}");
            }
        }
    }

    #[test]
    fn what_expires_is_in_order_and_forgotten_with_its_key() {
        let mut store = store();
        for (key, at) in [("a", 30), ("b", 10), ("c", 20), ("d", NEVER)] {
            store.put(key.as_bytes(), b"", at).expect("room");
        }
        let expiring = |store: &Store| {
            store.expiring().map(|(at, key)| format!("{at}{}", key.escape_ascii())).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(expiring(&store), "10b 20c 30a");
        // The same expiry again, another, none, and no key.
        store.put(b"b", b"new", 10).expect("room");
        store.put(b"c", b"", 40).expect("room");
        store.put(b"a", b"", NEVER).expect("room");
        assert_eq!(expiring(&store), "10b 40c");
        store.remove(b"b");
        assert_eq!(expiring(&store), "40c");
        store.flush();
        assert_eq!((expiring(&store), store.keys(), store.bytes()), (String::new(), 0, 0));
        while store.clear_up() {}
    }
}
