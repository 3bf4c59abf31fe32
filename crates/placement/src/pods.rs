//! Pods that are too large to enumerate: a bound by prices, and divisions of their groups that are probably good.
//!
//! A price for extra hops and the price of load at the top (an RSNode for T_max of it) make pods independent of each other. For each number
//! of operators of a pod, the cheapest division of its groups is then a knapsack; divided groups make it a bound. The sum over the pods,
//! less the price of E, bounds the whole network at any price (Lagrange); it counts operators of pods in whole numbers, which prices alone
//! do not.

use crate::classes::Classes;
use crate::instance::Instance;
use std::collections::BTreeMap;

/// Prices tried between the lowest and the highest.
const STEPS: usize = 40;

/// A network of three tiers whose switches are alike in each area.
pub(crate) struct Pods {
    pub top: usize,
    pods: Vec<Pod>,
}

struct Pod {
    middle: Option<usize>,
    racks: Vec<Vec<Member>>,
    groups: usize,
}

struct Member {
    group: usize,
    load: u64,
    /// Extra hops at the top, and at the pod's switches; `None` where it cannot be.
    top: Option<u64>,
    middle: Option<u64>,
    below: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Division {
    /// Each group and its class.
    pub class_of: Vec<(usize, usize)>,
}

impl Pods {
    /// `None` if the network has another shape.
    pub(crate) fn of(instance: &Instance, classes: &Classes) -> Option<Self> {
        let topology = instance.topology();
        let tops: Vec<usize> = (0..classes.classes.len()).filter(|&class| classes.classes[class].tier == 0).collect();
        let [top] = tops[..] else { return None };
        if topology.tiers() != 3 || classes.classes.iter().any(|class| class.joint.is_some()) {
            return None;
        }
        let mut pods: BTreeMap<usize, BTreeMap<usize, Vec<Member>>> = BTreeMap::new();
        let mut middles: BTreeMap<usize, usize> = BTreeMap::new();
        for (group, of) in instance.groups().iter().enumerate() {
            let pod = topology.areas()[of.rack].within?;
            let at = |tier: usize| {
                let mut found =
                    classes.options[group].iter().filter(move |&&class| classes.classes[class].tier == tier);
                (found.next().copied(), found.next().is_none())
            };
            let ((high, _), (middle, one), (below, single)) = (at(0), at(1), at(2));
            if !one || !single {
                return None;
            }
            if let Some(middle) = middle {
                middles.insert(pod, middle);
            }
            let hops =
                |class: Option<usize>| class.map(|class| instance.extra_hops(group, classes.classes[class].tier));
            let member = Member { group, load: instance.load(group), top: hops(high), middle: hops(middle), below };
            pods.entry(pod).or_default().entry(of.rack).or_default().push(member);
        }
        let pod = |(area, racks): (usize, BTreeMap<usize, Vec<Member>>)| {
            let racks: Vec<Vec<Member>> = racks.into_values().collect();
            Pod { middle: middles.get(&area).copied(), groups: racks.iter().map(Vec::len).sum(), racks }
        };
        Some(Self { top, pods: pods.into_iter().map(pod).collect() })
    }

    /// A lower bound on the number of RSNodes, and for each pod divisions that are good at some price.
    pub(crate) fn bound(&self, instance: &Instance, classes: &Classes) -> (usize, Vec<Vec<Division>>) {
        let budget = instance.limits().extra_hops as f64;
        let mut divisions: Vec<Vec<Division>> = self.pods.iter().map(|_| vec![]).collect();
        let mut at = |price: f64| {
            let values =
                self.pods.iter().zip(&mut divisions).map(|(pod, kept)| pod.value(classes, self.top, price, kept));
            values.sum::<f64>() - price * budget
        };
        let mut best = at(0.0);
        // The highest price that can matter: an RSNode for the extra hops of one small group. The search approaches it from far below.
        let highest = 64.0 * self.pods.len() as f64 / budget.max(1.0);
        let ratio = 1e-4_f64.powf(1.0 / STEPS as f64);
        let mut price = highest;
        let mut at_best = 0.0;
        for _ in 0..=STEPS {
            let value = at(price);
            if value > best {
                (best, at_best) = (value, price);
            }
            price *= ratio;
        }
        // The value is concave in the price: search closer around the best one.
        let (mut low, mut high) = (at_best * ratio, at_best / ratio);
        for _ in 0..STEPS / 2 {
            let (left, right) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
            let (at_left, at_right) = (at(left), at(right));
            best = best.max(at_left).max(at_right);
            if at_left < at_right { low = left } else { high = right }
        }
        for kept in &mut divisions {
            kept.sort_unstable();
            kept.dedup();
        }
        ((best - 1e-6).ceil().max(0.0) as usize, divisions)
    }
}

/// Cost of a rack that does not use its own switch, with a price for the load of the pod's switches.
fn apart(rack: &[Member], top_price: f64, price: f64, load_price: f64) -> f64 {
    rack.iter().map(|member| cheapest(member, top_price, price, load_price).0).sum()
}

/// The cost of a group at the top or at the pod's switches, and whether the latter is cheaper.
fn cheapest(member: &Member, top_price: f64, price: f64, load_price: f64) -> (f64, bool) {
    let load = member.load as f64;
    let top = member.top.map_or(f64::INFINITY, |hops| load * top_price + price * hops as f64);
    let middle = member.middle.map_or(f64::INFINITY, |hops| load * load_price + price * hops as f64);
    (top.min(middle), middle < top)
}

impl Pod {
    /// The least cost of this pod at a price for extra hops, with divided groups; adds divisions to `kept`.
    fn value(&self, classes: &Classes, top: usize, price: f64, kept: &mut Vec<Division>) -> f64 {
        let top_price = 1.0 / classes.classes[top].limit.max(1) as f64;
        let of = |class: usize| (classes.classes[class].limit, classes.classes[class].operators.len());
        let (limit, count) = self.middle.map_or((1, 0), of);
        let mut least = f64::INFINITY;
        for operators in 0..=count.min(self.groups) {
            let capacity = operators as f64 * limit as f64;
            // Without operators nothing may be at the pod's switches: a prohibitive price.
            let highest = 2.0 / limit.max(1) as f64;
            let (mut low, mut high) = if operators == 0 { (1e6, 1e6) } else { (0.0, highest) };
            let mut bound = f64::NEG_INFINITY;
            for _ in 0..24 {
                let middle = f64::midpoint(low, high);
                let paid = if operators == 0 { 0.0 } else { middle * capacity };
                bound = bound.max(self.priced(top_price, price, middle) - paid);
                if self.demand(top_price, price, middle) > capacity { low = middle } else { high = middle }
            }
            let total = operators as f64 + bound;
            // The total is convex in the number of operators: from here on it only rises.
            let more_than_enough = total > least + 1.0;
            least = least.min(total);
            // One division that fits, and one slightly too large, which may need another operator.
            kept.push(self.division(top, top_price, price, high));
            kept.push(self.division(top, top_price, price, low));
            if more_than_enough {
                break;
            }
        }
        least
    }

    /// All racks, each at its own switch for the price of an RSNode, or apart.
    fn priced(&self, top_price: f64, price: f64, load_price: f64) -> f64 {
        let own = |rack: &[Member]| if rack.iter().any(|member| member.below.is_some()) { 1.0 } else { f64::INFINITY };
        self.racks.iter().map(|rack| apart(rack, top_price, price, load_price).min(own(rack))).sum()
    }

    fn is_own(rack: &[Member], top_price: f64, price: f64, load_price: f64) -> bool {
        rack.iter().all(|member| member.below.is_some()) && apart(rack, top_price, price, load_price) > 1.0
    }

    /// The load for the pod's switches at a price.
    fn demand(&self, top_price: f64, price: f64, load_price: f64) -> f64 {
        let racks = self.racks.iter().filter(|rack| !Self::is_own(rack, top_price, price, load_price));
        let members = racks.flatten().filter(|member| cheapest(member, top_price, price, load_price).1);
        members.map(|member| member.load as f64).sum()
    }

    fn division(&self, top: usize, top_price: f64, price: f64, load_price: f64) -> Division {
        let mut class_of = Vec::new();
        for rack in &self.racks {
            let own = Self::is_own(rack, top_price, price, load_price);
            for member in rack {
                let class = match (own, cheapest(member, top_price, price, load_price).1) {
                    (true, _) => member.below,
                    (false, true) => self.middle,
                    (false, false) => member.top.map(|_| top).or(member.below),
                };
                class_of.extend(class.map(|class| (member.group, class)));
            }
        }
        class_of.sort_unstable();
        Division { class_of }
    }
}
