//! The packets, and what becomes of them.

use super::fields::{Fields, Kind, XOR};
use super::{End, Replicas};
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
    /// What is done with a packet.
    Role {
        /// A request for this RSNode: to the selector.
        Select = 1, "SELECT";
        /// A request of a host, whose RSNode is not known here: to its backup.
        Orphan = 2, "ORPHAN";
        /// A request of a host without a cookie that is known: the controller answers.
        Ask = 3, "ASK";
        /// A request of a host whose traffic group is degraded: to its backup.
        Degrade = 4, "DEGRADE";
        /// A request of a host: labelled with an RSNode elsewhere.
        Label = 5, "LABEL";
        /// The same; the RSNode is here.
        LabelHere = 6, "LABEL_HERE";
        /// The same, and there is no selector: to its backup.
        LabelOrphan = 7, "LABEL_ORPHAN";
        /// From nobody who may send it.
        Stranger = 8, "STRANGER";
        /// An answer of a server in another one's name.
        Other = 9, "OTHER";
        /// An answer goes to the client, the selector gets a copy.
        Copy = 10, "COPY";
        /// An answer goes to the client, whose operator may be another one.
        Pass = 11, "PASS";
        /// The same; its RSNode is not known here.
        Unseen = 12, "UNSEEN";
        /// An answer that another operator sends to a client of this rack.
        Last = 13, "LAST";
        /// An answer goes to its RSNode.
        ToRsNode = 14, "TO_RSNODE";
        /// A copy goes to the selector.
        Show = 15, "SHOW";
        /// A copy for which there is no selector any more.
        Forget = 16, "FORGET";
        /// A request of another operator, for an RSNode that is not here, or has no selector: to its backup.
        Retired = 17, "RETIRED";
    }
}

deeds! {
    /// What became of it.
    Did {
        /// It goes on.
        Sent = 1, "SENT";
        /// It leaves the network: to a client of this rack.
        Delivered = 2, "DELIVERED";
        /// The controller got it.
        Asked = 3, "ASKED";
        /// Its backup is no server.
        NoServer = 4, "NO_SERVER";
        /// Its client is not known.
        NoClient = 5, "NO_CLIENT";
        /// Dropped, as its role says.
        Refused = 6, "REFUSED";
    }
}

impl Role {
    pub(super) fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(number, _)| *number == self as u32).map_or("", |(_, name)| name)
    }
}

/// What the parser says of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Came {
    /// [`Kind::Request`] to [`Kind::Monitored`].
    pub kind: Kind,
    /// RID.
    pub rsnode: u16,
    /// SM, of an answer.
    pub marker: u32,
    /// Its sender.
    pub source: End,
    /// `client` in the packet.
    pub client: End,
    /// `server` in the packet.
    pub server: End,
    /// Whether `client` is a cookie of the sender's that is right: what the table `known clients` says.
    pub is_known: bool,
}

/// A datagram as it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What was done with it.
    pub role: Role,
    /// What became of it.
    pub did: Did,
    /// Where it goes.
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

impl Replicas {
    /// A datagram that came.
    #[must_use]
    pub fn packet(&self, came: &Came) -> Packet {
        let f = &self.fields;
        let mut packet = self.machine.packet().with(f.op, came.kind as u32).with(f.known, came.is_known.into());
        packet.set(f.rsnode, came.rsnode.into());
        packet.set(f.marker, came.marker);
        self.put_ends(&mut packet, came);
        packet
    }

    /// A mirrored copy of it, as the parser finds it: the datagram itself, behind what the mirror session carries.
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

    /// What became of a packet; `None` if it went through no table that says so.
    #[must_use]
    pub fn answer(&self, sent: &Sent) -> Option<Answer> {
        let (f, packet) = (&self.fields, &sent.packet);
        let goes = sent.to == To::Requester;
        Some(Answer {
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
