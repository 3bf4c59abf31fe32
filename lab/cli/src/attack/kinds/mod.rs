//! The kinds of attack, each with the function that builds its packets.

mod forgeries;
mod noise;
mod requests;

use super::forge::Forge;

#[derive(Debug)]
pub(crate) struct Attack {
    /// Part of the names of its results.
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    pub(super) means: Means,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Means {
    /// Sends the packets that this function builds, and ignores responses.
    Send(fn(&mut Forge)),
    /// Uses the cookies that arrive on its link.
    SendAndHear(fn(&mut Forge)),
    /// TCP connections to all servers, without data.
    Connect,
}

const fn send(name: &'static str, what: &'static str, make: fn(&mut Forge)) -> Attack {
    Attack { name, what, means: Means::Send(make) }
}

const fn hear(name: &'static str, what: &'static str, make: fn(&mut Forge)) -> Attack {
    Attack { name, what, means: Means::SendAndHear(make) }
}

/// The control: as many packets of usual length to a host outside the cluster, which shows what the flood costs on a shared machine.
pub(super) static LINK: Attack = send("link", "as many packets past everybody", noise::past_everybody);

pub(crate) static KINDS: [Attack; 44] = [
    send("random_to_switch", "random bytes to the switch", noise::random_to_switch),
    send("random_to_others", "random bytes to clients and executors", noise::random_to_others),
    send("malformed", "each operation with random fields and counts, to everybody", noise::malformed),
    send("truncated", "packets cut off anywhere", noise::truncated),
    send("oversized", "packets with more behind them than they say", noise::oversized),
    send("versions", "other versions, from the client's and executors' addresses", noise::versions),
    send("version_storm", "VERSION and other versions between any two parties", noise::version_storm),
    send("keys", "packets that name keys", noise::keys),
    send("fragments", "first, later and overlapping fragments", noise::fragments),
    send("checksums", "wrong and absent checksums", noise::checksums),
    send(
        "odd_sources",
        "from loopback, multicast and other reserved addresses, the switch's own, and port 0",
        noise::odd_sources,
    ),
    send("misdirected", "a byte from clients' and executors' addresses to another of the switch's", noise::misdirected),
    send("port_zero", "all that is answered, from port 0", requests::port_zero),
    send("absent", "all that is answered, from neighbours who are not there", requests::absent),
    send("submit_no_cookie", "SUBMITs of new clients", requests::submit_without_cookie),
    send("submit_anywhere", "SUBMITs of new clients from any address", requests::submit_from_anywhere),
    hear("clients", "SUBMITs of new clients with cookies, of tasks that nobody can run", requests::clients),
    hear("queue", "full SUBMITs of few clients with cookies, of tasks that nobody can run", requests::queue),
    hear("slots", "REGISTERs of new executors with cookies", requests::slots),
    hear("probes", "PROBEs of new clients, then with cookies", requests::probes),
    hear(
        "stolen_cookies",
        "new clients and executors at any address, if its cookie comes back to us",
        requests::stolen,
    ),
    send("reflection", "all that is answered, from a bystander's address", requests::reflection),
    send("mixed_requests", "all that is answered, from any address", requests::requests_from_anywhere),
    send("reset_all", "RESETs of everything to executors", forgeries::reset_all),
    send("reset_named", "RESETs that name waits to executors", forgeries::reset_named),
    send("registered", "REGISTEREDs to executors", forgeries::registered),
    send("assign", "ASSIGNs to executors", forgeries::assign),
    send("released", "RELEASEDs to executors", forgeries::released),
    send("no_op", "NO_OPs to executors", forgeries::no_op),
    send("cookie_to_executor", "COOKIEs to executors", forgeries::cookie_to_executor),
    send("cookie_to_client", "COOKIEs to clients", forgeries::cookie_to_client),
    send("submit_ack", "SUBMIT_ACKs to clients", forgeries::submit_ack),
    send("probe_ack", "PROBE_ACKs of this and other epochs to clients", forgeries::probe_ack),
    send("cancel_ack", "CANCEL_ACKs to clients", forgeries::cancel_ack),
    send("complete", "COMPLETEs to clients, from executors' addresses", forgeries::complete),
    send("complete_ack", "COMPLETE_ACKs to executors, from clients' addresses", forgeries::complete_ack),
    send("stop", "STOPs to executors, from clients' addresses", forgeries::stop),
    send("retrieve", "RETRIEVEs of guessed generations from executors' addresses", forgeries::retrieve),
    send("keepalive", "KEEPALIVEs of guessed generations from executors' addresses", forgeries::keepalive),
    send("release", "RELEASEs of guessed generations from executors' addresses", forgeries::release),
    send("register", "REGISTERs of guessed executors from executors' addresses", forgeries::register),
    send("as_client", "SUBMITs, CANCELs and PROBEs of guessed clients from clients' addresses", forgeries::as_client),
    Attack { name: "connections", what: "640 idle connections to HTTP and blob servers", means: Means::Connect },
    send("everything", "a packet of any of the others, one after the other", everything),
];

pub(crate) fn named(name: &str) -> Option<&'static Attack> {
    KINDS.iter().find(|kind| kind.name == name)
}

/// All attacks that need no listening, in turn.
fn everything(forge: &mut Forge) {
    let number = (forge.count % (KINDS.len() as u64 - 1)) as usize;
    if let Means::Send(make) = KINDS[number].means {
        make(forge);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attack::forge::Known;
    use crate::attack::listener::Heard;
    use std::collections::BTreeSet;
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

    #[test]
    fn names_are_parts_of_names_of_results() {
        let names: BTreeSet<_> = KINDS.iter().map(|kind| kind.name).collect();
        assert_eq!(names.len(), KINDS.len(), "one twice");
        assert!(names.iter().all(|name| name.chars().all(|c| c.is_ascii_lowercase() || c == '_')));
        assert!(KINDS.iter().all(|kind| named(kind.name).is_some_and(|found| found.name == kind.name)));
    }

    fn every_kind_can_send_from(network: IpAddr) {
        let at = |port| SocketAddr::new(network, port);
        let known = Known {
            switch: at(1),
            clients: vec![at(2)],
            executors: vec![at(3), at(4)],
            own: at(5),
            bystander: at(6),
            epoch: 7,
        };
        for kind in KINDS.iter().chain([&LINK]) {
            let (Means::Send(make) | Means::SendAndHear(make)) = kind.means else { continue };
            let mut forge = Forge::new(known.clone(), Heard::default(), 1);
            let mut bytes = Vec::new();
            for _ in 0..5_000 {
                forge.begin();
                make(&mut forge);
                bytes.clear();
                forge.out.write(&mut bytes).unwrap();
                assert!(bytes.len() <= 1500, "{} bytes of {}", bytes.len(), kind.name);
            }
        }
    }

    #[test]
    fn every_kind_makes_datagrams_that_can_be_sent() {
        every_kind_can_send_from(Ipv4Addr::new(10, 0, 0, 1).into());
        every_kind_can_send_from(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1).into());
    }
}
