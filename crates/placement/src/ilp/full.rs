//! The full form: the paper's equations (1) to (7), one binary variable for each group and operator on its path.

use super::{Answer, minimise};
use crate::classes::Classes;
use crate::instance::Instance;
use crate::plan::Plan;
use highs::{Col, RowProblem};
use std::collections::BTreeMap;
use std::time::Duration;

pub(crate) enum Full {
    Solved(Plan, usize),
    Infeasible,
    OutOfTime(usize),
}

/// `start` is an initial plan, `least` a known bound.
pub(crate) fn solve(
    instance: &Instance,
    classes: &Classes,
    start: Option<&Plan>,
    least: usize,
    limit: Duration,
) -> Full {
    let mut problem = RowProblem::new();
    let topology = instance.topology();
    // D of (2), for operators that are not barred.
    let available = (0..topology.operators().len()).filter(|operator| !instance.barred().contains(operator));
    let in_use: BTreeMap<usize, Col> =
        available.map(|operator| (operator, problem.add_integer_column(1.0, 0..=1))).collect();
    // P of (2); no column for what (4) forbids or a group that alone exceeds a limit.
    let mut at: Vec<Vec<(usize, Col)>> = Vec::with_capacity(instance.groups().len());
    for group in 0..instance.groups().len() {
        let fits = |operator: &usize| {
            instance.load(group) <= instance.limit(*operator)
                && instance.extra_hops(group, topology.tier(*operator)) <= instance.limits().extra_hops
        };
        let operators = instance.on_path(group).filter(fits);
        at.push(operators.map(|operator| (operator, problem.add_integer_column(0.0, 0..=1))).collect());
    }
    let budget = instance.limits().extra_hops.max(1) as f64;
    let (mut hops, mut loads) = (Vec::new(), BTreeMap::<usize, Vec<(Col, f64)>>::new());
    for (group, at) in at.iter().enumerate() {
        // (5)
        problem.add_row(1..=1, at.iter().map(|&(_, column)| (column, 1.0)));
        for &(operator, column) in at {
            // (3)
            problem.add_row(..=0, [(column, 1.0), (in_use[&operator], -1.0)]);
            let share = instance.load(group) as f64 / instance.limit(operator).max(1) as f64;
            loads.entry(operator).or_default().push((column, share));
            let extra = instance.extra_hops(group, topology.tier(operator)) as f64 / budget;
            hops.push((column, extra));
        }
    }
    // (6), for each operator, and for all that share an accelerator.
    for (operator, loads) in &loads {
        problem.add_row(..=0.0, loads.iter().copied().chain([(in_use[operator], -1.0)]).collect::<Vec<_>>());
    }
    for sharers in topology.sharers().into_iter().filter(|sharers| sharers.len() > 1) {
        let loads = sharers.iter().filter_map(|operator| loads.get(operator)).flatten().copied();
        problem.add_row(..=1.0, loads.collect::<Vec<_>>());
    }
    // (7)
    problem.add_row(..=1.0, hops.into_iter().filter(|(_, extra)| *extra > 0.0).collect::<Vec<_>>());
    // Not in the paper, but excludes no optimum.
    problem.add_row(least as f64.., in_use.values().map(|&column| (column, 1.0)).collect::<Vec<_>>());
    for class in &classes.classes {
        for pair in class.operators.windows(2) {
            problem.add_row(..=0, [(in_use[&pair[1]], 1.0), (in_use[&pair[0]], -1.0)]);
        }
    }
    let start = start.map(|plan| values(&in_use, &at, &in_order(classes, plan)));
    let Answer { values, bound, infeasible } = minimise(problem, start.as_deref(), limit);
    let read = |values: &[f64]| {
        let of_group = |at: &Vec<(usize, Col)>| {
            at.iter().find(|(_, column)| values[column.index()] > 0.5).map(|&(operator, _)| operator)
        };
        Plan { rsnodes: at.iter().map(of_group).collect() }
    };
    match values {
        _ if infeasible => Full::Infeasible,
        None => Full::OutOfTime(bound),
        Some(values) => Full::Solved(read(&values), bound),
    }
}

/// The same plan with the first operators of each class instead of others of it.
fn in_order(classes: &Classes, plan: &Plan) -> Plan {
    let mut instead = BTreeMap::new();
    for class in &classes.classes {
        let used = plan.in_use();
        let used = class.operators.iter().filter(|operator| used.contains(operator));
        instead.extend(used.copied().zip(class.operators.iter().copied()));
    }
    let of_group = |rsnode: &Option<usize>| rsnode.map(|operator| instead.get(&operator).copied().unwrap_or(operator));
    Plan { rsnodes: plan.rsnodes.iter().map(of_group).collect() }
}

fn values(in_use: &BTreeMap<usize, Col>, at: &[Vec<(usize, Col)>], plan: &Plan) -> Vec<f64> {
    let mut values = vec![0.0; in_use.len() + at.iter().map(Vec::len).sum::<usize>()];
    for (at, rsnode) in at.iter().zip(&plan.rsnodes) {
        let Some(rsnode) = *rsnode else { continue };
        values[in_use[&rsnode].index()] = 1.0;
        if let Some((_, column)) = at.iter().find(|(operator, _)| *operator == rsnode) {
            values[column.index()] = 1.0;
        }
    }
    values
}
