//! What the commands do. A command on several keys is one operation for each key, not one for all.

use super::super::{Answer, Cas, Operation, StoreClient, StoreError, answers};
use crate::error::Error;
use bytes::Bytes;
use futures_util::stream::{StreamExt, TryStreamExt, iter};
use midflight_resp::{Call, Reply, Service, Task, number};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Semaphore;

type Outcome = Result<Reply, Error>;

/// Operations under way at once, of all connections. Of more than 4,096 the client refuses some; here they wait.
const OPERATIONS: usize = 4_000;
/// The same of one command with many keys.
const KEYS_AT_ONCE: usize = 64;

/// The commands on a store.
pub(super) struct Commands {
    store: StoreClient,
    room: Arc<Semaphore>,
    password: Option<Vec<u8>>,
}

impl Commands {
    pub(super) fn on(store: StoreClient, password: Option<Vec<u8>>) -> Self {
        Self { store, room: Arc::new(Semaphore::new(OPERATIONS)), password }
    }
}

impl Service for Commands {
    fn password(&self) -> Option<&[u8]> {
        self.password.as_deref()
    }

    fn call(self: &Arc<Self>, call: &Call) -> Option<Result<Task, Reply>> {
        Some(match call.name() {
            "GET" => self.one(call, false, |store, key| async move { store.value(key).await.map(bulk) }),
            "STRLEN" => self.one(call, false, |store, key| async move {
                Ok(Reply::Integer(store.value(key).await?.map_or(0, |value| value.len() as i64)))
            }),
            "TYPE" => self.one(call, false, |store, key| async move {
                Ok(Reply::Simple(if store.has(key).await? { "string" } else { "none" }))
            }),
            // Nothing expires.
            "TTL" | "PTTL" | "EXPIRETIME" | "PEXPIRETIME" => self.one(call, false, |store, key| async move {
                Ok(Reply::Integer(if store.has(key).await? { -1 } else { -2 }))
            }),
            "PERSIST" => {
                self.one(call, false, |store, key| async move { store.has(key).await.map(|_| Reply::Integer(0)) })
            }
            "MGET" => {
                self.each(call, false, |store, key| async move { store.value(key).await.map(bulk) }, Reply::Array)
            }
            "EXISTS" => self.each(call, false, |store, key| async move { store.has(key).await.map(one_if) }, sum),
            "DEL" | "UNLINK" => {
                self.each(call, true, |store, key| async move { store.remove(key).await.map(one_if) }, sum)
            }
            "SET" => self.set(call),
            "SETNX" => call.exactly().map(|[key, value]| {
                self.task(key.clone(), true, move |store| async move {
                    Ok(one_if(store.create_at(&key, &value).await?.is_none()))
                })
            }),
            "GETSET" => call.exactly().map(|[key, value]| {
                self.task(key.clone(), true, move |store| async move { store.swap(&key, &value).await.map(bulk) })
            }),
            "MSET" => self.set_many(call),
            "APPEND" => call.exactly().map(|[key, tail]| {
                self.task(key.clone(), true, move |store| async move { store.append(&key, &tail).await })
            }),
            "INCR" => call.exactly().map(|[key]| self.add(key, 1)),
            "DECR" => call.exactly().map(|[key]| self.add(key, -1)),
            "INCRBY" => call.exactly().and_then(|[key, by]| Ok(self.add(key, number(&by)?))),
            "DECRBY" => call.exactly().and_then(|[key, by]| {
                let by = number(&by)?.checked_neg().ok_or_else(|| Reply::error("decrement would overflow"))?;
                Ok(self.add(key, by))
            }),
            _ => return None,
        })
    }
}

fn put(key: &Bytes, value: &Bytes) -> Operation {
    Operation::Put { key: key.to_vec(), value: value.to_vec() }
}

fn bulk(value: Option<Vec<u8>>) -> Reply {
    value.map_or(Reply::Null, |value| Reply::Bulk(value.into()))
}

fn one_if(is: bool) -> Reply {
    Reply::Integer(is.into())
}

fn sum(replies: Vec<Reply>) -> Reply {
    let numbers = replies.iter().map(|reply| if let Reply::Integer(number) = reply { *number } else { 0 });
    Reply::Integer(numbers.sum())
}

/// What Redis says in this case, or our own text.
fn failed(error: &Error, writes: bool) -> Reply {
    let code = if matches!(error, Error::Store(StoreError::Full | StoreError::DiskFull)) { "OOM" } else { "ERR" };
    let unknown = if writes && error.is_unknown() { "; the write may have taken place, or may yet" } else { "" };
    match error {
        Error::Store(StoreError::NotANumber) => Reply::error("value is not an integer or out of range"),
        error => Reply::Error(format!("{code} {error}{unknown}")),
    }
}

/// Of a command that writes to several keys.
fn failed_in_part(error: &Error) -> Reply {
    let Reply::Error(text) = failed(error, false) else { return Reply::Null };
    Reply::Error(format!("{text}; some of the keys may have been written"))
}

/// Conditions of SET.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Conditions {
    is_new: bool,
    exists: bool,
    /// Reply with the value before.
    gets: bool,
}

impl Conditions {
    fn of(options: &[Bytes]) -> Result<Self, Reply> {
        let mut conditions = Self::default();
        for option in options {
            match option.to_ascii_uppercase().as_slice() {
                b"NX" => conditions.is_new = true,
                b"XX" => conditions.exists = true,
                b"GET" => conditions.gets = true,
                // Nothing expires.
                b"KEEPTTL" => {}
                b"EX" | b"PX" | b"EXAT" | b"PXAT" => {
                    return Err(Reply::error("this store has no expiry: SET without EX, PX, EXAT and PXAT"));
                }
                _ => return Err(Reply::error("syntax error")),
            }
        }
        if conditions.is_new && conditions.exists { Err(Reply::error("syntax error")) } else { Ok(conditions) }
    }
}

impl Commands {
    fn task<F>(self: &Arc<Self>, key: Bytes, writes: bool, run: impl FnOnce(Arc<Self>) -> F + Send + 'static) -> Task
    where
        F: Future<Output = Outcome> + Send,
    {
        self.task_of(vec![key], writes, run)
    }

    fn task_of<F>(
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

    fn set(self: &Arc<Self>, call: &Call) -> Result<Task, Reply> {
        let ([key, value], options) = call.at_least()?;
        let conditions = Conditions::of(options)?;
        Ok(self.task(key.clone(), true, move |store| async move { store.set_if(&key, &value, conditions).await }))
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

    async fn answer(&self, operation: Operation) -> Result<Answer, Error> {
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

    async fn value(&self, key: Bytes) -> Result<Option<Vec<u8>>, Error> {
        self.answer(Operation::Get { key: key.into() }).await.map(answers::value)
    }

    async fn has(&self, key: Bytes) -> Result<bool, Error> {
        self.answer(Operation::Exists { key: key.into() }).await.map(answers::existed)
    }

    async fn remove(&self, key: Bytes) -> Result<bool, Error> {
        self.answer(Operation::Delete { key: key.into() }).await.map(answers::existed)
    }

    async fn put_at(&self, key: &Bytes, value: &Bytes) -> Result<(), Error> {
        self.answer(put(key, value)).await.map(answers::put)
    }

    /// Returns the value that is there.
    async fn create_at(&self, key: &Bytes, value: &Bytes) -> Result<Option<Vec<u8>>, Error> {
        self.answer(Operation::Create { key: key.to_vec(), value: value.to_vec() }).await.map(answers::create)
    }

    /// Whether the value was the expected one, and has been replaced.
    async fn cas_at(&self, key: &Bytes, expected: Vec<u8>, new: Vec<u8>) -> Result<bool, Error> {
        let answer = self.answer(Operation::Cas { key: key.to_vec(), expected, new }).await?;
        Ok(answers::cas(answer) == Cas::Done)
    }

    async fn set_if(&self, key: &Bytes, value: &Bytes, conditions: Conditions) -> Outcome {
        match conditions {
            Conditions { is_new: true, gets, .. } => Ok(match self.create_at(key, value).await? {
                None if gets => Reply::Null,
                None => Reply::OK,
                Some(present) if gets => Reply::Bulk(present.into()),
                Some(_) => Reply::Null,
            }),
            Conditions { exists: true, gets, .. } => {
                let before = self.replace(key, |_| value.to_vec()).await?;
                Ok(if gets { bulk(before) } else { before.map_or(Reply::Null, |_| Reply::OK) })
            }
            Conditions { gets: true, .. } => self.swap(key, value).await.map(bulk),
            Conditions { .. } => self.put_at(key, value).await.map(|()| Reply::OK),
        }
    }

    /// Replaces a value that is there, by compare-and-swap, until no other write comes between. Returns the one before.
    async fn replace(&self, key: &Bytes, new: impl Fn(&[u8]) -> Vec<u8> + Send) -> Result<Option<Vec<u8>>, Error> {
        loop {
            let Some(present) = self.value(key.clone()).await? else { return Ok(None) };
            if self.cas_at(key, present.clone(), new(&present)).await? {
                return Ok(Some(present));
            }
        }
    }

    /// Sets the value; returns the one before.
    async fn swap(&self, key: &Bytes, value: &Bytes) -> Result<Option<Vec<u8>>, Error> {
        loop {
            if let Some(before) = self.replace(key, |_| value.to_vec()).await? {
                return Ok(Some(before));
            }
            if self.create_at(key, value).await?.is_none() {
                return Ok(None);
            }
        }
    }

    async fn append(&self, key: &Bytes, tail: &Bytes) -> Outcome {
        loop {
            if let Some(before) = self.replace(key, |present| [present, tail].concat()).await? {
                return Ok(Reply::Integer((before.len() + tail.len()) as i64));
            }
            if self.create_at(key, tail).await?.is_none() {
                return Ok(Reply::Integer(tail.len() as i64));
            }
        }
    }
}
