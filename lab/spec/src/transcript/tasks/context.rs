//! What commands and answers are read and written with: the participants, and the state of the switch.

use super::names::{Endpoint, Names};
use midflight_dataplane::Cookies;
use std::net::SocketAddr;

/// The participants and the state of the switch at one moment.
#[derive(Clone, Debug)]
pub(super) struct Context<'a> {
    pub(super) names: &'a Names,
    pub(super) epoch: u32,
    pub(super) cookies: Cookies,
    pub(super) cookie_ns: u64,
    pub(super) now_ns: u64,
    /// The counter of the packet that is answered, if it has one.
    pub(super) counter: Option<u64>,
}

impl Context<'_> {
    /// The cookie that a participant was given `windows_ago` windows of time ago.
    pub(super) fn cookie(&self, of: &Endpoint, windows_ago: u64) -> u64 {
        let given_ns = self.now_ns.saturating_sub(windows_ago * self.cookie_ns);
        self.cookies.give(given_ns, of.identity, of.address)
    }

    /// Whether this is the cookie that the switch gives now.
    pub(super) fn is_present(&self, cookie: u64, identity: u64, at: SocketAddr) -> bool {
        self.cookies.give(self.now_ns, identity, at) == cookie
    }
}
