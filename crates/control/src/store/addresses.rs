//! Refuses addresses with which a set can never serve: its processes would only wait for each other.

use super::SetTable;
use std::net::SocketAddr;

/// A leader sends to each switch at each heartbeat.
const SWITCHES_MAX: usize = 16;

impl SetTable {
    pub(super) fn validate_addresses(&self) -> Result<(), String> {
        let of = |key: &str| format!("set {}: {key}", self.number);
        let count = self.switches.len();
        if !(1..=SWITCHES_MAX).contains(&count) {
            return Err(format!("{} has {count} addresses: name 1 to {SWITCHES_MAX}", of("switches")));
        }
        let replicas = || self.replicas.iter().map(|replica| replica.address);
        for &address in self.switches.iter() {
            check(address).map_err(|why| format!("{}: {address} {why}", of("switches")))?;
        }
        for address in self.replicas.iter().flat_map(|replica| [replica.address, replica.links]) {
            check(address).map_err(|why| format!("{}: {address} {why}", of("replicas")))?;
        }
        for (i, switch) in self.switches.iter().enumerate() {
            if self.switches[..i].contains(switch) {
                return Err(format!("{}: {switch} is there twice: name each switch once", of("switches")));
            }
            if replicas().any(|replica| replica == *switch) {
                return Err(format!(
                    "{}: {switch} is a replica's address: give one of them another port",
                    of("switches")
                ));
            }
        }
        let is_of_first = |address: &SocketAddr| address.is_ipv4() == self.switches[0].is_ipv4();
        match self.switches.iter().copied().chain(replicas()).find(|address| !is_of_first(address)) {
            None => Ok(()),
            Some(other) => Err(format!(
                "{}: {other} is of another version of IP than {}: take one version for all switches and replicas",
                of("switches and replicas"),
                self.switches[0]
            )),
        }
    }
}

fn check(address: SocketAddr) -> Result<(), &'static str> {
    let ip = address.ip();
    if ip.is_unspecified() {
        return Err("is every address of a machine, and none that others can reach: name one");
    }
    if ip.is_multicast() || ip == std::net::Ipv4Addr::BROADCAST {
        return Err("is no single machine's address: name one");
    }
    if address.port() == 0 {
        return Err("has port 0: name the port");
    }
    Ok(())
}
