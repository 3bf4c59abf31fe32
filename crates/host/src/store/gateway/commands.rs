//! What the commands do. A command on several keys is one operation for each key, not one for all.

use super::super::{Answer, Change, Condition, Expiry, Operation, StoreClient, StoreError, Update, Updated, answers};
use super::options::{self, Clock, MILLISECONDS, SECONDS, UNIX_MILLISECONDS, UNIX_SECONDS};
use crate::error::Error;
use bytes::Bytes;
use futures_util::stream::{StreamExt, TryStreamExt, iter};
use midflight_resp::{Call, Held, Memory, Reply, Service, Task, number};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Semaphore;

pub(super) type Outcome = Result<Reply, Error>;

/// Operations under way at once, of all connections. Of more than 4,096 the client refuses some; here they wait.
const OPERATIONS: usize = 4_000;
/// What long requests and replies of all connections may take.
const LONG_BYTES: usize = 256 << 20;
/// A value from this length on is one.
const LONG: usize = 16 << 10;
/// The same of one command with many keys.
const KEYS_AT_ONCE: usize = 64;

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

    fn call(self: &Arc<Self>, call: &Call) -> Option<Result<Task, Reply>> {
        Some(match call.name() {
            "GET" => self.one(call, false, |store, key| async move { store.read(key).await }),
            "STRLEN" => self.one(call, false, |store, key| async move {
                Ok(Reply::Integer(store.value(key).await?.map_or(0, |value| value.len() as i64)))
            }),
            "TYPE" => self.one(call, false, |store, key| async move {
                Ok(Reply::Simple(if store.has(key).await? { "string" } else { "none" }))
            }),
            "TTL" => self.ttl(call, SECONDS),
            "PTTL" => self.ttl(call, MILLISECONDS),
            "EXPIRETIME" => self.ttl(call, UNIX_SECONDS),
            "PEXPIRETIME" => self.ttl(call, UNIX_MILLISECONDS),
            "EXPIRE" => self.expire(call, SECONDS),
            "PEXPIRE" => self.expire(call, MILLISECONDS),
            "EXPIREAT" => self.expire(call, UNIX_SECONDS),
            "PEXPIREAT" => self.expire(call, UNIX_MILLISECONDS),
            "PERSIST" => call.exactly().map(|[key]| {
                let lasts = Update { condition: Condition::Expiring, expiry: Expiry::Never, ..Update::default() };
                self.update(key, lasts, |_, updated| one_if(updated.done))
            }),
            "MGET" => self.each(call, false, |store, key| async move { store.read(key).await }, Reply::Array),
            "EXISTS" => self.each(call, false, |store, key| async move { store.has(key).await.map(one_if) }, sum),
            "DEL" | "UNLINK" => {
                self.each(call, true, |store, key| async move { store.remove(key).await.map(one_if) }, sum)
            }
            "SET" => self.set(call),
            "SETEX" => self.set_for(call, SECONDS),
            "PSETEX" => self.set_for(call, MILLISECONDS),
            "SETNX" => call.exactly().map(|[key, value]| {
                let new = Update { condition: Condition::Absent, ..set(&value) };
                self.update(key, new, |_, updated| one_if(updated.done))
            }),
            "GETSET" => call.exactly().map(|[key, value]| {
                self.update(key, Update { returns: true, ..set(&value) }, |store, updated| store.bulk(updated.value))
            }),
            "GETDEL" => call.exactly().map(|[key]| {
                let remove = Update { change: Change::Remove, returns: true, ..Update::default() };
                self.update(key, remove, |store, updated| store.bulk(updated.value))
            }),
            "GETEX" => self.get_and_expire(call),
            "MSET" => self.set_many(call),
            "APPEND" => call.exactly().map(|[key, tail]| {
                let append = Update { change: Change::Append(tail.to_vec()), ..Update::default() };
                self.update(key, append, |_, updated| Reply::Integer(updated.number))
            }),
            "INCR" => call.exactly().map(|[key]| self.add(key, 1)),
            "DECR" => call.exactly().map(|[key]| self.add(key, -1)),
            "INCRBY" => call.exactly().and_then(|[key, by]| Ok(self.add(key, number(&by)?))),
            "DECRBY" => call.exactly().and_then(|[key, by]| {
                let by = number(&by)?.checked_neg().ok_or_else(|| Reply::error("decrement would overflow"))?;
                Ok(self.add(key, by))
            }),
            _ => return self.on_all_keys(call),
        })
    }
}

fn put(key: &Bytes, value: &Bytes) -> Operation {
    Operation::Put { key: key.to_vec(), value: value.to_vec() }
}

fn set(value: &Bytes) -> Update {
    Update { change: Change::Set(value.to_vec()), expiry: Expiry::Never, ..Update::default() }
}

/// A value, and what it takes of the memory.
struct Long(Vec<u8>, #[expect(dead_code, reason = "it is given back with the value")] Held);

impl AsRef<[u8]> for Long {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

fn one_if(is: bool) -> Reply {
    Reply::Integer(is.into())
}

fn sum(replies: Vec<Reply>) -> Reply {
    let numbers = replies.iter().map(|reply| if let Reply::Integer(number) = reply { *number } else { 0 });
    Reply::Integer(numbers.sum())
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

/// Of a command that writes to several keys.
pub(super) fn failed_in_part(error: &Error) -> Reply {
    let Reply::Error(text) = failed(error, false) else { return Reply::Null };
    Reply::Error(format!("{text}; some of the keys may have been written"))
}

impl Commands {
    fn task<F>(self: &Arc<Self>, key: Bytes, writes: bool, run: impl FnOnce(Arc<Self>) -> F + Send + 'static) -> Task
    where
        F: Future<Output = Outcome> + Send,
    {
        self.task_of(vec![key], writes, run)
    }

    pub(super) fn task_of<F>(
        self: &Arc<Self>,
        keys: Vec<Bytes>,
        writes: bool,
        run: impl FnOnce(Arc<Self>) -> F + Send + 'static,
    ) -> Task
    where
        F: Future<Output = Outcome> + Send,
    {
        let store = Arc::clone(self);
        let is_partial = writes && keys.len() > 1;
        let failed = move |error| if is_partial { failed_in_part(&error) } else { failed(&error, writes) };
        Task::new(keys, writes, async move { run(store).await.unwrap_or_else(failed) })
    }

    /// A command with one key.
    fn one<F>(
        self: &Arc<Self>,
        call: &Call,
        writes: bool,
        run: impl FnOnce(Arc<Self>, Bytes) -> F + Send + 'static,
    ) -> Result<Task, Reply>
    where
        F: Future<Output = Outcome> + Send,
    {
        call.exactly().map(|[key]| self.task(key.clone(), writes, move |store| run(store, key)))
    }

    /// A command with one or more keys.
    fn each<F>(
        self: &Arc<Self>,
        call: &Call,
        writes: bool,
        run: impl Fn(Arc<Self>, Bytes) -> F + Send + 'static,
        all: impl FnOnce(Vec<Reply>) -> Reply + Send + 'static,
    ) -> Result<Task, Reply>
    where
        F: Future<Output = Outcome> + Send,
    {
        let ([first], rest) = call.at_least()?;
        let keys: Vec<Bytes> = std::iter::once(first).chain(rest.iter().cloned()).collect();
        Ok(self.task_of(keys.clone(), writes, move |store| {
            let replies: Vec<F> = keys.into_iter().map(|key| run(Arc::clone(&store), key)).collect();
            async move { iter(replies).buffered(KEYS_AT_ONCE).try_collect().await.map(all) }
        }))
    }

    /// A command that updates its key.
    fn update(
        self: &Arc<Self>,
        key: Bytes,
        update: Update,
        reply: impl FnOnce(&Self, Updated) -> Reply + Send + 'static,
    ) -> Task {
        self.task(key.clone(), true, move |store| async move {
            let updated = store.answer(Operation::Update { key: key.into(), update }).await.map(answers::updated)?;
            Ok(reply(&store, updated))
        })
    }

    fn set(self: &Arc<Self>, call: &Call) -> Result<Task, Reply> {
        let ([key, value], options) = call.at_least()?;
        let update = options::set(call, &value, options)?;
        if update == set(&value) {
            return Ok(self.task(key.clone(), true, move |store| async move {
                store.put_at(&key, &value).await.map(|()| Reply::OK)
            }));
        }
        let gets = update.returns;
        Ok(self.update(key, update, move |store, updated| match updated {
            Updated { value, .. } if gets => store.bulk(value),
            Updated { done: true, .. } => Reply::OK,
            _ => Reply::Null,
        }))
    }

    fn set_for(self: &Arc<Self>, call: &Call, clock: Clock) -> Result<Task, Reply> {
        let [key, time, value] = call.exactly()?;
        let update = Update { expiry: options::expiry(call, clock, &time)?, ..set(&value) };
        Ok(self.update(key, update, |_, _| Reply::OK))
    }

    fn get_and_expire(self: &Arc<Self>, call: &Call) -> Result<Task, Reply> {
        let ([key], options) = call.at_least()?;
        Ok(match options::get_and_expire(call, options)? {
            Some(update) => self.update(key, update, |store, updated| store.bulk(updated.value)),
            None => self.task(key.clone(), false, |store| async move { store.read(key).await }),
        })
    }

    fn expire(self: &Arc<Self>, call: &Call, clock: Clock) -> Result<Task, Reply> {
        let ([key, time], options) = call.at_least()?;
        let update = options::expire(call, clock, &time, options)?;
        Ok(self.update(key, update, |_, updated| one_if(updated.done)))
    }

    /// What is left changes with time, so it is asked in the log, as a write.
    fn ttl(self: &Arc<Self>, call: &Call, clock: Clock) -> Result<Task, Reply> {
        let [key] = call.exactly()?;
        Ok(self.update(key, Update::default(), move |_, updated| {
            Reply::Integer(match updated {
                Updated { existed: false, .. } => -2,
                Updated { expires_in: None, .. } => -1,
                Updated { expires_in: Some(left), .. } => clock.show(left),
            })
        }))
    }

    fn set_many(self: &Arc<Self>, call: &Call) -> Result<Task, Reply> {
        let (pairs, odd) = call.arguments().as_chunks::<2>();
        if pairs.is_empty() || !odd.is_empty() {
            return Err(call.wrong_number());
        }
        for [key, value] in pairs {
            put(key, value).check().map_err(Reply::error)?;
        }
        // The last value of a key wins.
        let values: BTreeMap<Bytes, Bytes> = pairs.iter().map(|[key, value]| (key.clone(), value.clone())).collect();
        let keys = values.keys().cloned().collect();
        Ok(self.task_of(keys, true, move |store| {
            let put = |(key, value)| {
                let store = Arc::clone(&store);
                async move { store.put_at(&key, &value).await }
            };
            let done: Vec<_> = values.into_iter().map(put).collect();
            async move { iter(done).buffered(KEYS_AT_ONCE).try_collect::<()>().await.map(|()| Reply::OK) }
        }))
    }

    fn add(self: &Arc<Self>, key: Bytes, by: i64) -> Task {
        self.task(key.clone(), true, move |store| async move {
            let answer = store.answer(Operation::Incr { key: key.into(), by }).await;
            answer.map(|answer| Reply::Integer(answers::sum(answer)))
        })
    }

    pub(super) async fn answer(&self, operation: Operation) -> Result<Answer, Error> {
        let permit = Arc::clone(&self.room).acquire_owned().await;
        let answer = self.store.submit(operation)?;
        // A task of its own: if the connection breaks, the permit must last until the operation has ended.
        let ends = tokio::spawn(async move {
            let answer = answer.await;
            drop(permit);
            answer
        });
        ends.await.unwrap_or(Err(Error::Closed))
    }

    async fn read(&self, key: Bytes) -> Outcome {
        self.value(key).await.map(|value| self.bulk(value))
    }

    fn bulk(&self, value: Option<Vec<u8>>) -> Reply {
        match value {
            None => Reply::Null,
            Some(value) if value.len() < LONG => Reply::Bulk(value.into()),
            Some(value) => match self.memory.take(value.len()) {
                Some(held) => Reply::Bulk(Bytes::from_owner(Long(value, held))),
                None => Reply::Error("OOM no memory is left for so long a reply: try again".into()),
            },
        }
    }

    async fn value(&self, key: Bytes) -> Result<Option<Vec<u8>>, Error> {
        self.answer(Operation::Get { key: key.into() }).await.map(answers::value)
    }

    async fn has(&self, key: Bytes) -> Result<bool, Error> {
        self.answer(Operation::Exists { key: key.into() }).await.map(answers::existed)
    }

    pub(super) async fn remove(&self, key: Bytes) -> Result<bool, Error> {
        self.answer(Operation::Delete { key: key.into() }).await.map(answers::existed)
    }

    async fn put_at(&self, key: &Bytes, value: &Bytes) -> Result<(), Error> {
        self.answer(put(key, value)).await.map(answers::put)
    }
}
