//! Checks the work of real controllers from outside: by the rules of operators, not by the controllers' own state.
//!
//! | where | what |
//! |---|---|
//! | `views` | an operator's RSNode ids and labels |
//! | `plans` | labels in force keep the constraints (N4); groups without a plan are degraded (N5) |
//! | `detection` | how long operators send requests to a dead RSNode (N6) |
//! | `ids` | lifetime of RSNode ids (N7) |

mod detection;
mod ids;
mod plans;
mod views;

pub use detection::{Detections, take_detections};

use super::rules::{N4, N6};
use super::trial::{Fault, FaultKind, Party, Trial};
use crate::cache::{ControlEvent, OperatorActor};
use crate::check::{Checked, Common, Places, holds};
use crate::{Happening, NodeId};
use detection::Detection;
use ids::Ids;
use midflight_cache::control::controller::Failure;
use midflight_cache::control::{Event, Network};
use midflight_endpoint::{MS, Nanos};
use plans::Plans;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use views::View;

/// Time after a disturbance in which a party's view may be outdated: an end notices a broken stream within 400 ms, and
/// soon replaces it.
const SETTLED: Nanos = 600 * MS;

#[derive(Debug)]
struct Scene {
    network: Arc<Network>,
    operators: Vec<NodeId>,
    addresses: Vec<SocketAddr>,
    controllers: BTreeSet<NodeId>,
    views: Vec<View>,
    up: BTreeSet<NodeId>,
    none_since: Option<Nanos>,
    active: BTreeSet<NodeId>,
    /// Two active controllers have met, so each may have made its own plans.
    is_contested: bool,
    taken_over: Nanos,
    /// Last fault of a controller or of the whole network.
    disturbed: Nanos,
    /// Last fault of each operator.
    disturbed_at: Vec<Nanos>,
    paused: BTreeSet<NodeId>,
    judged_at: Vec<Nanos>,
    dead: BTreeSet<usize>,
    /// Periods with a bad network or a wrong clock of a controller.
    strange: Vec<(Nanos, Nanos)>,
}

impl Scene {
    fn place_at(&self, address: SocketAddr) -> Option<usize> {
        self.addresses.iter().position(|other| *other == address)
    }

    fn place_of(&self, node: NodeId) -> Option<usize> {
        self.operators.iter().position(|other| *other == node)
    }

    fn place(&self, operator: usize) -> Option<usize> {
        self.place_at(self.network.address(operator))
    }

    fn labeller(&self, group: usize) -> Option<usize> {
        self.place(self.network.labeller(group))
    }

    fn groups(&self) -> usize {
        self.network.groups().len()
    }

    /// The RSNode to which the labeller sends requests of a traffic group.
    fn rsnode(&self, group: usize) -> Option<usize> {
        let labeller = self.labeller(group)?;
        let view = &self.views[labeller];
        let at = view.ids.get(view.labels.get(&(group as u16))?)?;
        self.place_at(*at)
    }

    /// Whether controllers and network have had no fault since shortly before `since`.
    fn is_calm_since(&self, since: Nanos, now: Nanos) -> bool {
        let is_strange = |(begin, end): &(Nanos, Nanos)| *begin <= now && *end + SETTLED >= since;
        let is_paused = self.controllers.iter().any(|node| self.paused.contains(node));
        self.disturbed + SETTLED < since && !is_paused && !self.strange.iter().any(is_strange)
    }

    /// Whether a controller has noticed the last fault of an operator, which runs.
    fn is_known(&self, place: usize, now: Nanos) -> bool {
        let is_here = self.views[place].is_up && !self.paused.contains(&self.operators[place]);
        is_here && (self.judged_at[place] > self.disturbed_at[place] || self.is_well_since(place, now))
    }

    /// Whether an operator has had no fault since shortly before `since`.
    fn is_well_since(&self, place: usize, since: Nanos) -> bool {
        let is_here = self.views[place].is_up && !self.paused.contains(&self.operators[place]);
        is_here && (self.disturbed_at[place] == 0 || self.disturbed_at[place] + SETTLED < since)
    }
}

#[derive(Debug)]
pub(super) struct Control {
    scene: Scene,
    plans: Plans,
    detection: Detection,
    ids: Ids,
    under_way: Nanos,
}

impl Control {
    pub(super) fn new(trial: &Trial, places: &Places<Party>, network: Arc<Network>) -> Self {
        let operators: Vec<NodeId> = places.of(Party::Operator).collect();
        let controllers: BTreeSet<NodeId> = places.of(Party::Controller).collect();
        let times = |fault: &Fault| (fault.at_ms * MS, (fault.at_ms + fault.for_ms) * MS);
        let is_strange = |fault: &&Fault| {
            let is_drift = matches!(fault.what, FaultKind::Common(Common::Drift { party: Party::Controller(_), .. }));
            is_drift || matches!(fault.what, FaultKind::Common(Common::Burst(_)))
        };
        let strange: Vec<_> = trial.faults.iter().filter(is_strange).map(times).collect();
        let scene = Scene {
            addresses: operators.iter().map(|node| node.home()).collect(),
            views: operators.iter().map(|_| View::up()).collect(),
            disturbed_at: vec![0; operators.len()],
            judged_at: vec![0; operators.len()],
            operators,
            up: controllers.clone(),
            controllers,
            network,
            none_since: None,
            active: BTreeSet::new(),
            is_contested: false,
            taken_over: 0,
            disturbed: 0,
            paused: BTreeSet::new(),
            dead: BTreeSet::new(),
            strange,
        };
        let has_burst = trial.faults.iter().any(|fault| matches!(fault.what, FaultKind::Common(Common::Burst(_))));
        let under_way = if has_burst { 400 * MS } else { 100 * MS };
        Self { scene, plans: Plans::new(trial), detection: Detection::new(trial), ids: Ids::new(trial), under_way }
    }

    pub(super) fn event(&mut self, at: Nanos, node: NodeId, event: &ControlEvent) -> Checked {
        if let ControlEvent::Answered { is_wrong: true, has_changed } = event {
            holds!(
                N4,
                !has_changed,
                "a controller takes a plan that is not the one it asked for, or breaks a constraint"
            );
        }
        if let ControlEvent::Driver { event, .. } = event {
            self.said(at, node, event);
        }
        self.plans.event(at, &self.scene, node, event)
    }

    fn said(&mut self, at: Nanos, node: NodeId, event: &Event) {
        let scene = &mut self.scene;
        match event {
            Event::TakesOver(_) => {
                scene.is_contested |= scene.active.iter().any(|other| *other != node);
                (scene.taken_over, scene.disturbed) = (at, at);
                scene.active.remove(&node);
            }
            Event::IsActive(_) => {
                scene.is_contested |= scene.active.iter().any(|other| *other != node);
                scene.active.insert(node);
                scene.dead.clear();
                scene.disturbed = at;
            }
            Event::SteppedDown(_) => {
                scene.active.remove(&node);
                scene.disturbed = at;
            }
            Event::OperatorFailed { operator, .. } | Event::OperatorBack(operator) => {
                let Some(place) = scene.place(*operator) else { return };
                scene.judged_at[place] = at;
                match event {
                    Event::OperatorFailed { why: Failure::Silent, .. } => drop(scene.dead.insert(place)),
                    Event::OperatorBack(_) => drop(scene.dead.remove(&place)),
                    _ => {}
                }
                self.ids.judged(at, place);
            }
            _ => {}
        }
    }

    pub(super) fn turn(&mut self, at: Nanos, node: NodeId, operator: &OperatorActor) -> Checked {
        self.detection.time_passes(at, &self.scene)?;
        let Some(place) = self.scene.place_of(node) else { return Ok(()) };
        if !self.scene.views[place].is_old(operator) {
            return Ok(());
        }
        let has_orders = operator.keeper().counters().sets > self.scene.views[place].sets;
        let may_have =
            self.scene.none_since.is_none_or(|since| at <= since.max(self.scene.disturbed_at[place]) + self.under_way);
        holds!(N6, !has_orders || may_have, "operator {place} is given rules though no controller runs");
        let view = View::of(operator, self.scene.addresses[place]);
        let before = std::mem::replace(&mut self.scene.views[place], view);
        self.ids.changed(at, &self.scene, place, &before)?;
        self.detection.changed(at, &self.scene);
        self.plans.check(&self.scene)
    }

    /// A fault of a node or of the network.
    pub(super) fn happened(&mut self, at: Nanos, happening: &Happening<'_>) {
        let scene = &mut self.scene;
        match *happening {
            Happening::Crashed { node } | Happening::Restarted { node } => {
                let is_up = matches!(happening, Happening::Restarted { .. });
                if let Some(place) = scene.place_of(node) {
                    scene.disturbed_at[place] = at;
                    let before =
                        std::mem::replace(&mut scene.views[place], if is_up { View::up() } else { View::default() });
                    if !is_up {
                        self.ids.crashed(at, &before);
                        self.detection.crashed(at, &self.scene, place, &before);
                    }
                } else if scene.controllers.contains(&node) {
                    scene.disturbed = at;
                    scene.active.remove(&node);
                    if is_up {
                        scene.up.insert(node)
                    } else {
                        scene.up.remove(&node)
                    };
                    scene.none_since = scene.up.is_empty().then(|| scene.none_since.unwrap_or(at));
                    self.plans.forget();
                }
            }
            Happening::Paused { node } | Happening::Resumed { node } => {
                if matches!(happening, Happening::Paused { .. }) {
                    scene.paused.insert(node)
                } else {
                    scene.paused.remove(&node)
                };
                if let Some(place) = scene.place_of(node) {
                    scene.disturbed_at[place] = at;
                } else if scene.controllers.contains(&node) {
                    scene.disturbed = at;
                }
            }
            Happening::Partitioned | Happening::Healed => scene.disturbed = at,
            Happening::Moved { .. } | Happening::Program(_) => {}
        }
    }

    pub(super) fn is_degraded(&self, group: usize) -> bool {
        self.scene.rsnode(group).is_none()
    }
}

type Meanings = BTreeMap<u16, SocketAddr>;
