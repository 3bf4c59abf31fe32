//! Links between peers (`midflight_endpoint::Linked`): one TCP connection for each peer and lane. Of two nodes, the one with the lower
//! number connects, or the other while there is no link: the first may not know yet that a peer has come. One thread runs all
//! connections; the driver takes events, and hands over messages while there is room.

mod connection;
mod hello;
mod state;
#[cfg(test)]
mod tests;

pub use state::{LinkCounters, LinkEvent};

use crate::driver::spawn;
use crate::error::Error;
use midflight_connections::listen;
use midflight_endpoint::{Lane, Link, MESSAGE_MAX};
use state::Shared;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio::task::AbortHandle;

/// Who we are, and the bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkOptions {
    /// The cluster; others are refused.
    pub cluster: u64,
    /// The replica set; others are refused.
    pub set: u16,
    /// Our number.
    pub node: u64,
    /// A number that is another one each time this node starts, such as a random one: generations begin with it.
    pub start: u32,
    /// Longer messages are refused; [`MESSAGE_MAX`] unless told.
    pub message_max: usize,
    /// Bytes that wait to be sent, or to be taken, on each link; a single message may be longer. 4 MiB unless told.
    pub room: usize,
    /// How long an end has to say hello, to connect, or to take what was sent: one that is stopped for longer loses its links; 5 s
    /// unless told.
    pub patience: Duration,
}

impl LinkOptions {
    /// With the defaults.
    #[must_use]
    pub fn new(cluster: u64, set: u16, node: u64, start: u32) -> Self {
        let patience = Duration::from_secs(5);
        Self { cluster, set, node, start, message_max: MESSAGE_MAX, room: 4 << 20, patience }
    }
}

/// The links of a node. Dropping it ends them.
#[derive(Debug)]
pub struct Links {
    shared: Arc<Shared>,
    peers: watch::Sender<BTreeMap<u64, SocketAddr>>,
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Links {
    /// Listens, and starts the thread. It calls `wake` when there is an event, or room where there was none.
    ///
    /// # Errors
    /// If the address cannot be had, or there is no thread.
    pub fn start(
        address: SocketAddr,
        options: LinkOptions,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let refused = |source| Error::Bind { protocol: "TCP", address, source };
        let listener = listen(address).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let failed = |source| Error::Resources { what: "start the links to peers", source };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let shared = Arc::new(Shared::new(options, Box::new(wake)));
        let (peers, wanted) = watch::channel(BTreeMap::new());
        let (stop, stopped) = oneshot::channel();
        let of_thread = Arc::clone(&shared);
        let thread = spawn("mf-links", move || {
            runtime.block_on(async {
                tokio::select! {
                    error = accept(listener, &of_thread) => tracing::error!("links from peers on {address}: {error}"),
                    () = connect(&of_thread, wanted) => {}
                    _ = stopped => {}
                }
            });
        })?;
        Ok(Self { shared, peers, address, stop: Some(stop), thread: Some(thread) })
    }

    /// Where peers reach it.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The peers to have links to. Links to those that were peers before, and are none any more, are broken.
    pub fn set_peers(&self, peers: &[(u64, SocketAddr)]) {
        let peers: BTreeMap<_, _> =
            peers.iter().copied().filter(|(peer, _)| *peer != self.shared.options.node).collect();
        self.shared.set_peers(peers.keys().copied().collect());
        self.peers.send_if_modified(|present| {
            let is_other = *present != peers;
            *present = peers;
            is_other
        });
    }

    /// The next event.
    #[must_use]
    pub fn event(&self) -> Option<LinkEvent> {
        self.shared.next_event()
    }

    /// Whether there is an event.
    #[must_use]
    pub fn has_event(&self) -> bool {
        self.shared.events() > 0
    }

    /// Whether [`Links::send`] takes a message now. If not, `wake` is called when it does.
    #[must_use]
    pub fn has_room(&self, link: Link) -> bool {
        self.shared.has_room(link)
    }

    /// Sends a message. It is lost if the link is gone, as with whatever is on its way.
    pub fn send(&self, link: Link, message: &[u8]) {
        self.shared.send(link, message);
    }

    /// Ends a link. Its peer may make another.
    pub fn end(&self, link: Link) {
        self.shared.end(link);
    }

    /// What was refused, or failed, by name.
    #[must_use]
    pub fn counters(&self) -> LinkCounters {
        self.shared.counters()
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Returns only if it cannot begin.
async fn accept(listener: std::net::TcpListener, shared: &Arc<Shared>) -> std::io::Error {
    let listener = match TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return error,
    };
    let serve = |stream, place| {
        let shared = Arc::clone(shared);
        async move {
            // A link is in nobody's way: a peer has one a lane, and there are few to others.
            if let Some((stream, link)) = connection::accepted(&shared, stream).await {
                drop(tokio::spawn(async move { connection::serve(&shared, stream, link).await }));
            }
            drop(place);
        }
    };
    match shared.connections.accept(&listener, &[], serve).await {}
}

/// Keeps a task for each lane to each peer.
async fn connect(shared: &Arc<Shared>, mut wanted: watch::Receiver<BTreeMap<u64, SocketAddr>>) {
    let mut tasks: BTreeMap<(u64, SocketAddr), Vec<AbortHandle>> = BTreeMap::new();
    loop {
        let peers = wanted.borrow_and_update().clone();
        tasks.retain(|(peer, address), lanes| {
            let stays = peers.get(peer) == Some(address);
            if !stays {
                lanes.iter().for_each(AbortHandle::abort);
            }
            stays
        });
        for (&peer, &address) in &peers {
            tasks.entry((peer, address)).or_insert_with(|| {
                let lanes = [Lane::Prompt, Lane::Bulk];
                lanes
                    .map(|lane| tokio::spawn(connection::keep(Arc::clone(shared), peer, address, lane)).abort_handle())
                    .into()
            });
        }
        if wanted.changed().await.is_err() {
            return;
        }
    }
}
