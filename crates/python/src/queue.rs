//! Calls that are not sent yet, in the order of their tokens.

use crate::calls::{Holds, Shape};
use crate::waiters::Waiters;
use midflight_host::TaskSpec;
use pyo3::{Py, PyAny};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

const ITEMS_MAX: usize = 1 << 16;
/// Bytes of arguments in the queue; one argument may exceed it.
const BYTES_MAX: usize = 64 << 20;
/// Bytes of the pickles of calls that are joined to one task. More gain nothing.
const JOINED_BYTES: usize = 3 << 10;
/// Bytes of padding of an argument that executors fetch.
const PADDING_MAX: usize = 64;

pub(crate) enum Item {
    Call { token: u64, waiter: Py<PyAny>, shape: Arc<Shape>, pickle: Vec<u8> },
    Task(Task),
}

pub(crate) struct Task {
    pub(crate) token: u64,
    pub(crate) waiters: Arc<Waiters>,
    pub(crate) spec: TaskSpec,
    pub(crate) holds: Arc<Holds>,
}

pub(crate) struct Queue {
    items: VecDeque<Item>,
    bytes: usize,
    next: u64,
    pub(crate) sent: Instant,
    pub(crate) is_sending: bool,
    /// Calls that were cancelled during the send.
    pub(crate) cancelled: Vec<u64>,
    pub(crate) is_closed: bool,
}

impl Item {
    pub(crate) fn token(&self) -> u64 {
        match self {
            Self::Call { token, .. } | Self::Task(Task { token, .. }) => *token,
        }
    }

    fn bytes(&self) -> usize {
        PADDING_MAX
            + match self {
                Self::Call { shape, pickle, .. } => shape.length_of(pickle),
                Self::Task(task) => task.spec.argument.len(),
            }
    }

    fn into_waiters(self) -> Arc<Waiters> {
        match self {
            Self::Call { waiter, .. } => Arc::new(Waiters::One(waiter)),
            Self::Task(task) => task.waiters,
        }
    }
}

impl Queue {
    pub(crate) fn new() -> Self {
        Self {
            items: VecDeque::new(),
            bytes: 0,
            next: 0,
            sent: Instant::now(),
            is_sending: false,
            cancelled: Vec::new(),
            is_closed: false,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(crate) fn has_room(&self) -> bool {
        self.items.len() < ITEMS_MAX && self.bytes < BYTES_MAX
    }

    pub(crate) fn token(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    pub(crate) fn push(&mut self, item: Item) {
        self.bytes += item.bytes();
        self.items.push_back(item);
    }

    /// Takes the first entries, at most `tasks_max` tasks and `bytes_max` bytes, but at least one if there is one.
    pub(crate) fn take(&mut self, tasks_max: usize, bytes_max: usize) -> Vec<Item> {
        let (mut count, mut bytes) = (0, 0);
        for item in &self.items {
            bytes += item.bytes();
            if count > 0 && (count >= tasks_max || bytes > bytes_max) {
                bytes -= item.bytes();
                break;
            }
            count += 1;
        }
        self.bytes -= bytes;
        self.items.drain(..count).collect()
    }

    pub(crate) fn put_back(&mut self, tasks: Vec<Task>) {
        for task in tasks.into_iter().rev() {
            let item = Item::Task(task);
            self.bytes += item.bytes();
            self.items.push_front(item);
        }
    }

    /// Removes a call, unless it is already joined with others; `None` also if it is not here.
    pub(crate) fn take_out(&mut self, token: u64) -> Option<Arc<Waiters>> {
        let place = self.items.binary_search_by_key(&token, Item::token).ok()?;
        if matches!(&self.items[place], Item::Task(task) if task.waiters.len() > 1) {
            return None;
        }
        let item = self.items.remove(place)?;
        self.bytes -= item.bytes();
        Some(item.into_waiters())
    }

    pub(crate) fn clear(&mut self) -> Vec<Arc<Waiters>> {
        self.bytes = 0;
        self.items.drain(..).map(Item::into_waiters).collect()
    }
}

/// Converts entries to tasks. If many calls are open (`is_deep`), joins consecutive calls of the same kind.
pub(crate) fn joined(items: Vec<Item>, is_deep: bool) -> Vec<Task> {
    let mut tasks = Vec::with_capacity(items.len());
    let mut items = items.into_iter().peekable();
    while let Some(item) = items.next() {
        let (token, waiter, shape, pickle) = match item {
            Item::Task(task) => {
                tasks.push(task);
                continue;
            }
            Item::Call { token, waiter, shape, pickle } => (token, waiter, shape, pickle),
        };
        let most = if is_deep { shape.size.load(Ordering::Relaxed) } else { 1 };
        let mut bytes = pickle.len();
        let (mut waiters, mut pickles) = (vec![waiter], vec![pickle]);
        let mut joins = |item: &Item, count: usize| match item {
            Item::Call { shape: other, pickle, .. } if count < most && Arc::ptr_eq(&shape, other) => {
                bytes += pickle.len();
                bytes <= JOINED_BYTES
            }
            _ => false,
        };
        while let Some(Item::Call { waiter, pickle, .. }) = items.next_if(|item| joins(item, pickles.len())) {
            waiters.push(waiter);
            pickles.push(pickle);
        }
        let (spec, holds) = (shape.task(&pickles), Arc::clone(&shape.blobs));
        tasks.push(Task { token, waiters: Arc::new(Waiters::Many(waiters)), spec, holds });
    }
    tasks
}
