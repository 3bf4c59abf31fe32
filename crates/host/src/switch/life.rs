//! What the switch's thread does: receive a batch, let the core answer each datagram, send the answers together.

use super::purges::Purging;
use super::strangers::{Strangers, is_for_anybody};
use super::{Shared, ShellCounts};
use crate::clock;
use crate::look::Looker;
use crate::socket::{ReceiveBatch, SendQueue, Socket};
use crate::sources::Sources;
use midflight_dataplane::{Out, Purge, Stats, Verdict};
use midflight_endpoint::Nanos;
use midflight_wire::{Header, Operation, VERSION};
use std::mem::offset_of;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

const TICK_EVERY_NS: Nanos = 10_000_000;
/// Statistics are published this often.
const PUBLISH_EVERY_NS: Nanos = 100_000_000;
/// What is outside of the process is looked at this often.
const WATCH_EVERY_NS: Nanos = 1_000_000_000;

/// The core, wherever it runs.
pub(super) trait Core {
    /// Takes a datagram and overwrites `out`.
    fn packet(&mut self, now: Nanos, from: SocketAddr, datagram: &[u8], out: &mut Out);
    /// The same. Says whether nobody but an executor at `from` can have sent it, and no copy is: it names his slots, and the core has
    /// nothing to say against it.
    fn packet_of_executor(&mut self, now: Nanos, from: SocketAddr, datagram: &[u8], out: &mut Out) -> bool {
        if operation(datagram) != Some(Operation::Retrieve) {
            self.packet(now, from, datagram, out);
            return false;
        }
        let before = refusals(&self.stats());
        self.packet(now, from, datagram, out);
        refusals(&self.stats()) == before
    }
    /// Looks at the next slots and overwrites `out`.
    fn tick(&mut self, now: Nanos, out: &mut Out);
    /// Takes out what the operator wants to be gone, of a bounded number of tasks. Whether it has looked at all.
    fn purge(&mut self, _purge: &mut Purge) -> Result<bool, String> {
        Err("this engine has no list of its tasks".into())
    }
    /// What it has counted.
    fn stats(&self) -> Stats;

    /// Overwrites `counts` with what the shells around it have counted.
    fn counts(&self, _counts: &mut ShellCounts) {}
    /// Hands out what it owes for datagrams that it took without this thread, with the address of ours that the receiver
    /// asks, if that is known.
    fn handed_over(&mut self, _send: impl FnMut(Option<IpAddr>, SocketAddr, &[u8])) {}
    /// Readable when there is such.
    fn hands_over(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    /// The address of ours that an executor asks, if its packets pass this thread by.
    fn own_address(&self, _executor: SocketAddr) -> Option<IpAddr> {
        None
    }
    /// Looks after what it depends on, once a second; an error ends the switch.
    fn watch(&mut self) -> Result<(), String> {
        Ok(())
    }
}

/// Datagrams and records that were not taken, for whatever reason. A wait that is repeated is.
fn refusals(stats: &Stats) -> u64 {
    let taken = [Verdict::Ok, Verdict::RepeatedWait].map(|verdict| stats.reasons[verdict as usize]);
    stats.reasons.iter().sum::<u64>() - taken.iter().sum::<u64>()
}

fn operation(datagram: &[u8]) -> Option<Operation> {
    Operation::from_number(*datagram.get(offset_of!(Header, operation))?)
}

/// Who has sent a datagram, and to which address of ours: `None` where we have but one, or it does not matter.
type Asker = (SocketAddr, Option<IpAddr>);

/// What is on its way out.
struct Outgoing {
    queue: SendQueue,
    strangers: Strangers,
}

impl Outgoing {
    fn push(&mut self, socket: &Socket, now: Nanos, from: Option<IpAddr>, to: SocketAddr, datagram: &[u8]) {
        let is_for_anybody = is_for_anybody(datagram);
        if is_for_anybody && !self.strangers.may_answer(now, to.ip(), socket.unsent_eighths()) {
            socket.count_unanswered();
        } else {
            self.queue.push_from(socket, from, to, datagram);
        }
    }
}

/// What the switch's thread owns.
pub(super) struct Life<C> {
    shared: Arc<Shared>,
    core: C,
    out: Out,
    outgoing: Outgoing,
    sources: Sources,
    looker: Looker,
    purging: Purging,
    /// The user was told that somebody speaks another version of the wire format.
    told_of_versions: bool,
    /// Calls of the core that make a tick.
    ticks: u32,
    next_tick: Nanos,
    next_publish: Nanos,
    next_watch: Nanos,
}

impl<C: Core> Life<C> {
    pub(super) fn new(shared: Arc<Shared>, core: C, ticks: u32, look: Duration) -> Self {
        // A look would not see what the kernel hands over.
        let look = if core.hands_over().is_none() { look } else { Duration::ZERO };
        let (out, looker) = (Out::new(), Looker::new(look));
        Self {
            shared,
            core,
            out,
            outgoing: Outgoing { queue: SendQueue::default(), strangers: Strangers::new() },
            sources: Sources::default(),
            looker,
            purging: Purging::default(),
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
            let received = self.looker.receive(self.next_tick, || self.shared.socket.receive(&mut batch));
            let now = clock::now();
            for (from, own, datagram) in batch.iter_asked() {
                let asker = (from, own.filter(|_| is_on_all));
                self.take(now, asker, datagram);
                self.send(now, Some(asker));
            }
            self.hand_on(now);
            let is_purging = self.purging.go_on(&self.shared.purges, &mut self.core);
            if now >= self.next_tick {
                self.tick(now)?;
            }
            // The core answers a SUBMIT before it assigns, but it is the executor who is waited for.
            self.outgoing.queue.flush_last_first(&self.shared.socket);
            if !received && !is_purging && !self.looker.is_looking() {
                let timeout = self.next_tick.saturating_sub(clock::now());
                self.shared.waker.wait_too(&self.shared.socket, self.core.hands_over(), Some(timeout));
            }
        }
        Ok(())
    }

    /// An executor takes tasks only from the address of ours that it asked last.
    fn take(&mut self, now: Nanos, (from, own): Asker, datagram: &[u8]) {
        let Some(own) = own.filter(|&own| self.sources.of(from) != Some(own)) else {
            return self.core.packet(now, from, datagram, &mut self.out);
        };
        if self.core.packet_of_executor(now, from, datagram, &mut self.out) {
            self.sources.learn(from, own);
        }
    }

    /// Answers leave from the address that was asked.
    fn send(&mut self, now: Nanos, asker: Option<Asker>) {
        for (to, datagram) in self.out.iter() {
            let from = match asker {
                Some((asker, own)) if asker == to => own,
                _ if !self.shared.socket.is_on_all() => None,
                _ => self.core.own_address(to).or_else(|| self.sources.of(to)),
            };
            self.outgoing.push(&self.shared.socket, now, from, to, datagram);
        }
    }

    /// Sends what the core owes for datagrams that this thread never saw.
    fn hand_on(&mut self, now: Nanos) {
        let (outgoing, sources, socket) = (&mut self.outgoing, &self.sources, &self.shared.socket);
        let is_on_all = socket.is_on_all();
        self.core.handed_over(|own, to, datagram| {
            let from = own.or_else(|| sources.of(to)).filter(|_| is_on_all);
            outgoing.push(socket, now, from, to, datagram);
        });
    }

    /// Lets others see what was counted, unless somebody is looking just now.
    fn publish(&mut self, now: Nanos) {
        let stats = self.core.stats();
        if let Ok(mut published) = self.shared.published.try_lock() {
            published.stats = stats;
            self.core.counts(&mut published.counts);
            self.next_publish = now + PUBLISH_EVERY_NS;
        }
        self.tell_of_versions(&stats);
    }

    /// Tells the user, once, that somebody speaks another version.
    fn tell_of_versions(&mut self, stats: &Stats) {
        if stats.reasons[Verdict::BadVersion as usize] > 0 && !self.told_of_versions {
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
            self.core.tick(now, &mut self.out);
            self.send(now, None);
        }
        if now >= self.next_publish {
            self.publish(now);
        }
        if now >= self.next_watch {
            self.next_watch = now + WATCH_EVERY_NS;
            self.core.watch()?;
        }
        Ok(())
    }
}
