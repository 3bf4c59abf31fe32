use super::*;
use crate::client::{PlaceInValue, ValuePiece};
use midflight_wire::PACKET_MAX;
use midflight_wire::store::{Request, piece_room};
use proptest::prelude::*;

const KEY: &[u8] = b"key";
const RETURNED_MAX: usize = DATA_MAX;

/// A store with one key.
#[derive(Default)]
struct Toy {
    revision: u64,
    value: Option<Vec<u8>>,
    staged: Vec<u8>,
    staged_bytes: usize,
    /// Each value that the key had, in order.
    history: Vec<Option<Vec<u8>>>,
}

impl Toy {
    fn set(&mut self, value: Option<Vec<u8>>) {
        self.revision += 1;
        self.value = value.clone();
        self.history.push(value);
    }

    fn answer(&mut self, operation: &Operation) -> Outcome {
        assert!(!operation.is_large(), "{operation:?} fits no packet");
        match operation {
            Operation::Get { key } => Ok(match &self.value {
                None => Answer::NotFound,
                Some(value) if size_of::<Request>() + key.len() + value.len() <= PACKET_MAX => {
                    Answer::Value(value.clone())
                }
                Some(_) => self.piece(0, 0),
            }),
            Operation::Piece { place } => Ok(match (PlaceInValue::parse(place.as_bytes()), &self.value) {
                (Some((revision, offset, _)), Some(_)) => self.piece(revision, offset as usize),
                _ => Answer::NotFound,
            }),
            Operation::Stage { length, offset, part, .. } => {
                self.staged.resize(*length as usize, 0);
                self.staged[*offset as usize..][..part.len()].copy_from_slice(part);
                self.staged_bytes += part.len();
                Ok(Answer::Done)
            }
            Operation::Update { update, .. } => self.update(&update.borrowed()),
            other => self.update(&update_of(other)),
        }
    }

    fn piece(&self, revision: u64, offset: usize) -> Answer {
        let value = self.value.as_ref().expect("a value");
        let offset = if revision == self.revision { offset } else { 0 };
        let bytes = value[offset..value.len().min(offset + piece_room(KEY))].to_vec();
        Answer::Piece(ValuePiece { revision: self.revision, length: value.len(), offset, bytes })
    }

    fn update(&mut self, update: &Update<&[u8]>) -> Outcome {
        let (before, staged) = (self.value.clone(), std::mem::take(&mut self.staged));
        let is_whole = std::mem::take(&mut self.staged_bytes) == staged.len();
        let change = match update.change {
            Change::SetStaged(_) if is_whole => Change::Set(&staged[..]),
            Change::AppendStaged(_) if is_whole => Change::Append(&staged[..]),
            change => change,
        };
        if update.returns && before.as_ref().is_some_and(|value| value.len() > RETURNED_MAX) {
            return Err(StoreError::TooLong);
        }
        let done = match update.condition {
            Condition::Unchanged(revision) => before.is_some() && revision == self.revision,
            condition => holds(condition, before.as_deref()),
        };
        if done && change != Change::Keep {
            self.set(changed(&change, before.as_deref()));
        }
        let value = before.clone().filter(|_| update.returns);
        Ok(Answer::Updated(Updated { done, existed: before.is_some(), value, ..Updated::default() }))
    }
}

fn holds(condition: Condition<&[u8]>, value: Option<&[u8]>) -> bool {
    match condition {
        Condition::Absent => value.is_none(),
        Condition::Present => value.is_some(),
        Condition::Equals(expected) => value == Some(expected),
        _ => true,
    }
}

fn changed(change: &Change<&[u8]>, before: Option<&[u8]>) -> Option<Vec<u8>> {
    match change {
        Change::Set(value) => Some(value.to_vec()),
        Change::Append(tail) => Some([before.unwrap_or_default(), tail].concat()),
        other => panic!("{other:?}"),
    }
}

/// What an operation on this value is told, and what it leaves.
fn reference(operation: &Operation, value: Option<&[u8]>) -> (Answer, Option<Vec<u8>>) {
    let update = update_of(operation);
    let (done, present) = (holds(update.condition, value), value.map(<[u8]>::to_vec));
    let after = if done && update.change != Change::Keep { changed(&update.change, value) } else { present.clone() };
    let answer = match (operation, present) {
        (Operation::Get { .. }, present) => present.map_or(Answer::NotFound, Answer::Value),
        (Operation::Update { update, .. }, present) => Answer::Updated(Updated {
            done,
            existed: present.is_some(),
            value: present.filter(|_| update.returns),
            ..Updated::default()
        }),
        _ if done => Answer::Done,
        (_, present) => present.map_or(Answer::NotFound, |present| Answer::Conflict { present }),
    };
    (answer, after)
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    let length = prop::sample::select(vec![0, 10, DATA_MAX - 40, DATA_MAX - 3, DATA_MAX + 1, 2 * DATA_MAX, 9_000]);
    (length, 0u8..2).prop_map(|(length, byte)| vec![byte; length])
}

fn operation() -> impl Strategy<Value = Operation> {
    let condition = prop_oneof![
        Just(Condition::Always),
        Just(Condition::Absent),
        Just(Condition::Present),
        value().prop_map(Condition::Equals),
    ];
    let change = prop_oneof![Just(Change::Keep), value().prop_map(Change::Set), value().prop_map(Change::Append)];
    let update = (condition, change, any::<bool>()).prop_map(|(condition, change, returns)| {
        let update = Update { condition, change, returns, ..Update::default() };
        Operation::Update { key: KEY.to_vec(), update }
    });
    let key = || KEY.to_vec();
    prop_oneof![
        Just(Operation::Get { key: key() }),
        value().prop_map(move |value| Operation::Put { key: key(), value }),
        value().prop_map(move |value| Operation::Create { key: key(), value }),
        (value(), value()).prop_map(move |(expected, new)| Operation::Cas { key: key(), expected, new }),
        update,
    ]
}

proptest! {
    /// Parts are answered in any order, and others write in between.
    #[test]
    fn r1_large_values_are_read_and_written_in_one_step(
        operation in operation(),
        first in prop::option::of(value()),
        others in prop::collection::vec((0usize..80, prop::option::of(value())), 0..4),
        order in prop::collection::vec(any::<prop::sample::Index>(), 40),
    ) {
        let (mut toy, mut large, mut under_way) = (Toy::default(), Large::default(), Vec::new());
        toy.set(first);
        if operation.is_large() {
            large.begin(7, operation.clone(), 0);
        } else {
            under_way.push((7, operation.clone()));
        }
        let (mut ended, mut number) = (None, 100);
        let mut own = None;
        for step in 0.. {
            prop_assert!(step < 10_000, "it never ends");
            while let Some((of, part)) = large.next() {
                number += 1;
                large.began(number, of);
                under_way.push((number, part));
            }
            others.iter().filter(|(at, _)| *at == step).for_each(|(_, value)| toy.set(value.clone()));
            if under_way.is_empty() {
                break;
            }
            let (number, part) = under_way.remove(order[step % order.len()].index(under_way.len()));
            let before = toy.history.len();
            let outcome = match (toy.answer(&part), &part) {
                // As the store answers these commands.
                (Ok(Answer::Updated(updated)), Operation::Put { .. } | Operation::Create { .. } | Operation::Cas { .. }) => {
                    Ok(match (updated.done, updated.value) {
                        (true, _) => Answer::Done,
                        (false, Some(present)) => Answer::Conflict { present },
                        (false, None) => Answer::NotFound,
                    })
                }
                (outcome, _) => outcome,
            };
            if toy.history.len() > before {
                prop_assert_eq!(own.replace(before), None, "it writes once");
            }
            let end = large.ended(number, part, outcome, 0);
            prop_assert!(end.is_none() || ended.is_none());
            ended = ended.or(end);
        }
        let (number, outcome) = ended.expect("an end");
        let answer = outcome.expect("it succeeds");
        prop_assert_eq!((number, large.open()), (7, 0));
        let is_so = |place: usize, after: &Option<Vec<u8>>| {
            let (told, left) = reference(&operation, toy.history[place].as_deref());
            told == answer && left == *after
        };
        match own {
            Some(place) => prop_assert!(is_so(place - 1, &toy.history[place])),
            None => prop_assert!((0..toy.history.len()).any(|place| is_so(place, &toy.history[place]))),
        }
    }
}

#[test]
fn r7_more_values_than_memory_is_for_wait() {
    let mut large = Large::default();
    let put = || Operation::Put { key: KEY.to_vec(), value: vec![0; BYTES / 4] };
    (0..6).for_each(|number| large.begin(number, put(), 10 + number));
    let begun = |large: &mut Large| {
        let begun: Vec<_> = std::iter::from_fn(|| large.next()).collect();
        begun.iter().enumerate().for_each(|(part, (of, _))| large.began(1_000 * (of.0 + 1) + part as u64, *of));
        begun.into_iter().map(|((number, _), _)| number).collect::<BTreeSet<_>>()
    };
    assert_eq!(begun(&mut large), BTreeSet::from([0, 1, 2, 3]));
    assert_eq!((large.open(), large.next_deadline()), (6, Some(14)));
    let ended = large.ended(1_000, put(), Err(StoreError::BadRequest), 0);
    assert_eq!(ended, Some((0, Err(StoreError::BadRequest))));
    assert_eq!(begun(&mut large), BTreeSet::from([0, 4]), "0 removes what it has staged");
    assert_eq!((large.expire(14), large.expire(15), large.expire(99)), (None, Some(5), None));
    assert_eq!((large.open(), large.next_deadline()), (4, None));
    let mut alone = Large::default();
    alone.begin(1, Operation::Put { key: KEY.to_vec(), value: vec![0; BYTES + 1] }, 0);
    assert!(alone.next().is_some());
}

#[test]
fn r7_a_value_that_is_longer_than_was_known_waits_for_memory() {
    let key = || KEY.to_vec();
    let (mut large, put) = (Large::default(), Operation::Put { key: key(), value: vec![0; BYTES - 100] });
    large.begin(1, put.clone(), 50);
    while let Some((of, _)) = large.next() {
        large.began(1_000 + large.parts() as u64, of);
    }
    // GETSET of a large value: only its first piece says how long it is.
    let update = Update { change: Change::Set(vec![1]), returns: true, ..Update::default() };
    let exchange = Operation::Update { key: key(), update };
    assert_eq!(large.ended(2, exchange, Err(StoreError::TooLong), 60), None);
    let (of, first) = large.next().expect("the first piece");
    large.began(3, of);
    let piece = ValuePiece { revision: 7, length: 1_000_000, offset: 0, bytes: vec![0; piece_room(KEY)] };
    assert_eq!(large.ended(3, first.clone(), Ok(Answer::Piece(piece.clone())), 0), None);
    assert_eq!((large.next(), large.next_deadline()), (None, Some(60)));
    assert!(large.ended(1_000, put, Err(StoreError::BadRequest), 0).is_some());
    let removal = large.next().expect("1 removes what it has staged");
    assert_eq!(removal.0.0, 1);
    let (of, again) = large.next().expect("the first piece again");
    assert_eq!((of.0, &again), (2, &first));
    large.began(4, of);
    assert_eq!(large.ended(4, again, Ok(Answer::Piece(piece)), 0), None);
    assert!(large.next().is_some_and(|(of, part)| of.0 == 2 && part != first), "the other pieces");
}

#[test]
fn r3_a_part_that_fails_ends_the_write_for_certain() {
    let mut large = Large::default();
    large.begin(7, Operation::Put { key: KEY.to_vec(), value: vec![0; 3_000] }, 0);
    let mut parts = std::iter::from_fn(|| large.next()).collect::<Vec<_>>();
    for (number, (of, _)) in parts.iter().enumerate() {
        large.began(number as u64, *of);
    }
    let reached = crate::client::Reached::Nobody;
    let failed = Err(StoreError::TimedOut { was_sent: true, reached });
    let told = Err(StoreError::TimedOut { was_sent: false, reached });
    assert_eq!(large.ended(1, parts.remove(1).1, failed, 0), Some((7, told)));
    assert_eq!(large.ended(0, parts.remove(0).1, Ok(Answer::Done), 0), None, "its operation has ended");
    assert_eq!(large.next(), Some(((7, 0), removal(7, KEY.to_vec()))), "what it has staged makes room");
    assert_eq!((large.open(), large.next()), (0, None));
}
