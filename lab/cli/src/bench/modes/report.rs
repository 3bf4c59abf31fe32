use super::bound::Costs;
use super::samples::{Samples, busy};
use super::workload::Mix;
use crate::bench::ratio::Ratio;
use crate::median::median;
use midflight_terminal::envelope::Measure;

const FLAIR: &str = "flair";
const FOLLOWER_LEASE: &str = "follower_lease";

pub(super) fn measures(samples: &Samples, share: f64) -> Vec<Measure> {
    let mut measures = Vec::new();
    for (workload, mode, of_mode) in samples.all() {
        let name = |what| format!("modes.{workload}.{mode}_{what}");
        measures.push(Measure::quantity(&name("per_s"), median(samples.rates(workload, mode)), "1/s"));
        measures.push(Measure::quantity(&name("busy"), busy(of_mode, share), ""));
    }
    for (workload, mode, _) in samples.all().filter(|(_, mode, _)| *mode != FLAIR) {
        let name = format!("modes.{workload}.flair_over_{mode}");
        measures.extend(ratio(&name, &samples.rates(workload, FLAIR), &samples.rates(workload, mode)));
    }
    measures.extend(bound(samples, share));
    measures
}

fn ratio(name: &str, this: &[f64], other: &[f64]) -> Vec<Measure> {
    let Some(Ratio { value, low, high }) = Ratio::of(this, other) else { return Vec::new() };
    let measure = |end: &str, value| Measure::quantity(&format!("{name}{end}"), value, "");
    vec![measure("", value), measure(".low", low), measure(".high", high)]
}

/// Flair's bound on workload B, and its ratio to follower-lease; empty if flair was not measured.
fn bound(samples: &Samples, share: f64) -> Vec<Measure> {
    if samples.of("writes", FLAIR).is_empty() {
        return Vec::new();
    }
    let costs = Costs::of(samples.of("C", FLAIR), samples.of("writes", FLAIR));
    let allowed = costs.bound(super::REPLICAS, share, &Mix::B);
    let done = |mode| median(samples.rates("B", mode));
    let cost = |what, us| Measure::quantity(&format!("modes.cost.{what}_us"), us, "us");
    let mut measures = vec![
        cost("read", costs.read),
        cost("write_leader", costs.write_leader),
        cost("write_follower", costs.write_follower),
        Measure::quantity("modes.B.flair_over_bound", done(FLAIR) / allowed, ""),
    ];
    if !samples.of("B", FOLLOWER_LEASE).is_empty() {
        measures.push(Measure::quantity("modes.B.bound", allowed / done(FOLLOWER_LEASE), ""));
    }
    measures
}
