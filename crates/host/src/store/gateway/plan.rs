//! How commands run: each part as an operation of its own, or all parts of a transaction in one step.

use super::super::{Answer, Change, Condition, Expiry, Operation, PlaceInValue, Step, Update, Updated, answers};
use super::commands::{Commands, LONG, failed, failed_in_part, no_memory};
use crate::error::Error;
use bytes::Bytes;
use futures_util::future::try_join_all;
use futures_util::stream::{Stream, StreamExt, iter};
use midflight_resp::{Reply, Task};
use midflight_wire::store::key_hash;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// Parts of one command under way.
const PARTS_AT_ONCE: usize = 64;

/// What a command does to its keys, and what it replies.
pub(super) struct Plan {
    parts: Vec<(Bytes, Part)>,
    reply: Answering,
}

/// What it replies to what each part has found.
type Answering = Box<dyn FnOnce(&Commands, Vec<Updated>) -> Reply + Send>;

/// What a command does to one key.
pub(super) enum Part {
    Read,
    Exists,
    Update(Update),
}

/// Revisions of watched keys.
pub(super) type Watched = Mutex<BTreeMap<Bytes, Option<u64>>>;

impl Part {
    fn writes(&self) -> bool {
        matches!(self, Self::Update(_))
    }

    fn as_update(&self) -> Update {
        match self {
            Self::Read => Update { returns: true, ..Update::default() },
            Self::Exists => Update::default(),
            Self::Update(update) => update.clone(),
        }
    }

    fn as_operation(&self, key: &Bytes) -> Operation {
        let key = key.to_vec();
        match self {
            Self::Read => Operation::Get { key },
            Self::Exists => Operation::Exists { key },
            // A PUT is shorter.
            Self::Update(Update {
                condition: Condition::Always,
                change: Change::Set(value),
                expiry: Expiry::Never,
                returns: false,
            }) => Operation::Put { key, value: value.clone() },
            Self::Update(update) => Operation::Update { key, update: update.clone() },
        }
    }
}

impl Plan {
    pub(super) fn new(
        parts: Vec<(Bytes, Part)>,
        reply: impl FnOnce(&Commands, Vec<Updated>) -> Reply + Send + 'static,
    ) -> Self {
        Self { parts, reply: Box::new(reply) }
    }

    /// A command with one key.
    pub(super) fn one(
        key: Bytes,
        part: Part,
        reply: impl FnOnce(&Commands, Updated) -> Reply + Send + 'static,
    ) -> Self {
        Self::new(vec![(key, part)], |commands, mut found| reply(commands, found.pop().unwrap_or_default()))
    }

    fn keys(&self) -> impl Iterator<Item = &Bytes> {
        self.parts.iter().map(|(key, _)| key)
    }

    fn writes(&self) -> bool {
        self.parts.iter().any(|(_, part)| part.writes())
    }
}

/// As an update would say it.
fn found(answer: Answer) -> Updated {
    match answer {
        Answer::Updated(updated) => updated,
        Answer::Existed(existed) => Updated { done: true, existed, ..Updated::default() },
        Answer::Value(value) => Updated { done: true, existed: true, value: Some(value), ..Updated::default() },
        _ => Updated { done: true, ..Updated::default() },
    }
}

/// The outcomes of a command's steps, or its first error. Takes all of them, so that the next command gets its own.
fn next_outcomes<E>(outcomes: &mut impl Iterator<Item = Result<Updated, E>>, steps: usize) -> Result<Vec<Updated>, E> {
    let all: Vec<_> = outcomes.take(steps).collect();
    all.into_iter().collect()
}

impl Commands {
    pub(super) fn run_plan(self: &Arc<Self>, plan: Plan) -> Task {
        let (commands, keys, writes) = (Arc::clone(self), plan.keys().cloned().collect::<Vec<_>>(), plan.writes());
        let is_partial = writes && keys.len() > 1;
        Task::new(keys, writes, async move {
            let Plan { parts, reply } = plan;
            let operations: Vec<Operation> = parts.iter().map(|(key, part)| part.as_operation(key)).collect();
            drop(parts);
            let answers = iter(operations).map(|operation| commands.answer(operation)).buffered(PARTS_AT_ONCE);
            match commands.gather(answers).await {
                Ok(Some(found)) => reply(&commands, found),
                Ok(None) => no_memory(),
                Err(error) if is_partial => failed_in_part(&error),
                Err(error) => failed(&error, writes),
            }
        })
    }

    /// What the parts have found; `None` if no memory is left for all values.
    async fn gather(&self, answers: impl Stream<Item = Result<Answer, Error>>) -> Result<Option<Vec<Updated>>, Error> {
        let (mut all, mut bytes, mut held) = (Vec::new(), 0, None);
        let mut answers = std::pin::pin!(answers);
        while let Some(answer) = answers.next().await {
            let found = found(answer?);
            bytes += found.value.as_ref().map_or(0, Vec::len);
            if bytes >= LONG {
                let held = held.get_or_insert_with(|| self.memory().take(0));
                if !held.as_mut().is_some_and(|held| held.resize(bytes)) {
                    return Ok(None);
                }
            }
            all.push(found);
        }
        Ok(Some(all))
    }

    pub(super) fn run_transaction(
        self: &Arc<Self>,
        plans: Vec<Plan>,
        watched: Vec<Bytes>,
        known: Arc<Watched>,
    ) -> Result<Task, Reply> {
        let keys: BTreeSet<Bytes> = plans.iter().flat_map(Plan::keys).chain(&watched).cloned().collect();
        let hashes: BTreeSet<u32> = keys.iter().map(|key| key_hash(key)).collect();
        if hashes.len() > 1 {
            return Err(Reply::Error(
                "CROSSSLOT Keys in request don't hash to the same slot: all keys of a transaction need the same part in braces, such as \
                 {user7}name and {user7}mail. Without MULTI a pipeline may have any keys"
                    .into(),
            ));
        }
        let commands = Arc::clone(self);
        Ok(Task::new(keys.into_iter().collect::<Vec<_>>(), true, async move {
            let known = std::mem::take(&mut *known.lock().unwrap_or_else(PoisonError::into_inner));
            commands.transact(plans, watched, &known).await.unwrap_or_else(|error| failed(&error, true))
        }))
    }

    async fn transact(
        &self,
        plans: Vec<Plan>,
        watched: Vec<Bytes>,
        known: &BTreeMap<Bytes, Option<u64>>,
    ) -> Result<Reply, Error> {
        let mut steps = Vec::new();
        for key in watched {
            let condition = match known.get(&key) {
                Some(Some(revision)) => Condition::Unchanged(*revision),
                Some(None) => Condition::Absent,
                None => return Ok(Reply::error("a WATCH of this transaction has failed")),
            };
            steps.push(Step::check(key, condition));
        }
        let checks = steps.len();
        let parts = plans.iter().flat_map(|plan| &plan.parts);
        steps.extend(parts.map(|(key, part)| Step::new(key.clone(), part.as_update())));
        if steps.is_empty() {
            return Ok(Reply::Array(Vec::new()));
        }
        let Some(outcomes) = self.answer(Operation::Transact { steps }).await.map(answers::transacted)? else {
            return Ok(Reply::NoArray);
        };
        let mut outcomes = outcomes.into_iter().skip(checks);
        let replies = plans.into_iter().map(|Plan { parts, reply }| match next_outcomes(&mut outcomes, parts.len()) {
            Ok(found) => reply(self, found),
            Err(error) => failed(&error.into(), false),
        });
        Ok(Reply::Array(replies.collect()))
    }

    /// Later commands on these keys wait, so that they see nothing that is older than the revision.
    pub(super) fn run_watch(self: &Arc<Self>, keys: Vec<Bytes>, known: Arc<Watched>) -> Task {
        let commands = Arc::clone(self);
        Task::new(keys.clone(), true, async move {
            let revisions = keys.iter().map(|key| commands.revision(key));
            match try_join_all(revisions).await {
                Ok(revisions) => {
                    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
                    for (key, revision) in keys.into_iter().zip(revisions) {
                        // The first WATCH of a key counts.
                        known.entry(key).or_insert(revision);
                    }
                    Reply::OK
                }
                Err(error) => failed(&error, false),
            }
        })
    }

    async fn revision(&self, key: &Bytes) -> Result<Option<u64>, Error> {
        self.answer(Operation::Piece { place: PlaceInValue::new(key, 0, 0) }).await.map(answers::revision)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r1_a_step_that_fails_leaves_the_next_command_its_own_outcome() {
        let number = |number| Ok(Updated { number, ..Updated::default() });
        let mut outcomes = [Err("full"), number(1), number(2)].into_iter();
        assert_eq!(next_outcomes(&mut outcomes, 2), Err("full"));
        assert_eq!(next_outcomes(&mut outcomes, 1).map(|all| all[0].number), Ok(2));
    }
}
