//! T14: no address takes a whole table.

use midflight_wire::Host;
use std::collections::HashMap;
use std::net::SocketAddr;

/// A source may take another entry only while it holds fewer than this many times the free ones.
const TIMES_FREE: u32 = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// None is free.
    Full,
    /// It has its share already.
    Share,
}

#[derive(Clone, Debug)]
pub(super) struct Shares {
    free: u32,
    held: HashMap<Host, u32>,
}

impl Shares {
    pub(super) fn new(entries: u32) -> Self {
        Self { free: entries, held: HashMap::new() }
    }

    /// Gives an entry to a source, if it may have another one.
    pub(super) fn take(&mut self, address: SocketAddr) -> Result<(), Refused> {
        if self.free == 0 {
            return Err(Refused::Full);
        }
        let held = self.held.get(&source(address)).copied().unwrap_or(0);
        if held >= TIMES_FREE.saturating_mul(self.free) {
            return Err(Refused::Share);
        }
        self.free -= 1;
        self.held.insert(source(address), held + 1);
        Ok(())
    }

    pub(super) fn give_back(&mut self, address: SocketAddr) {
        self.free += 1;
        self.drop_one(address);
    }

    /// Moves an entry to another address, even if that has its share already.
    pub(super) fn move_one(&mut self, before: SocketAddr, now: SocketAddr) {
        self.drop_one(before);
        *self.held.entry(source(now)).or_insert(0) += 1;
    }

    fn drop_one(&mut self, address: SocketAddr) {
        if let Some(held) = self.held.get_mut(&source(address)) {
            *held -= 1;
            if *held == 0 {
                self.held.remove(&source(address));
            }
        }
    }
}

fn source(address: SocketAddr) -> Host {
    Host::of(address.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(host: u8, port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, host], port))
    }

    fn taken(shares: &mut Shares, host: u8) -> u32 {
        (0..).take_while(|&port| shares.take(at(host, port)).is_ok()).count() as u32
    }

    /// T14: alone a source gets eight ninths, and a second one always finds room; a table of eight is too small to share.
    #[test]
    fn t14_a_source_alone_gets_eight_ninths() {
        let mut shares = Shares::new(90);
        assert_eq!(taken(&mut shares, 1), 80);
        assert_eq!(shares.take(at(1, 1)), Err(Refused::Share));
        assert_eq!(taken(&mut shares, 2), 9, "eight ninths of what is left, and one: 8 < 8 × 2");
        assert_eq!(taken(&mut Shares::new(8), 1), 8);
    }

    #[test]
    fn t14_what_is_given_back_or_moved_counts_no_more() {
        let mut shares = Shares::new(90);
        assert_eq!(taken(&mut shares, 1), 80);
        shares.give_back(at(1, 7));
        assert_eq!((shares.take(at(1, 7)), shares.take(at(1, 7))), (Ok(()), Err(Refused::Share)));
        shares.move_one(at(1, 7), at(2, 7));
        assert_eq!(taken(&mut shares, 1), 1, "79 are held, and 10 are free");
        (0..80).for_each(|_| shares.give_back(at(1, 7)));
        shares.give_back(at(2, 7));
        assert!(shares.held.is_empty(), "{shares:?}");
        assert_eq!(shares.free, 90);
    }
}
