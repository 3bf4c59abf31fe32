//! The header fields of the packets, and the metadata that stages pass to later ones.
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
/// RSNode ids that are none.
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
    /// The header fields. A packet has all of them; those that its kind does not name mean nothing.
    pub struct Fields(b, config) {
        /// [`Kind`], the last byte of the magic field.
        pub op: Field = b.header("op", W8),
        /// RID.
        pub rsnode: Field = b.header("rsnode", W16),
        /// SM, of an answer.
        pub marker: Field = b.header("marker", W32),
        /// Who has sent the datagram.
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
        /// 1: the sender's cookie is known, and the request has it: what the table `known clients` says.
        pub known: Field = b.header("known", W8),
        /// Where the datagram goes.
        pub to: [Field; 4] = words(b, "to"),
        /// Its port.
        pub to_port: Field = b.header("to_port", W16),
        /// What was done with it: [`Role`](super::Role). In a switch the counter of an entry of `role`.
        pub role: Field = b.header("role", W8),
        /// What became of it: [`Did`](super::Did). In a switch the counter of an entry of `route`.
        pub did: Field = b.header("did", W8),
        pub(super) inside: Inside = Inside::declared(b, config),
    }
}

fields! {
    /// Metadata.
    pub(super) struct Inside(b, _config) {
        /// What is at the sender's address and port: [`peer`].
        pub(super) peer: Field = b.metadata("peer", W8),
        /// If a server: its number, from 1 on.
        pub(super) number: Field = b.metadata("number", W16),
        /// If a server: its rack.
        pub(super) rack: Field = b.metadata("rack", W16),
        /// 1: the sender's IP address is that of a host of this rack.
        pub(super) host: Field = b.metadata("host", W8),
        /// Its traffic group.
        pub(super) group: Field = b.metadata("group", W16),
        /// The RSNode id that decides: the label of the group, else that of the packet.
        pub(super) id: Field = b.metadata("id", W16),
        /// Where the client is: [`at`].
        pub(super) at: Field = b.metadata("client_at", W8),
        /// 1: a server or an operator is at its address and port.
        pub(super) taken: Field = b.metadata("client_taken", W8),
        /// Its rack.
        pub(super) client_rack: Field = b.metadata("client_rack", W16),
        /// 1: its traffic group is counted.
        pub(super) counted: Field = b.metadata("counted", W8),
        /// The group's first cell in the monitor, then that of the tier.
        pub(super) cell: Field = b.metadata("cell", W32),
        /// The number of the server that the packet names; 0: none is there.
        pub(super) named: Field = b.metadata("named", W16),
        /// Where the RSNode is: [`place`].
        pub(super) place: Field = b.metadata("rsnode_at", W8),
        /// The operator of an RSNode elsewhere.
        pub(super) rsnode_to: ([Field; 4], Field) = candidate(b, "rsnode_to"),
        /// 1: the operator of the client's rack is known.
        pub(super) has_rack: Field = b.metadata("has_rack", W8),
        /// It.
        pub(super) rack_to: ([Field; 4], Field) = candidate(b, "rack_to"),
        /// This operator's selector.
        pub(super) selector: ([Field; 4], Field) = candidate(b, "selector"),
        /// 1: the server names another one.
        pub(super) other: Field = b.metadata("other", W8),
        /// 1: this operator's own marker is known.
        pub(super) has_marker: Field = b.metadata("has_marker", W8),
        /// The bits in which it and the answer's differ.
        pub(super) differs: Field = b.metadata("differs", W32),
    }
}

values! {
    /// What is at an address and port.
    peer {
        /// A server.
        SERVER = 1,
        /// Another operator.
        OPERATOR = 2,
    }
}

values! {
    /// Where a client is.
    at {
        /// In this operator's rack.
        HERE = 1,
        /// In another.
        AWAY = 2,
    }
}

values! {
    /// Where an RSNode is.
    place {
        /// Here, and there is no selector.
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
