//! The packets' header fields, and the metadata between stages.
//!
//! An IP address is four words of 32 bits, as on the wire.

use super::Config;
use crate::Width::{W8, W16, W32};
use crate::{Builder, Field};

kinds! {
    /// client → operator → RSNode.
    Request = 1, "REQUEST";
    /// server → operator → RSNode.
    Response = 2, "RESPONSE";
    /// RSNode or operator → operator of the client's rack → client.
    Monitored = 3, "MONITORED";
    /// The copy of an answer for the selector. The parser accepts it from the port of mirrored copies only.
    Copy = 16, "COPY";
}

/// The bit of `op` that a packet has on its way to a server.
pub(super) const XOR: u32 = 0x80;
/// Reserved RSNode ids.
pub(super) const NO_RSNODE: u32 = 0;
pub(super) const ILLEGAL_RSNODE: u32 = 65535;

fn words(b: &mut Builder, name: &str) -> [Field; 4] {
    std::array::from_fn(|word| b.header(format!("{name}_{word}"), W32))
}

fn candidate(b: &mut Builder, name: &str) -> ([Field; 4], Field) {
    let ip = std::array::from_fn(|word| b.metadata(format!("{name}_{word}"), W32));
    (ip, b.metadata(format!("{name}_port"), W16))
}

fields! {
    /// The header fields. Every packet has all of them; those that its kind does not use are undefined.
    pub struct Fields(b, config) {
        /// [`Kind`], the last byte of the magic field.
        pub op: Field = b.header("op", W8),
        /// RID.
        pub rsnode: Field = b.header("rsnode", W16),
        /// SM, of an answer.
        pub marker: Field = b.header("marker", W32),
        /// The datagram's sender.
        pub source: [Field; 4] = words(b, "source"),
        /// Its port.
        pub source_port: Field = b.header("source_port", W16),
        /// `client` in the packet; in a request of a client the first two words are its cookie.
        pub client: [Field; 4] = words(b, "client"),
        /// Its port.
        pub client_port: Field = b.header("client_port", W16),
        /// `server` in the packet.
        pub server: [Field; 4] = words(b, "server"),
        /// Its port.
        pub server_port: Field = b.header("server_port", W16),
        /// 1: the sender's cookie is known, and the request has it: the result of the table `known clients`.
        pub known: Field = b.header("known", W8),
        /// The datagram's destination.
        pub to: [Field; 4] = words(b, "to"),
        /// Its port.
        pub to_port: Field = b.header("to_port", W16),
        /// Handling of the packet: [`Role`](super::Role). In a switch the counter of an entry of `role`.
        pub role: Field = b.header("role", W8),
        /// Outcome: [`Did`](super::Did). In a switch the counter of an entry of `route`.
        pub did: Field = b.header("did", W8),
        pub(super) inside: Inside = Inside::declared(b, config),
    }
}

fields! {
    pub(super) struct Inside(b, _config) {
        /// The kind of sender by address and port: [`peer`].
        pub(super) peer: Field = b.metadata("peer", W8),
        /// If a server: its number, from 1.
        pub(super) number: Field = b.metadata("number", W16),
        pub(super) rack: Field = b.metadata("rack", W16),
        /// 1: the sender's IP address is that of a host of this rack.
        pub(super) host: Field = b.metadata("host", W8),
        pub(super) group: Field = b.metadata("group", W16),
        /// The deciding RSNode id: the group's label, else the packet's.
        pub(super) id: Field = b.metadata("id", W16),
        /// Location of the client: [`at`].
        pub(super) at: Field = b.metadata("client_at", W8),
        /// 1: the client's address and port are a server's or operator's.
        pub(super) taken: Field = b.metadata("client_taken", W8),
        pub(super) client_rack: Field = b.metadata("client_rack", W16),
        /// 1: its traffic group is counted.
        pub(super) counted: Field = b.metadata("counted", W8),
        /// The group's first cell in the monitor, then that of the tier.
        pub(super) cell: Field = b.metadata("cell", W32),
        /// The number of the server that the packet names; 0: none.
        pub(super) named: Field = b.metadata("named", W16),
        /// Location of the RSNode: [`place`].
        pub(super) place: Field = b.metadata("rsnode_at", W8),
        /// The operator of a remote RSNode.
        pub(super) rsnode_to: ([Field; 4], Field) = candidate(b, "rsnode_to"),
        pub(super) has_rack: Field = b.metadata("has_rack", W8),
        pub(super) rack_to: ([Field; 4], Field) = candidate(b, "rack_to"),
        pub(super) selector: ([Field; 4], Field) = candidate(b, "selector"),
        /// 1: the server names another one.
        pub(super) other: Field = b.metadata("other", W8),
        /// 1: this operator's own marker is known.
        pub(super) has_marker: Field = b.metadata("has_marker", W8),
        /// The bits in which it and the answer's marker differ.
        pub(super) differs: Field = b.metadata("differs", W32),
    }
}

values! {
    /// Kind of an address and port.
    peer {
        /// A server.
        SERVER = 1,
        /// Another operator.
        OPERATOR = 2,
    }
}

values! {
    /// Location of a client.
    at {
        /// In this operator's rack.
        HERE = 1,
        /// In another rack.
        AWAY = 2,
    }
}

values! {
    /// Location of an RSNode.
    place {
        /// Here, without a selector.
        EMPTY = 1,
        /// At another operator.
        ELSEWHERE = 2,
        /// Here, with a selector.
        SELECTS = 3,
    }
}

impl Fields {
    pub(super) fn declare(b: &mut Builder, config: Config) -> Self {
        let fields = Self::declared(b, config);
        b.name_values(fields.op, Kind::NAMES);
        b.name_values(fields.op, &[(Kind::Monitored as u32 | XOR, "f(MONITORED)")]);
        b.name_values(fields.role, super::Role::NAMES);
        b.name_values(fields.did, super::Did::NAMES);
        b.name_values(fields.inside.peer, peer::NAMES);
        b.name_values(fields.inside.at, at::NAMES);
        b.name_values(fields.inside.place, place::NAMES);
        fields
    }
}
