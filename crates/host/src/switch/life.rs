//! What the switch's thread does: receive a batch, let the core answer each datagram, send the answers together.

use super::purges::Purging;
use super::{Shared, ShellCounts};
use crate::clock;
use crate::look::Looker;
use crate::socket::{ReceiveBatch, SendQueue};
use midflight_dataplane::{Out, Purge, Stats, Verdict};
use midflight_tasks::Nanos;
use midflight_wire::VERSION;
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

/// What the switch's thread owns.
pub(super) struct Life<C> {
    shared: Arc<Shared>,
    core: C,
    out: Out,
    sends: SendQueue,
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
        let (out, sends, looker) = (Out::new(), SendQueue::default(), Looker::new(look));
        Self {
            shared,
            core,
            out,
            sends,
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
        while !self.shared.stop.load(Ordering::Acquire) {
            let received = self.looker.receive(self.next_tick, || self.shared.socket.receive(&mut batch));
            let now = clock::now();
            if self.shared.socket.is_on_all() {
                self.sends.learn(&batch);
            }
            for (from, datagram) in batch.iter() {
                self.core.packet(now, from, datagram, &mut self.out);
                self.learn_where_asked(Some(from));
                self.send();
            }
            self.hand_on();
            let is_purging = self.purging.go_on(&self.shared.purges, &mut self.core);
            if now >= self.next_tick {
                self.tick(now)?;
            }
            // The core answers a SUBMIT before it assigns, but it is the executor who is waited for.
            self.sends.flush_last_first(&self.shared.socket);
            if !received && !is_purging && !self.looker.is_looking() {
                let timeout = self.next_tick.saturating_sub(clock::now());
                self.shared.waker.wait_too(&self.shared.socket, self.core.hands_over(), Some(timeout));
            }
        }
        Ok(())
    }

    fn send(&mut self) {
        for (to, datagram) in self.out.iter() {
            self.sends.push(&self.shared.socket, to, datagram);
        }
    }

    /// Sends what the core owes for datagrams that this thread never saw.
    fn hand_on(&mut self) {
        let (sends, socket) = (&mut self.sends, &self.shared.socket);
        let is_on_all = socket.is_on_all();
        self.core.handed_over(|own, to, datagram| {
            if let Some(own) = own.filter(|_| is_on_all) {
                sends.learn_source(to, own);
            }
            sends.push(socket, to, datagram);
        });
    }

    /// What the core owes may go to executors that this thread has never heard. `asker` it has heard just now.
    fn learn_where_asked(&mut self, asker: Option<SocketAddr>) {
        if self.core.hands_over().is_none() || !self.shared.socket.is_on_all() {
            return;
        }
        for (to, _) in self.out.iter().filter(|&(to, _)| Some(to) != asker) {
            if let Some(own) = self.core.own_address(to) {
                self.sends.learn_source(to, own);
            }
        }
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
            self.learn_where_asked(None);
            self.send();
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
