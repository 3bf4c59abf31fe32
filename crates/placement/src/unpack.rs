//! Unpacks a solution of the aggregated form to a plan; if that fails, returns cuts that say why.

use crate::classes::Classes;
use crate::first_fit::complete;
use crate::ilp::aggregate::{Aggregated, Cut, Term};
use crate::instance::Instance;
use crate::packing::{Function, Packed, pack};
use crate::plan::Plan;

pub(crate) struct Unpacked {
    /// A plan, perhaps with more operators than the solution has.
    pub plan: Option<Plan>,
    /// Inequalities that every plan keeps and this solution violates; none if the plan has as few operators.
    pub cuts: Vec<Cut>,
}

pub(crate) fn unpack(instance: &Instance, classes: &Classes, solution: &Aggregated) -> Unpacked {
    let mut members = vec![Vec::new(); classes.classes.len()];
    for (group, class) in solution.class_of.iter().enumerate() {
        class.iter().for_each(|&class| members[class].push(group));
    }
    let mut plan = Plan::degraded(instance.groups().len());
    let (mut cuts, mut complete_plan) = (Vec::new(), true);
    for (number, groups) in members.iter().enumerate().filter(|(_, groups)| !groups.is_empty()) {
        let class = &classes.classes[number];
        let loads: Vec<u64> = groups.iter().map(|&group| instance.load(group)).collect();
        match pack(&loads, class.limit, solution.in_use[number].clamp(1, class.operators.len())) {
            Packed::Into(bin_of) => {
                let placed = groups.iter().zip(bin_of);
                placed.for_each(|(&group, bin)| plan.rsnodes[group] = Some(class.operators[bin]));
            }
            Packed::Impossible => {
                complete_plan = false;
                cuts.extend(cuts_against(instance, classes, number, groups, solution.in_use[number]));
            }
            Packed::Unknown => complete_plan = false,
        }
    }
    if !complete_plan {
        let class_of = classes.of_operators();
        let wanted = |group: usize, operator: usize| {
            solution.class_of[group].is_some_and(|class| class_of.get(&operator) == Some(&class))
        };
        return Unpacked { plan: complete(instance, wanted), cuts };
    }
    Unpacked { plan: Some(plan), cuts: vec![] }
}

/// A plan with at most this many operators of each class; `None` if none was found. Groups without a class get no RSNode.
pub(crate) fn pack_all(
    instance: &Instance,
    classes: &Classes,
    solution: &Aggregated,
    most: impl Fn(usize) -> usize,
) -> Option<Plan> {
    let mut plan = Plan::degraded(instance.groups().len());
    for (number, class) in classes.classes.iter().enumerate() {
        let at = |&group: &usize| solution.class_of[group] == Some(number);
        let groups: Vec<usize> = (0..instance.groups().len()).filter(at).collect();
        let loads: Vec<u64> = groups.iter().map(|&group| instance.load(group)).collect();
        let Packed::Into(bin_of) = pack(&loads, class.limit, most(number)) else { return None };
        let placed = groups.iter().zip(bin_of);
        placed.for_each(|(&group, bin)| plan.rsnodes[group] = Some(class.operators[bin]));
    }
    Some(plan)
}

/// Cuts against groups that do not fit `in_use` operators of their class. A dual feasible function gives loads that add up to at most 1 in
/// every operator, so their sum is at most the number of operators: a cut for each function that shows the conflict, for all classes that
/// are alike, so that the groups do not merely move to another pod. If no function shows it: these groups need another operator, or one of
/// them is elsewhere.
fn cuts_against(instance: &Instance, classes: &Classes, number: usize, groups: &[usize], in_use: usize) -> Vec<Cut> {
    let limit = classes.classes[number].limit;
    let loads: Vec<u64> = groups.iter().map(|&group| instance.load(group)).collect();
    if let Some(function) = Function::against(&loads, limit, in_use) {
        let alike = classes.classes.iter().enumerate().filter(|(_, class)| class.limit == limit);
        let cut = |(class, _)| {
            let with = (0..instance.groups().len()).filter(|&group| classes.options[group].contains(&class));
            let terms = with.map(|group| (Term::At(group, class), function.of(instance.load(group), limit)));
            let terms = terms.filter(|(_, factor)| *factor > 0.0).chain([(Term::InUse(class), -1.0)]);
            Cut { terms: terms.collect(), most: 0.0 }
        };
        return alike.map(cut).collect();
    }
    let all = groups.iter().map(|&group| (Term::At(group, number), 1.0)).chain([(Term::InUse(number), -1.0)]);
    vec![Cut { terms: all.collect(), most: groups.len() as f64 - in_use as f64 - 1.0 }]
}
