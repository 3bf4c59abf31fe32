//! A datagram of an attacker, with any source and any flaw, as bytes from its IPv4 header on.

use etherparse::{IpFragOffset, IpNumber, Ipv4Header, UdpHeader};
use std::net::SocketAddrV4;

/// What an attacker sends.
#[derive(Debug)]
pub(super) struct Datagram {
    pub(super) from: SocketAddrV4,
    pub(super) to: SocketAddrV4,
    pub(super) payload: Vec<u8>,
    pub(super) flaw: Flaw,
}

/// What is wrong with a datagram beside its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    None,
    /// UDP allows that over IPv4.
    NoChecksum,
    WrongChecksum,
    /// It is one piece of a longer one: where it begins in units of eight bytes, and whether more follow.
    Fragment {
        offset: u16,
        more: bool,
    },
}

impl Datagram {
    pub(super) fn new(from: SocketAddrV4, to: SocketAddrV4) -> Self {
        Self { from, to, payload: Vec::new(), flaw: Flaw::None }
    }

    /// Appends it to `bytes`. The kernel completes the sum over the IPv4 header.
    ///
    /// # Errors
    /// Where it is longer than IPv4 allows.
    pub(super) fn write(&self, bytes: &mut Vec<u8>) -> anyhow::Result<()> {
        let (from, to) = (self.from.ip().octets(), self.to.ip().octets());
        let length = u16::try_from(UdpHeader::LEN + self.payload.len())?;
        let mut ip = Ipv4Header::new(length, 64, IpNumber::UDP, from, to)?;
        ip.dont_fragment = false;
        let mut udp = UdpHeader::with_ipv4_checksum(self.from.port(), self.to.port(), &ip, &self.payload)?;
        match self.flaw {
            Flaw::None => {}
            Flaw::NoChecksum => udp.checksum = 0,
            Flaw::WrongChecksum => udp.checksum = udp.checksum.wrapping_add(1).max(1),
            Flaw::Fragment { offset, more } => {
                ip.fragment_offset = IpFragOffset::try_new(offset)?;
                ip.more_fragments = more;
                ip.identification = self.from.port();
            }
        }
        bytes.extend_from_slice(&ip.to_bytes());
        bytes.extend_from_slice(&udp.to_bytes());
        bytes.extend_from_slice(&self.payload);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::SlicedPacket;
    use std::net::Ipv4Addr;

    fn written(flaw: Flaw) -> Vec<u8> {
        let at = |last| SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, last), 7700);
        let mut datagram = Datagram::new(at(1), at(2));
        datagram.payload = vec![7; 40];
        datagram.flaw = flaw;
        let mut bytes = Vec::new();
        datagram.write(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn the_sum_is_right_unless_it_is_to_be_wrong() {
        for (flaw, right) in [(Flaw::None, true), (Flaw::NoChecksum, false), (Flaw::WrongChecksum, false)] {
            let bytes = written(flaw);
            let (ip, udp) = (Ipv4Header::from_slice(&bytes).unwrap().0, UdpHeader::from_slice(&bytes[20..]).unwrap().0);
            assert_eq!((ip.total_len, udp.length), (68, 48));
            assert_eq!(udp.checksum == udp.calc_checksum_ipv4(&ip, &bytes[28..]).unwrap(), right, "{flaw:?}");
        }
        assert!(SlicedPacket::from_ip(&written(Flaw::None)).is_ok());
    }

    #[test]
    fn fragments_say_that_they_are() {
        let ip = Ipv4Header::from_slice(&written(Flaw::Fragment { offset: 3, more: true })).unwrap().0;
        assert!(ip.more_fragments && ip.fragment_offset.value() == 3);
    }
}
