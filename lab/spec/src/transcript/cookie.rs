//! Which cookie a client's packet has, in the transcripts of programs whose cookies are of addresses alone.

use super::vocabulary::Moment;
use midflight_dataplane::Cookies;
use std::net::SocketAddr;

/// Which cookie a request has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum CookieOf {
    #[default]
    Now,
    /// None.
    Nobody,
    /// Of the interval before.
    Last,
    /// Of the interval before that.
    Old,
}

impl CookieOf {
    /// What stands behind `cookie` in a change; `None` if it is none of these.
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "none" => Some(Self::Nobody),
            "last" => Some(Self::Last),
            "old" => Some(Self::Old),
            _ => None,
        }
    }

    /// The cookie of a sender at this moment, where they are valid in an interval of this length and the next; 0: none.
    pub(super) fn value<C>(self, from: SocketAddr, cookie_ns: u64, moment: &Moment<'_, C>) -> u64 {
        let intervals = match self {
            Self::Nobody => return 0,
            Self::Now => 0,
            Self::Last => 1,
            Self::Old => 2,
        };
        let at = moment.now_ns.saturating_sub(intervals * cookie_ns);
        Cookies::new(moment.secret, cookie_ns).give(at, 0, from)
    }
}
