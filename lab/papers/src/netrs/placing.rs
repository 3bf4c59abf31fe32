//! Assigns operators to racks.

use super::cell::{Cell, CellError, Network, Placement, RsNodes};
use super::tree::{Place, Tree};
use midflight_placement::{Accelerator, Group, HAS_ILP, Instance, Options, Outcome, Plan, Rate, Topology, solve};
use std::time::Duration;

/// The selectors' places, and the selector of each rack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placing {
    pub(super) sites: Vec<Place>,
    pub(super) of_rack: Vec<u32>,
    /// Lower bound for any plan.
    pub(super) bound: Option<u32>,
}

/// Rarely ends the search: a solver's result after a timeout would depend on the machine.
const TIME_LIMIT: Duration = Duration::from_secs(120);

impl Placing {
    /// Each rack with clients selects for itself.
    pub(super) fn tor(tree: Tree, racks_of_clients: &[u32]) -> Self {
        let mut sites: Vec<u32> = racks_of_clients.to_vec();
        sites.sort_unstable();
        sites.dedup();
        let of_rack = |rack| sites.binary_search(&rack).unwrap_or(0) as u32;
        let of_rack = (0..tree.racks()).map(of_rack).collect();
        Self { sites: sites.into_iter().map(Place::Rack).collect(), of_rack, bound: None }
    }

    /// See [`Placement::Example`].
    pub(super) fn example(tree: Tree) -> Self {
        const AGGREGATION: u32 = 2;
        const CORE: u32 = 6;
        let sites = (0..AGGREGATION).map(Place::Aggregation).chain((0..CORE).map(|_| Place::Core)).collect();
        let of_rack = |rack| match tree.pod(rack) {
            pod if pod < AGGREGATION => pod,
            _ => AGGREGATION + rack % CORE,
        };
        Self { sites, of_rack: (0..tree.racks()).map(of_rack).collect(), bound: None }
    }

    /// From each rack's requests a second, by the highest tier they pass.
    pub(super) fn ilp(tree: Tree, network: &Network, traffic: &[[f64; 3]]) -> Result<Self, CellError> {
        if !HAS_ILP {
            return Err(CellError::NoIlp);
        }
        let (instance, racks) = instance(network, traffic)?;
        let options = Options { time_limit: TIME_LIMIT, ..Options::default() };
        let Outcome::Solved(solved) = solve(&instance, &options) else { return Err(CellError::NoPlan) };
        let bound = Some(solved.bound as u32);
        Ok(Self { bound, ..Self::of_plan(tree, &instance, &racks, &solved.plan) })
    }

    fn of_plan(tree: Tree, instance: &Instance, racks: &[u32], plan: &Plan) -> Self {
        let operators: Vec<usize> = plan.in_use().into_iter().collect();
        let mut of_rack = vec![0; tree.racks() as usize];
        let mut sites = vec![Place::Core; operators.len()];
        for (&rack, operator) in racks.iter().zip(&plan.rsnodes) {
            let Some(site) = operator.and_then(|operator| operators.binary_search(&operator).ok()) else { continue };
            of_rack[rack as usize] = site as u32;
            sites[site] = match instance.topology().tier(operators[site]) {
                0 => Place::Core,
                1 => Place::Aggregation(tree.pod(rack)),
                _ => Place::Rack(rack),
            };
        }
        Self { sites, of_rack, bound: None }
    }

    pub(super) fn rsnodes(&self) -> RsNodes {
        let count = |is: fn(&Place) -> bool| self.sites.iter().filter(|site| is(site)).count() as u32;
        RsNodes {
            core: count(|site| matches!(site, Place::Core)),
            aggregation: count(|site| matches!(site, Place::Aggregation(_))),
            tor: count(|site| matches!(site, Place::Rack(_))),
        }
    }
}

pub(super) fn without_traffic(cell: &Cell, tree: Tree, racks_of_clients: &[u32]) -> Option<Placing> {
    match cell.placement {
        Placement::Clients | Placement::Ilp => None,
        Placement::Tor => Some(Placing::tor(tree, racks_of_clients)),
        Placement::Example => Some(Placing::example(tree)),
    }
}

fn instance(network: &Network, traffic: &[[f64; 3]]) -> Result<(Instance, Vec<u32>), CellError> {
    let accelerator = Accelerator {
        id: String::new(),
        cores: 1,
        service_time_us: f64::from(network.accelerator_ns) / 1e3,
        utilisation: f64::from(network.accelerator_use_per_mille) / 1e3,
    };
    let topology = Topology::fat_tree(network.arity as usize, &accelerator);
    let topology = topology.map_err(|error| CellError::Bad(error.to_string()))?;
    let areas: Vec<usize> = topology.racks().collect();
    let group = |rack: usize| Group {
        id: format!("rack-{rack}"),
        rack: areas[rack],
        hosts: Vec::new(),
        by_tier: traffic[rack].map(|rate| Rate::from_per_s(rate).unwrap_or(Rate::ZERO)).into(),
    };
    let racks: Vec<u32> =
        (0..traffic.len()).filter(|&rack| traffic[rack].iter().sum::<f64>() > 0.0).map(|rack| rack as u32).collect();
    let groups = racks.iter().map(|&rack| group(rack as usize)).collect();
    let packets = if network.counts_copies { 2 } else { 1 };
    let extra_hops = f64::from(network.extra_hops_per_mille) / 1e3;
    Ok((Instance::with_share(topology, groups, extra_hops, packets), racks))
}
