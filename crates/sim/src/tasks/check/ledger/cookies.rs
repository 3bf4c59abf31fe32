//! Who has shown that he receives what is sent to his address (T13).

use super::super::rules::*;
use super::{Ledger, Taken};
use crate::check::{Checked, holds};
use midflight_endpoint::Nanos;
use midflight_wire::{Header, Packet};
use std::collections::HashMap;
use std::net::SocketAddr;

/// The cookies that the switch gave. What it did not give nobody has.
#[derive(Debug)]
pub(super) struct Cookies {
    window: Nanos,
    /// By identity and address: the last window in which one was given and the one before that, each with its cookie.
    given: HashMap<(u64, SocketAddr), [(Nanos, u64); 2]>,
}

impl Cookies {
    pub(super) fn new(window: Nanos) -> Self {
        Self { window, given: HashMap::new() }
    }

    /// Whether this one holds: it was given in the present window of time or in the one before.
    fn holds(&self, now: Nanos, owner: (u64, SocketAddr), cookie: u64) -> bool {
        let present = now / self.window;
        let given = self.given.get(&owner).into_iter().flatten();
        cookie != 0 && given.into_iter().any(|&(window, own)| own == cookie && window + 1 >= present)
    }

    fn give(&mut self, now: Nanos, owner: (u64, SocketAddr), cookie: u64) -> Checked {
        let present = now / self.window;
        let [last, before] = self.given.entry(owner).or_default();
        let same = last.1 == cookie;
        let right = if last.1 != 0 && last.0 == present { same } else { !same };
        holds!(T13, cookie != 0 && right, "cookie {cookie:#x} of window {present} is given after {last:x?}");
        if !same {
            (*before, *last) = (*last, (present, cookie));
        }
        Ok(())
    }
}

impl Ledger {
    /// Whether a packet carries the cookie that it needs. If not, its answer is one, which is not longer than the packet.
    pub(super) fn has_cookie(
        &mut self,
        taken: &Taken<'_>,
        header: &Header,
        identity: u64,
        cookie: u64,
        answers: &[(SocketAddr, Packet<'_>)],
    ) -> Checked<bool> {
        let owner = (identity, taken.from);
        if self.cookies.holds(taken.now, owner, cookie) {
            return Ok(true);
        }
        let [(to, Packet::Cookie(given))] = answers else {
            holds!(T13, false, "a packet without its cookie is answered by {answers:?}");
            return Ok(false);
        };
        let told = (*to, given.identity.get(), given.header.sequence);
        let right = told == (taken.from, identity, header.sequence) && size_of_val(*given) <= taken.datagram.len();
        holds!(T13, right, "another packet is answered by {given:?} to {to}");
        self.cookies.give(taken.now, owner, given.cookie.get())?;
        Ok(false)
    }
}
