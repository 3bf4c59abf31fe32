use crate::bench::ratio::Ratio;
use crate::median::median;
use midflight_host::cache::Algorithm;
use midflight_terminal::envelope::Measure;

#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) p99_us: f64,
    pub(super) mean_us: f64,
    /// Share of gets at the paused backend.
    pub(super) paused_share: f64,
    /// Gets without a response.
    pub(super) failed: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    pub(super) clients: Sample,
    pub(super) switch: Sample,
}

/// The first selector's ratios also have short names.
pub(super) fn measures(selector: Algorithm, pairs: &[Pair], is_first: bool) -> Vec<Measure> {
    let name = format!("live.{}", selector.name().replace('-', "_"));
    let failed = |of: fn(&Pair) -> &Sample| pairs.iter().map(|pair| of(pair).failed).sum::<u64>();
    let (by_clients, by_switch) = (failed(|pair| &pair.clients), failed(|pair| &pair.switch));
    let has_failures = by_clients + by_switch > 0;
    let mut all = Vec::new();
    for (what, of) in [("p99", (|s: &Sample| s.p99_us) as fn(&Sample) -> f64), ("mean", |s| s.mean_us)] {
        let clients: Vec<f64> = pairs.iter().map(|pair| of(&pair.clients)).collect();
        let switch: Vec<f64> = pairs.iter().map(|pair| of(&pair.switch)).collect();
        // Latencies exclude failures: the side with more of them would look faster.
        let ratio = if has_failures { None } else { Ratio::of(&switch, &clients) };
        if let Some(Ratio { value, low, high }) = ratio {
            for (end, value) in [("", value), (".low", low), (".high", high)] {
                all.push(Measure::quantity(&format!("{name}.{what}_ratio{end}"), value, ""));
            }
            if is_first {
                all.push(Measure::quantity(&format!("live.{what}_ratio"), value, ""));
                all.push(Measure::quantity(&format!("live.{what}_ratio_high"), high, ""));
            }
        }
        all.push(Measure::quantity(&format!("{name}.clients_{what}_us"), median(clients), "us"));
        all.push(Measure::quantity(&format!("{name}.switch_{what}_us"), median(switch), "us"));
    }
    let share = |of: fn(&Pair) -> &Sample| median(pairs.iter().map(|pair| of(pair).paused_share).collect());
    all.push(Measure::quantity(&format!("{name}.clients_paused_share"), share(|pair| &pair.clients), ""));
    all.push(Measure::quantity(&format!("{name}.switch_paused_share"), share(|pair| &pair.switch), ""));
    all.push(Measure::count(&format!("{name}.clients_failed"), by_clients, "gets"));
    all.push(Measure::count(&format!("{name}.switch_failed"), by_switch, "gets"));
    all
}
