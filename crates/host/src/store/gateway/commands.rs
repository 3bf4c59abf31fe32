//! What the commands do. A command on several keys is one operation for each key, not one for all.

use super::super::{Answer, Change, Condition, Expiry, Operation, StoreClient, StoreError, Update, Updated, answers};
use super::keys::is_on_all_keys;
use super::options::{self, Clock, MILLISECONDS, SECONDS, UNIX_MILLISECONDS, UNIX_SECONDS};
use super::plan::{Part, Plan, Watched};
use crate::error::Error;
use bytes::Bytes;
use midflight_resp::{Call, Held, Memory, Reply, Service, Task, number};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Semaphore;

pub(super) type Outcome = Result<Reply, Error>;

/// Operations under way at once, of all connections. Of more than 4,096 the client refuses some; here they wait.
const OPERATIONS: usize = 4_000;
const NO_MEMORY: &str = "no memory is left for so long a value: try again";
/// What long requests and replies of all connections may take.
const LONG_BYTES: usize = 256 << 20;
/// A value from this length on is counted: one request may ask for a hundred thousand.
pub(super) const LONG: usize = 128;

/// The commands on a store.
pub(super) struct Commands {
    store: StoreClient,
    room: Arc<Semaphore>,
    memory: Arc<Memory>,
    password: Option<Vec<u8>>,
}

impl Commands {
    pub(super) fn on(store: StoreClient, password: Option<Vec<u8>>) -> Self {
        Self { store, room: Arc::new(Semaphore::new(OPERATIONS)), memory: Memory::new(LONG_BYTES), password }
    }

    pub(super) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }
}

impl Service for Commands {
    fn password(&self) -> Option<&[u8]> {
        self.password.as_deref()
    }

    type Plan = Plan;
    type Watched = Watched;

    fn call(self: &Arc<Self>, call: &Call) -> Option<Result<Task, Reply>> {
        match plan(call) {
            Some(plan) => Some(plan.map(|plan| self.run_plan(plan))),
            None => self.on_all_keys(call),
        }
    }

    fn plan(&self, call: &Call) -> Option<Result<Plan, Reply>> {
        let unable = || Reply::error(format!("{} is not possible in a transaction here", call.name()));
        plan(call).or_else(|| is_on_all_keys(call).then(|| Err(unable())))
    }

    fn transact(self: &Arc<Self>, plans: Vec<Plan>, keys: Vec<Bytes>, watched: Arc<Watched>) -> Result<Task, Reply> {
        self.run_transaction(plans, keys, watched)
    }

    fn watch(self: &Arc<Self>, keys: Vec<Bytes>, watched: Arc<Watched>) -> Task {
        self.run_watch(keys, watched)
    }
}

/// `None`: it is no command on keys that it names.
fn plan(call: &Call) -> Option<Result<Plan, Reply>> {
    Some(match call.name() {
        "GET" => call.exactly().map(|[key]| Plan::one(key, Part::Read, value)),
        "STRLEN" => call.exactly().map(|[key]| {
            let length = |found: Updated| found.value.map_or(0, |value| value.len() as i64);
            Plan::one(key, Part::Read, move |_, found| Reply::Integer(length(found)))
        }),
        "TYPE" => call.exactly().map(|[key]| {
            Plan::one(key, Part::Exists, |_, found| Reply::Simple(if found.existed { "string" } else { "none" }))
        }),
        "TTL" => ttl(call, SECONDS),
        "PTTL" => ttl(call, MILLISECONDS),
        "EXPIRETIME" => ttl(call, UNIX_SECONDS),
        "PEXPIRETIME" => ttl(call, UNIX_MILLISECONDS),
        "EXPIRE" => expire(call, SECONDS),
        "PEXPIRE" => expire(call, MILLISECONDS),
        "EXPIREAT" => expire(call, UNIX_SECONDS),
        "PEXPIREAT" => expire(call, UNIX_MILLISECONDS),
        "PERSIST" => call.exactly().map(|[key]| {
            let lasts = Update { condition: Condition::Expiring, expiry: Expiry::Never, ..Update::default() };
            update(key, lasts, |_, found| one_if(found.done))
        }),
        "MGET" => each(
            call,
            || Part::Read,
            |commands, found| Reply::Array(found.into_iter().map(|found| value(commands, found)).collect()),
        ),
        "EXISTS" => each(call, || Part::Exists, |_, found| count(&found)),
        "DEL" | "UNLINK" => {
            let remove = || Part::Update(Update { change: Change::Remove, ..Update::default() });
            each(call, remove, |_, found| count(&found))
        }
        "SET" => set_with(call),
        "SETEX" => set_for(call, SECONDS),
        "PSETEX" => set_for(call, MILLISECONDS),
        "SETNX" => call.exactly().map(|[key, value]| {
            update(key, Update { condition: Condition::Absent, ..set(&value) }, |_, found| one_if(found.done))
        }),
        "GETSET" => call.exactly().map(|[key, new]| update(key, Update { returns: true, ..set(&new) }, value)),
        "GETDEL" => call
            .exactly()
            .map(|[key]| update(key, Update { change: Change::Remove, returns: true, ..Update::default() }, value)),
        "GETEX" => get_and_expire(call),
        "MSET" => set_many(call),
        "APPEND" => call.exactly().map(|[key, tail]| {
            let append = Update { change: Change::Append(tail.to_vec()), ..Update::default() };
            update(key, append, |_, found| Reply::Integer(found.number))
        }),
        "INCR" => call.exactly().map(|[key]| add(key, 1)),
        "DECR" => call.exactly().map(|[key]| add(key, -1)),
        "INCRBY" => call.exactly().and_then(|[key, by]| Ok(add(key, number(&by)?))),
        "DECRBY" => call.exactly().and_then(|[key, by]| {
            let by = number(&by)?.checked_neg().ok_or_else(|| Reply::error("decrement would overflow"))?;
            Ok(add(key, by))
        }),
        _ => return None,
    })
}

fn set(value: &Bytes) -> Update {
    Update { change: Change::Set(value.to_vec()), expiry: Expiry::Never, ..Update::default() }
}

/// A command that updates its key.
fn update(key: Bytes, update: Update, reply: impl FnOnce(&Commands, Updated) -> Reply + Send + 'static) -> Plan {
    Plan::one(key, Part::Update(update), reply)
}

/// A command with one or more keys.
fn each(
    call: &Call,
    part: impl Fn() -> Part,
    reply: impl FnOnce(&Commands, Vec<Updated>) -> Reply + Send + 'static,
) -> Result<Plan, Reply> {
    let ([first], rest) = call.at_least()?;
    let keys = std::iter::once(first).chain(rest.iter().cloned());
    Ok(Plan::new(keys.map(|key| (key, part())).collect(), reply))
}

fn set_with(call: &Call) -> Result<Plan, Reply> {
    let ([key, new], options) = call.at_least()?;
    let change = options::set(call, &new, options)?;
    let gets = change.returns;
    Ok(update(key, change, move |commands, found| match found {
        found if gets => value(commands, found),
        Updated { done: true, .. } => Reply::OK,
        _ => Reply::Null,
    }))
}

fn set_for(call: &Call, clock: Clock) -> Result<Plan, Reply> {
    let [key, time, value] = call.exactly()?;
    let change = Update { expiry: options::expiry(call, clock, &time)?, ..set(&value) };
    Ok(update(key, change, |_, _| Reply::OK))
}

fn get_and_expire(call: &Call) -> Result<Plan, Reply> {
    let ([key], options) = call.at_least()?;
    Ok(match options::get_and_expire(call, options)? {
        Some(change) => update(key, change, value),
        None => Plan::one(key, Part::Read, value),
    })
}

fn expire(call: &Call, clock: Clock) -> Result<Plan, Reply> {
    let ([key, time], options) = call.at_least()?;
    Ok(update(key, options::expire(call, clock, &time, options)?, |_, found| one_if(found.done)))
}

/// What is left changes with time, so it is asked in the log, as a write.
fn ttl(call: &Call, clock: Clock) -> Result<Plan, Reply> {
    let [key] = call.exactly()?;
    Ok(update(key, Update::default(), move |_, found| {
        Reply::Integer(match found {
            Updated { existed: false, .. } => -2,
            Updated { expires_in: None, .. } => -1,
            Updated { expires_in: Some(left), .. } => clock.show(left),
        })
    }))
}

fn set_many(call: &Call) -> Result<Plan, Reply> {
    let (pairs, odd) = call.arguments().as_chunks::<2>();
    if pairs.is_empty() || !odd.is_empty() {
        return Err(call.wrong_number());
    }
    for [key, value] in pairs {
        let put = Operation::Put { key: key.to_vec(), value: value.to_vec() };
        put.check().map_err(Reply::error)?;
    }
    // The last value of a key wins.
    let values: BTreeMap<&Bytes, &Bytes> = pairs.iter().map(|[key, value]| (key, value)).collect();
    let parts = values.into_iter().map(|(key, value)| (key.clone(), Part::Update(set(value)))).collect();
    Ok(Plan::new(parts, |_, _| Reply::OK))
}

fn add(key: Bytes, by: i64) -> Plan {
    let add = Update { change: Change::Add(by), ..Update::default() };
    update(key, add, |_, found| Reply::Integer(found.number))
}

/// A value that was found.
fn value(commands: &Commands, found: Updated) -> Reply {
    commands.bulk(found.value)
}

fn one_if(is: bool) -> Reply {
    Reply::Integer(is.into())
}

fn count(found: &[Updated]) -> Reply {
    Reply::Integer(found.iter().filter(|found| found.existed).count() as i64)
}

/// A value, and what it takes of the memory.
struct Long(Vec<u8>, #[expect(dead_code, reason = "it is given back with the value")] Held);

impl AsRef<[u8]> for Long {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// What Redis says in this case, or our own text.
pub(super) fn failed(error: &Error, writes: bool) -> Reply {
    let code = if matches!(error, Error::Store(StoreError::Full | StoreError::DiskFull)) { "OOM" } else { "ERR" };
    let unknown = if writes && error.is_unknown() { "; the write may have taken place, or may yet" } else { "" };
    match error {
        Error::Store(StoreError::NotANumber) => Reply::error("value is not an integer or out of range"),
        error => Reply::Error(format!("{code} {error}{unknown}")),
    }
}

/// For a reply.
pub(super) fn no_memory() -> Reply {
    Reply::Error("OOM no memory is left for so long a reply; if the command writes, the write has taken place".into())
}

/// Of a command that writes to several keys.
pub(super) fn failed_in_part(error: &Error) -> Reply {
    let Reply::Error(text) = failed(error, false) else { return Reply::Null };
    Reply::Error(format!("{text}; some of the keys may have been written"))
}

impl Commands {
    pub(super) async fn answer(&self, operation: Operation) -> Result<Answer, Error> {
        let permit = Arc::clone(&self.room).acquire_owned().await;
        let held = match operation.value_bytes() {
            ..LONG => None,
            bytes => Some(self.memory.take(bytes).ok_or_else(|| Error::Invalid(NO_MEMORY.into()))?),
        };
        let answer = self.store.submit(operation)?;
        // A task of its own: if the connection breaks, permit and memory must last until the operation has ended.
        let ends = tokio::spawn(async move {
            let answer = answer.await;
            drop((permit, held));
            answer
        });
        ends.await.unwrap_or(Err(Error::Closed))
    }

    fn bulk(&self, value: Option<Vec<u8>>) -> Reply {
        match value {
            None => Reply::Null,
            Some(value) if value.len() < LONG => Reply::Bulk(value.into()),
            Some(value) => match self.memory.take(value.len()) {
                Some(held) => Reply::Bulk(Bytes::from_owner(Long(value, held))),
                None => no_memory(),
            },
        }
    }

    pub(super) async fn remove(&self, key: Bytes) -> Result<bool, Error> {
        self.answer(Operation::Delete { key: key.into() }).await.map(answers::existed)
    }
}
