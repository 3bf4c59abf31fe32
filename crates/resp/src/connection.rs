//! A connection: reads requests, runs them, and sends their replies in order.

use crate::call::{Call, Task};
use crate::memory::{Held, Memory};
use crate::reply::{Reply, Version};
use crate::request::{Parser, cost};
use crate::session::Session;
use crate::transaction::{Transaction, unable};
use bytes::{Buf, Bytes, BytesMut};
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{FuturesOrdered, StreamExt};
use midflight_connections::ConnectionPlace;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::ReadHalf;

/// Bytes read at once.
const READ_BYTES: usize = 16 << 10;
/// What a connection may need without [`Memory`]. An idle connection's larger buffers are freed.
const KEPT_BYTES: usize = 64 << 10;

/// The program behind the protocol.
pub trait Service: Send + Sync + 'static {
    /// What a command of a transaction does.
    type Plan: Send + 'static;
    /// What WATCH knows of the keys.
    type Watched: Default + Send + Sync + 'static;

    /// What a command does, or what is wrong with its arguments; `None` if there is no such command.
    fn call(self: &Arc<Self>, call: &Call) -> Option<Result<Task, Reply>>;

    /// The same in a transaction.
    fn plan(&self, call: &Call) -> Option<Result<Self::Plan, Reply>>;

    /// Does all of it in one step, unless one of these keys has changed since it was watched.
    ///
    /// # Errors
    /// Why it is impossible.
    fn transact(
        self: &Arc<Self>,
        plans: Vec<Self::Plan>,
        keys: Vec<Bytes>,
        watched: Arc<Self::Watched>,
    ) -> Result<Task, Reply>;

    /// Watches keys.
    fn watch(self: &Arc<Self>, keys: Vec<Bytes>, watched: Arc<Self::Watched>) -> Task;

    /// What clients must give by AUTH or HELLO before anything else. Default: nothing.
    fn password(&self) -> Option<&[u8]> {
        None
    }
}

/// Bounds of one connection.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// [`cost`] of the requests without a reply. Default 1 MiB.
    pub cost: usize,
    /// Requests without a reply. Default 256.
    pub under_way: usize,
    /// Bytes of replies that the client has not read. Requests that have begun still reply beyond it. Default 1 MiB.
    pub unread_bytes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { cost: 1 << 20, under_way: 256, unread_bytes: 1 << 20 }
    }
}

/// Serves a connection until its client ends it, or sends an invalid request.
///
/// # Errors
/// If the connection breaks.
pub async fn serve<S: Service>(
    mut stream: TcpStream,
    place: &ConnectionPlace,
    service: &Arc<S>,
    bounds: Bounds,
    memory: &Arc<Memory>,
) -> io::Result<()> {
    static IDS: AtomicI64 = AtomicI64::new(1);
    let (mut receiver, mut sender) = stream.split();
    let mut connection = Connection {
        service: Arc::clone(service),
        bounds,
        parser: Parser::new(bounds.cost),
        session: Session::new(IDS.fetch_add(1, Relaxed)),
        transaction: Transaction::default(),
        pipeline: Pipeline::default(),
        out: BytesMut::new(),
        held: memory.nothing(),
    };
    let mut has_ended = false;
    loop {
        let must_read = connection.advance();
        connection.account()?;
        if connection.is_idle() {
            if connection.session.is_over || has_ended {
                return Ok(());
            }
            connection.shrink();
            place.rest();
        }
        let may_read = must_read && !has_ended;
        let Connection { parser, pipeline, out, .. } = &mut connection;
        tokio::select! {
            // Even if replies are unread: what has begun may hold what others wait for.
            Some((reply, version)) = pipeline.reply() => reply.write(version, out),
            sent = sender.write(out), if !out.is_empty() => {
                out.advance(sent?);
                place.progress();
            }
            received = read(&mut receiver, parser.buffer()), if may_read => {
                has_ended = received? == 0;
                place.progress();
            }
        }
    }
}

async fn read(receiver: &mut ReadHalf<'_>, buffer: &mut BytesMut) -> io::Result<usize> {
    buffer.reserve(READ_BYTES);
    receiver.read_buf(buffer).await
}

struct Connection<S: Service> {
    service: Arc<S>,
    bounds: Bounds,
    parser: Parser,
    session: Session,
    transaction: Transaction<S>,
    pipeline: Pipeline,
    out: BytesMut,
    held: Held,
}

impl<S: Service> Connection<S> {
    /// Begins requests and takes replies as far as possible without waiting. Returns whether more must be read.
    fn advance(&mut self) -> bool {
        loop {
            let must_read = self.take_requests();
            if !self.take_replies() {
                return must_read;
            }
        }
    }

    /// Returns whether more must be read.
    fn take_requests(&mut self) -> bool {
        while !self.session.is_over && !self.is_unread() && self.pipeline.has_room(self.bounds) {
            match self.parser.next_request() {
                Ok(Some(request)) => self.begin(request),
                Ok(None) => return true,
                Err(error) => {
                    self.session.is_over = true;
                    self.add(Task::at_once(Reply::error(format!("Protocol error: {error}"))), 0);
                }
            }
        }
        false
    }

    fn begin(&mut self, request: Vec<Bytes>) {
        let cost = cost(&request);
        let call = Call::of(request);
        let ends = matches!(call.name(), "RESET" | "QUIT");
        if self.transaction.has_begun() && Session::has(call.name()) && !ends {
            let refused: Result<Task, Reply> = self.transaction.refuse(unable(&call));
            return self.add(refused.unwrap_or_else(Task::at_once), cost);
        }
        let task = match self.session.reply(&call, self.service.password()) {
            Some(reply) => {
                if ends {
                    self.transaction = Transaction::default();
                }
                Ok(Task::at_once(reply))
            }
            None => match self.transaction.run(&call, &self.service) {
                Some(task) => task,
                None => self.service.call(&call).unwrap_or_else(|| Err(call.unknown())),
            },
        };
        let task = task.unwrap_or_else(Task::at_once);
        self.add(task, cost);
    }

    fn add(&mut self, task: Task, cost: usize) {
        self.pipeline.cost += cost;
        self.pipeline.add(Waiting { task, cost, version: self.session.version });
    }

    /// Takes or gives back memory. Without enough, the client is told, or the connection breaks.
    fn account(&mut self) -> io::Result<()> {
        let Self { parser, pipeline, out, held, .. } = self;
        let replies = out.len() + pipeline.cost;
        if held.resize((replies + parser.held()).saturating_sub(KEPT_BYTES)) {
            return Ok(());
        }
        // An error must not overtake the reply to a request that waits.
        if pipeline.next.is_some() || !held.resize(replies.saturating_sub(KEPT_BYTES)) {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        *parser = Parser::new(0);
        self.session.is_over = true;
        self.add(Task::at_once(Reply::Error("OOM no memory is left for so long a request: try again".into())), 0);
        Ok(())
    }

    /// Returns whether there were any.
    fn take_replies(&mut self) -> bool {
        let before = self.out.len();
        while let Some(Some((reply, version))) = self.pipeline.reply().now_or_never() {
            reply.write(version, &mut self.out);
        }
        self.out.len() > before
    }

    /// Whether the client has to read first.
    fn is_unread(&self) -> bool {
        self.out.len() >= self.bounds.unread_bytes
    }

    /// Whether all requests that have come have been replied to.
    fn is_idle(&self) -> bool {
        self.pipeline.is_empty() && self.out.is_empty()
    }

    fn shrink(&mut self) {
        for buffer in [&mut self.out, self.parser.buffer()] {
            if buffer.len() < READ_BYTES && buffer.capacity() > KEPT_BYTES {
                *buffer = BytesMut::from(&buffer[..]);
            }
        }
    }
}

/// The requests of a connection that have no reply yet.
#[derive(Default)]
struct Pipeline {
    under_way: FuturesOrdered<BoxFuture<'static, Reply>>,
    /// What is known of them, in the same order.
    begun: VecDeque<Begun>,
    keys: HashMap<Bytes, KeyUse>,
    cost: usize,
    /// It must not begin before an earlier request on its keys has ended.
    next: Option<Waiting>,
}

struct Waiting {
    task: Task,
    cost: usize,
    version: Version,
}

struct Begun {
    keys: Vec<Bytes>,
    writes: bool,
    cost: usize,
    version: Version,
}

/// How many of the requests under way concern a key, and how many of them write to it.
#[derive(Default)]
struct KeyUse {
    all: usize,
    writes: usize,
}

impl Pipeline {
    fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Whether another request may be added.
    fn has_room(&self, bounds: Bounds) -> bool {
        self.next.is_none() && self.under_way.len() < bounds.under_way && self.cost < bounds.cost
    }

    fn must_wait(&self, task: &Task) -> bool {
        let mut uses = task.keys.iter().filter_map(|key| self.keys.get(key));
        uses.any(|uses| task.writes || uses.writes > 0)
    }

    /// Begins it, or waits until it may begin.
    fn add(&mut self, waiting: Waiting) {
        if self.must_wait(&waiting.task) {
            self.next = Some(waiting);
            return;
        }
        let Waiting { task: Task { keys, writes, reply }, cost, version } = waiting;
        for key in &keys {
            let uses = self.keys.entry(key.clone()).or_default();
            uses.all += 1;
            uses.writes += usize::from(writes);
        }
        self.begun.push_back(Begun { keys, writes, cost, version });
        self.under_way.push_back(reply);
    }

    /// The next reply, and the version to write it in; `None` if nothing is under way. May be dropped while it waits.
    async fn reply(&mut self) -> Option<(Reply, Version)> {
        let reply = self.under_way.next().await?;
        let Begun { keys, writes, cost, version } = self.begun.pop_front()?;
        self.cost -= cost;
        for key in keys {
            let Entry::Occupied(mut uses) = self.keys.entry(key) else { continue };
            uses.get_mut().all -= 1;
            uses.get_mut().writes -= usize::from(writes);
            if uses.get().all == 0 {
                uses.remove();
            }
        }
        if let Some(next) = self.next.take() {
            self.add(next);
        }
        Some((reply, version))
    }
}

#[cfg(test)]
mod tests;
