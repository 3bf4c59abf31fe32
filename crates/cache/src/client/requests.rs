use super::events::Read;
use crate::select::Server;
use midflight_endpoint::Nanos;
use std::net::SocketAddr;

/// The last transmission of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sending {
    pub(super) to: SocketAddr,
    pub(super) server: SocketAddr,
    /// Direct mode: RV, which names the attempt.
    pub(super) retained: u16,
    /// Direct mode: the server's number, for its cookie.
    pub(super) number: Option<Server>,
}

/// The cache's part of a request.
pub(super) struct Body {
    pub(super) read: Read,
    /// Transmissions, without repeats for a cookie.
    pub(super) sends: u32,
    pub(super) last: Option<Sending>,
    /// Whether a cookie may cause a transmission at once.
    pub(super) heeds_cookie: bool,
    /// Whether the next transmission repeats the last one with a new cookie.
    pub(super) repeats_last: bool,
    /// Current timeout for an answer; 0 before the first transmission.
    pub(super) patience: Nanos,
}

impl Body {
    pub(super) fn new(read: Read) -> Self {
        Self { read, sends: 0, last: None, heeds_cookie: false, repeats_last: false, patience: 0 }
    }

    pub(super) fn backup(&self) -> Option<SocketAddr> {
        let at = self.sends as usize % self.read.backups.len().max(1);
        self.read.backups.get(at).copied()
    }
}
