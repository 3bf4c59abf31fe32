//! Writes and reads Ethernet frames with a UDP datagram.

use crate::shells::PORT;
use etherparse::{
    IpDscp, IpFragOffset, IpNumber, Ipv4Header, Ipv6FlowLabel, Ipv6Header, SlicedPacket, TransportSlice, UdpHeader,
};
use std::net::{IpAddr, SocketAddr};

pub(crate) const IPV4: u16 = 0x0800;
pub(crate) const IPV6: u16 = 0x86dd;
pub(crate) const Q: u16 = 0x8100;
pub(crate) const AD: u16 = 0x88a8;
pub(crate) const LEAST: usize = 60;

/// VLAN tag: type, then priority and number.
pub(crate) type Tag = (u16, u16);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flow {
    pub(crate) from_mac: [u8; 6],
    pub(crate) to_mac: [u8; 6],
    pub(crate) tags: Vec<Tag>,
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
}

impl Flow {
    pub(crate) fn back(&self) -> Self {
        Self { from_mac: self.to_mac, to_mac: self.from_mac, tags: self.tags.clone(), from: self.to, to: self.from }
    }

    pub(crate) fn is_ipv4(&self) -> bool {
        self.from.is_ipv4()
    }

    pub(crate) fn l3(&self) -> usize {
        14 + 4 * self.tags.len()
    }

    pub(crate) fn l4(&self) -> usize {
        self.l3() + if self.is_ipv4() { 20 } else { 40 }
    }

    pub(crate) fn answer(&self, payload: &[u8]) -> Vec<u8> {
        self.frame(payload, true)
    }

    pub(crate) fn request(&self, payload: &[u8]) -> Vec<u8> {
        self.frame(payload, false)
    }

    fn frame(&self, payload: &[u8], of_switch: bool) -> Vec<u8> {
        let mut frame = self.ethernet(if self.is_ipv4() { IPV4 } else { IPV6 });
        let length = 8 + payload.len() as u16;
        let (ports, no_sum) = ((self.from.port(), self.to.port()), 0);
        let mut udp = UdpHeader { source_port: ports.0, destination_port: ports.1, length, checksum: no_sum };
        match (self.from.ip(), self.to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let mut ip = Ipv4Header::new(length, 64, IpNumber::UDP, from.octets(), to.octets()).unwrap();
                (ip.identification, ip.dont_fragment) = (0, true);
                if !of_switch {
                    (ip.identification, ip.dont_fragment, ip.time_to_live) = (0xabcd, false, 33);
                    (ip.dscp, ip.fragment_offset) = (IpDscp::try_new(10).unwrap(), IpFragOffset::ZERO);
                }
                ip.header_checksum = ip.calc_header_checksum();
                frame.extend_from_slice(&ip.to_bytes());
                udp.checksum = udp.calc_checksum_ipv4(&ip, payload).unwrap();
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                let mut ip = Ipv6Header {
                    traffic_class: 0,
                    flow_label: Ipv6FlowLabel::ZERO,
                    payload_length: length,
                    next_header: IpNumber::UDP,
                    hop_limit: 64,
                    source: from.octets(),
                    destination: to.octets(),
                };
                if !of_switch {
                    (ip.traffic_class, ip.hop_limit) = (7, 33);
                    ip.flow_label = Ipv6FlowLabel::try_new(0x12345).unwrap();
                }
                frame.extend_from_slice(&ip.to_bytes());
                udp.checksum = udp.calc_checksum_ipv6(&ip, payload).unwrap();
            }
            _ => panic!("two families in one frame"),
        }
        frame.extend_from_slice(&udp.to_bytes());
        frame.extend_from_slice(payload);
        frame.resize(frame.len().max(LEAST), 0);
        frame
    }

    pub(crate) fn ethernet(&self, kind: u16) -> Vec<u8> {
        let mut header = [self.to_mac, self.from_mac].concat();
        for (tag, number) in &self.tags {
            header.extend_from_slice(&tag.to_be_bytes());
            header.extend_from_slice(&number.to_be_bytes());
        }
        header.extend_from_slice(&kind.to_be_bytes());
        header
    }

    /// The checksum left to hardware: over the pseudo-header alone.
    pub(crate) fn partial_sum(&self, payload: &[u8]) -> u16 {
        let length = 8 + payload.len() as u32;
        let addresses = match (self.from.ip(), self.to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => [from.octets(), to.octets()].concat(),
            (IpAddr::V6(from), IpAddr::V6(to)) => [from.octets(), to.octets()].concat(),
            _ => panic!("two families in one frame"),
        };
        let words = addresses.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
        let mut sum = words.sum::<u32>() + 17 + length;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    pub(crate) fn partial(&self, mut frame: Vec<u8>, payload: &[u8]) -> Vec<u8> {
        put16(&mut frame, self.l4() + 6, self.partial_sum(payload));
        frame
    }
}

/// Reads a switch's frame, every byte of which must be as expected. Padding may be missing before the frame meets
/// hardware.
pub(crate) fn read(frame: &[u8]) -> (Flow, Vec<u8>) {
    let (flow, payload) = take_apart(frame);
    let written = flow.answer(&payload);
    assert_eq!(hex(frame), hex(&written[..frame.len().min(written.len())]), "{flow:?}");
    assert!(frame.len() == written.len() || written.len() == LEAST);
    (flow, payload)
}

/// Reads a frame whose checksum is left to hardware.
pub(crate) fn read_partial(frame: &[u8]) -> (Flow, Vec<u8>) {
    let (flow, payload) = take_apart(frame);
    let written = flow.partial(flow.answer(&payload), &payload);
    assert_eq!(hex(frame), hex(&written[..frame.len().min(written.len())]), "{flow:?}");
    (flow, payload)
}

fn take_apart(frame: &[u8]) -> (Flow, Vec<u8>) {
    let mut at = 12;
    let mut tags = Vec::new();
    while [Q, AD].contains(&get16(frame, at)) {
        tags.push((get16(frame, at), get16(frame, at + 2)));
        at += 4;
    }
    let ip = &frame[at + 2..];
    let (from, to, udp): (IpAddr, IpAddr, _) = match get16(frame, at) {
        IPV4 => (bytes::<4>(ip, 12).into(), bytes::<4>(ip, 16).into(), &ip[20..]),
        IPV6 => (bytes::<16>(ip, 8).into(), bytes::<16>(ip, 24).into(), &ip[40..]),
        other => panic!("type {other:04x} in {}", hex(frame)),
    };
    let flow = Flow {
        from_mac: bytes(frame, 6),
        to_mac: bytes(frame, 0),
        tags,
        from: SocketAddr::new(from, get16(udp, 0)),
        to: SocketAddr::new(to, get16(udp, 2)),
    };
    (flow, udp[8..usize::from(get16(udp, 4))].to_vec())
}

pub(crate) fn ports(frame: &[u8]) -> Option<(u16, u16)> {
    match SlicedPacket::from_ethernet(frame).ok()?.transport? {
        TransportSlice::Udp(udp) => Some((udp.source_port(), udp.destination_port())),
        _ => None,
    }
}

pub(crate) fn is_of_switch(frame: &[u8]) -> bool {
    ports(frame).is_some_and(|(from, _)| from == PORT)
}

pub(crate) fn bytes<const N: usize>(from: &[u8], at: usize) -> [u8; N] {
    from[at..at + N].try_into().unwrap()
}

pub(crate) fn get16(from: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(bytes(from, at))
}

pub(crate) fn put16(to: &mut [u8], at: usize, value: u16) {
    to[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

pub(crate) fn sum_ipv4(frame: &mut [u8], l3: usize) {
    put16(frame, l3 + 10, 0);
    let end = frame.len().min(l3 + usize::from(frame[l3] & 0xf) * 4);
    let words = frame[l3..end].chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum = words.sum::<u32>();
    let sum = (sum & 0xffff) + (sum >> 16);
    put16(frame, l3 + 10, !((sum & 0xffff) + (sum >> 16)) as u16);
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.chunks(2).map(|pair| pair.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + " ").collect()
}
