//! A forged datagram as bytes from its IP header on.

use anyhow::{Result, bail};
use etherparse::{IpFragOffset, IpNumber, Ipv4Header, Ipv6FragmentHeader, Ipv6Header, UdpHeader};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

#[derive(Debug)]
pub(super) struct Datagram {
    pub(super) from: SocketAddr,
    /// Of the same family as `from`.
    pub(super) to: SocketAddr,
    pub(super) payload: Vec<u8>,
    pub(super) flaw: Flaw,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    None,
    /// UDP permits it over IPv4 only.
    NoChecksum,
    WrongChecksum,
    /// Offset in units of eight bytes, and whether more fragments follow.
    Fragment {
        offset: u16,
        more: bool,
    },
}

impl Datagram {
    pub(super) fn new(from: SocketAddr, to: SocketAddr) -> Self {
        Self { from, to, payload: Vec::new(), flaw: Flaw::None }
    }

    /// Appends it to `bytes`. The kernel completes the IPv4 header checksum.
    ///
    /// # Errors
    /// If it is longer than IP allows, or its addresses are of two families.
    pub(super) fn write(&self, bytes: &mut Vec<u8>) -> Result<()> {
        match (self.from, self.to) {
            (SocketAddr::V4(from), SocketAddr::V4(to)) => self.write_ipv4(*from.ip(), *to.ip(), bytes),
            (SocketAddr::V6(from), SocketAddr::V6(to)) => self.write_ipv6(*from.ip(), *to.ip(), bytes),
            (from, to) => bail!("no packet goes from {from} to {to}"),
        }
    }

    fn write_ipv4(&self, from: Ipv4Addr, to: Ipv4Addr, bytes: &mut Vec<u8>) -> Result<()> {
        let length = u16::try_from(UdpHeader::LEN + self.payload.len())?;
        let mut ip = Ipv4Header::new(length, 64, IpNumber::UDP, from.octets(), to.octets())?;
        ip.dont_fragment = false;
        let udp = UdpHeader::with_ipv4_checksum(self.from.port(), self.to.port(), &ip, &self.payload)?;
        if let Flaw::Fragment { offset, more } = self.flaw {
            ip.fragment_offset = IpFragOffset::try_new(offset)?;
            ip.more_fragments = more;
            ip.identification = self.from.port();
        }
        bytes.extend_from_slice(&ip.to_bytes());
        self.write_udp(udp, bytes);
        Ok(())
    }

    fn write_ipv6(&self, from: Ipv6Addr, to: Ipv6Addr, bytes: &mut Vec<u8>) -> Result<()> {
        let mut ip = Ipv6Header {
            payload_length: u16::try_from(UdpHeader::LEN + self.payload.len())?,
            next_header: IpNumber::UDP,
            hop_limit: 64,
            source: from.octets(),
            destination: to.octets(),
            ..Ipv6Header::default()
        };
        let udp = UdpHeader::with_ipv6_checksum(self.from.port(), self.to.port(), &ip, &self.payload)?;
        if let Flaw::Fragment { offset, more } = self.flaw {
            let identification = self.from.port().into();
            let fragment = Ipv6FragmentHeader::new(IpNumber::UDP, IpFragOffset::try_new(offset)?, more, identification);
            ip.next_header = IpNumber::IPV6_FRAGMENTATION_HEADER;
            ip.payload_length += u16::try_from(Ipv6FragmentHeader::LEN)?;
            bytes.extend_from_slice(&ip.to_bytes());
            bytes.extend_from_slice(&fragment.to_bytes());
        } else {
            bytes.extend_from_slice(&ip.to_bytes());
        }
        self.write_udp(udp, bytes);
        Ok(())
    }

    fn write_udp(&self, mut udp: UdpHeader, bytes: &mut Vec<u8>) {
        match self.flaw {
            Flaw::None | Flaw::Fragment { .. } => {}
            Flaw::NoChecksum => udp.checksum = 0,
            Flaw::WrongChecksum => udp.checksum = udp.checksum.wrapping_add(1).max(1),
        }
        bytes.extend_from_slice(&udp.to_bytes());
        bytes.extend_from_slice(&self.payload);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::SlicedPacket;

    fn written(ipv6: bool, flaw: Flaw) -> Vec<u8> {
        let at = |last: u8| match ipv6 {
            false => SocketAddr::from(([10, 0, 0, last], 7700)),
            true => SocketAddr::from(([0xfd00, 0, 0, 0, 0, 0, 0, last.into()], 7700)),
        };
        let mut datagram = Datagram::new(at(1), at(2));
        datagram.payload = vec![7; 40];
        datagram.flaw = flaw;
        let mut bytes = Vec::new();
        datagram.write(&mut bytes).unwrap();
        bytes
    }

    const SUMS: [(Flaw, bool); 3] = [(Flaw::None, true), (Flaw::NoChecksum, false), (Flaw::WrongChecksum, false)];

    #[test]
    fn the_sum_is_right_unless_it_is_to_be_wrong() {
        for (flaw, right) in SUMS {
            let bytes = written(false, flaw);
            let (ip, udp) = (Ipv4Header::from_slice(&bytes).unwrap().0, UdpHeader::from_slice(&bytes[20..]).unwrap().0);
            assert_eq!((ip.total_len, udp.length), (68, 48));
            assert_eq!(udp.checksum == udp.calc_checksum_ipv4(&ip, &bytes[28..]).unwrap(), right, "{flaw:?}");
        }
        assert!(SlicedPacket::from_ip(&written(false, Flaw::None)).is_ok());
    }

    #[test]
    fn so_it_is_over_ipv6() {
        for (flaw, right) in SUMS {
            let bytes = written(true, flaw);
            let (ip, udp) = (Ipv6Header::from_slice(&bytes).unwrap().0, UdpHeader::from_slice(&bytes[40..]).unwrap().0);
            assert_eq!((ip.payload_length, udp.length), (48, 48));
            assert_eq!(udp.checksum == udp.calc_checksum_ipv6(&ip, &bytes[48..]).unwrap(), right, "{flaw:?}");
        }
        assert!(SlicedPacket::from_ip(&written(true, Flaw::None)).is_ok());
    }

    #[test]
    fn fragments_say_that_they_are() {
        let flaw = Flaw::Fragment { offset: 3, more: true };
        let ip = Ipv4Header::from_slice(&written(false, flaw)).unwrap().0;
        assert!(ip.more_fragments && ip.fragment_offset.value() == 3);
        let bytes = written(true, flaw);
        let (ip, rest) = Ipv6Header::from_slice(&bytes).unwrap();
        let fragment = Ipv6FragmentHeader::from_slice(rest).unwrap().0;
        assert_eq!((ip.next_header, usize::from(ip.payload_length)), (IpNumber::IPV6_FRAGMENTATION_HEADER, rest.len()));
        assert!(fragment.more_fragments && fragment.fragment_offset.value() == 3);
    }

    #[test]
    fn the_ends_of_a_datagram_are_of_one_family() {
        let (ipv4, ipv6) = ("10.0.0.1:1".parse().unwrap(), "[fd00::1]:1".parse().unwrap());
        assert!(Datagram::new(ipv4, ipv6).write(&mut Vec::new()).is_err());
    }
}
