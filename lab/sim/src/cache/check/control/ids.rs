//! Lifetime of RSNode ids (N7): an id becomes a label only when all operators know it; it stays known for the longest
//! time of an answer after its last label, and then is quarantined for as long again.

use super::super::rules::N7;
use super::super::trial::{FaultKind, Party, Trial};
use super::views::View;
use super::{SETTLED, Scene};
use crate::cache::check::network::controller_config;
use crate::check::{Checked, Common, holds};
use midflight_endpoint::{MS, Nanos};
use std::collections::BTreeMap;
use std::net::SocketAddr;

#[derive(Clone, Copy, Debug)]
struct Known {
    owner: SocketAddr,
    /// When a running operator had a rule of it, first and last.
    first: Nanos,
    last: Nanos,
    labelled: Option<Nanos>,
}

#[derive(Debug)]
pub(super) struct Ids {
    /// With an allowance for clock drift between controllers.
    longest: Nanos,
    /// Not if an operator is unreachable for long (it keeps outdated rules) or a clock is wrong (waits end early).
    is_checked: bool,
    known: BTreeMap<u16, Known>,
    /// By operator: when a controller last judged whether it has failed.
    judged: BTreeMap<usize, Nanos>,
}

impl Ids {
    pub(super) fn new(trial: &Trial) -> Self {
        let is_bad = |what: &FaultKind| {
            let FaultKind::Common(common) = what else { return false };
            let is_controller = matches!(common, Common::Drift { party: Party::Controller(_), .. });
            is_controller || matches!(common, Common::Partition { .. } | Common::Burst(_))
        };
        let longest = controller_config(trial, 0).longest_response / 20 * 19;
        let is_checked = !trial.faults.iter().any(|fault| is_bad(&fault.what));
        Self { longest, is_checked, known: BTreeMap::new(), judged: BTreeMap::new() }
    }

    pub(super) fn judged(&mut self, at: Nanos, place: usize) {
        self.judged.insert(place, at);
    }

    pub(super) fn crashed(&mut self, at: Nanos, before: &View) {
        for id in before.ids.keys() {
            if let Some(known) = self.known.get_mut(id) {
                known.last = at;
                if before.has_label(*id) {
                    known.labelled = Some(at);
                }
            }
        }
    }

    pub(super) fn changed(&mut self, at: Nanos, scene: &Scene, place: usize, before: &View) -> Checked {
        let view = &scene.views[place];
        if !self.is_checked || scene.is_contested {
            return Ok(());
        }
        self.are_known_before_they_are_labels(at, scene, place, before)?;
        self.are_removed_late(at, scene, place, before)?;
        self.crashed(at, before);
        for (&id, &owner) in &view.ids {
            let known = self.known.entry(id).or_insert(Known { owner, first: at, last: at, labelled: None });
            if known.owner != owner {
                let has_it = |view: &View| view.ids.get(&id) == Some(&known.owner);
                let is_known = scene.views.iter().any(has_it) || at < known.last + self.longest;
                let ago = (at - known.last) / MS;
                holds!(N7, !is_known, "RSNode id {id} means {owner}, and {ago} ms ago {}", known.owner);
                *known = Known { owner, first: at, last: at, labelled: None };
            }
            known.last = at;
            if view.has_label(id) {
                known.labelled = Some(at);
            }
        }
        Ok(())
    }

    /// An operator that does not know a label would send requests to backups.
    fn are_known_before_they_are_labels(&self, at: Nanos, scene: &Scene, place: usize, before: &View) -> Checked {
        let view = &scene.views[place];
        let since = scene.taken_over.max(scene.disturbed);
        if scene.active.len() != 1 || since + SETTLED > at {
            return Ok(());
        }
        let is_sure = |place: usize| {
            scene.is_well_since(place, at) && !scene.dead.contains(&place) && scene.judged_at[place] + SETTLED < at
        };
        for (group, id) in view.labels.iter().filter(|(group, id)| before.labels.get(group) != Some(id)) {
            for (other, there) in scene.views.iter().enumerate() {
                let must_know = is_sure(place) && is_sure(other) && there.term == view.term;
                let knows = there.ids.contains_key(id);
                holds!(
                    N7,
                    !must_know || knows,
                    "group {group} is labelled {id}, which operator {other} does not know yet"
                );
            }
        }
        Ok(())
    }

    /// Answers in flight must pass the selector that chose for them.
    fn are_removed_late(&self, at: Nanos, scene: &Scene, place: usize, before: &View) -> Checked {
        let view = &scene.views[place];
        for (id, owner) in before.ids.iter().filter(|(id, _)| !view.ids.contains_key(id)) {
            let Some(known) = self.known.get(id).filter(|known| known.owner == *owner) else { continue };
            let judged = scene.place_at(*owner).and_then(|owner| self.judged.get(&owner).copied());
            let has_failed = judged.is_some_and(|judged| judged >= known.first);
            if has_failed || scene.taken_over >= known.first {
                continue;
            }
            let is_label = scene.views.iter().any(|view| view.has_label(*id));
            let is_late = !is_label && known.labelled.is_none_or(|labelled| at >= labelled + self.longest);
            holds!(
                N7,
                is_late,
                "operator {place} does not know RSNode id {id} any more, and answers may be on their way"
            );
        }
        Ok(())
    }
}
