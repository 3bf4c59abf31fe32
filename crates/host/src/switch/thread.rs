//! The switch's thread: receives a batch, lets the program answer each datagram, and sends the answers in batches.

use super::Shared;
use super::diversion::Diversion;
use super::hosted::Hosted;
use super::orders::CurrentOrder;
use crate::clock;
use crate::socket::busy_poll::BusyPoll;
use crate::socket::reply_addresses::ReplyAddresses;
use crate::socket::reply_limit::ReplyLimit;
use crate::socket::users::Users;
use crate::socket::{ReceiveBatch, SendQueue, Socket};
use midflight_dataplane::program::{Clock, Program, SoftProgram};
use midflight_dataplane::{BAD_VERSION, Out};
use midflight_endpoint::mutants::planted;
use midflight_endpoint::{MS, Nanos, SECOND};
use midflight_wire::VERSION;
use std::marker::PhantomData;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

const TICK_EVERY_NS: Nanos = 10 * MS;
/// Longest age of the counts when the thread begins to hang.
const PUBLISH_EVERY_NS: Nanos = 100 * MS;
const WATCH_EVERY_NS: Nanos = SECOND;

/// Sender of a datagram, and our address that it used; `None` if the socket has only one.
type Asker = (SocketAddr, Option<IpAddr>);

struct Outgoing<P> {
    queue: SendQueue,
    reply_limit: ReplyLimit,
    diversion: Option<Diversion>,
    users: Option<Users>,
    program: PhantomData<P>,
}

impl<P: Program> Outgoing<P> {
    fn push(&mut self, socket: &Socket, now: Nanos, from: Option<IpAddr>, to: SocketAddr, datagram: &[u8]) {
        if self.diversion.as_mut().is_some_and(|diversion| diversion.takes(to, datagram)) {
            return;
        }
        if !self.serves(now, to) {
            socket.count_not_served();
        } else if !P::is_for_anybody(datagram) || self.reply_limit.may_answer(now, to.ip(), socket) {
            self.queue.push_from(socket, from, to, datagram);
        }
    }

    fn serves(&mut self, now: Nanos, address: SocketAddr) -> bool {
        self.users.as_mut().is_none_or(|users| users.serves(now, address))
    }

    fn flush(&mut self, socket: &Socket) {
        if let Some(diversion) = &mut self.diversion {
            diversion.flush();
        }
        // Tasks writes the answer to a SUBMIT before the assigned tasks, but the executors' packets are more urgent.
        self.queue.flush_last_first(socket);
    }
}

pub(super) struct SwitchThread<P: SoftProgram> {
    shared: Arc<Shared<P>>,
    engine: Box<dyn Hosted<P>>,
    out: Out,
    outgoing: Outgoing<P>,
    reply_addresses: ReplyAddresses,
    busy_poll: BusyPoll,
    order: CurrentOrder<P>,
    /// Whether the log mentioned a peer with another version of the wire format.
    warned_of_versions: bool,
    /// Program ticks per 10 ms, to visit everything in time.
    ticks: u32,
    next_tick: Nanos,
    next_publish: Nanos,
    next_watch: Nanos,
}

/// The time by the program's clock. `now`: monotonic time of receiving the batch.
pub(super) fn time_of<P: Program>(now: Nanos) -> Nanos {
    match P::CLOCK {
        Clock::Monotonic => now,
        Clock::CountsSuspension => clock::now_counting_suspension(),
    }
}

impl<P: SoftProgram> SwitchThread<P> {
    pub(super) fn new(
        shared: Arc<Shared<P>>,
        engine: Box<dyn Hosted<P>>,
        order: CurrentOrder<P>,
        ticks: u32,
        (diversion, users, busy_poll): (Option<Diversion>, Option<Users>, Duration),
    ) -> Self {
        // Busy polling reads only the socket, and would miss the kernel engine's ring.
        let busy_poll = if engine.handover_fd().is_none() { busy_poll } else { Duration::ZERO };
        Self {
            shared,
            engine,
            out: Out::new(),
            outgoing: Outgoing {
                queue: SendQueue::default(),
                reply_limit: ReplyLimit::new(),
                diversion,
                users,
                program: PhantomData,
            },
            reply_addresses: ReplyAddresses::default(),
            busy_poll: BusyPoll::new(busy_poll),
            order,
            warned_of_versions: false,
            ticks,
            next_tick: 0,
            next_publish: 0,
            next_watch: 0,
        }
    }

    /// Serves until stopped; an error says why it ended early.
    pub(super) fn run(&mut self) -> Result<(), String> {
        let mut batch = ReceiveBatch::new();
        let is_on_all = self.shared.socket.is_on_all_addresses();
        while !self.shared.stop.load(Ordering::Acquire) {
            let received = self.busy_poll.receive(self.next_tick, || self.shared.socket.receive(&mut batch));
            let now = clock::now();
            for (from, own, datagram) in batch.iter_with_local_address() {
                self.take(now, (from, own.filter(|_| is_on_all)), datagram);
            }
            self.send_handed_over(now)?;
            let has_orders = self.order.go_on(&mut *self.engine);
            if now >= self.next_tick {
                self.tick(now)?;
            }
            if self.shared.counted.is_wanted() {
                self.publish(now);
            }
            self.outgoing.flush(&self.shared.socket);
            if !received && !has_orders && !self.busy_poll.is_polling() {
                let timeout = self.next_tick.saturating_sub(clock::now());
                self.shared.waker.wait_for_both(&self.shared.socket, self.engine.handover_fd(), Some(timeout));
            }
        }
        Ok(())
    }

    /// Passes a datagram to the program and sends its answers. A genuine one shows which of our addresses the peer uses: it accepts packets
    /// from no other.
    fn take(&mut self, now: Nanos, (from, own): Asker, datagram: &mut [u8]) {
        if !self.outgoing.serves(now, from) {
            return self.shared.socket.count_not_served();
        }
        // The engine counts a failure as a lost datagram. Packets due to others are still sent.
        let _ = self.engine.packet(time_of::<P>(now), from, datagram, &mut self.out);
        let teaches = self.out.is_genuine() || planted(84);
        if let Some(own) = own.filter(|&own| teaches && self.reply_addresses.of(from) != Some(own)) {
            self.reply_addresses.learn(from, own);
        }
        self.send(now, Some((from, own)), datagram);
    }

    /// Sends the program's packets. An answer to the sender leaves from the address that it used.
    fn send(&mut self, now: Nanos, asker: Option<Asker>, datagram: &[u8]) {
        for (to, datagram) in self.out.all(datagram) {
            let from = match asker {
                Some((asker, own)) if asker == to => own,
                _ if !self.shared.socket.is_on_all_addresses() => None,
                _ => self.engine.own_address(to).or_else(|| self.reply_addresses.of(to)),
            };
            self.outgoing.push(&self.shared.socket, now, from, to, datagram);
        }
    }

    /// Sends what the kernel programs left for this process, or lets an external engine do its own sending.
    fn send_handed_over(&mut self, now: Nanos) -> Result<(), String> {
        let (outgoing, addresses, socket) = (&mut self.outgoing, &self.reply_addresses, &self.shared.socket);
        let is_on_all = socket.is_on_all_addresses();
        self.engine.send_handed_over(&mut |own, to, datagram| {
            let from = own.or_else(|| addresses.of(to)).filter(|_| is_on_all);
            outgoing.push(socket, now, from, to, datagram);
        })
    }

    /// Publishes the counts. If a reader holds the lock, the next tick retries.
    fn publish(&mut self, now: Nanos) {
        if let Some(stats) = self.shared.counted.copy(&*self.engine) {
            self.next_publish = now + PUBLISH_EVERY_NS;
            self.warn_of_versions(&stats);
        }
    }

    fn warn_of_versions(&mut self, stats: &P::Stats) {
        if !self.warned_of_versions && P::verdicts(stats)[BAD_VERSION] > 0 {
            self.warned_of_versions = true;
            tracing::warn!(
                "packets of another version than {VERSION} of the wire format come here, and are refused: use one release of \
                 Midflight on all machines (drops: bad_version)"
            );
        }
    }

    fn tick(&mut self, now: Nanos) -> Result<(), String> {
        self.next_tick = now + TICK_EVERY_NS;
        self.shared.ticked.store(now, Ordering::Relaxed);
        for _ in 0..self.ticks {
            let _ = self.engine.tick(time_of::<P>(now), &mut self.out);
            self.send(now, None, &[]);
        }
        if now >= self.next_publish {
            self.publish(now);
        }
        if now >= self.next_watch {
            self.next_watch = now + WATCH_EVERY_NS;
            self.engine.watch()?;
        }
        Ok(())
    }
}
