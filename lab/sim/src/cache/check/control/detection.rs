//! Detection of dead RSNodes (N6): how long after a death reachable operators label requests for it.

use super::super::rules::N6;
use super::super::trial::Trial;
use super::Scene;
use super::views::View;
use crate::cache::check::network::controller_config;
use crate::check::{Checked, holds};
use midflight_endpoint::{MS, Nanos};
use std::cell::Cell;
use std::collections::BTreeSet;

/// Longest retransmission of a stream, which also has a longer latency than a datagram.
const STREAM: Nanos = 21 * MS;
/// Links and switches of the tree.
const HARDWARE: Nanos = MS;
/// Consecutive losses of an order; more do not occur in any practical number of trials.
const LOST_IN_SUCCESSION: Nanos = 5;

thread_local! {
    static ALL: Cell<Detections> = const { Cell::new(Detections { count: 0, sum: 0, worst: 0, worst_bound: 0 }) };
}

/// Detected deaths of RSNodes in a thread's runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Detections {
    /// Number of deaths.
    pub count: u64,
    /// Sum of the detection times.
    pub sum: Nanos,
    /// The longest.
    pub worst: Nanos,
    /// The bound of the longest.
    pub worst_bound: Nanos,
}

/// The detections since the last call.
#[must_use]
pub fn take_detections() -> Detections {
    ALL.take()
}

#[derive(Debug)]
struct Death {
    at: Nanos,
    rsnode: usize,
    ids: BTreeSet<u16>,
    last: Option<Nanos>,
    labelled: BTreeSet<usize>,
}

#[derive(Debug)]
pub(super) struct Detection {
    bound: Nanos,
    deaths: Vec<Death>,
}

impl Detection {
    /// `docs/internals/cache-controller.md`, "Who is dead".
    pub(super) fn new(trial: &Trial) -> Self {
        let config = controller_config(trial, 0);
        let net = trial.network;
        let reordering = if net.reordering > 0.0 { net.reordering_us } else { 0 };
        let one_way = net.delay_max_us * 1_000 + HARDWARE;
        let (one_way, again) = match trial.has_streams {
            true => (one_way + STREAM, 0),
            false => (one_way + reordering * 1_000, if net.loss > 0.0 { LOST_IN_SUCCESSION } else { 0 }),
        };
        // Earlier orders are sent and answered before the one that counts.
        let bound = config.dead_after + config.ask_every + 3 * one_way + again * config.repeat_after;
        Self { bound, deaths: Vec::new() }
    }

    pub(super) fn crashed(&mut self, at: Nanos, scene: &Scene, rsnode: usize, before: &View) {
        let address = scene.addresses[rsnode];
        let ids: BTreeSet<u16> = before.ids.iter().filter(|(_, at)| **at == address).map(|(id, _)| *id).collect();
        if ids.is_empty() || scene.active.len() != 1 || !scene.is_calm_since(at, at) {
            return;
        }
        self.deaths.push(Death { at, rsnode, ids, last: None, labelled: BTreeSet::new() });
        self.changed(at, scene);
    }

    pub(super) fn changed(&mut self, at: Nanos, scene: &Scene) {
        for death in &mut self.deaths {
            let labels = |view: &View| {
                let is_its =
                    |id: &u16| death.ids.contains(id) && view.ids.get(id) == Some(&scene.addresses[death.rsnode]);
                view.labels.values().any(is_its)
            };
            let is_well = |place: &usize| *place != death.rsnode && scene.is_well_since(*place, death.at);
            let now: BTreeSet<usize> =
                (0..scene.views.len()).filter(is_well).filter(|place| labels(&scene.views[*place])).collect();
            if !now.is_empty() || !death.labelled.is_empty() {
                death.last = Some(at);
            }
            death.labelled = now;
        }
    }

    pub(super) fn time_passes(&mut self, at: Nanos, scene: &Scene) -> Checked {
        while let Some(death) = self.deaths.first().filter(|death| at > death.at + self.bound) {
            let (labelled, since) = (death.labelled.clone(), death.at);
            let still: Vec<usize> = labelled.into_iter().filter(|place| scene.is_well_since(*place, since)).collect();
            let death = self.deaths.remove(0);
            if !scene.is_calm_since(since, at) || scene.active.len() != 1 {
                continue;
            }
            let (ms, rsnode) = (self.bound / MS, death.rsnode);
            holds!(
                N6,
                still.is_empty(),
                "RSNode {rsnode} died {ms} ms ago, and operators {still:?} send requests to it"
            );
            let Some(last) = death.last else { continue };
            let (took, mut all) = (last - since, ALL.get());
            (all.count, all.sum) = (all.count + 1, all.sum + took);
            if took > all.worst {
                (all.worst, all.worst_bound) = (took, self.bound);
            }
            ALL.set(all);
        }
        Ok(())
    }
}
