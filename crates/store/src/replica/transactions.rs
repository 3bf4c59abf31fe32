//! What a TRANSACT does to the data.

use super::item::Item;
use super::store::{Outcome, REPLY_MAX, Store};
use super::updates::{expires, holds};
use crate::transaction::Step;
use midflight_endpoint::mutants::planted;
use midflight_wire::store::{Status, Stepped, Updated};
use std::collections::BTreeMap;
use zerocopy::{FromZeros, IntoBytes};

/// Bytes of the values that the steps of a transaction change.
const COPIED_MAX: usize = 1 << 20;

impl Store {
    /// All steps, or none if a required condition does not hold, or the reply would be too long.
    pub(super) fn transact(&mut self, steps: &[u8], time: u64) -> Outcome {
        let Some(steps) = Step::decode_all(steps) else { return Outcome::plain(Status::BadRequest) };
        let is_met = |step: &Step<&[u8]>| {
            let present = self.get(step.key);
            holds(&step.update.condition, present, expires(&step.update, present, time), time)
        };
        if !steps.iter().filter(|step| step.required).all(is_met) && !planted(158) {
            return Outcome::plain(Status::Conflict);
        }
        // A step copies the value that it changes.
        let copied: usize = steps.iter().filter_map(|step| self.get(step.key)).map(|item| item.value().len()).sum();
        if copied > COPIED_MAX {
            return Outcome::plain(Status::TooLarge);
        }
        let (mut before, mut reply) = (BTreeMap::new(), Vec::new());
        for Step { key, update, .. } in &steps {
            before.entry(*key).or_insert_with(|| self.get(key).cloned());
            let outcome = self.update(key, update, time);
            add_step(&mut reply, &outcome);
            if outcome.status == Status::TooLong || reply.len() > REPLY_MAX {
                self.undo(before);
                return Outcome::plain(Status::TooLong);
            }
        }
        Outcome::done(reply)
    }

    fn undo(&mut self, before: BTreeMap<&[u8], Option<Item>>) {
        for (key, item) in before {
            match item {
                Some(item) => self.restore(item),
                None => drop(self.remove(key)),
            }
        }
    }
}

fn add_step(reply: &mut Vec<u8>, outcome: &Outcome) {
    let nothing = Updated::new_zeroed();
    let value = if outcome.value.is_empty() { nothing.as_bytes() } else { &outcome.value[..] };
    let value_length = ((value.len() - size_of::<Updated>()) as u16).into(); // a value that is returned fits a packet
    reply.extend_from_slice(Stepped { value_length, status: outcome.status.into(), reserved: 0 }.as_bytes());
    reply.extend_from_slice(value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replica::entry::What;
    use crate::update::{Change, Condition, Update};
    use midflight_wire::store::{Command, KEY_MAX, Write};
    use zerocopy::FromBytes;

    fn run(store: &mut Store, steps: &[Step]) -> (Status, Vec<(Status, Vec<u8>)>) {
        let mut arguments = Vec::new();
        steps.iter().for_each(|step| step.encode(&mut arguments));
        let outcome = store.apply(9, What::Transact { key: b"a", steps: &arguments }, 0);
        let (mut rest, mut each) = (&outcome.value[..], Vec::new());
        while !rest.is_empty() {
            let (stepped, behind) = Stepped::ref_from_prefix(rest).expect("a step");
            let (value, behind) = behind[size_of::<Updated>()..].split_at(stepped.value_length.get().into());
            each.push((Status::from_number(stepped.status).expect("a status"), value.to_vec()));
            rest = behind;
        }
        (outcome.status, each)
    }

    fn set(key: &str, value: &[u8]) -> Step {
        Step::new(key, Update { change: Change::Set(value.to_vec()), returns: true, ..Update::default() })
    }

    fn add(key: &str) -> Step {
        Step::new(key, Update { change: Change::Add(1), returns: true, ..Update::default() })
    }

    fn values(store: &Store) -> Vec<(&[u8], u64)> {
        [b"a", b"b"].iter().filter_map(|key| store.get(*key)).map(|item| (item.value(), item.revision())).collect()
    }

    #[test]
    fn each_step_sees_the_earlier_ones_and_a_step_that_fails_stops_none() {
        let mut store = Store::new(1 << 20, 1);
        let absent = Step { required: false, ..Step::check("a", Condition::Absent) };
        let (status, each) = run(&mut store, &[set("a", b"x"), add("a"), absent, set("b", b"1"), add("b"), add("b")]);
        let steps = [
            (Status::Done, b"".to_vec()),
            (Status::NotANumber, b"".to_vec()),
            (Status::Conflict, b"".to_vec()),
            (Status::Done, b"".to_vec()),
            (Status::Done, b"1".to_vec()),
            (Status::Done, b"2".to_vec()),
        ];
        assert_eq!((status, each), (Status::Done, steps.to_vec()));
        assert_eq!(values(&store), [(&b"x"[..], 9), (b"3", 9)]);
    }

    #[test]
    fn r1_without_what_is_required_nothing_happens() {
        let mut store = Store::new(1 << 20, 1);
        store.apply(7, What::Put { key: b"a", value: b"old" }, 0);
        for condition in [Condition::Unchanged(6), Condition::Absent, Condition::Equals(b"new".to_vec())] {
            assert_eq!(run(&mut store, &[set("b", b"1"), Step::check("a", condition)]), (Status::Conflict, Vec::new()));
        }
        assert_eq!(values(&store), [(&b"old"[..], 7)]);
        let (status, _) = run(&mut store, &[Step::check("a", Condition::Unchanged(7)), set("a", b"new")]);
        assert_eq!((status, values(&store)), (Status::Done, vec![(&b"new"[..], 9)]));
    }

    #[test]
    fn r7_no_transaction_copies_large_values_or_makes_a_key_that_no_client_can_name() {
        let mut store = Store::new(32 << 20, 1);
        store.apply(7, What::Put { key: b"a", value: &vec![1; COPIED_MAX / 2 + 1] }, 0);
        let append = Step::new("a", Update { change: Change::Append(b"x".to_vec()), ..Update::default() });
        assert_eq!(run(&mut store, &[append.clone(), append.clone()]).0, Status::TooLarge);
        assert_eq!(run(&mut store, &[append]).0, Status::Done);
        let mut arguments = Vec::new();
        set(&format!("{{a}}{}", "x".repeat(KEY_MAX)), b"").encode(&mut arguments);
        let mut write = Write::new_zeroed();
        write.command = Command::Transact.into();
        assert_eq!(What::of(&write, b"{a}", &arguments), None);
    }

    #[test]
    fn r7_a_reply_that_is_too_long_undoes_all() {
        let mut store = Store::new(1 << 20, 1);
        store.apply(7, What::Put { key: b"a", value: &[1; 700] }, 0);
        let before = store.bytes();
        let (status, each) =
            run(&mut store, &[set("a", b"2"), set("b", &[3; 250]), set("b", b""), add("a"), set("a", b"")]);
        assert_eq!((status, each.len()), (Status::Done, 5));
        store.apply(7, What::Delete { key: b"b" }, 0);
        store.apply(7, What::Put { key: b"a", value: &[1; 700] }, 0);
        let (status, each) = run(&mut store, &[set("b", b"1"), set("b", &[3; 400]), set("a", b"2"), set("b", b"")]);
        assert_eq!((status, each), (Status::TooLong, Vec::new()));
        assert_eq!((values(&store), store.bytes(), store.keys()), (vec![(&[1; 700][..], 7)], before, 1));
    }
}
