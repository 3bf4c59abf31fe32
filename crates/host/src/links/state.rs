//! State shared by the driver and the links' thread.

use super::LinkOptions;
use crate::driver::lock;
use midflight_connections::Connections;
use midflight_endpoint::{Lane, Link};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

const CONNECTIONS_MAX: usize = 256;
/// Without a hello for this long, a connection is evicted for another of its source.
const SILENT_FOR: Duration = Duration::from_millis(100);

/// A leader that joined while we were away may link to us before we know it.
const STRANGERS_MAX: usize = 16;
/// Beyond this many events not taken, no link comes up.
const EVENTS_MAX: usize = 65_536;
/// Room of a message in addition to its bytes, to bound short ones.
const MESSAGE_COST: usize = 64;

/// An event on a link.
#[derive(Debug)]
pub enum LinkEvent {
    /// The link is up.
    Up(Link),
    /// The link is down.
    Broken(Link),
    /// A message arrived.
    Message(Link, Vec<u8>),
}

midflight_endpoint::counters! {
    /// Counts of links.
    pub struct LinkCounters {
        /// Refused: another cluster or replica set.
        pub foreign,
        /// Refused: meant for another node.
        pub not_for_us,
        /// Refused: there is already a link to that peer.
        pub second,
        /// Refused: too many links to non-peers, or too many events not taken.
        pub too_many,
        /// Refused: not a valid hello.
        pub malformed,
        /// Broken: the next message was too long.
        pub too_long,
        /// Closed: no hello in time.
        pub silent,
        /// Failed attempts to connect.
        pub not_reached,
        /// Broken links.
        pub broken,
        /// Messages for a link that was down.
        pub late,
    } counted by Counts
}

pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

pub(super) struct Shared {
    pub(super) options: LinkOptions,
    pub(super) connections: Arc<Connections>,
    pub(super) counts: Counts,
    wake: Box<dyn Fn() + Send + Sync>,
    generations: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    peers: BTreeSet<u64>,
    live: BTreeMap<(u64, Lane), Arc<Live>>,
    /// Each message keeps its share of the link's room until the driver takes it.
    events: VecDeque<(LinkEvent, Option<OwnedSemaphorePermit>)>,
}

impl State {
    fn has_place(&self, peer: u64, lane: Lane) -> bool {
        let strangers = self.live.keys().filter(|(live, _)| !self.peers.contains(live)).count();
        let is_known = self.peers.contains(&peer) || self.live.contains_key(&(peer, lane));
        (is_known || strangers < STRANGERS_MAX) && self.events.len() < EVENTS_MAX
    }
}

pub(super) struct Live {
    pub(super) link: Link,
    /// Notified when the link must end.
    pub(super) end: Notify,
    pub(super) filled: Notify,
    /// Room for messages that the driver has not taken.
    pub(super) arriving: Arc<Semaphore>,
    sending: Mutex<Sending>,
}

#[derive(Default)]
struct Sending {
    messages: VecDeque<Vec<u8>>,
    bytes: usize,
    /// The driver waits for room.
    is_awaited: bool,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Shared {
    pub(super) fn new(options: LinkOptions, wake: Box<dyn Fn() + Send + Sync>) -> Self {
        Self {
            options,
            connections: Connections::evicting_silent(CONNECTIONS_MAX, options.patience, SILENT_FOR),
            counts: Counts::default(),
            wake,
            generations: AtomicU64::new(u64::from(options.start) << 32),
            state: Mutex::default(),
        }
    }

    /// A generation unique among all links to that peer, from either side.
    pub(super) fn next_generation(&self, peer: u64) -> u64 {
        self.generations.fetch_add(2, Relaxed) + 2 + u64::from(self.options.node < peer)
    }

    pub(super) fn has_link(&self, peer: u64, lane: Lane) -> bool {
        lock(&self.state).live.contains_key(&(peer, lane))
    }

    /// Sets the peers. Links to removed peers end; links opened by other nodes stay.
    pub(super) fn set_peers(&self, peers: BTreeSet<u64>) {
        let mut state = lock(&self.state);
        let former = std::mem::replace(&mut state.peers, peers);
        let State { peers, live, .. } = &*state;
        let is_gone = |live: &&Arc<Live>| former.contains(&live.link.peer) && !peers.contains(&live.link.peer);
        live.values().filter(is_gone).for_each(|live| live.end.notify_one());
    }

    pub(super) fn has_place(&self, peer: u64, lane: Lane) -> bool {
        lock(&self.state).has_place(peer, lane)
    }

    /// Registers a link and replaces an earlier one, which the peer has given up. `None`: not allowed.
    pub(super) fn up(&self, link: Link) -> Option<Arc<Live>> {
        let live = Arc::new(Live {
            link,
            end: Notify::new(),
            filled: Notify::new(),
            arriving: Arc::new(Semaphore::new(self.options.room)),
            sending: Mutex::default(),
        });
        let mut state = lock(&self.state);
        if !state.has_place(link.peer, link.lane) {
            count(&self.counts.too_many);
            return None;
        }
        if let Some(before) = state.live.insert((link.peer, link.lane), Arc::clone(&live)) {
            count(&self.counts.broken);
            before.end.notify_one();
            state.events.push_back((LinkEvent::Broken(before.link), None));
        }
        state.events.push_back((LinkEvent::Up(link), None));
        drop(state);
        (self.wake)();
        Some(live)
    }

    /// Room that a message of this length takes.
    pub(super) fn cost(&self, length: usize) -> u32 {
        length.saturating_add(MESSAGE_COST).min(self.options.room) as u32
    }

    /// Removes a link, unless another has replaced it.
    pub(super) fn broken(&self, live: &Arc<Live>) {
        let (key, mut state) = ((live.link.peer, live.link.lane), lock(&self.state));
        if state.live.get(&key).is_some_and(|present| Arc::ptr_eq(present, live)) {
            state.live.remove(&key);
            count(&self.counts.broken);
            state.events.push_back((LinkEvent::Broken(live.link), None));
            drop(state);
            (self.wake)();
        }
    }

    /// Queues a message, unless its link has been replaced.
    pub(super) fn arrived(&self, live: &Arc<Live>, message: Vec<u8>, share: OwnedSemaphorePermit) {
        let (key, mut state) = ((live.link.peer, live.link.lane), lock(&self.state));
        if state.live.get(&key).is_some_and(|present| Arc::ptr_eq(present, live)) {
            state.events.push_back((LinkEvent::Message(live.link, message), Some(share)));
            drop(state);
            (self.wake)();
        }
    }

    pub(super) fn events(&self) -> usize {
        lock(&self.state).events.len()
    }

    pub(super) fn next_event(&self) -> Option<LinkEvent> {
        lock(&self.state).events.pop_front().map(|(event, _share)| event)
    }

    fn live(&self, link: Link) -> Option<Arc<Live>> {
        lock(&self.state).live.get(&(link.peer, link.lane)).filter(|live| live.link == link).cloned()
    }

    pub(super) fn end(&self, link: Link) {
        if let Some(live) = self.live(link) {
            live.end.notify_one();
        }
    }

    pub(super) fn has_room(&self, link: Link) -> bool {
        let Some(live) = self.live(link) else { return false };
        let mut sending = lock(&live.sending);
        let has_room = sending.bytes < self.options.room;
        sending.is_awaited |= !has_room;
        has_room
    }

    pub(super) fn send(&self, link: Link, message: &[u8]) {
        let Some(live) = self.live(link) else { return count(&self.counts.late) };
        let mut sending = lock(&live.sending);
        sending.bytes += message.len();
        sending.messages.push_back(message.to_vec());
        live.filled.notify_one();
    }

    pub(super) fn next_message(live: &Live) -> Option<Vec<u8>> {
        lock(&live.sending).messages.pop_front()
    }

    pub(super) fn written(&self, live: &Live, bytes: usize) {
        let mut sending = lock(&live.sending);
        sending.bytes -= bytes;
        if sending.bytes < self.options.room && std::mem::take(&mut sending.is_awaited) {
            drop(sending);
            (self.wake)();
        }
    }
}
