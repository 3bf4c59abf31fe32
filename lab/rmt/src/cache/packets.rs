//! The packets and their outcomes.

use super::fields::{Fields, Kind, XOR};
use super::{Cache, End};
use crate::{Field, Packet, Sent, To};

macro_rules! deeds {
    ($(#[$of:meta])* $deeds:ident { $($(#[$doc:meta])* $deed:ident = $number:literal, $name:literal;)* }) => {
        $(#[$of])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $deeds { $($(#[$doc])* $deed = $number,)* }

        impl $deeds {
            const ALL: &'static [Self] = &[$(Self::$deed,)*];
            pub(super) const NAMES: &'static [(u32, &'static str)] = &[$(($number, $name),)*];

            fn from_number(number: u32) -> Option<Self> {
                Self::ALL.iter().copied().find(|&deed| deed as u32 == number)
            }
        }
    };
}

deeds! {
    /// Handling of a packet.
    Role {
        /// A request for this RSNode: to the selector.
        Select = 1, "SELECT";
        /// A host's request whose RSNode is unknown here: to its backup.
        Orphan = 2, "ORPHAN";
        /// A host's request without a known cookie: the controller answers.
        Ask = 3, "ASK";
        /// A host's request whose traffic group is degraded: to its backup.
        Degrade = 4, "DEGRADE";
        /// A host's request: labelled with a remote RSNode.
        Label = 5, "LABEL";
        /// The same; the RSNode is here.
        LabelHere = 6, "LABEL_HERE";
        /// The same, without a selector: to its backup.
        LabelOrphan = 7, "LABEL_ORPHAN";
        /// From a sender that must not send it.
        Stranger = 8, "STRANGER";
        /// A server's answer in another one's name.
        Other = 9, "OTHER";
        /// An answer goes to the client, the selector gets a copy.
        Copy = 10, "COPY";
        /// An answer goes to the client, whose operator may be another one.
        Pass = 11, "PASS";
        /// The same; its RSNode is unknown here.
        Unseen = 12, "UNSEEN";
        /// An answer from another operator to a client of this rack.
        Last = 13, "LAST";
        /// An answer goes to its RSNode.
        ToRsNode = 14, "TO_RSNODE";
        /// A copy goes to the selector.
        Show = 15, "SHOW";
        /// A copy whose selector is gone.
        Forget = 16, "FORGET";
        /// Another operator's request for an RSNode that is not here or has no selector: to its backup.
        Retired = 17, "RETIRED";
    }
}

deeds! {
    /// Outcome of a packet.
    Did {
        /// Forwarded.
        Sent = 1, "SENT";
        /// Leaves the network: to a client of this rack.
        Delivered = 2, "DELIVERED";
        /// Sent to the controller.
        Asked = 3, "ASKED";
        /// Dropped: its backup is not a server.
        NoServer = 4, "NO_SERVER";
        /// Dropped: its client is unknown.
        NoClient = 5, "NO_CLIENT";
        /// Dropped, as its role requires.
        Refused = 6, "REFUSED";
    }
}

impl Role {
    pub(super) fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(number, _)| *number == self as u32).map_or("", |(_, name)| name)
    }
}

/// A datagram after the parser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Came {
    /// [`Kind::Request`] to [`Kind::Monitored`].
    pub kind: Kind,
    /// RID.
    pub rsnode: u16,
    /// SM, of an answer.
    pub marker: u32,
    /// The sender.
    pub source: End,
    /// `client` in the packet.
    pub client: End,
    /// `server` in the packet.
    pub server: End,
    /// Whether `client` is the sender's valid cookie: the result of the table `known clients`.
    pub is_known: bool,
}

/// A datagram that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Output {
    /// Handling of the datagram.
    pub role: Role,
    /// Outcome of the datagram.
    pub did: Did,
    /// Destination of the datagram.
    pub to: Option<End>,
    /// The last byte of its magic field.
    pub kind: u8,
    /// RID.
    pub rsnode: u16,
    /// SM.
    pub marker: u32,
    /// `client` in the packet.
    pub client: End,
}

fn put(packet: &mut Packet, (ip, port): ([Field; 4], Field), end: &End) {
    ip.into_iter().zip(end.ip).for_each(|(field, word)| packet.set(field, word));
    packet.set(port, end.port.into());
}

fn get(packet: &Packet, (ip, port): ([Field; 4], Field)) -> End {
    End { ip: ip.map(|field| packet.get(field)), port: packet.get(port) as u16 }
}

impl Cache {
    /// The packet for a received datagram.
    #[must_use]
    pub fn packet(&self, came: &Came) -> Packet {
        let f = &self.fields;
        let mut packet = self.machine.packet().with(f.op, came.kind as u32).with(f.known, came.is_known.into());
        packet.set(f.rsnode, came.rsnode.into());
        packet.set(f.marker, came.marker);
        self.put_ends(&mut packet, came);
        packet
    }

    /// Its mirrored copy, as parsed: the datagram itself, after the mirror session's header.
    #[must_use]
    pub fn copied(&self, mut copy: Packet, came: &Came) -> Packet {
        self.put_ends(&mut copy, came);
        copy
    }

    fn put_ends(&self, packet: &mut Packet, came: &Came) {
        let Fields { source, source_port, client, client_port, server, server_port, .. } = self.fields;
        put(packet, (source, source_port), &came.source);
        put(packet, (client, client_port), &came.client);
        put(packet, (server, server_port), &came.server);
    }

    /// The outcome of a packet; `None` if no table set one.
    #[must_use]
    pub fn answer(&self, sent: &Sent) -> Option<Output> {
        let (f, packet) = (&self.fields, &sent.packet);
        let goes = sent.to == To::Requester;
        Some(Output {
            role: Role::from_number(packet.get(f.role))?,
            did: Did::from_number(packet.get(f.did))?,
            to: goes.then(|| get(packet, (f.to, f.to_port))),
            kind: packet.get(f.op) as u8,
            rsnode: packet.get(f.rsnode) as u16,
            marker: packet.get(f.marker),
            client: get(packet, (f.client, f.client_port)),
        })
    }
}

/// The numbers of the wire.
const _: () =
    assert!(XOR == 0x80 && Kind::Request as u8 == 1 && Kind::Response as u8 == 2 && Kind::Monitored as u8 == 3);
