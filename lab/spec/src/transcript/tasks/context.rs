//! What the parser and the printer need: the participants, and the state of the switch.

use super::names::{Endpoint, Names};
use midflight_dataplane::Cookies;
use std::net::SocketAddr;

#[derive(Clone, Debug)]
pub(super) struct Context<'a> {
    pub(super) names: &'a Names,
    pub(super) epoch: u32,
    pub(super) cookies: Cookies,
    pub(super) cookie_ns: u64,
    pub(super) now_ns: u64,
    pub(super) counter: Option<u64>,
}

impl Context<'_> {
    /// The participant's cookie of `windows_ago` time windows ago.
    pub(super) fn cookie(&self, of: &Endpoint, windows_ago: u64) -> u64 {
        let given_ns = self.now_ns.saturating_sub(windows_ago * self.cookie_ns);
        self.cookies.give(given_ns, of.identity, of.address)
    }

    pub(super) fn is_present(&self, cookie: u64, identity: u64, at: SocketAddr) -> bool {
        self.cookies.give(self.now_ns, identity, at) == cookie
    }
}
