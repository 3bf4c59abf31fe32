//! For the tests of servers: connections from several sources of one machine.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longer than anything takes that goes well.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A connection from 127.0.0.`source`.
///
/// # Panics
/// Where nobody listens.
#[must_use]
pub fn connect(source: u8, to: SocketAddr) -> TcpStream {
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
