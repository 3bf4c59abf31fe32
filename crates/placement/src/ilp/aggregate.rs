//! The aggregated form of the integer program: a variable for each traffic group and class of interchangeable operators, and the number of
//! operators in use of each class.
//!
//! It relaxes the full form, because groups fit a class only in sum, so its optimum is a bound. Cuts tighten it.

use super::{Answer, minimise};
use crate::classes::Classes;
use crate::instance::Instance;
use highs::{Col, RowProblem};
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Term {
    At(usize, usize),
    InUse(usize),
}

/// Σ factor · term ≤ most: an inequality that every plan keeps.
#[derive(Clone, Debug)]
pub(crate) struct Cut {
    pub terms: Vec<(Term, f64)>,
    pub most: f64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goal {
    /// Minimise the operators in use, with all groups served.
    Operators,
    /// Minimise the degraded groups, those without an RSNode.
    Degraded,
}

#[derive(Debug)]
pub(crate) struct Aggregated {
    /// The class of each group; `None` if it is degraded.
    pub class_of: Vec<Option<usize>>,
    /// Number of operators of each class in use.
    pub in_use: Vec<usize>,
}

pub(crate) enum Relaxed {
    Solved(Aggregated, usize),
    Infeasible,
    OutOfTime(usize),
}

struct Columns {
    /// For each group, as [`Classes::options`].
    at: Vec<Vec<Col>>,
    in_use: Vec<Col>,
    degraded: Vec<Col>,
}

impl Columns {
    fn of(&self, classes: &Classes, term: Term) -> Option<Col> {
        match term {
            Term::At(group, class) => {
                let option = classes.options[group].iter().position(|&other| other == class)?;
                Some(self.at[group][option])
            }
            Term::InUse(class) => Some(self.in_use[class]),
        }
    }
}

pub(crate) fn solve(
    instance: &Instance,
    classes: &Classes,
    goal: Goal,
    cuts: &[Cut],
    start: Option<&Aggregated>,
    limit: Duration,
) -> Relaxed {
    let (problem, columns) = build(instance, classes, goal, cuts);
    let start = start.map(|start| values(classes, &columns, start));
    let Answer { values, bound, infeasible } = minimise(problem, start.as_deref(), limit);
    match values {
        _ if infeasible => Relaxed::Infeasible,
        None => Relaxed::OutOfTime(bound),
        Some(values) => Relaxed::Solved(read(classes, &columns, &values), bound),
    }
}

fn build(instance: &Instance, classes: &Classes, goal: Goal, cuts: &[Cut]) -> (RowProblem, Columns) {
    let mut problem = RowProblem::new();
    let groups = instance.groups().len();
    let at =
        classes.options.iter().map(|options| options.iter().map(|_| problem.add_integer_column(0.0, 0..=1)).collect());
    let at: Vec<Vec<Col>> = at.collect();
    let price = f64::from(u8::from(goal == Goal::Operators));
    let count = |class: &crate::classes::Class| class.operators.len() as f64;
    let in_use = classes.classes.iter().map(|class| problem.add_integer_column(price, 0.0..=count(class)));
    let in_use: Vec<Col> = in_use.collect();
    let degraded: Vec<Col> = match goal {
        Goal::Operators => vec![],
        Goal::Degraded => (0..groups).map(|_| problem.add_integer_column(1.0, 0..=1)).collect(),
    };
    // Equation (5).
    for (group, at) in at.iter().enumerate() {
        let degraded = degraded.get(group).map(|&column| (column, 1.0));
        problem.add_row(1..=1, at.iter().map(|&column| (column, 1.0)).chain(degraded));
    }
    let mut of_class: Vec<Vec<(usize, Col)>> = vec![vec![]; classes.classes.len()];
    let mut hops = Vec::new();
    let budget = instance.limits().extra_hops.max(1) as f64;
    for (group, options) in classes.options.iter().enumerate() {
        for (&class, &column) in options.iter().zip(&at[group]) {
            of_class[class].push((group, column));
            let extra = instance.extra_hops(group, classes.classes[class].tier);
            if extra > 0 {
                hops.push((column, extra as f64 / budget));
            }
        }
    }
    // Equation (7).
    problem.add_row(..=1.0, hops);
    let mut joint: std::collections::BTreeMap<usize, Vec<(Col, f64)>> = std::collections::BTreeMap::new();
    for ((class, members), &in_use) in classes.classes.iter().zip(&of_class).zip(&in_use) {
        let share = |group: usize| instance.load(group) as f64 / class.limit.max(1) as f64;
        // Equation (6), for all operators of the class together.
        let loads = members.iter().map(|&(group, column)| (column, share(group)));
        problem.add_row(..=0.0, loads.clone().chain([(in_use, -1.0)]));
        if let Some(accelerator) = class.joint {
            joint.entry(accelerator).or_default().extend(loads);
        }
        // Equation (3).
        for &(_, column) in members {
            problem.add_row(..=0, [(column, 1.0), (in_use, -1.0)]);
        }
        // No two groups above half of the limit share an operator.
        let half = |group: usize| match (instance.load(group) * 2).cmp(&class.limit) {
            std::cmp::Ordering::Less => 0.0,
            std::cmp::Ordering::Equal => 0.5,
            std::cmp::Ordering::Greater => 1.0,
        };
        let large = members.iter().map(|&(group, column)| (column, half(group))).filter(|(_, part)| *part > 0.0);
        let large: Vec<_> = large.chain([(in_use, -1.0)]).collect();
        if large.len() > 2 {
            problem.add_row(..=0.0, large);
        }
    }
    for (_, loads) in joint {
        problem.add_row(..=1.0, loads);
    }
    let columns = Columns { at, in_use, degraded };
    for cut in cuts {
        let terms = cut.terms.iter().filter_map(|&(term, factor)| Some((columns.of(classes, term)?, factor)));
        problem.add_row(..=cut.most, terms.collect::<Vec<_>>());
    }
    (problem, columns)
}

fn values(classes: &Classes, columns: &Columns, solution: &Aggregated) -> Vec<f64> {
    let all = columns.at.iter().map(Vec::len).sum::<usize>() + columns.in_use.len() + columns.degraded.len();
    let mut values = vec![0.0; all];
    for (group, class) in solution.class_of.iter().enumerate() {
        let column = match class {
            Some(class) => columns.of(classes, Term::At(group, *class)),
            None => columns.degraded.get(group).copied(),
        };
        if let Some(column) = column {
            values[column.index()] = 1.0;
        }
    }
    for (&column, &count) in columns.in_use.iter().zip(&solution.in_use) {
        values[column.index()] = count as f64;
    }
    values
}

fn read(classes: &Classes, columns: &Columns, values: &[f64]) -> Aggregated {
    let class_of = |group: usize| {
        let option = columns.at[group].iter().position(|column| values[column.index()] > 0.5)?;
        Some(classes.options[group][option])
    };
    let in_use = columns.in_use.iter().map(|column| values[column.index()].round().max(0.0) as usize);
    Aggregated { class_of: (0..columns.at.len()).map(class_of).collect(), in_use: in_use.collect() }
}
