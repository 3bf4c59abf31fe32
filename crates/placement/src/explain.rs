//! Why a plan has as many RSNodes as it has, and why there is none.

use crate::classes::Classes;
use crate::instance::{Instance, Limits};
use crate::packing::l2;
use crate::solve::{Options, Solved, solve};
use std::fmt;

/// Names in a list; more are only counted.
const NAMES: usize = 3;

/// The constraint that keeps a plan from having fewer RSNodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// Constraint 2: the total load needs all accelerators in use.
    Load,
    /// Constraint 3: without E, fewer RSNodes would be enough.
    ExtraHops {
        /// The number without E.
        without: usize,
    },
    /// The total load would fit fewer accelerators, but the undivided groups do not.
    GroupSizes,
    /// One RSNode serves all.
    Nothing,
}

/// Why a plan has as many RSNodes as it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Why {
    /// RSNodes that the total load needs: divided by the highest T_max, rounded up.
    pub by_load: usize,
    /// RSNodes that undivided groups need: L2 of bin packing, with the highest T_max.
    pub by_groups: usize,
    /// The binding constraint.
    pub binding: Binding,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.binding {
            Binding::Nothing => write!(f, "one RSNode serves all groups"),
            Binding::Load => write!(f, "the load: all groups together need {} accelerators", self.by_load),
            Binding::ExtraHops { without } => {
                write!(f, "the extra hops: without their limit the plan would have {without}")
            }
            Binding::GroupSizes => write!(
                f,
                "the sizes of the groups: their load needs {} accelerators, but groups are not divided",
                self.by_load
            ),
        }
    }
}

/// Finds the binding constraint; may plan again without E.
#[must_use]
pub fn explain(instance: &Instance, solved: &Solved, options: &Options) -> Why {
    let mut served = instance.clone();
    let mut plan = solved.plan.rsnodes.iter();
    served.groups.retain(|_| plan.next().is_some_and(Option::is_some));
    let loads: Vec<u64> = (0..served.groups().len()).map(|group| served.load(group)).collect();
    let strongest = Classes::of(&served).classes.iter().map(|class| class.limit).max().unwrap_or(1);
    let by_load = loads.iter().map(|&load| u128::from(load)).sum::<u128>().div_ceil(u128::from(strongest)) as usize;
    let by_groups = l2(&loads, strongest);
    let cost = solved.plan.cost();
    let binding = if cost <= 1 {
        Binding::Nothing
    } else if by_load == cost {
        Binding::Load
    } else {
        // As many extra hops as there can be.
        let groups = 0..served.groups().len();
        let all = groups.map(|group| served.extra_hops(group, 0)).sum();
        let free = served.with_limits(Limits { extra_hops: all, ..served.limits() });
        match solve(&free, options).solved().map(|free| free.plan.cost()) {
            Some(without) if without < cost => Binding::ExtraHops { without },
            _ => Binding::GroupSizes,
        }
    };
    Why { by_load, by_groups, binding }
}

/// Why no plan serves all groups, as far as that is simple to say, and what would help.
#[must_use]
pub fn why_infeasible(instance: &Instance) -> String {
    let classes = Classes::of(instance);
    let homeless: Vec<usize> = classes.homeless().collect();
    if let Some(&first) = homeless.first() {
        let names: Vec<&str> = homeless.iter().take(NAMES).map(|&group| instance.groups()[group].id.as_str()).collect();
        let more = if homeless.len() > NAMES { format!(" and {} more", homeless.len() - NAMES) } else { String::new() };
        let most = instance.on_path(first).map(|operator| instance.limit(operator)).max().unwrap_or(0);
        return format!(
            "no operator can take {}{more}: {} gives {:.0} packets/s, and the strongest accelerator on its paths may get {:.0}",
            names.join(", "),
            names[0],
            instance.load(first) as f64 / 1000.0,
            most as f64 / 1000.0
        );
    }
    let all: u64 = (0..instance.groups().len()).map(|group| instance.load(group)).sum();
    format!(
        "the groups give {:.0} packets/s and may take {:.0} extra hops/s, and no assignment keeps both limits",
        all as f64 / 1000.0,
        instance.limits().extra_hops as f64 / 1000.0
    )
}
