//! Operations on values that fit no packet, made of operations that do.
//!
//! A GET whose reply is a piece reads the other pieces. A write whose value is too long stages the parts, then sets the value by an UPDATE:
//! only this one changes the key. If the value before must be compared or returned, and is too long, the write reads it, decides, and
//! makes its UPDATE depend on the key's revision; if another client was faster, it begins again.

use super::pieces::Reading;
use super::{Answer, Change, Condition, Expiry, Operation, StoreError, Update, Updated};
use midflight_endpoint::Nanos;
use midflight_wire::store::{DATA_MAX, Stage};
use std::collections::{BTreeSet, HashMap, VecDeque};

/// Pieces or parts of one operation under way.
const AT_ONCE: usize = 64;
/// Bytes of the values of all operations under way: bounds memory, and what this client stages at a time. Others wait; one value may have
/// more.
const BYTES: usize = 16 << 20;
/// How often a value is read again because it has changed.
const ATTEMPTS: u32 = 100;

type Outcome = Result<Answer, StoreError>;

/// An operation and its step.
pub(super) type StepOf = (u64, u32);

#[derive(Default)]
pub(super) struct Large {
    /// By the number of the operation, under which its value is staged, too.
    flows: HashMap<u64, Flow>,
    /// Those that may begin another part.
    ready: BTreeSet<u64>,
    waiting: VecDeque<(u64, Nanos)>,
    /// Of the values of those that do not wait.
    bytes: usize,
    /// Operations that have failed and left staged parts, and their keys.
    failed: Vec<(u64, Vec<u8>)>,
    /// Of each part under way.
    parts: HashMap<u64, StepOf>,
}

struct Flow {
    operation: Operation,
    /// Bytes of its value, as far as they are known when it begins.
    bytes: usize,
    step: Step,
    /// Counts steps: what an earlier one began no longer counts.
    steps: u32,
    under_way: usize,
    attempts: u32,
    found: Found,
}

enum Step {
    Read(Reading),
    /// Stages the value. The number counts the bytes of it that were sent.
    Stage(usize),
    Write {
        is_staged: bool,
        has_begun: bool,
    },
}

/// What the key had.
enum Found {
    /// It was not read.
    Unread,
    Missing,
    Value {
        revision: u64,
        value: Vec<u8>,
    },
}

impl Large {
    pub(super) fn open(&self) -> usize {
        self.flows.len()
    }

    /// Begins a write that is too large.
    pub(super) fn begin(&mut self, number: u64, operation: Operation, deadline: Nanos) {
        let bytes = operation.value_bytes();
        let mut flow = Flow::new(operation, bytes);
        if flow.is_expected_too_long() {
            flow.read();
        } else {
            flow.write();
        }
        self.add(number, flow, deadline);
    }

    /// Ends an operation that has waited until its deadline.
    pub(super) fn expire(&mut self, now: Nanos) -> Option<u64> {
        let (number, _) = self.waiting.pop_front_if(|(_, deadline)| *deadline <= now)?;
        self.flows.remove(&number);
        Some(number)
    }

    pub(super) fn next_deadline(&self) -> Option<Nanos> {
        self.waiting.front().map(|(_, deadline)| *deadline)
    }

    /// Parts that are under way.
    pub(super) fn parts(&self) -> usize {
        self.parts.len()
    }

    fn add(&mut self, number: u64, flow: Flow, deadline: Nanos) {
        self.flows.insert(number, flow);
        self.waiting.push_back((number, deadline));
        self.admit();
    }

    /// Begins the operations that wait and have room.
    fn admit(&mut self) {
        while let Some((number, _)) = self.waiting.front() {
            let bytes = self.flows.get(number).map_or(0, |flow| flow.bytes);
            if self.bytes > 0 && self.bytes + bytes > BYTES {
                return;
            }
            self.bytes += bytes;
            self.ready.insert(*number);
            self.waiting.pop_front();
        }
    }

    /// The next part to begin. Report it to [`began`](Self::began).
    pub(super) fn next(&mut self) -> Option<(StepOf, Operation)> {
        if let Some((number, key)) = self.failed.pop() {
            return Some(((number, 0), removal(number, key)));
        }
        while let Some(&number) = self.ready.first() {
            if let Some(flow) = self.flows.get_mut(&number)
                && let Some(part) = flow.next(number)
            {
                flow.under_way += 1;
                return Some(((number, flow.steps), part));
            }
            self.ready.remove(&number);
        }
        None
    }

    pub(super) fn began(&mut self, part: u64, of: StepOf) {
        self.parts.insert(part, of);
    }

    /// An operation of this number has ended, with what its user is told; or a part of a flow, which may end the flow.
    pub(super) fn ended(
        &mut self,
        number: u64,
        operation: Operation,
        outcome: Outcome,
        deadline: Nanos,
    ) -> Option<(u64, Outcome)> {
        let Some((of, step)) = self.parts.remove(&number) else {
            let reads = match &outcome {
                Ok(Answer::Piece(_)) => matches!(operation, Operation::Get { .. }),
                Err(StoreError::TooLong) => can_decide(&operation),
                _ => false,
            };
            if !reads {
                return Some((number, outcome));
            }
            let bytes = if let Ok(Answer::Piece(piece)) = &outcome { piece.length } else { operation.value_bytes() };
            let mut flow = Flow::new(operation, bytes);
            flow.read();
            self.add(number, flow, deadline);
            return None;
        };
        let flow = self.flows.get_mut(&of).filter(|flow| flow.steps == step)?;
        flow.under_way -= 1;
        let ended = flow.took(outcome);
        if let Some(outcome) = &ended {
            if let Some(flow) = self.flows.remove(&of) {
                self.bytes -= flow.bytes;
                if flow.has_staged() && outcome.is_err() {
                    self.failed.push((of, flow.operation.key().to_vec()));
                }
            }
            self.admit();
        } else {
            self.ready.insert(of);
        }
        ended.map(|outcome| (of, outcome))
    }
}

impl Flow {
    fn new(operation: Operation, bytes: usize) -> Self {
        let step = Step::Stage(0); // before the first one
        Self { operation, bytes, step, steps: 0, under_way: 0, attempts: 0, found: Found::Unread }
    }

    fn enter(&mut self, step: Step) {
        (self.step, self.under_way) = (step, 0);
        self.steps += 1;
    }

    fn has_staged(&self) -> bool {
        matches!(self.step, Step::Stage(1..))
    }

    fn is_expected_too_long(&self) -> bool {
        let without_value = Update { change: Change::SetStaged(0), ..update_of(&self.operation) };
        self.operation.key().len() + without_value.length() > DATA_MAX
    }

    fn read(&mut self) {
        self.enter(Step::Read(Reading::new(self.operation.key())));
    }

    fn write(&mut self) {
        let fits = self.operation.key().len() + self.decision().length() <= DATA_MAX;
        self.enter(if fits { Step::Write { is_staged: false, has_begun: false } } else { Step::Stage(0) });
    }

    fn next(&mut self, number: u64) -> Option<Operation> {
        if self.under_way == AT_ONCE {
            return None;
        }
        let key = self.operation.key();
        match &mut self.step {
            Step::Read(reading) => reading.next(),
            Step::Stage(begun) => {
                let value = operand(&self.operation);
                let room = DATA_MAX - size_of::<Stage>() - key.len();
                let (length, offset) = (value.len() as u32, *begun as u32); // `check` bounds the value
                let part = value[*begun..value.len().min(*begun + room)].to_vec();
                *begun += part.len();
                (!part.is_empty()).then(|| Operation::Stage { key: key.to_vec(), staged: number, length, offset, part })
            }
            Step::Write { has_begun: true, .. } => None,
            Step::Write { is_staged, has_begun } => {
                *has_begun = true;
                let (is_staged, key) = (*is_staged, key.to_vec());
                let decision = self.decision();
                let change = match decision.change {
                    Change::Set(_) if is_staged => Change::SetStaged(number),
                    Change::Append(_) if is_staged => Change::AppendStaged(number),
                    change => change,
                };
                Some(Operation::Update { key, update: Update { change, ..decision }.owned() })
            }
        }
    }

    /// What a part of the present step has become. Returns how the operation has ended, if it has.
    fn took(&mut self, outcome: Outcome) -> Option<Outcome> {
        match (&mut self.step, outcome) {
            (Step::Read(reading), Ok(Answer::Piece(piece))) => {
                self.attempts += u32::from(reading.add(&piece));
                if self.attempts >= ATTEMPTS {
                    return Some(Err(StoreError::Contended));
                }
                let (revision, value) = reading.whole()?;
                self.found = Found::Value { revision, value };
                self.decided()
            }
            (Step::Read(_), Ok(_)) => {
                self.found = Found::Missing;
                self.decided()
            }
            (Step::Stage(begun), Ok(_)) => {
                if self.under_way == 0 && *begun == operand(&self.operation).len() {
                    self.enter(Step::Write { is_staged: true, has_begun: false });
                }
                None
            }
            (Step::Read(_) | Step::Stage(_), Err(error)) => Some(Err(before_the_write(error))),
            (Step::Write { .. }, Ok(Answer::Updated(updated))) => self.wrote(updated),
            (Step::Write { .. }, Err(StoreError::TooLong)) if can_decide(&self.operation) => {
                self.read();
                None
            }
            (Step::Write { .. }, outcome) => Some(outcome),
        }
    }

    /// The value has been read.
    fn decided(&mut self) -> Option<Outcome> {
        let is_get = matches!(self.operation, Operation::Get { .. });
        // An update is also told how long the key lives, which only the store knows.
        if !is_get && (self.holds() || matches!(self.operation, Operation::Update { .. })) {
            self.write();
            return None;
        }
        Some(Ok(match std::mem::replace(&mut self.found, Found::Unread) {
            Found::Value { value, .. } if is_get => Answer::Value(value),
            Found::Value { value: present, .. } => Answer::Conflict { present },
            Found::Missing | Found::Unread => Answer::NotFound,
        }))
    }

    fn wrote(&mut self, updated: Updated) -> Option<Outcome> {
        let was_read = !matches!(self.found, Found::Unread);
        if was_read && !updated.done {
            self.attempts += 1;
            if self.attempts >= ATTEMPTS {
                return Some(Err(StoreError::Contended));
            }
            self.read();
            return None;
        }
        let done = if was_read { self.holds() } else { updated.done };
        Some(Ok(match &self.operation {
            Operation::Update { update, .. } if was_read => {
                let found = std::mem::replace(&mut self.found, Found::Missing);
                let value = if let Found::Value { value, .. } = found { Some(value) } else { None };
                Answer::Updated(Updated {
                    done,
                    existed: value.is_some(),
                    value: value.filter(|_| update.returns),
                    ..updated
                })
            }
            Operation::Update { .. } => Answer::Updated(updated),
            _ if done => Answer::Done,
            _ => updated.value.map_or(Answer::NotFound, |present| Answer::Conflict { present }),
        }))
    }

    /// The update to send. If the value was read, it depends on the key's revision.
    fn decision(&self) -> Update<&[u8]> {
        let update = update_of(&self.operation);
        let condition = match &self.found {
            Found::Unread => return update,
            Found::Missing => Condition::Absent,
            Found::Value { revision, .. } => Condition::Unchanged(*revision),
        };
        let update = if self.holds() { update } else { Update::default() };
        Update { condition, returns: false, ..update }
    }

    /// Whether the operation's condition holds for what was read.
    fn holds(&self) -> bool {
        let value = if let Found::Value { value, .. } = &self.found { Some(value) } else { None };
        match update_of(&self.operation).condition {
            Condition::Absent => value.is_none(),
            Condition::Present => value.is_some(),
            Condition::Equals(expected) => value.is_some_and(|value| value == expected),
            _ => true,
        }
    }
}

/// A write as an update.
fn update_of(operation: &Operation) -> Update<&[u8]> {
    let (condition, value, expiry) = match operation {
        Operation::Update { update, .. } => return update.borrowed(),
        Operation::Put { value, .. } => (Condition::Always, value, Expiry::Never),
        Operation::Create { value, .. } => (Condition::Absent, value, Expiry::Never),
        Operation::Cas { expected, new, .. } => (Condition::Equals(&expected[..]), new, Expiry::Keep),
        _ => return Update::default(),
    };
    let returns = !matches!(operation, Operation::Put { .. });
    Update { condition, change: Change::Set(value), expiry, returns }
}

/// The value that a write sets or appends.
fn operand(operation: &Operation) -> &[u8] {
    if let Change::Set(value) | Change::Append(value) = update_of(operation).change { value } else { &[] }
}

/// Removes what is staged under this number, and changes nothing: no key has revision 0.
fn removal(number: u64, key: Vec<u8>) -> Operation {
    let (condition, change) = (Condition::Unchanged(0), Change::SetStaged(number));
    Operation::Update { key, update: Update { condition, change, ..Update::default() } }
}

/// Whether a client that knows the value can decide what the write does.
fn can_decide(operation: &Operation) -> bool {
    let condition = update_of(operation).condition;
    matches!(condition, Condition::Always | Condition::Absent | Condition::Present | Condition::Equals(_))
}

/// Of a part that changes no key, so it is certain that the write did not take place.
fn before_the_write(error: StoreError) -> StoreError {
    match error {
        StoreError::TimedOut { reached, .. } => StoreError::TimedOut { was_sent: false, reached },
        StoreError::UnknownClient | StoreError::Stale | StoreError::Full => StoreError::NotStaged,
        error => error,
    }
}

#[cfg(test)]
mod tests {
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
        let after =
            if done && update.change != Change::Keep { changed(&update.change, value) } else { present.clone() };
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
        assert_eq!(large.ended(0, parts.remove(0).1, Ok(Answer::Done), 0), None, "nobody waits for it");
        assert_eq!(large.next(), Some(((7, 0), removal(7, KEY.to_vec()))), "what it has staged makes room");
        assert_eq!((large.open(), large.next()), (0, None));
    }
}
