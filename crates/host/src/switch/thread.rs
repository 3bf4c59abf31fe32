//! What the switch's thread does: receive a batch, let the program answer each datagram, send the answers together.

use super::Shared;
use super::hosted::Hosted;
use super::orders::OrderInHand;
use super::strangers::Strangers;
use crate::busy_poll::BusyPoll;
use crate::clock;
use crate::socket::{ReceiveBatch, SendQueue, Socket};
use crate::reply_addresses::Sources;
use midflight_dataplane::program::{Clock, Program, SoftProgram};
use midflight_dataplane::{BAD_VERSION, Out};
use midflight_endpoint::{MS, Nanos, SECOND};
use midflight_wire::VERSION;
use std::marker::PhantomData;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

const TICK_EVERY_NS: Nanos = 10 * MS;
/// Statistics are published this often.
const PUBLISH_EVERY_NS: Nanos = 100 * MS;
/// What is outside of the process is looked at this often.
const WATCH_EVERY_NS: Nanos = SECOND;

/// Who has sent a datagram, and to which address of ours: `None` where we have but one, or it does not matter.
type Asker = (SocketAddr, Option<IpAddr>);

/// What is on its way out.
struct Outgoing<P> {
    queue: SendQueue,
    strangers: Strangers,
    program: PhantomData<P>,
}

impl<P: Program> Outgoing<P> {
    fn push(&mut self, socket: &Socket, now: Nanos, from: Option<IpAddr>, to: SocketAddr, datagram: &[u8]) {
        if P::is_for_anybody(datagram) && !self.strangers.may_answer(now, to.ip(), socket.unsent_eighths()) {
            socket.count_unanswered();
        } else {
            self.queue.push_from(socket, from, to, datagram);
        }
    }
}

/// What the switch's thread owns.
pub(super) struct SwitchThread<P: SoftProgram> {
    shared: Arc<Shared<P>>,
    engine: Box<dyn Hosted<P>>,
    out: Out,
    outgoing: Outgoing<P>,
    sources: Sources,
    busy_poll: BusyPoll,
    order: OrderInHand<P>,
    /// The user was told that somebody speaks another version of the wire format.
    told_of_versions: bool,
    /// Calls of the program that make a tick.
    ticks: u32,
    next_tick: Nanos,
    next_publish: Nanos,
    next_watch: Nanos,
}

/// What time it is for the program, where it was `now` when the batch of datagrams had come.
fn time_of<P: Program>(now: Nanos) -> Nanos {
    match P::CLOCK {
        Clock::Monotonic => now,
        Clock::CountsSuspension => clock::now_counting_suspension(),
    }
}

impl<P: SoftProgram> SwitchThread<P> {
    pub(super) fn new(shared: Arc<Shared<P>>, engine: Box<dyn Hosted<P>>, ticks: u32, busy_poll: Duration) -> Self {
        // Polling the socket does not see what the kernel hands over.
        let busy_poll = if engine.hands_over().is_none() { busy_poll } else { Duration::ZERO };
        Self {
            shared,
            engine,
            out: Out::new(),
            outgoing: Outgoing { queue: SendQueue::default(), strangers: Strangers::new(), program: PhantomData },
            sources: Sources::default(),
            busy_poll: BusyPoll::new(busy_poll),
            order: OrderInHand::none(),
            told_of_versions: false,
            ticks,
            next_tick: 0,
            next_publish: 0,
            next_watch: 0,
        }
    }

    /// Until it is told to stop; an error says why it ended before.
    pub(super) fn run(&mut self) -> Result<(), String> {
        let mut batch = ReceiveBatch::new();
        let is_on_all = self.shared.socket.is_on_all();
        while !self.shared.stop.load(Ordering::Acquire) {
            let received = self.busy_poll.receive(self.next_tick, || self.shared.socket.receive(&mut batch));
            let now = clock::now();
            for (from, own, datagram) in batch.iter_asked() {
                self.take(now, (from, own.filter(|_| is_on_all)), datagram);
            }
            self.hand_on(now);
            let has_orders = self.order.go_on(&self.shared.orders, &mut *self.engine);
            if now >= self.next_tick {
                self.tick(now)?;
            }
            // The tasks program answers a SUBMIT before it assigns, but it is the executor who is waited for.
            self.outgoing.queue.flush_last_first(&self.shared.socket);
            if !received && !has_orders && !self.busy_poll.is_polling() {
                let timeout = self.next_tick.saturating_sub(clock::now());
                self.shared.waker.wait_too(&self.shared.socket, self.engine.hands_over(), Some(timeout));
            }
        }
        Ok(())
    }

    /// The program takes a datagram, and what it owes is sent. A peer takes only what comes from the address of ours that it
    /// asked last.
    fn take(&mut self, now: Nanos, (from, own): Asker, datagram: &mut [u8]) {
        if self.engine.packet(time_of::<P>(now), from, datagram, &mut self.out).is_err() {
            return self.out.clear();
        }
        if let Some(own) = own.filter(|&own| self.out.is_genuine() && self.sources.of(from) != Some(own)) {
            self.sources.learn(from, own);
        }
        self.send(now, Some((from, own)), datagram);
    }

    /// Answers leave from the address that was asked.
    fn send(&mut self, now: Nanos, asker: Option<Asker>, datagram: &[u8]) {
        for (to, datagram) in self.out.all(datagram) {
            let from = match asker {
                Some((asker, own)) if asker == to => own,
                _ if !self.shared.socket.is_on_all() => None,
                _ => self.engine.own_address(to).or_else(|| self.sources.of(to)),
            };
            self.outgoing.push(&self.shared.socket, now, from, to, datagram);
        }
    }

    /// Sends what the program owes for datagrams that this thread never saw.
    fn hand_on(&mut self, now: Nanos) {
        let (outgoing, sources, socket) = (&mut self.outgoing, &self.sources, &self.shared.socket);
        let is_on_all = socket.is_on_all();
        self.engine.handed_over(&mut |own, to, datagram| {
            let from = own.or_else(|| sources.of(to)).filter(|_| is_on_all);
            outgoing.push(socket, now, from, to, datagram);
        });
    }

    /// Lets others see what was counted, unless somebody is looking just now.
    fn publish(&mut self, now: Nanos) {
        let stats = self.engine.stats();
        if let Ok(mut published) = self.shared.published.try_lock() {
            published.stats = stats;
            self.engine.counts(&mut published.counts);
            self.next_publish = now + PUBLISH_EVERY_NS;
        }
        self.tell_of_versions(&stats);
    }

    /// Tells the user, once, that somebody speaks another version.
    fn tell_of_versions(&mut self, stats: &P::Stats) {
        if !self.told_of_versions && P::verdicts(stats)[BAD_VERSION] > 0 {
            self.told_of_versions = true;
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
            if self.engine.tick(time_of::<P>(now), &mut self.out).is_err() {
                self.out.clear();
            }
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
