//! The client table, which makes a write run exactly once (R3).
//!
//! A client's id is the index of the entry that opened it. Ids expire only through the log, by the store's time in its entries, so all
//! replicas expire the same id at the same entry. The opening entry also records the host, so that no host can take all ids.

use super::store::Outcome;
use midflight_endpoint::mutants::planted;
use midflight_wire::Host;
use midflight_wire::store::Status;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

/// A source may open an id only while it holds fewer than this many times the free ids.
const SHARE: usize = 8;
/// An unused id may expire after this many milliseconds, because its opener may never have received it.
const UNUSED: u64 = 60_000;

/// Number of a client's host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Source(u64);

impl Source {
    pub(super) fn of(ip: [u8; 16]) -> Self {
        Self(Host::of(Ipv6Addr::from(ip).into()).number())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Client {
    /// Number of its last write; 0 before the first.
    pub(super) number: u64,
    pub(super) outcome: Outcome,
    /// Time of the write, by the store's clock.
    pub(super) used: u64,
    pub(super) source: Source,
}

#[derive(Clone, Debug)]
pub(super) struct Clients {
    clients: BTreeMap<u64, Client>,
    /// (time from which the id may expire, id).
    by_end: BTreeSet<(u64, u64)>,
    held: BTreeMap<Source, usize>,
    most: usize,
    idle: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Known {
    New,
    Ran(Outcome),
    /// A later one has run.
    Stale,
    /// Unknown or expired id.
    NoClient,
}

impl Clients {
    /// A table for `most` clients. If it is full, ids that were idle for `idle` milliseconds are evicted.
    pub(super) fn new(most: usize, idle: u64) -> Self {
        Self { clients: BTreeMap::new(), by_end: BTreeSet::new(), held: BTreeMap::new(), most, idle }
    }

    fn end(&self, client: &Client) -> u64 {
        let idle = if client.number == 0 { self.idle.min(UNUSED) } else { self.idle };
        client.used.saturating_add(idle)
    }

    fn held_by(&self, source: Source) -> usize {
        self.held.get(&source).copied().unwrap_or(0)
    }

    /// Whether a source with `held` ids may add one if there are `all` in total. A source gets at most 8/9 of the table, so a second one
    /// always finds room.
    fn has_room(&self, held: usize, all: usize) -> bool {
        held < SHARE * self.most.saturating_sub(all)
    }

    /// Whether [`open`](Self::open) would accept this source, after the openings in the log for `under_way`. The leader refuses others
    /// before they reach the log, so that they cannot fill it.
    pub(super) fn may_open(&self, time: u64, source: Source, under_way: &[Source]) -> bool {
        let mut all = self.clients.len() + under_way.len();
        let mut held = self.held_by(source) + under_way.iter().filter(|&&other| other == source).count();
        let mut ended = self.by_end.iter().take_while(|(end, _)| *end <= time);
        while !self.has_room(held, all) {
            let Some((_, id)) = ended.next() else { return false };
            all -= 1;
            held -= usize::from(self.clients.get(id).is_some_and(|client| client.source == source));
        }
        true
    }

    fn remove(&mut self, id: u64) {
        let Some(client) = self.clients.remove(&id) else { return };
        self.by_end.remove(&(self.end(&client), id));
        if let Some(held) = self.held.get_mut(&client.source) {
            *held -= 1;
            if *held == 0 {
                self.held.remove(&client.source);
            }
        }
    }

    pub(super) fn knows(&self, client: u64, number: u64) -> Known {
        match self.clients.get(&client) {
            None => Known::NoClient,
            Some(known) if known.number == number && number > 8 && planted(142) => Known::New,
            Some(known) if known.number == number && number != 0 => Known::Ran(known.outcome.clone()),
            Some(known) if known.number >= number => Known::Stale,
            Some(_) => Known::New,
        }
    }

    pub(super) fn open(&mut self, index: u64, time: u64, source: Source) -> Outcome {
        while !self.has_room(self.held_by(source), self.clients.len()) {
            let Some(&(_, id)) = self.by_end.first().filter(|(end, _)| *end <= time) else {
                return Outcome::plain(Status::ClientsFull);
            };
            self.remove(id);
        }
        self.restore(index, Client { number: 0, outcome: Outcome::plain(Status::Done), used: time, source });
        Outcome::done(index.to_be_bytes().to_vec())
    }

    pub(super) fn ran(&mut self, client: u64, number: u64, time: u64, outcome: Outcome) {
        let Some(known) = self.clients.get(&client) else { return };
        let next = Client { number, outcome, used: time, source: known.source };
        self.by_end.remove(&(self.end(known), client));
        self.by_end.insert((self.end(&next), client));
        self.clients.insert(client, next);
    }

    pub(super) fn restore(&mut self, id: u64, client: Client) {
        self.by_end.insert((self.end(&client), id));
        *self.held.entry(client.source).or_default() += 1;
        self.clients.insert(id, client);
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = (&u64, &Client)> {
        self.clients.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.clients.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(last: u8) -> Source {
        Source::of(std::net::Ipv4Addr::new(10, 0, 0, last).to_ipv6_mapped().octets())
    }

    #[test]
    fn r3_a_number_runs_once_and_never_late() {
        let mut clients = Clients::new(2, 100);
        assert_eq!(clients.open(7, 0, source(1)), Outcome::done(7u64.to_be_bytes().to_vec()));
        assert_eq!(clients.knows(7, 0), Known::Stale, "0 is no number of a write");
        assert_eq!(clients.knows(7, 3), Known::New);
        clients.ran(7, 3, 5, Outcome::done("3"));
        assert_eq!(clients.knows(7, 3), Known::Ran(Outcome::done("3")));
        assert_eq!(clients.knows(7, 2), Known::Stale);
        assert_eq!(clients.knows(7, 4), Known::New);
        assert_eq!(clients.knows(8, 1), Known::NoClient);
    }

    #[test]
    fn r3_an_id_is_given_up_only_when_idle_and_only_for_another() {
        let mut clients = Clients::new(2, 100);
        clients.open(1, 0, source(1));
        clients.open(2, 10, source(1));
        clients.ran(1, 1, 50, Outcome::plain(Status::Done));
        assert_eq!(clients.open(3, 109, source(1)).status, Status::ClientsFull, "2 was idle for 99");
        assert_eq!(clients.open(4, 110, source(1)).status, Status::Done);
        assert_eq!((clients.knows(2, 1), clients.len()), (Known::NoClient, 2));
        assert_eq!(clients.knows(1, 1), Known::Ran(Outcome::plain(Status::Done)));
    }

    #[test]
    fn r7_one_source_takes_no_more_than_its_share_and_a_second_one_finds_room() {
        let mut clients = Clients::new(90, 3_600_000);
        let taken = |clients: &mut Clients, from, of, time| {
            (from..from + 90).filter(|&index| clients.open(index, time, source(of)).status == Status::Done).count()
        };
        assert_eq!(taken(&mut clients, 100, 1, 0), 80);
        assert_eq!(clients.open(200, 0, source(2)).status, Status::Done);
        for index in 100..180 {
            clients.ran(index, 1, 1, Outcome::plain(Status::Done));
        }
        assert_eq!(taken(&mut clients, 300, 1, UNUSED - 1), 0);
        assert_eq!(clients.open(500, 3_600_001, source(1)).status, Status::Done, "one of its own makes room");
        assert_eq!((clients.knows(200, 1), clients.len()), (Known::NoClient, 80), "what was never used goes first");
    }

    #[test]
    fn r7_ids_that_were_never_used_make_room_soon() {
        let mut clients = Clients::new(90, 3_600_000);
        (0..90).for_each(|index| drop(clients.open(index, 0, source(index as u8))));
        clients.ran(0, 1, 0, Outcome::plain(Status::Done));
        assert_eq!(clients.open(100, UNUSED - 1, source(100)).status, Status::ClientsFull);
        (101..190).for_each(|index| assert_eq!(clients.open(index, UNUSED, source(index as u8)).status, Status::Done));
        assert_eq!(clients.open(190, UNUSED, source(190)).status, Status::ClientsFull, "what was used stays");
        assert_eq!(clients.knows(0, 2), Known::New);
    }

    #[test]
    fn r7_a_source_is_a_host_as_logs_have_it() {
        let of = |address: &str| Source::of(address.parse::<std::net::Ipv6Addr>().unwrap().octets());
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_ne!(of("::ffff:10.0.0.1"), of("::ffff:10.0.0.2"));
        assert_eq!(of("::ffff:10.0.0.1"), Source(0xffff_0a00_0001), "as versions before have written it");
        assert_eq!(of("2001:db8:1:2::1"), Source(0x2001_0db8_0001_0002));
        let loopback = |i: u32| of(&std::net::Ipv4Addr::from((127 << 24) + i).to_ipv6_mapped().to_string());
        let mut clients = Clients::new(90, 60_000);
        let taken = (1..=90).filter(|&i| clients.open(i.into(), 0, loopback(i)).status == Status::Done);
        assert_eq!(taken.count(), 80, "its share");
    }

    #[test]
    fn r7_what_may_be_opened_is_opened() {
        let mut clients = Clients::new(18, 100);
        let mut random = 1u64;
        let mut opened = 0;
        for index in 0..2_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (time, from) = (index / 2, source((random >> 33) as u8 % 3));
            let may = clients.may_open(time, from, &[]);
            assert_eq!(clients.open(index, time, from).status == Status::Done, may, "{index}");
            opened += u32::from(may);
        }
        assert!((100..1_900).contains(&opened), "{opened}");
        let mut clients = Clients::new(18, 100);
        let others = [source(1); 16];
        assert!(!clients.may_open(0, source(1), &others) && clients.may_open(0, source(1), &others[1..]));
        assert!(clients.may_open(0, source(2), &others));
        assert_eq!(clients.open(1, 0, source(2)).status, Status::Done);
    }
}
