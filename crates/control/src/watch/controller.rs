//! Bounded lists for the view of a controller.

use super::{Listed, Watched, grouped};
use crate::cache::{ControllerSnapshot, GroupLine, OperatorLine, RsNodeLine};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The lists of a controller, bounded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControllerDetail {
    /// First those that need attention, then those with the most load.
    pub operators: Listed<OperatorLine>,
    /// Number of operators that do not answer.
    pub operators_silent: u64,
    /// Number of all operators.
    pub operators_all: u64,
    /// RSNode ids in their order, without quarantined ones.
    pub rsnodes: Listed<RsNodeLine>,
    /// First those that are degraded or misplaced, then those with the most requests.
    pub groups: Listed<GroupLine>,
    /// Number of groups that no RSNode serves.
    pub groups_degraded: u64,
    /// Number of all groups.
    pub groups_all: u64,
}

impl ControllerDetail {
    /// Takes the lists out of a snapshot.
    #[must_use]
    pub fn take(snapshot: &mut ControllerSnapshot) -> Self {
        let mut operators = std::mem::take(&mut snapshot.operators);
        let mut rsnodes = std::mem::take(&mut snapshot.rsnodes);
        let mut groups = std::mem::take(&mut snapshot.groups);
        let count = |count: usize| count as u64;
        let operators_silent = count(operators.iter().filter(|operator| !operator.is_alive).count());
        let groups_degraded = count(groups.iter().filter(|group| group.label.is_none()).count());
        let (operators_all, groups_all) = (count(operators.len()), count(groups.len()));
        operators.sort_by_key(|operator| {
            let OperatorLine { is_alive, is_up_to_date, is_barred, refused, load_per_s, .. } = operator;
            (*is_alive, *refused == 0, *is_up_to_date, !is_barred, Reverse(*load_per_s))
        });
        rsnodes.retain(|rsnode| rsnode.used != "quarantined");
        let at: BTreeMap<u16, Option<String>> =
            rsnodes.iter().map(|rsnode| (rsnode.id, rsnode.switch.clone())).collect();
        groups.sort_by_key(|group| {
            let is_there = group.label.and_then(|label| at.get(&label).cloned().flatten()) == group.wanted;
            (group.label.is_some(), is_there, Reverse(group.requests_per_s))
        });
        Self {
            operators: Listed::of(operators),
            operators_silent,
            operators_all,
            rsnodes: Listed::of(rsnodes),
            groups: Listed::of(groups),
            groups_degraded,
            groups_all,
        }
    }
}

impl Watched for ControllerSnapshot {
    fn program(&self) -> &'static str {
        "controller"
    }

    fn counts(&self) -> BTreeMap<String, u64> {
        grouped([("counters", &self.counters), ("shell", &self.shell)]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::controller_status::tests::snapshot;
    use crate::watch::LISTED_MAX;

    fn switches(detail: &ControllerDetail) -> Vec<&str> {
        detail.operators.shown.iter().map(|operator| operator.switch.as_str()).collect()
    }

    #[test]
    fn those_that_need_a_look_come_first() {
        let mut snapshot = snapshot();
        for (operator, load) in snapshot.operators.iter_mut().zip([5, 9, 7]) {
            (operator.is_alive, operator.is_barred, operator.load_per_s) = (true, false, load);
        }
        let detail = ControllerDetail::take(&mut snapshot.clone());
        assert_eq!((switches(&detail), detail.operators_silent), (vec!["tor-0", "tor-1", "core-0"], 0));
        snapshot.operators[2].is_alive = false;
        let detail = ControllerDetail::take(&mut snapshot);
        assert_eq!((switches(&detail), detail.operators_silent), (vec!["tor-1", "tor-0", "core-0"], 1));
        assert_eq!((detail.groups_degraded, detail.groups_all), (2, 2));
        assert!(snapshot.operators.is_empty() && snapshot.groups.is_empty(), "nothing twice");
    }

    #[test]
    fn a_network_of_thousands_makes_a_view_that_is_bounded() {
        let mut snapshot = snapshot();
        let (operator, group) = (snapshot.operators[0].clone(), snapshot.groups[0].clone());
        snapshot.operators = vec![operator; 10_000];
        snapshot.groups = vec![group; 60_000];
        snapshot.rsnodes =
            (1..=10_000).map(|id| RsNodeLine { id, switch: Some("tor-0".into()), used: "serving".into() }).collect();
        let detail = ControllerDetail::take(&mut snapshot);
        let text = serde_json::to_string(&(&snapshot, &detail)).unwrap();
        assert!(text.len() < 256 << 10, "{}", text.len());
        assert_eq!((detail.operators.shown.len(), detail.operators.more), (LISTED_MAX, 10_000 - 256));
        assert_eq!((detail.groups.more, detail.rsnodes.more), (60_000 - 256, 10_000 - 256));
    }
}
