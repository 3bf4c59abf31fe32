//! Replies to READs, and their path: through the switch or directly to the client.

use super::counters::Counters;
use super::packets;
use super::seqs::Seqs;
use super::session::Datagrams;
use super::store::Store;
use super::times::ReplicaTimes;
use midflight_endpoint::Nanos;
use midflight_endpoint::mutants::planted;
use midflight_wire::Address;
use midflight_wire::store::{
    Cursor, FLAG_DIRECT, FLAG_EXISTS, FLAG_LEADER_ONLY, FLAG_SCAN, FLAGS_KEPT, Operation, Request, Status,
};
use std::net::SocketAddr;
use zerocopy::FromZeros;

pub(super) struct Replies<'a> {
    pub(super) slot: u8,
    pub(super) own: Option<SocketAddr>,
    pub(super) kgroup_bits: u8,
    pub(super) store: &'a Store,
    pub(super) seqs: &'a Seqs,
    pub(super) out: &'a mut Datagrams,
    pub(super) direct: &'a mut Datagrams,
    pub(super) counters: &'a mut Counters,
    pub(super) times: &'a mut ReplicaTimes,
}

impl Replies<'_> {
    /// Answers a READ, which has waited for `waited`. A reply through the switch carries the SEQ of the last write that it shows.
    pub(super) fn serve(&mut self, waited: Nanos, switch: SocketAddr, request: &Request, key: &[u8]) {
        let wants_value = request.flags & FLAG_EXISTS == 0;
        let page = cursor_of(request, key).map(|cursor| self.store.scan(cursor, self.kgroup_bits));
        let (status, value) = match self.store.get(key) {
            _ if let Some(page) = &page => (Status::Done, &page[..]),
            Some(item) if wants_value => (Status::Done, item.value()),
            Some(_) => (Status::Done, &[][..]),
            None => (Status::NotFound, &[][..]),
        };
        let reply = |request: &Request| packets::reply(request, Operation::ReadReply, self.slot, status, [key, value]);
        self.counters.reads_served += 1;
        self.times.read.add(waited);
        if let Some(client) = self.own.and_then(|own| direct_way(request, own)) {
            self.counters.reads_direct += 1;
            self.direct.push_back((client, reply(&for_client(request))));
        } else {
            let seq = self.seqs.of_reply(request.sid.get(), request.hash.get(), request.seq.get());
            self.out.push_back((switch, reply(&Request { seq: seq.into(), ..*request })));
        }
    }

    /// Refuses a READ. Includes the key, so that the switch can turn the packet into a READ to the leader.
    pub(super) fn refuse(&mut self, switch: SocketAddr, request: &Request, key: &[u8], status: Status) {
        self.counters.reads_refused += 1;
        self.out.push_back((switch, packets::reply(request, Operation::ReadReply, self.slot, status, [key, &[]])));
    }
}

/// Of a SCAN.
pub(super) fn cursor_of(request: &Request, key: &[u8]) -> Option<Cursor> {
    if request.flags & FLAG_SCAN == 0 { None } else { Cursor::from_bytes(key) }
}

/// The address for a direct reply, if one is allowed. Leader-only reads are excluded: the switch must confirm that the session is
/// current.
fn direct_way(request: &Request, own: SocketAddr) -> Option<SocketAddr> {
    let is_marked = request.flags & FLAG_DIRECT != 0;
    let may_be = request.flags & FLAG_LEADER_ONLY == 0;
    let client = SocketAddr::from(request.client);
    (is_marked && may_be && is_reached(own, client)).then_some(client)
}

fn is_reached(own: SocketAddr, client: SocketAddr) -> bool {
    let (own, ip) = (own.ip().to_canonical(), client.ip().to_canonical());
    client.port() != 0
        && own.is_ipv4() == ip.is_ipv4()
        && own.is_loopback() == ip.is_loopback()
        && !(ip.is_unspecified() || ip.is_multicast())
}

/// Clears the fields that the switch would clear in a forwarded reply. The epoch is secret, because it authenticates a replica.
fn for_client(request: &Request) -> Request {
    let mut seen = Request {
        sid: 0.into(),
        seq: 0.into(),
        index: 0.into(),
        client: Address::new_zeroed(),
        replicas: 0,
        flags: request.flags & (FLAGS_KEPT | FLAG_DIRECT),
        ..*request
    };
    if !planted(187) {
        seen.header.epoch = 0.into();
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: &str) -> SocketAddr {
        address.parse().unwrap()
    }

    #[test]
    fn r7_a_direct_reply_goes_only_where_the_clients_address_can_mean_the_client() {
        let own = at("10.0.0.1:7710");
        assert!(is_reached(own, at("10.9.9.9:5000")));
        assert!(is_reached(own, at("[::ffff:10.9.9.9]:5000")));
        assert!(is_reached(at("127.0.0.1:7710"), at("127.0.0.1:5000")));
        for elsewhere in ["127.0.0.1:5000", "[fd00::1]:5000", "0.0.0.0:5000", "224.0.0.1:5000", "10.9.9.9:0"] {
            assert!(!is_reached(own, at(elsewhere)), "{elsewhere}");
        }
        assert!(!is_reached(at("127.0.0.1:7710"), at("10.9.9.9:5000")));
        assert!(is_reached(at("[fd00::2]:7710"), at("[fd00::1]:5000")));
    }
}
