//! The labels in force keep the plan's constraints (N4), and groups outside the plan are degraded (N5). The arithmetic
//! is independent of the planner: only its instance's traffic is used.

use super::super::rules::{N4, N5};
use super::super::trial::Trial;
use super::Scene;
use crate::NodeId;
use crate::cache::ControlEvent;
use crate::cache::check::network::{extra_hops, limit, tier_of};
use crate::check::{Checked, holds};
use midflight_cache::control::Event;
use midflight_endpoint::Nanos;
use midflight_placement::Instance;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;

/// Rates are rounded to thousandths.
const ROUNDED: f64 = 0.1;

#[derive(Debug)]
pub(super) struct Plans {
    trial: Trial,
    /// The input of the plan. Unknown for a plan that a controller has rearranged or found in force.
    made_for: Option<Rc<Instance>>,
    is_deployed: bool,
}

impl Plans {
    pub(super) fn new(trial: &Trial) -> Self {
        Self { trial: trial.clone(), made_for: None, is_deployed: false }
    }

    pub(super) fn forget(&mut self) {
        (self.made_for, self.is_deployed) = (None, false);
    }

    pub(super) fn event(&mut self, at: Nanos, scene: &Scene, node: NodeId, event: &ControlEvent) -> Checked {
        if scene.active.len() != 1 || !scene.active.contains(&node) {
            self.forget();
            return Ok(());
        }
        let (event, target) = match event {
            ControlEvent::Took { instance } => {
                (self.made_for, self.is_deployed) = (Some(Rc::clone(instance)), false);
                return Ok(());
            }
            ControlEvent::Answered { .. } | ControlEvent::TookNot => return Ok(()),
            ControlEvent::Driver { event, target } => (&**event, target),
        };
        match event {
            Event::TakesOver(_) | Event::IsActive(_) | Event::SteppedDown(_) => self.forget(),
            Event::OperatorFailed { groups: 1.., .. } => self.forget(),
            // It only removes groups.
            Event::Overloaded { .. } => self.is_deployed = false,
            Event::Deployed => {
                self.is_deployed = true;
                self.left_out_are_degraded(at, scene, target)?;
                return self.check(scene);
            }
            _ => {}
        }
        Ok(())
    }

    /// N5: groups outside the plan are degraded. N4: each other group has the plan's RSNode.
    fn left_out_are_degraded(&self, at: Nanos, scene: &Scene, target: &[Option<SocketAddr>]) -> Checked {
        // With a wrong clock, a controller may consider operators lost that are not, and their labels removed.
        if scene.is_contested || !scene.is_calm_since(at, at) {
            return Ok(());
        }
        for (group, target) in target.iter().enumerate() {
            let Some(labeller) = scene.labeller(group) else { continue };
            // A controller may not have noticed a recent fault yet.
            if !scene.is_known(labeller, at) || scene.dead.contains(&labeller) {
                continue;
            }
            let (has, wants) = (scene.rsnode(group), target.and_then(|at| scene.place_at(at)));
            holds!(
                N5,
                wants.is_some() || has.is_none(),
                "the plan leaves group {group} out, and {has:?} selects for it"
            );
            holds!(
                N4,
                wants == has,
                "a plan is said to be in force; for group {group} it has {wants:?}, and {has:?} selects"
            );
        }
        Ok(())
    }

    /// N4: place, load and cost of each RSNode.
    pub(super) fn check(&self, scene: &Scene) -> Checked {
        if !self.is_deployed || scene.is_contested {
            return Ok(());
        }
        let mut loads: BTreeMap<usize, f64> = BTreeMap::new();
        let (mut extra, mut all) = (0.0, 0.0);
        for group in 0..scene.groups() {
            let rates: Option<Vec<f64>> = self.made_for.as_ref().and_then(|instance| {
                Some(instance.groups().get(group)?.by_tier.iter().map(|rate| rate.per_s()).collect())
            });
            all += rates.iter().flatten().sum::<f64>();
            let (Some(labeller), Some(rsnode)) = (scene.labeller(group), scene.rsnode(group)) else { continue };
            let Some(tier) = tier_of(&self.trial, labeller, rsnode) else {
                holds!(N4, false, "operator {rsnode} selects for group {group}, on whose way it is not");
                continue;
            };
            for (top, rate) in rates.iter().flatten().enumerate() {
                *loads.entry(rsnode).or_default() += rate;
                // Up to the RSNode and down again, from where the request would have turned back.
                extra += rate * 2.0 * top.saturating_sub(tier) as f64;
            }
        }
        let most = limit(&self.trial) + ROUNDED;
        for (rsnode, load) in loads {
            let fits = load <= most;
            holds!(N4, fits, "operator {rsnode} selects for {load:.1} requests a second: at most {most:.1}");
        }
        let most = extra_hops(&self.trial) * all + ROUNDED;
        let fits = extra <= most;
        holds!(N4, fits, "the plan in force costs {extra:.1} extra hops a second: at most {most:.1}");
        Ok(())
    }
}
