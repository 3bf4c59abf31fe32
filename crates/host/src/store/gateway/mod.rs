//! A gateway for Redis' clients: RESP over TCP, in front of a client of the store.
//!
//! Its thread, `mf-gateway`, has all connections; `commands` and `keys` say what each command does, `options` what its options mean;
//! `plan` runs it.

mod commands;
mod keys;
mod options;
mod plan;

use super::StoreClient;
use crate::background::{Background, runtime};
use crate::clock;
use crate::driver::lock;
use crate::error::Error;
use crate::process::failing::Failing;
use crate::socket::users::Users;
use commands::Commands;
use midflight_connections::{ConnectionPlace, Connections, listen};
use midflight_resp::{Bounds, serve};
use midflight_wire::store::VALUE_MAX;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpStream;

/// The kernel drops a connection whose client has not taken replies for this long.
const UNREAD_TIMEOUT: Duration = Duration::from_secs(30);
/// More than a key and a value, and what RESP adds.
const REQUEST_COST: usize = VALUE_MAX + (64 << 10);
/// A connection without progress for this long may be evicted for another of its host.
const SILENT_FOR: Duration = Duration::from_secs(1);
const REFUSAL: &[u8] = b"-ERR max number of clients reached\r\n";
const NOT_SERVED: &[u8] = b"-NOPERM only the user who started this gateway is served, and root\r\n";
/// If the list of connections was read too often, it is read again after this time.
const USERS_PAUSE: Duration = Duration::from_millis(10);
/// What the thread does, for the message when it has ended.
const SERVES: &str = "serves Redis' clients";

/// A running gateway. Dropping it closes all connections.
pub struct Gateway {
    _background: Background,
    address: SocketAddr,
    failing: Arc<Failing>,
}

/// Options of a gateway. [`GatewayOptions::new`] has the defaults.
#[derive(Clone)]
pub struct GatewayOptions {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Connections at once; a host gets 8/9 of them. Default 10,000.
    pub connections_max: usize,
    /// What clients must give by AUTH or HELLO. Default: nothing.
    pub password: Option<Vec<u8>>,
    /// Serves only this user and root, both on this machine. Default: everyone.
    pub only_user: Option<u32>,
}

impl GatewayOptions {
    /// The defaults.
    #[must_use]
    pub fn new(listen: SocketAddr) -> Self {
        Self { listen, connections_max: 10_000, password: None, only_user: None }
    }
}

impl Gateway {
    /// Starts a gateway to the client's store. On a later failure a thread calls `on_failure`; see [`failure`](Self::failure).
    ///
    /// # Errors
    ///
    /// If it cannot listen there.
    pub fn start(
        client: StoreClient,
        options: GatewayOptions,
        on_failure: impl FnOnce() + Send + 'static,
    ) -> Result<Self, Error> {
        let listener = listen(options.listen).map_err(Error::bind("TCP", options.listen))?;
        let address = listener.local_addr().map_err(Error::resources("start a gateway"))?;
        let connections = Connections::evicting_silent(options.connections_max, UNREAD_TIMEOUT, SILENT_FOR);
        let failing = Arc::new(Failing::new(on_failure));
        let users = options.only_user.map(|user| Users::new(user, client.local_addr())).transpose()?;
        let shared = Shared {
            commands: Arc::new(Commands::on(client, options.password)),
            users: users.map(Mutex::new),
            failing: Arc::clone(&failing),
        };
        let run = move || accept(listener, shared.into(), connections);
        let background = Background::start("mf-gateway", runtime("start a gateway")?, run)?;
        Ok(Self { _background: background, address, failing })
    }

    /// Where it listens.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Why it has ended, if it has.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.failing.why()
    }
}

impl std::fmt::Debug for GatewayOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GatewayOptions").field("listen", &self.listen).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").field("address", &self.address).finish_non_exhaustive()
    }
}

struct Shared {
    commands: Arc<Commands>,
    users: Option<Mutex<Users>>,
    failing: Arc<Failing>,
}

impl Shared {
    /// Waits if too many connect at once.
    async fn serves(&self, stream: &TcpStream) -> bool {
        let Some(users) = &self.users else { return true };
        let (Ok(own), Ok(peer)) = (stream.local_addr(), stream.peer_addr()) else { return false };
        loop {
            let is_served = lock(users).serves_stream(clock::now(), own, peer);
            match is_served {
                Some(is_served) => return is_served,
                None => tokio::time::sleep(USERS_PAUSE).await,
            }
        }
    }

    async fn serve(&self, stream: TcpStream, place: &ConnectionPlace) {
        if !self.serves(&stream).await {
            let _ = stream.try_write(NOT_SERVED);
            return;
        }
        let bounds = Bounds { cost: REQUEST_COST, ..Bounds::default() };
        // An error means that the connection broke, so no client could be told.
        let _ = serve(stream, place, &self.commands, bounds, self.commands.memory()).await;
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, table: Arc<Connections>) {
    let _watch = shared.failing.watch(SERVES);
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return shared.failing.fail(format!("the gateway cannot take connections: {error}")),
    };
    let one = |stream: TcpStream, place: ConnectionPlace| {
        let shared = Arc::clone(&shared);
        async move { shared.serve(stream, &place).await }
    };
    match table.accept(&listener, REFUSAL, one).await {}
}
