//! Cookies in transcripts of programs whose cookies depend on addresses alone.

use super::vocabulary::Moment;
use midflight_dataplane::Cookies;
use std::net::SocketAddr;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum CookieOf {
    #[default]
    Now,
    Nobody,
    /// Of the previous interval.
    Last,
    /// Of the interval before that.
    Old,
}

impl CookieOf {
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "none" => Some(Self::Nobody),
            "last" => Some(Self::Last),
            "old" => Some(Self::Old),
            _ => None,
        }
    }

    /// The cookie of a sender now, valid for this interval and the next; 0 is none.
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
