//! Numbering of networks, and errors in them.

use crate::world::parts;
use midflight_cache::control::network::{HostAt, OperatorAt, ReplicaGroup, ServerAt};
use midflight_cache::control::{Grouping, Network, NetworkParts};
use midflight_placement::{Accelerator, Topology, input};

fn wrong(change: impl FnOnce(&mut NetworkParts)) -> String {
    let mut parts = parts();
    change(&mut parts);
    Network::new(parts).unwrap_err().to_string()
}

#[test]
fn what_is_wrong_with_a_network_is_named() {
    let nowhere = OperatorAt { switch: "tor-9".into(), address: "10.9.0.1:1".parse().unwrap(), selector: None };
    for (change, expected) in [
        (wrong(|p| p.operators.push(nowhere.clone())), "operator `tor-9`: there is no such switch"),
        (wrong(|p| p.operators.push(p.operators[0].clone())), "operator `core-0` is there twice"),
        (wrong(|p| drop(p.operators.remove(0))), "operator `core-0` has no address"),
        (
            wrong(|p| p.operators[1].address = p.operators[0].address),
            "10.0.0.0:7700 is the address of operator `core-0` and",
        ),
        (wrong(|p| p.operators[0].address.set_port(0)), "operator `core-0`: 10.0.0.0:0 has no port"),
        (wrong(|p| p.servers[0].at = "rack-9".into()), "server 10.0.3.0:7800 is in no rack"),
        (wrong(|p| p.hosts[0].host = "host-9".into()), "there is no host `host-9` in the topology"),
        (wrong(|p| p.hosts[0].ip = p.hosts[1].ip), "10.0.2.1 is the address of host `host-0` and of host `host-1`"),
        (wrong(|p| p.replica_groups[0].id = 1 << 24), "replica group 16777216: ids have 24 bits"),
        (wrong(|p| p.replica_groups.push(p.replica_groups[0].clone())), "replica group 1 is there twice"),
        (wrong(|p| p.replica_groups[0].servers.clear()), "replica group 1 has 0 servers: 1 to 8"),
        (wrong(|p| p.replica_groups[0].servers[0].set_port(9)), "replica group 1: there is no server 10.0.3.0:9"),
        (
            wrong(|p| p.replica_groups[0].servers[0] = p.replica_groups[0].servers[1]),
            "replica group 1 names a server twice",
        ),
        (wrong(|p| p.grouping = Grouping::Parts(0)), "traffic groups of 0 hosts"),
        (wrong(|p| p.grouping = sets(&[("a", &["host-9"])])), "traffic group `a`: there is no host `host-9`"),
        (
            wrong(|p| p.grouping = sets(&[("a", &["host-0", "host-1"])])),
            "traffic group `a`: `host-0` and `host-1` are in different racks",
        ),
        (wrong(|p| p.grouping = sets(&[("a", &[])])), "traffic group `a` has no hosts"),
        (
            wrong(|p| p.grouping = sets(&[("a", &["host-0"]), ("b", &["host-0"])])),
            "host `host-0` is in two traffic groups",
        ),
    ] {
        assert!(change.starts_with(expected), "{change}");
    }
}

fn sets(sets: &[(&str, &[&str])]) -> Grouping {
    let named = |hosts: &[&str]| hosts.iter().map(|host| (*host).to_owned()).collect();
    Grouping::Sets(sets.iter().map(|(id, hosts)| ((*id).to_owned(), named(hosts))).collect())
}

#[test]
fn a_rack_without_an_operator_is_named() {
    let each = Accelerator::paper("each".into());
    let text = "core = [\"c\"]\nracks = [{ id = \"r\", tor = \"t\", hosts = 1 }]\nwithout_accelerator = [\"t\"]";
    let topology = input::topology(text, &each).unwrap();
    let operators = vec![OperatorAt { switch: "c".into(), address: "10.0.0.1:1".parse().unwrap(), selector: None }];
    let error = Network::new(NetworkParts { topology, operators, ..NetworkParts::default() }).unwrap_err();
    assert!(error.to_string().starts_with("rack `r` has no ToR switch with an operator"), "{error}");
}

/// The monitor finds the tier of an answer by these markers and masks.
#[test]
fn markers_and_masks_tell_the_tiers_apart() {
    let topology = Topology::fat_tree(4, &Accelerator::paper("each".into())).unwrap();
    let operators = topology.operators().iter().zip(0..).map(|(operator, number)| OperatorAt {
        switch: operator.id.clone(),
        address: ([10, 0, 0, number], 7700).into(),
        selector: None,
    });
    let operators = operators.collect();
    let network = Network::new(NetworkParts { topology, operators, ..NetworkParts::default() }).unwrap();
    assert_eq!(network.masks(), midflight_dataplane::cache::CacheConfig::default().masks);
    let topology = network.topology();
    for one in network.racks() {
        for other in network.racks() {
            let masks = network.masks();
            let agrees = |tier: usize| (one.marker ^ other.marker) & masks[tier] == 0;
            let highest = (0..topology.tiers()).rev().find(|&tier| agrees(tier)).unwrap();
            let shared = topology.around(one.area).find(|area| topology.around(other.area).any(|it| it == *area));
            assert_eq!(highest, topology.areas()[shared.unwrap()].tier);
        }
    }
}

#[test]
fn traffic_groups_are_racks_hosts_parts_or_sets() {
    let text = "racks = [{ id = \"r\", tor = \"t\", hosts = [\"a\", \"b\", \"c\"] }]";
    let groups = |grouping: Grouping| {
        let topology = input::topology(text, &Accelerator::paper("each".into())).unwrap();
        let at = |number: u8| std::net::SocketAddr::from(([10, 0, 0, number], 1));
        let hosts = ["a", "b", "c"].into_iter().zip(1..).map(|(host, n)| HostAt { host: host.into(), ip: at(n).ip() });
        let network = Network::new(NetworkParts {
            topology,
            operators: vec![OperatorAt { switch: "t".into(), address: at(9), selector: None }],
            hosts: hosts.collect(),
            servers: vec![ServerAt { at: "c".into(), address: at(3) }],
            grouping,
            replica_groups: vec![ReplicaGroup { id: 0, servers: vec![at(3)] }],
        });
        network.unwrap().hosts().iter().map(|host| host.group).collect::<Vec<_>>()
    };
    assert_eq!(groups(Grouping::Racks), [Some(0); 3]);
    assert_eq!(groups(Grouping::Hosts), [Some(0), Some(1), Some(2)]);
    assert_eq!(groups(Grouping::Parts(2)), [Some(0), Some(0), Some(1)]);
    assert_eq!(groups(sets(&[("x", &["c"]), ("y", &["a"])])), [Some(1), None, Some(0)]);
}
