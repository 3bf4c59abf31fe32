//! Where a story stands: who takes part, and what the switch would say now.

use super::names::{Endpoint, Names};
use midflight_dataplane::Cookies;
use std::net::SocketAddr;

/// A moment of a story.
#[derive(Clone, Debug)]
pub(super) struct Scene<'a> {
    pub(super) names: &'a Names,
    pub(super) epoch: u32,
    pub(super) cookies: Cookies,
    pub(super) cookie_ns: u64,
    pub(super) now_ns: u64,
    /// Of the packet that is answered, if it carried one.
    pub(super) counter: Option<u64>,
}

impl Scene<'_> {
    /// The cookie that somebody was given so many windows ago.
    pub(super) fn cookie(&self, of: &Endpoint, windows_ago: u64) -> u64 {
        let given_ns = self.now_ns.saturating_sub(windows_ago * self.cookie_ns);
        self.cookies.give(given_ns, of.identity, of.address)
    }

    /// Whether this is what the switch gives now.
    pub(super) fn is_present(&self, cookie: u64, identity: u64, at: SocketAddr) -> bool {
        self.cookies.give(self.now_ns, identity, at) == cookie
    }
}
