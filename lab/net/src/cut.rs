//! Cuts links, in one or both directions, for all peers or one: the building block of partitions.
//!
//! Only IP is dropped. The neighbour tables stay valid, so a mended link carries packets at once.

use crate::filter::{CUT, DROP, ETHERTYPE, GO_ON, IPV4, IPV6, Step, bytecode, prepare};
use crate::iproute::{Batch, Tool};
use crate::names::{HOST_INTERFACE, Host, SWITCH_IPV4, SWITCH_IPV6};
use crate::{LabError, loss};
use std::net::{Ipv4Addr, Ipv6Addr};

/// A direction on a host's link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Way {
    /// Traffic to the host.
    ToHost,
    /// Traffic from the host.
    FromHost,
    /// Both directions.
    Both,
}

impl Way {
    /// As `tc` names them at the host.
    fn directions(self) -> &'static [&'static str] {
        match self {
            Self::ToHost => &["ingress"],
            Self::FromHost => &["egress"],
            Self::Both => &["ingress", "egress"],
        }
    }

    /// The same direction, seen from the other end.
    #[must_use]
    pub fn reversed(self) -> Self {
        match self {
            Self::ToHost => Self::FromHost,
            Self::FromHost => Self::ToHost,
            Self::Both => Self::Both,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(Ipv4Addr, Ipv6Addr);

impl Peer {
    pub(crate) const SWITCH: Self = Self(SWITCH_IPV4, SWITCH_IPV6);

    pub(crate) fn new(host: &Host) -> Self {
        Self(host.ipv4, host.ipv6)
    }
}

/// On the host in whose namespace this thread runs.
pub(crate) fn cut(way: Way, peer: Option<Peer>) -> Result<(), LabError> {
    let mut batch = Batch::new(Tool::Tc, "cut a link");
    prepare(&mut batch, HOST_INTERFACE);
    for direction in way.directions() {
        let steps = peer.map_or_else(all_of_ip, |peer| with_peer(peer, direction));
        let program = bytecode(&steps);
        batch.line(format!(
            "filter add dev {HOST_INTERFACE} {direction} pref {CUT} bpf direct-action bytecode \"{program}\""
        ));
    }
    batch.run(None).map_err(loss::needs_filters)
}

pub(crate) fn mend() {
    let mut batch = Batch::forced(Tool::Tc, "mend a link");
    for direction in Way::Both.directions() {
        batch.line(format!("filter delete dev {HOST_INTERFACE} {direction} pref {CUT}"));
    }
    // An error means that there was no cut.
    let _ = batch.run(None);
}

fn all_of_ip() -> Vec<Step> {
    use Step::{Answer, Equal, Half};
    vec![Half(ETHERTYPE), Equal(IPV4, 2, 0), Equal(IPV6, 1, 0), Answer(GO_ON), Answer(DROP)]
}

/// Drops traffic from the peer (ingress) or to it (egress).
fn with_peer(Peer(ipv4, ipv6): Peer, direction: &str) -> Vec<Step> {
    use Step::{Answer, Equal, Half, Word};
    // Offsets of the source or destination address, from the start of the frame.
    let (at_ipv4, at_ipv6) = if direction == "ingress" { (26, 22) } else { (30, 38) };
    let [a, b, c, d] = words(ipv6);
    vec![
        Half(ETHERTYPE),
        Equal(IPV4, 0, 2),
        Word(at_ipv4),
        Equal(ipv4.to_bits(), 10, 9),
        Equal(IPV6, 0, 8),
        Word(at_ipv6),
        Equal(a, 0, 6),
        Word(at_ipv6 + 4),
        Equal(b, 0, 4),
        Word(at_ipv6 + 8),
        Equal(c, 0, 2),
        Word(at_ipv6 + 12),
        Equal(d, 1, 0),
        Answer(GO_ON),
        Answer(DROP),
    ]
}

fn words(address: Ipv6Addr) -> [u32; 4] {
    let bits = address.to_bits();
    [bits >> 96, bits >> 64, bits >> 32, bits].map(|word| word as u32)
}
