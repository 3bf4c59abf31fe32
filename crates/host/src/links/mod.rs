//! Links between peers (`midflight_endpoint::Linked`): one TCP connection per peer and lane. The node with the lower number connects; the
//! other one only while there is no link. One thread runs all connections; the driver takes events and hands over messages while there is
//! room.

mod connection;
mod hello;
mod state;
#[cfg(test)]
mod tests;

pub use state::{LinkCounters, LinkEvent};

use crate::background::{Background, runtime};
use crate::error::Error;
use midflight_endpoint::{Lane, Link, MESSAGE_MAX};
use state::Shared;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// Identity and bounds of a node's links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkOptions {
    /// The cluster; others are refused.
    pub cluster: u64,
    /// The replica set; others are refused.
    pub set: u16,
    /// This node's number.
    pub node: u64,
    /// A different number at each start, such as a random one; prefix of generations.
    pub start: u32,
    /// Longest message in bytes. Default [`MESSAGE_MAX`].
    pub message_max: usize,
    /// Bytes waiting per link and direction; a single message may be longer. Default 4 MiB.
    pub room: usize,
    /// Timeout for connecting, a hello, and the acknowledgement of sent data. Default 5 s.
    pub patience: Duration,
}

impl LinkOptions {
    /// The defaults.
    #[must_use]
    pub fn new(cluster: u64, set: u16, node: u64, start: u32) -> Self {
        let patience = Duration::from_secs(5);
        Self { cluster, set, node, start, message_max: MESSAGE_MAX, room: 4 << 20, patience }
    }
}

/// Listens for links; peers may connect as soon as they are started.
///
/// # Errors
///
/// If the address cannot be bound.
pub fn listen(address: SocketAddr) -> Result<std::net::TcpListener, Error> {
    midflight_connections::listen(address).map_err(Error::bind("TCP", address))
}

/// The links of a node. Dropping it closes them.
#[derive(Debug)]
pub struct Links {
    _background: Background,
    shared: Arc<Shared>,
    peers: watch::Sender<BTreeMap<u64, SocketAddr>>,
    address: SocketAddr,
}

impl Links {
    /// Starts the thread, which calls `wake` on events and new room. `listener` is from [`listen`].
    ///
    /// # Errors
    ///
    /// If there is no thread.
    pub fn start(
        listener: std::net::TcpListener,
        options: LinkOptions,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let what = "start the links to peers";
        let address = listener.local_addr().map_err(Error::resources(what))?;
        let runtime = runtime(what)?;
        let shared = Arc::new(Shared::new(options, Box::new(wake)));
        let (peers, wanted) = watch::channel(BTreeMap::new());
        let of_thread = Arc::clone(&shared);
        let run = async move || {
            tokio::select! {
                error = accept(listener, &of_thread) => tracing::error!("links from peers on {address}: {error}"),
                () = connect(&of_thread, wanted) => {}
            }
        };
        Ok(Self { _background: Background::start("mf-links", runtime, run)?, shared, peers, address })
    }

    /// The listening address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets the peers to link to. Links to removed peers are closed.
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

    /// Whether [`Links::send`] takes a message now. If not, `wake` follows.
    #[must_use]
    pub fn has_room(&self, link: Link) -> bool {
        self.shared.has_room(link)
    }

    /// Sends a message. It is lost if the link breaks.
    pub fn send(&self, link: Link, message: &[u8]) {
        self.shared.send(link, message);
    }

    /// Closes a link. The peer may connect again.
    pub fn end(&self, link: Link) {
        self.shared.end(link);
    }

    /// Counts by name.
    #[must_use]
    pub fn counters(&self) -> LinkCounters {
        self.shared.counts.read()
    }
}

async fn accept(listener: std::net::TcpListener, shared: &Arc<Shared>) -> std::io::Error {
    let listener = match TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return error,
    };
    let serve = |stream, place| {
        let shared = Arc::clone(shared);
        async move {
            // Frees the place: established links have limits of their own.
            if let Some((stream, link)) = connection::accepted(&shared, stream).await {
                drop(tokio::spawn(async move { connection::serve(&shared, stream, link).await }));
            }
            drop(place);
        }
    };
    match shared.connections.accept(&listener, &[], serve).await {}
}

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
