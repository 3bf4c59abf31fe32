//! Plans without a solver: first-fit decreasing, and a lower bound.
//!
//! All groups start at the highest tier that can take them, where the most groups share an RSNode. While that costs too many extra hops,
//! the group that saves the most for its load moves down; the target tiers are tried in turn. Then the groups are packed, the heaviest
//! first, and unnecessary RSNodes are emptied.

use crate::classes::Classes;
use crate::draft::Draft;
use crate::instance::Instance;
use crate::packing::l2;
use crate::plan::Plan;

/// The best plan of several attempts; `None` if each leaves a group without an RSNode.
pub(crate) fn first_fit(instance: &Instance, classes: &Classes) -> Option<Plan> {
    let tiers = 1..instance.topology().tiers().max(2);
    let tries = tiers.flat_map(|down_to| [false, true].map(|pods| attempt(instance, classes, down_to, pods)));
    tries.flatten().min_by_key(Plan::cost)
}

/// Moves as many groups down from their highest tier as E requires: to `down_to`, or further. With `by_area`, groups of one pod move
/// together, so that they share RSNodes there.
fn attempt(instance: &Instance, classes: &Classes, down_to: usize, by_area: bool) -> Option<Plan> {
    let groups = instance.groups().len();
    let mut tier = Vec::with_capacity(groups);
    let tiers_of = |group: usize| classes.options[group].iter().map(|&class| classes.classes[class].tier);
    for group in 0..groups {
        tier.push(tiers_of(group).min()?);
    }
    let mut hops: u64 = (0..groups).map(|group| instance.extra_hops(group, tier[group])).sum();
    // Extra hops saved per unit of load; with `by_area`, of all groups of the same pod.
    let saves = |group: usize| {
        let target = tiers_of(group).filter(|&to| to >= down_to.max(tier[group] + 1)).min();
        let target = target.or_else(|| tiers_of(group).filter(|&to| to > tier[group]).max())?;
        let saved = instance.extra_hops(group, tier[group]) - instance.extra_hops(group, target);
        Some((group, target, saved, saved as f64 / instance.load(group).max(1) as f64))
    };
    let mut downs: Vec<_> = (0..groups).filter_map(saves).filter(|&(_, _, saved, _)| saved > 0).collect();
    if by_area {
        let mut of_area = vec![(0.0, 0.0); instance.topology().areas().len()];
        let pod = |group: usize| instance.topology().areas()[instance.groups()[group].rack].within.unwrap_or(0);
        for &(group, _, saved, _) in &downs {
            of_area[pod(group)].0 += saved as f64;
            of_area[pod(group)].1 += instance.load(group) as f64;
        }
        downs.iter_mut().for_each(|down| down.3 += 1e6 * of_area[pod(down.0)].0 / of_area[pod(down.0)].1.max(1.0));
    }
    downs.sort_by(|a, b| b.3.total_cmp(&a.3).then(a.0.cmp(&b.0)));
    for (group, target, saved, _) in downs {
        if hops <= instance.limits().extra_hops {
            break;
        }
        hops -= saved;
        tier[group] = target;
    }
    complete(instance, |group, operator| instance.topology().tier(operator) == tier[group])
}

/// Packs the groups, the heaviest first: into the operators that are `wanted` for them, then anywhere.
pub(crate) fn complete(instance: &Instance, wanted: impl Fn(usize, usize) -> bool) -> Option<Plan> {
    let mut draft = Draft::empty(instance);
    let mut order: Vec<usize> = (0..instance.groups().len()).collect();
    order.sort_by_key(|&group| (std::cmp::Reverse(instance.load(group)), group));
    let mut left = Vec::new();
    for group in order {
        let mut candidates: Vec<usize> = instance.on_path(group).filter(|&operator| wanted(group, operator)).collect();
        candidates.sort_by_key(|&operator| (!draft.in_use(operator), operator));
        if !candidates.into_iter().any(|operator| draft.place(group, operator)) {
            left.push(group);
        }
    }
    if !left.into_iter().all(|group| draft.place_anywhere(group, false)) {
        return None;
    }
    draft.close();
    Some(draft.plan)
}

/// A lower bound on the number of RSNodes: the greater of L2 of bin packing, as if every operator were the strongest one and on all paths,
/// and a Lagrangian bound. For any price of an extra hop, each group at its cheapest class costs its share of an accelerator and the price
/// of its extra hops, less the price of E.
pub(crate) fn bound(instance: &Instance, classes: &Classes) -> usize {
    let loads: Vec<u64> = (0..instance.groups().len()).map(|group| instance.load(group)).collect();
    let strongest = classes.classes.iter().map(|class| class.limit).max().unwrap_or(0);
    let packing = if strongest == 0 { 0 } else { l2(&loads, strongest) };
    packing.max(lagrangian(instance, classes)).max(usize::from(!loads.is_empty()))
}

fn lagrangian(instance: &Instance, classes: &Classes) -> usize {
    let budget = instance.limits().extra_hops as f64;
    let at = |price: f64| {
        let cost = |group: usize| {
            let of_class = |&class: &usize| {
                let class = &classes.classes[class];
                let hops = instance.extra_hops(group, class.tier) as f64;
                instance.load(group) as f64 / class.limit.max(1) as f64 + price * hops
            };
            classes.options[group].iter().map(of_class).fold(f64::INFINITY, f64::min)
        };
        let sum: f64 = (0..instance.groups().len()).map(cost).filter(|cost| cost.is_finite()).sum();
        sum - price * budget
    };
    // Concave in the price, so a ternary search finds the maximum; any price gives a bound.
    let (mut low, mut high) = (0.0, 8.0 / budget.max(1.0) * instance.groups().len() as f64);
    for _ in 0..60 {
        let (left, right) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
        if at(left) < at(right) { low = left } else { high = right }
    }
    (at(low).max(at(0.0)) - 1e-6).ceil().max(0.0) as usize
}
