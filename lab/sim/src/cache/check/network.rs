//! A trial's network, as its controllers know it.

use super::script::IDS;
use super::trial::Trial;
use midflight_cache::control::network::{HostAt, OperatorAt, ReplicaGroup, ServerAt};
use midflight_cache::control::{ControllerConfig, Grouping, Network, NetworkParts, Start};
use midflight_endpoint::MS;
use midflight_placement::{Accelerator, input};
use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::Arc;

const UPPERS_A_POD: usize = 2;
const UTILISATION: f64 = 0.5;
/// Requests per second, more than ever occur.
const UNLIMITED: f64 = 10_000.0;

fn pod_of(rack: usize) -> usize {
    rack / 2
}

/// A trial's network. `at` gives addresses from the first number of a kind and the place.
pub(super) fn network(trial: &Trial, at: fn(usize, usize) -> SocketAddr, groups: &[Vec<SocketAddr>]) -> Arc<Network> {
    let count = trial.operators();
    let (first_server, first_client) = (2 * count, 2 * count + trial.servers.len());
    let topology = input::topology(&topology(trial), &Accelerator::paper("each".into())).expect("it is one");
    let parts = NetworkParts {
        topology,
        operators: (0..count)
            .map(|place| OperatorAt {
                switch: format!("switch-{place}"),
                address: at(0, place),
                selector: Some(at(count, place)),
            })
            .collect(),
        hosts: (0..trial.clients.len())
            .map(|place| HostAt { host: format!("host-{place}"), ip: at(first_client, place).ip() })
            .collect(),
        servers: (0..trial.servers.len())
            .map(|place| ServerAt {
                at: format!("rack-{}", trial.rack_of_server(place)),
                address: at(first_server, place),
            })
            .collect(),
        grouping: if trial.is_by_rack { Grouping::Racks } else { Grouping::Hosts },
        replica_groups: (0..).zip(groups).map(|(id, servers)| ReplicaGroup { id, servers: servers.clone() }).collect(),
    };
    Arc::new(Network::new(parts).expect("a trial's network makes sense"))
}

/// After the racks' operators come aggregation switches, two a pod, and then core switches.
fn topology(trial: &Trial) -> String {
    let pods = pod_of(trial.racks - 1) + 1;
    let switch = |upper: usize| format!("\"switch-{}\"", trial.racks + upper);
    let (lower, upper): (Vec<_>, Vec<_>) = (0..trial.uppers).partition(|upper| *upper < UPPERS_A_POD * pods);
    let list = |uppers: Vec<usize>| uppers.into_iter().map(switch).collect::<Vec<_>>().join(", ");
    let mut text = format!("core = [{}]\npods = [\n", list(upper));
    for pod in 0..pods {
        let own = lower.iter().copied().filter(|upper| upper / UPPERS_A_POD == pod).collect();
        let _ = writeln!(text, "  {{ id = \"pod-{pod}\", switches = [{}] }},", list(own));
    }
    text += "]\nracks = [\n";
    for rack in 0..trial.racks {
        let hosts = (0..trial.clients.len()).filter(|client| trial.rack_of_client(*client) == rack);
        let hosts: Vec<String> = hosts.map(|client| format!("\"host-{client}\"")).collect();
        let (pod, hosts) = (pod_of(rack), hosts.join(", "));
        let _ = writeln!(
            text,
            "  {{ id = \"rack-{rack}\", within = \"pod-{pod}\", tor = \"switch-{rack}\", hosts = [{hosts}] }},"
        );
    }
    // `limit` is this share of the capacity.
    let service_us = UTILISATION * 1e6 / limit(trial);
    let _ = writeln!(
        text,
        "]\naccelerator = {{ cores = 1, service_time_us = {service_us:?}, utilisation = {UTILISATION:?} }}"
    );
    text
}

/// T_max: requests per second of each accelerator.
pub(super) fn limit(trial: &Trial) -> f64 {
    if trial.limit == 0 { UNLIMITED } else { f64::from(trial.limit) }
}

/// E, as a share of all requests.
pub(super) fn extra_hops(trial: &Trial) -> f64 {
    if trial.seed.is_multiple_of(2) { 1.0 } else { 0.2 }
}

/// Tier of an operator (core switches: 0) if it is on the path of requests that `labeller` labels.
pub(super) fn tier_of(trial: &Trial, labeller: usize, operator: usize) -> Option<usize> {
    let Some(upper) = operator.checked_sub(trial.racks) else { return (operator == labeller).then_some(2) };
    let pods = pod_of(trial.racks - 1) + 1;
    match upper / UPPERS_A_POD {
        pod if pod >= pods => Some(0),
        pod => (pod == pod_of(labeller)).then_some(1),
    }
}

pub(super) fn controller_config(trial: &Trial, place: usize) -> ControllerConfig {
    ControllerConfig {
        place: place as u32,
        ask_every: 10 * MS,
        dead_after: trial.detect_ms * MS,
        repeat_after: 20 * MS,
        barred_for: 300 * MS,
        takeover_after: 50 * MS,
        longest_response: 1_500 * MS,
        forget_after: 3_000 * MS,
        window: 100 * MS,
        plan_every: 200 * MS,
        plan_timeout: 200 * MS,
        hysteresis: 0,
        extra_hops: extra_hops(trial),
        rsnodes: IDS,
        batch: 16,
        start: if trial.seed.is_multiple_of(3) { Start::OwnRack } else { Start::Degraded },
        ..ControllerConfig::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NodeId;
    use midflight_placement::Instance;

    /// The campaign computes places independently; they must match the controllers' network.
    #[test]
    fn n4_an_operator_is_on_the_way_of_a_group_or_not_whoever_says_it() {
        for trial in (0..200).map(Trial::draw).filter(|trial| trial.controllers > 0) {
            let at: fn(usize, usize) -> SocketAddr = |first, place| NodeId((first + place) as u32).home();
            let network = network(&trial, at, &[]);
            let tiers = network.topology().tiers();
            let traffic = network.traffic(|_| vec![midflight_placement::Rate::ZERO; tiers]);
            let instance = Instance::with_share(network.topology().clone(), traffic, 1.0, 1);
            let place =
                |operator: usize| (0..trial.operators()).find(|place| at(0, *place) == network.address(operator));
            for group in 0..network.groups().len() {
                let labeller = place(network.labeller(group)).unwrap();
                let on_path: Vec<usize> = instance.on_path(group).collect();
                for operator in 0..network.operators() {
                    let theirs = on_path.contains(&operator).then(|| network.topology().tier(operator));
                    assert_eq!(tier_of(&trial, labeller, place(operator).unwrap()), theirs, "seed {}", trial.seed);
                }
            }
        }
    }
}
