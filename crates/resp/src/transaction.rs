//! MULTI, EXEC, DISCARD, WATCH and UNWATCH: the transaction of a connection.

use crate::call::{Call, Task};
use crate::connection::Service;
use crate::reply::Reply;
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Bytes of all arguments of a transaction, and of all keys that are watched.
const BYTES_MAX: usize = 64 << 10;
/// Commands of a transaction, and watched keys.
const COUNT_MAX: usize = 64;
const QUEUED: Reply = Reply::Simple("QUEUED");

pub(crate) struct Transaction<S: Service> {
    /// Since MULTI.
    queued: Option<Vec<S::Plan>>,
    bytes: usize,
    /// Whether a command was refused, so that EXEC is refused too.
    is_broken: bool,
    keys: Vec<Bytes>,
    watched: Arc<S::Watched>,
}

impl<S: Service> Default for Transaction<S> {
    fn default() -> Self {
        Self { queued: None, bytes: 0, is_broken: false, keys: Vec::new(), watched: Arc::default() }
    }
}

impl<S: Service> Transaction<S> {
    pub(crate) fn has_begun(&self) -> bool {
        self.queued.is_some()
    }

    /// `None`: it is no command of a transaction, and none has begun.
    pub(crate) fn run(&mut self, call: &Call, service: &Arc<S>) -> Option<Result<Task, Reply>> {
        let done = |reply| Ok(Task::at_once(reply));
        let within = self.has_begun();
        Some(match call.name() {
            "MULTI" | "EXEC" | "DISCARD" | "UNWATCH" if !call.arguments().is_empty() => Err(call.wrong_number()),
            "MULTI" if within => Err(Reply::error("MULTI calls can not be nested")),
            "MULTI" => {
                self.queued = Some(Vec::new());
                done(Reply::OK)
            }
            "DISCARD" | "EXEC" if !within => Err(Reply::error(format!("{} without MULTI", call.name()))),
            "DISCARD" => {
                *self = Self::default();
                done(Reply::OK)
            }
            "EXEC" => self.execute(service),
            "WATCH" if within => Err(Reply::error("WATCH inside MULTI is not allowed")),
            "WATCH" => self.watch(call, service),
            "UNWATCH" if within => self.refuse(unable(call)),
            "UNWATCH" => {
                *self = Self::default();
                done(Reply::OK)
            }
            _ if within => self.queue(call, service),
            _ => return None,
        })
    }

    /// A command that no transaction can have.
    pub(crate) fn refuse<T>(&mut self, reply: Reply) -> Result<T, Reply> {
        self.is_broken = true;
        Err(reply)
    }

    fn queue(&mut self, call: &Call, service: &Arc<S>) -> Result<Task, Reply> {
        self.bytes += call.cost();
        if self.bytes > BYTES_MAX || self.queued.as_ref().is_some_and(|queued| queued.len() == COUNT_MAX) {
            return self.refuse(Reply::error("the transaction is too long"));
        }
        match service.plan(call) {
            Some(Ok(plan)) => {
                self.queued.get_or_insert_default().push(plan);
                Ok(Task::at_once(QUEUED))
            }
            Some(Err(reply)) => self.refuse(reply),
            None => self.refuse(call.unknown()),
        }
    }

    fn execute(&mut self, service: &Arc<S>) -> Result<Task, Reply> {
        let Self { queued, is_broken, keys, watched, .. } = std::mem::take(self);
        if is_broken {
            return Err(Reply::Error("EXECABORT Transaction discarded because of previous errors.".into()));
        }
        service.transact(queued.unwrap_or_default(), keys, watched)
    }

    fn watch(&mut self, call: &Call, service: &Arc<S>) -> Result<Task, Reply> {
        let ([first], rest) = call.at_least()?;
        let keys: Vec<Bytes> = std::iter::once(first).chain(rest.iter().cloned()).collect();
        let new: BTreeSet<Bytes> = keys.iter().filter(|key| !self.keys.contains(key)).cloned().collect();
        self.bytes += new.iter().map(Bytes::len).sum::<usize>();
        if self.bytes > BYTES_MAX || self.keys.len() + new.len() > COUNT_MAX {
            return Err(Reply::error("too many keys are watched, or they are too long"));
        }
        self.keys.extend(new);
        Ok(service.watch(keys, Arc::clone(&self.watched)))
    }
}

/// What cannot be in a transaction.
pub(crate) fn unable(call: &Call) -> Reply {
    Reply::error(format!("{} is not possible in a transaction here", call.name()))
}
