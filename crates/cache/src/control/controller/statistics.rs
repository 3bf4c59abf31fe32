//! Turns operators' counts into rates. Absurd counts are counted under their reason and change nothing.

use super::event::Event;
use super::{Controller, Role};
use midflight_endpoint::Nanos;
use midflight_placement::Rate;
use midflight_wire::cache::control::Report;
use std::collections::BTreeMap;

/// Weight of the last window in a rate's moving average.
const WEIGHT: f64 = 0.25;

#[derive(Clone, Debug)]
struct Base {
    at_ns: Nanos,
    selected: u64,
    copied: u64,
    counts: BTreeMap<u16, [u64; 4]>,
}

#[derive(Debug)]
pub(super) struct Traffic {
    bases: Vec<Option<Base>>,
    /// By traffic group: requests per second by tier; `None`: unknown.
    rates: Vec<Option<[f64; 4]>>,
    /// By operator: packets per second of its selector.
    pub(super) loads: Vec<f64>,
    /// By accelerator: consecutive windows with too much load.
    over: BTreeMap<usize, u32>,
    tiers: usize,
}

impl Traffic {
    pub(super) fn new(operators: usize, groups: usize, tiers: usize) -> Self {
        Self {
            bases: vec![None; operators],
            rates: vec![None; groups],
            loads: vec![0.0; operators],
            over: BTreeMap::new(),
            tiers,
        }
    }

    /// An operator was restarted: it counts from 0.
    pub(super) fn forget(&mut self, operator: usize) {
        self.bases[operator] = None;
        self.forget_load(operator);
    }

    /// Its load no longer counts for a shared accelerator.
    pub(super) fn forget_load(&mut self, operator: usize) {
        self.loads[operator] = 0.0;
    }

    pub(super) fn rate(&self, group: usize) -> f64 {
        self.rates[group].map_or(0.0, |tiers| tiers.iter().sum())
    }

    pub(super) fn is_known(&self, group: usize) -> bool {
        self.rates[group].is_some()
    }

    pub(super) fn by_tier(&self, group: usize) -> Vec<Rate> {
        let tiers = self.rates[group].unwrap_or_default();
        tiers[..self.tiers.min(4)].iter().map(|&rate| Rate::from_per_s(rate).unwrap_or(Rate::ZERO)).collect()
    }
}

impl Controller {
    pub(super) fn count(&mut self, operator: usize, report: &Report) {
        let new = Base {
            at_ns: report.at_ns,
            selected: report.selected,
            copied: report.copied,
            counts: report.counts.iter().copied().collect(),
        };
        let Some(base) = &self.traffic.bases[operator] else {
            self.traffic.bases[operator] = Some(new);
            return;
        };
        if new.at_ns >= base.at_ns && new.at_ns - base.at_ns < self.config.window {
            return;
        }
        let Some(base) = self.traffic.bases[operator].replace(new.clone()) else { return };
        let went_back = |count: (&u16, &[u64; 4])| {
            base.counts.get(count.0).is_some_and(|before| before.iter().zip(count.1).any(|(before, now)| now < before))
        };
        if new.at_ns < base.at_ns
            || new.selected < base.selected
            || new.copied < base.copied
            || new.counts.iter().any(went_back)
        {
            self.counters.statistics_backwards += 1;
            return;
        }
        let seconds = (new.at_ns - base.at_ns) as f64 / 1e9;
        let mut rates = Vec::new();
        for (&group, counts) in &new.counts {
            let group = usize::from(group);
            if group >= self.labels.len() || self.network.labeller(group) != operator {
                self.counters.statistics_foreign += 1;
                continue;
            }
            let before = base.counts.get(&(group as u16)).copied().unwrap_or_default();
            let mut rate = [0.0; 4];
            for ((rate, now), before) in rate.iter_mut().zip(counts).zip(before) {
                *rate = (now - before) as f64 / seconds;
            }
            rates.push((group, rate));
        }
        let packets = if self.config.packets_per_request > 1 { new.copied - base.copied } else { 0 };
        let load = (new.selected - base.selected).saturating_add(packets) as f64 / seconds;
        let is_absurd = |rate: f64| !(0.0..=self.config.rate_max_per_s).contains(&rate);
        let beyond = |tiers: &[f64; 4]| {
            is_absurd(tiers.iter().sum()) || tiers[self.traffic.tiers.min(4)..].iter().any(|&rate| rate > 0.0)
        };
        // A report with one absurd value is ignored as a whole.
        if rates.iter().any(|(_, rate)| beyond(rate)) || !load.is_finite() {
            self.counters.statistics_invalid += 1;
            return;
        }
        for (group, rate) in rates {
            match &mut self.traffic.rates[group] {
                Some(known) => known.iter_mut().zip(rate).for_each(|(known, rate)| *known += WEIGHT * (rate - *known)),
                unknown => *unknown = Some(rate),
            }
        }
        self.traffic.loads[operator] = load;
        if let Role::Active(_) = self.role {
            self.check_load(operator);
        }
    }

    /// Section III-C.
    fn check_load(&mut self, operator: usize) {
        let topology = self.network.topology();
        let accelerator = topology.operators()[operator].accelerator;
        let sharers: Vec<usize> =
            (0..self.channels.len()).filter(|&other| topology.operators()[other].accelerator == accelerator).collect();
        let load: f64 = sharers.iter().map(|&operator| self.traffic.loads[operator]).sum();
        let windows = self.traffic.over.entry(accelerator).or_default();
        if load * 1000.0 <= topology.accelerators()[accelerator].limit() as f64 {
            *windows = 0;
            return;
        }
        // The operators that share it report in turn.
        *windows += 1;
        if *windows < self.config.overload_windows.saturating_mul(sharers.len() as u32) {
            return;
        }
        *windows = 0;
        let mut groups = 0;
        for target in &mut self.target {
            if target.is_some_and(|operator| sharers.contains(&operator)) {
                *target = None;
                groups += 1;
            }
        }
        if groups > 0 {
            self.counters.overloads += 1;
            self.event(Event::Overloaded { accelerator, groups });
            self.plan_anew();
            self.step();
        }
    }
}
