//! Addresses in the lab, and the settings that let forged packets pass.

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
pub(super) use midflight_net::Place;
use midflight_net::{Host, Lab, SWITCH_IPV4, SWITCH_IPV6};
use midflight_terminal::files;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::time::Duration;

pub(super) const HOSTS: usize = 5;
pub(super) const CLIENT: Place = Place::Host(0);
pub(super) const EXECUTORS: [Place; 2] = [Place::Host(1), Place::Host(2)];
pub(super) const NEWCOMERS: Place = Place::Host(2);
pub(super) const ATTACKER: Place = Place::Host(3);
pub(super) const BYSTANDER: Place = Place::Host(4);
/// Source port of the attacker, and destination port at the bystander.
pub(super) const OWN_PORT: u16 = 6666;

/// The version of IP to use: every place in a lab has addresses of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Family {
    /// IPv4
    #[value(name = "4")]
    V4,
    /// IPv6
    #[value(name = "6")]
    V6,
}

impl Family {
    pub(super) fn switch(self, port: u16) -> SocketAddr {
        match self {
            Self::V4 => (SWITCH_IPV4, port).into(),
            Self::V6 => (SWITCH_IPV6, port).into(),
        }
    }

    /// The wildcard address.
    pub(super) fn any(self, port: u16) -> SocketAddr {
        match self {
            Self::V4 => (Ipv4Addr::UNSPECIFIED, port).into(),
            Self::V6 => (Ipv6Addr::UNSPECIFIED, port).into(),
        }
    }

    fn of(self, host: &Host) -> IpAddr {
        match self {
            Self::V4 => host.ipv4.into(),
            Self::V6 => host.ipv6.into(),
        }
    }

    pub(super) fn address_of(self, lab: &Lab, place: Place) -> Result<IpAddr> {
        match place {
            Place::Host(number) => Ok(self.of(lab.host(number).context("the lab has too few hosts")?)),
            Place::Switch | Place::Rack(_) => bail!("the switch has an address towards each host"),
        }
    }
}

/// The router accepts forged sources, even its own address, like a network without filters. For IPv6 it always does.
pub(super) fn allow_forgery(lab: &Lab) -> Result<()> {
    lab.within(Place::Switch, || {
        let all = Path::new("/proc/sys/net/ipv4/conf");
        for interface in std::fs::read_dir(all).context("cannot list the interfaces of the lab's switch")? {
            for (key, value) in [("rp_filter", "0"), ("accept_local", "1")] {
                let path = interface.as_ref().map_err(|error| anyhow::anyhow!("{error}"))?.path().join(key);
                files::write(&path, value)?;
            }
        }
        Ok(())
    })?
}

/// A forged packet with the switch's address must arrive: otherwise the attacks would prove nothing.
pub(super) fn check_forgery(lab: &Lab, family: Family, port: u16) -> Result<()> {
    let (from, to) = (family.switch(port), SocketAddr::new(family.address_of(lab, BYSTANDER)?, OWN_PORT));
    let socket = lab.within(BYSTANDER, || UdpSocket::bind(to))?.context("cannot bind the bystander's socket")?;
    socket.set_read_timeout(Some(Duration::from_secs(2)))?;
    lab.within(ATTACKER, || super::attacker::send_one(from, to))??;
    let mut bytes = [0; 64];
    let (_, seen) = socket.recv_from(&mut bytes).context("a forged packet does not get through the lab's switch")?;
    anyhow::ensure!(seen == from, "a forged packet came from {seen} instead of {from}");
    Ok(())
}

/// Ports where a place has sockets of `protocol` ("udp", "tcp") that accept packets from any peer.
pub(super) fn ports_at(lab: &Lab, place: Place, protocol: &str) -> Result<Vec<u16>> {
    let tables = [protocol.to_owned(), format!("{protocol}6")];
    let read = |table: &String| std::fs::read_to_string(format!("/proc/thread-self/net/{table}"));
    let texts = lab.within(place, || tables.iter().map(read).collect::<std::io::Result<Vec<_>>>())?;
    let mut ports: Vec<u16> = texts.context("cannot list sockets")?.iter().flat_map(|text| listening(text)).collect();
    ports.sort_unstable();
    ports.dedup();
    Ok(ports)
}

/// Local ports of the sockets without a peer, from a table of /proc/net.
fn listening(table: &str) -> Vec<u16> {
    let port_of = |address: &str| u16::from_str_radix(address.rsplit(':').next()?, 16).ok();
    let ports = table.lines().skip(1).filter_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let (local, peer) = (port_of(words.next()?)?, port_of(words.next()?)?);
        (peer == 0).then_some(local)
    });
    ports.collect()
}

/// Bytes to and from the host.
pub(super) fn carried(lab: &Lab, place: Place) -> Result<(u64, u64)> {
    let read = || std::fs::read_to_string("/proc/thread-self/net/dev");
    let text = lab.within(place, read)?.context("cannot read the counters of a link")?;
    carried_in(&text).context("a host of the lab has no link")
}

fn carried_in(table: &str) -> Option<(u64, u64)> {
    let line = table.lines().find_map(|line| line.trim().strip_prefix("eth0:"))?;
    let numbers: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    Some((*numbers.first()?, *numbers.get(8)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_the_kernel_are_read() {
        let sockets = "  sl  local_address rem_address   st tx_queue\n\
                       0: 0100007F:1E14 00000000:0000 07 00000000:00000000\n\
                       1: 0100007F:1E15 0200007F:0050 01 00000000:00000000\n";
        assert_eq!(listening(sockets), [0x1E14]);
        let links =
            "Inter-| Receive\n face |bytes\n  lo: 1 2 3 4 5 6 7 8 9 10\neth0: 100 2 0 0 0 0 0 0 900 5 0 0 0 0 0 0\n";
        assert_eq!(carried_in(links), Some((100, 900)));
    }
}
