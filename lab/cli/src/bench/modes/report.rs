use super::costs::Costs;
use super::plan::REPLICAS;
use super::samples::{Samples, busy};
use crate::bench::ratio;
use crate::median::median;
use midflight_terminal::envelope::Measure;

const FLAIR: &str = "flair";
const FOLLOWER_LEASE: &str = "follower_lease";
/// The usual policy.
const LEADER_AVOIDANCE: &str = "leader_avoidance";

pub(super) fn measures(samples: &Samples, costs: &Costs, share: f64) -> Vec<Measure> {
    let mut measures = Vec::new();
    for (workload, store, of_store) in samples.all() {
        let name = |what| format!("modes.{workload}.{store}_{what}");
        let us = |quantile| median(samples.each(workload, store, |done| done.latency(quantile) * 1e6));
        let rate = median(samples.each(workload, store, |done| done.per_second()));
        if rate > 0.0 {
            measures.push(Measure::quantity(&name("per_s"), rate, "1/s"));
        }
        if of_store.iter().all(|sample| sample.done.reads > 0) {
            measures.push(Measure::quantity(&name("p50_us"), us(0.5), "us"));
            measures.push(Measure::quantity(&name("p99_us"), us(0.99), "us"));
        }
        measures.push(Measure::quantity(&name("busy"), busy(of_store, share), ""));
    }
    for (workload, this, other) in pairs(samples) {
        let rates = |store| samples.each(workload, store, |done| done.per_second());
        let name = format!("modes.{workload}.{this}_over_{other}");
        measures.extend(ratio::measures(&name, "", &rates(this), &rates(other)));
    }
    measures.extend(bound(samples, costs, share));
    measures
}

/// Stores to compare: flair with each other mode, each policy with the usual one.
pub(super) fn pairs(samples: &Samples) -> impl Iterator<Item = (&str, &str, &str)> {
    samples.all().filter_map(|(workload, store, _)| {
        let has = |other| store != other && !samples.of(workload, other).is_empty();
        if has(FLAIR) {
            return Some((workload, FLAIR, store));
        }
        has(LEADER_AVOIDANCE).then_some((workload, store, LEADER_AVOIDANCE))
    })
}

/// The costs; and flair's bound on workload B with its ratio to follower-lease, if they were measured.
fn bound(samples: &Samples, costs: &Costs, share: f64) -> Vec<Measure> {
    let cost = |what, us| Measure::quantity(&format!("modes.cost.{what}_us"), us, "us");
    let mut measures = vec![
        cost("background", costs.background * 1e6),
        cost("read", costs.read),
        cost("wake_up", costs.wake_up),
        cost("write_leader", costs.write_leader),
        cost("write_follower", costs.write_follower),
        cost("write_alone", costs.write_alone),
    ];
    let allowed = costs.bound(REPLICAS, share, 0.05);
    let done = |store| median(samples.each("B", store, |done| done.per_second()));
    for (store, name, ratio) in [
        (FLAIR, "modes.B.flair_over_bound", done(FLAIR) / allowed),
        (FOLLOWER_LEASE, "modes.B.bound", allowed / done(FOLLOWER_LEASE)),
    ] {
        if !samples.of("B", store).is_empty() {
            measures.push(Measure::quantity(name, ratio, ""));
        }
    }
    measures
}
