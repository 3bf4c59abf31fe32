//! For the tests of servers: connections from several source addresses of one machine.

use midflight_wire::Host;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Whether this process tests a server with [`connect`].
static TESTS: AtomicBool = AtomicBool::new(false);

/// Timeout that no successful step reaches.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The host of a connection. In a process that tests a server, each loopback address counts as a different host.
pub(crate) fn host_of(ip: IpAddr) -> Host {
    match ip {
        IpAddr::V4(ip) if ip.is_loopback() && TESTS.load(Relaxed) => {
            let [_, second, third, last] = ip.octets();
            Host::of([10, second, third, last].into())
        }
        _ => Host::of(ip),
    }
}

/// A connection from 127.0.0.`source`; from the first call on, each such address counts as a host.
///
/// # Panics
/// If nothing listens on `to`.
#[must_use]
pub fn connect(source: u8, to: SocketAddr) -> TcpStream {
    TESTS.store(true, Relaxed);
    let connected = || {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
        socket.bind(&SocketAddr::from(([127, 0, 0, source], 0)).into())?;
        socket.connect(&to.into())?;
        let stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok::<_, std::io::Error>(stream)
    };
    connected().unwrap_or_else(|error| panic!("127.0.0.{source} cannot connect to {to}: {error}"))
}
