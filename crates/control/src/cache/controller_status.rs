//! `/status` and metrics of a controller.

use crate::metrics::{ProcessStatus, ShellCounters, counter, counters, info, named, numbers};
use midflight_cache::control::controller::{Role, Status};
use midflight_cache::control::network::Network;
use midflight_endpoint::MS;
use prometheus_client::encoding::DescriptorEncoder;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::SocketAddr;

/// A controller at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControllerSnapshot {
    /// Version of the software.
    pub version: String,
    /// `standby`, `claiming` or `active`.
    pub role: String,
    /// Number of its term; 0 of a standby.
    pub term: u64,
    /// Of a standby: milliseconds since an operator heard of an active controller; `None`: none has.
    pub other_heard_ms: Option<u64>,
    /// HTTP addresses of all controllers, in their order.
    pub controllers: Vec<SocketAddr>,
    /// Its index among them, from 0.
    pub place: u32,
    /// In the order of the topology.
    pub operators: Vec<OperatorLine>,
    /// RSNode ids that are in use or quarantined.
    pub rsnodes: Vec<RsNodeLine>,
    /// Traffic groups.
    pub groups: Vec<GroupLine>,
    /// Whether all labels are those of the plan.
    pub is_deployed: bool,
    /// The last plan that was made.
    pub plan: Option<PlanStatus>,
    /// Counters of its work, by name.
    pub counters: ShellCounters,
    /// Counters of streams and threads, by name.
    pub shell: ShellCounters,
}

/// An operator, as its controller sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorLine {
    /// Its name in the topology.
    pub switch: String,
    /// Where it takes packets.
    pub address: SocketAddr,
    /// Whether there is a stream to it.
    pub is_connected: bool,
    /// Whether it answers.
    pub is_alive: bool,
    /// Whether it has all rules that it should have.
    pub is_up_to_date: bool,
    /// Whether it is in no plan: it was dead recently, or has no selector.
    pub is_barred: bool,
    /// Orders that it refuses, and should carry out: the log names them.
    pub refused: u64,
    /// Milliseconds since its last message; `None`: it has sent none.
    pub heard_ms: Option<u64>,
    /// Whether it has a selector, and so may be an RSNode.
    pub may_select: bool,
    /// Packets per second of its selector.
    pub load_per_s: u64,
    /// Limit of its accelerator, in packets per second, together with the other operators that share it.
    pub load_most_per_s: u64,
}

/// An RSNode id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RsNodeLine {
    /// The id.
    pub id: u16,
    /// Its operator's name, while it has one.
    pub switch: Option<String>,
    /// `preparing`, `serving`, `retiring`, `removing` or `quarantined`.
    pub used: String,
}

/// A traffic group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupLine {
    /// Its name.
    pub group: String,
    /// The RSNode id of its label; `None`: it is degraded, or that is unknown.
    pub label: Option<u16>,
    /// The operator that should select for it.
    pub wanted: Option<String>,
    /// Requests per second of its hosts, as far as is known.
    pub requests_per_s: u64,
}

/// A controller's place among all controllers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControllerPlace {
    /// HTTP addresses of all controllers, in their order.
    pub controllers: Vec<SocketAddr>,
    /// Its index among them, from 0.
    pub place: u32,
}

/// A plan that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanStatus {
    /// RSNodes in it.
    pub rsnodes: usize,
    /// No plan has fewer.
    pub bound: usize,
    /// Traffic groups that no RSNode serves.
    pub degraded: usize,
    /// How it was found.
    pub method: String,
    /// Milliseconds that planning took.
    pub took_ms: u64,
}

impl ControllerSnapshot {
    /// From a controller's status. `connected`: by operator, whether there is a stream to it.
    #[must_use]
    pub fn new(
        network: &Network,
        place: &ControllerPlace,
        status: &Status,
        plan: Option<PlanStatus>,
        connected: &[bool],
        shell: ShellCounters,
    ) -> Self {
        let topology = network.topology();
        let name = |operator: usize| topology.operators()[operator].id.clone();
        let operators = status.operators.iter().enumerate().map(|(operator, seen)| OperatorLine {
            switch: name(operator),
            address: network.address(operator),
            is_connected: connected.get(operator).copied().unwrap_or_default(),
            // While no operator answers, none is considered dead: the controller itself may be cut off.
            is_alive: seen.is_alive && connected.get(operator) == Some(&true),
            is_up_to_date: seen.is_up_to_date,
            is_barred: seen.is_barred,
            refused: seen.refused as u64,
            heard_ms: seen.heard.map(|nanos| nanos / MS),
            may_select: network.selector(operator).is_some(),
            load_per_s: seen.load_per_s,
            load_most_per_s: topology.accelerators()[topology.operators()[operator].accelerator].limit() / 1000,
        });
        let rsnodes = status.ids.iter().map(|(id, operator, used)| RsNodeLine {
            id: *id,
            switch: operator.map(name),
            used: used.name().into(),
        });
        let groups = network.groups().iter().zip(&status.labels).zip(&status.target).zip(&status.requests_per_s);
        let groups = groups.map(|(((group, label), target), requests_per_s)| GroupLine {
            group: group.id.clone(),
            label: *label,
            wanted: target.map(name),
            requests_per_s: *requests_per_s,
        });
        let role = match status.role {
            Role::Standby => "standby",
            Role::Claiming(_) => "claiming",
            Role::Active(_) => "active",
        };
        Self {
            version: env!("CARGO_PKG_VERSION").into(),
            role: role.into(),
            term: status.role.term().map_or(0, |term| term.number),
            other_heard_ms: status.other_heard.map(|nanos| nanos / MS),
            controllers: place.controllers.clone(),
            place: place.place,
            operators: operators.collect(),
            rsnodes: rsnodes.collect(),
            groups: groups.collect(),
            is_deployed: status.is_deployed,
            plan,
            counters: named("", status.counters.by_name()).collect(),
            shell,
        }
    }
}

impl ProcessStatus for ControllerSnapshot {
    const PREFIX: &'static str = "midflight_controller";

    fn shell(&mut self) -> &mut ShellCounters {
        &mut self.shell
    }

    fn encode(&self, e: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let labels = [("version", self.version.as_str()), ("role", &self.role)];
        info(e, "about", "The controller", &labels)?;
        counter(e, "term", "Number of its term", self.term)?;
        counters(e, "events", "What it has done, by name", "name", &self.counters)?;
        counters(e, "shell", "Counts of its streams and threads, by name", "name", &self.shell)?;
        let count = |is: fn(&OperatorLine) -> bool| self.operators.iter().filter(|operator| is(operator)).count();
        let serving = self.rsnodes.iter().filter(|rsnode| rsnode.used == "serving").count();
        let degraded = self.groups.iter().filter(|group| group.label.is_none()).count();
        let all = [
            ("active", "1 where it gives orders", usize::from(self.role == "active")),
            ("operators", "Operators of the topology", self.operators.len()),
            ("operators_connected", "Operators with a stream", count(|operator| operator.is_connected)),
            ("operators_alive", "Operators that answer", count(|operator| operator.is_alive)),
            ("operators_up_to_date", "Operators that have all their rules", count(|operator| operator.is_up_to_date)),
            ("operators_refusing", "Operators that refuse orders", count(|operator| operator.refused > 0)),
            ("rsnodes", "RSNodes that serve", serving),
            ("groups", "Traffic groups", self.groups.len()),
            ("groups_degraded", "Traffic groups without an RSNode", degraded),
            ("deployed", "1 where all labels are those of the plan", usize::from(self.is_deployed)),
        ];
        numbers(e, all.map(|(name, help, value)| (name, help, value as u64)))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::cache::ControllerFile;
    use crate::cache::controller_file::EXAMPLE_TOML;
    use crate::file::FileError;
    use crate::metrics::AnySnapshot;
    use midflight_cache::control::Controller;
    use midflight_cache::control::controller::ControllerConfig;
    use std::path::Path;
    use std::sync::Arc;

    pub(crate) fn snapshot() -> ControllerSnapshot {
        let read = |path: &Path| Err(FileError::value(path, "no file"));
        let file = ControllerFile::parse(EXAMPLE_TOML, Path::new("c.toml"), read).unwrap();
        let network = Arc::new(file.network);
        let controller = Controller::new(0, ControllerConfig::default(), Arc::clone(&network), 1);
        let plan = PlanStatus { rsnodes: 2, bound: 1, degraded: 0, method: "first-fit".into(), took_ms: 3 };
        let shell = ShellCounters::from([("streams_broken".into(), 4)]);
        let place = ControllerPlace { controllers: file.controllers, place: 0 };
        ControllerSnapshot::new(&network, &place, &controller.status(), Some(plan), &[true, false, true], shell)
    }

    #[test]
    fn metrics_say_what_the_status_says() {
        let text = snapshot().to_prometheus();
        for line in [
            "midflight_controller_active 0",
            "midflight_controller_operators 3",
            "midflight_controller_operators_connected 2",
            "midflight_controller_groups_degraded 2",
            "midflight_controller_events_total{name=\"sets\"} 0",
            "midflight_controller_shell_total{name=\"streams_broken\"} 4",
        ] {
            assert!(text.lines().any(|l| l == line), "no line {line} in\n{text}");
        }
    }

    #[test]
    fn promtool_takes_the_metrics() {
        crate::http::tests::promtool::assert_promtool_takes(&snapshot());
    }
}
