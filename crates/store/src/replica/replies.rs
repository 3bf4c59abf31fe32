//! Replies to READs, and their path: through the switch or directly to the client.

use super::counters::Counters;
use super::packets;
use super::seqs::Seqs;
use super::session::Datagrams;
use super::store::Store;
use super::times::ReplicaTimes;
use midflight_endpoint::Nanos;
use midflight_endpoint::mutants::planted;
use midflight_wire::store::{
    Cursor, FLAG_DIRECT, FLAG_EXISTS, FLAG_LEADER_ONLY, FLAG_PIECE, FLAG_SCAN, FLAGS_KEPT, Operation, PlaceInValue,
    Request, Status,
};
use midflight_wire::{Address, PACKET_MAX};
use std::net::SocketAddr;
use zerocopy::FromZeros;

/// Bytes of key and value that fit a reply.
const REPLY_ROOM: usize = PACKET_MAX - size_of::<Request>();

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
        let made; // where there is no value to borrow
        let (status, value) = match asked(request, key) {
            Some(Asked::Page(cursor)) => {
                made = self.store.scan(cursor, self.kgroup_bits);
                (Status::Done, &made[..])
            }
            Some(Asked::Value { key: of, place }) if let Some(item) = self.store.get(of) => {
                let fits = key.len() + item.value().len() <= REPLY_ROOM;
                match place {
                    _ if !wants_value => (Status::Done, &[][..]),
                    None if fits => (Status::Done, item.value()),
                    place => {
                        let (revision, offset) = place.unwrap_or_default();
                        made = Store::piece(item, revision, offset);
                        (Status::Piece, &made[..])
                    }
                }
            }
            _ => (Status::NotFound, &[][..]),
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

/// What a READ asks for.
pub(super) enum Asked<'a> {
    Page(Cursor),
    Value {
        key: &'a [u8],
        /// Revision and offset, of a piece.
        place: Option<(u64, u32)>,
    },
}

/// `None`: it is no key of such a READ.
pub(super) fn asked<'a>(request: &Request, key: &'a [u8]) -> Option<Asked<'a>> {
    match (request.flags & FLAG_SCAN != 0, request.flags & FLAG_PIECE != 0) {
        (true, true) => None,
        (true, false) => Cursor::from_bytes(key).map(Asked::Page),
        (false, false) => (!key.is_empty()).then_some(Asked::Value { key, place: None }),
        (false, true) => {
            let (revision, offset, key) = PlaceInValue::parse(key)?;
            Some(Asked::Value { key, place: Some((revision, offset)) })
        }
    }
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
