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
    /// Bytes of its value, as far as they are known.
    bytes: usize,
    deadline: Nanos,
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
        let mut flow = Flow::new(operation, bytes, deadline);
        if flow.is_expected_too_long() {
            flow.read();
        } else {
            flow.write();
        }
        self.add(number, flow);
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

    fn add(&mut self, number: u64, flow: Flow) {
        self.waiting.push_back((number, flow.deadline));
        self.flows.insert(number, flow);
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
            let mut flow = Flow::new(operation, bytes, deadline);
            flow.read();
            self.add(number, flow);
            return None;
        };
        let flow = self.flows.get_mut(&of).filter(|flow| flow.steps == step)?;
        flow.under_way -= 1;
        let former = flow.bytes;
        if flow.must_wait_for(&outcome) {
            if let Some(flow) = self.flows.remove(&of) {
                self.bytes -= former;
                self.ready.remove(&of);
                self.add(of, flow);
            }
            return None;
        }
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
    fn new(operation: Operation, bytes: usize, deadline: Nanos) -> Self {
        let step = Step::Stage(0); // before the first one
        Self { operation, bytes, deadline, step, steps: 0, under_way: 0, attempts: 0, found: Found::Unread }
    }

    fn enter(&mut self, step: Step) {
        (self.step, self.under_way) = (step, 0);
        self.steps += 1;
    }

    /// Whether a value is longer than it was known to be, and its operation must wait for the memory. It then starts again.
    fn must_wait_for(&mut self, outcome: &Outcome) -> bool {
        match outcome {
            Ok(Answer::Piece(piece)) if piece.length > self.bytes && self.attempts + 1 < ATTEMPTS => {
                self.bytes = piece.length;
                self.attempts += 1;
                self.read();
                true
            }
            _ => false,
        }
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
mod tests;
