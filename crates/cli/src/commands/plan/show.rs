use anyhow::Result;
use midflight_placement::explain::explain;
use midflight_placement::{Degraded, Instance, Method, Options};
use midflight_terminal::columns::aligned;
use midflight_terminal::envelope::{Envelope, Measure};
use midflight_terminal::stdout;
use std::collections::BTreeMap;
use std::fmt::Write;

pub(super) fn show(instance: &Instance, degraded: &Degraded, options: &Options, json: bool) -> Result<()> {
    let why = explain(instance, &degraded.solved, options).to_string();
    if json {
        return Envelope::new("plan", results(instance, degraded, &why)).print(true);
    }
    stdout::print(&text(instance, degraded, &why))
}

fn method(method: Method) -> &'static str {
    match method {
        Method::FirstFit => "first-fit decreasing",
        Method::Aggregated => "ILP, aggregated form",
        Method::Full => "ILP, full form",
    }
}

/// Load of an operator's accelerator as a share of its limit.
fn share(instance: &Instance, loads: &BTreeMap<usize, u64>, operator: usize) -> f64 {
    let accelerator = instance.topology().operators()[operator].accelerator;
    loads.get(&accelerator).copied().unwrap_or(0) as f64 / instance.limit(operator).max(1) as f64
}

fn results(instance: &Instance, degraded: &Degraded, why: &str) -> Vec<Measure> {
    let solved = &degraded.solved;
    let topology = instance.topology();
    let hops = solved.plan.extra_hops(instance) as f64 / 1000.0;
    let mut results = vec![
        Measure::count("plan.rsnodes", solved.plan.cost() as u64, ""),
        Measure::count("plan.bound", solved.bound as u64, ""),
        Measure::count("plan.optimal", u64::from(solved.is_optimal()), ""),
        Measure::text("plan.method", method(solved.method)),
        Measure::text("plan.why", why),
        Measure::count("plan.groups", instance.groups().len() as u64, ""),
        Measure::count("plan.drs", degraded.groups.len() as u64, ""),
        Measure::count("plan.drs_least", degraded.least.number as u64, ""),
        Measure::quantity("plan.extra_hops_requests_per_s", hops, "1/s"),
        Measure::quantity("plan.extra_hops_responses_per_s", hops, "1/s"),
        Measure::quantity("plan.extra_hops_limit_per_s", instance.limits().extra_hops as f64 / 1000.0, "1/s"),
    ];
    let loads = solved.plan.loads(instance);
    for operator in solved.plan.in_use() {
        let name = format!("plan.load.{}", topology.operators()[operator].id);
        results.push(Measure::quantity(&name, share(instance, &loads, operator), ""));
    }
    for (group, rsnode) in instance.groups().iter().zip(&solved.plan.rsnodes) {
        let rsnode = rsnode.map_or("drs", |operator| topology.operators()[operator].id.as_str());
        results.push(Measure::text(&format!("plan.rsnode.{}", group.id), rsnode));
    }
    results
}

fn text(instance: &Instance, degraded: &Degraded, why: &str) -> String {
    let solved = &degraded.solved;
    let (cost, groups) = (solved.plan.cost(), instance.groups().len());
    let proof = match solved.gap() {
        0 => "no plan has fewer".to_owned(),
        gap => format!("a plan with {gap} fewer is not excluded, with less than {} it is", solved.bound),
    };
    let served = groups - degraded.groups.len();
    let mut text = format!(
        "{cost} {} for {served} of {groups} groups; {proof} ({})\nwhy         {why}\n",
        if cost == 1 { "RSNode" } else { "RSNodes" },
        method(solved.method)
    );
    let hops = solved.plan.extra_hops(instance) as f64 / 1000.0;
    let limit = instance.limits().extra_hops as f64 / 1000.0;
    // Writing to a String cannot fail.
    let _ = writeln!(text, "extra hops  {hops:.0}/s of requests (at most {limit:.0}/s); of responses as many");
    if !degraded.groups.is_empty() {
        let names: Vec<&str> = degraded.groups.iter().map(|&group| instance.groups()[group].id.as_str()).collect();
        let least = degraded.least.number;
        let exactly = if degraded.least.exact { "the least possible" } else { "no plan has fewer than" };
        let _ = writeln!(text, "under DRS   {} groups ({exactly}: {least}): {}", names.len(), names.join(" "));
    }
    text.push('\n');
    text + &aligned(&table(instance, degraded), "llrrl")
}

fn table(instance: &Instance, degraded: &Degraded) -> Vec<[String; 5]> {
    let topology = instance.topology();
    let plan = &degraded.solved.plan;
    let loads = plan.loads(instance);
    let head = ["RSNODE", "TIER", "PACKETS/S", "OF T_MAX", "GROUPS"].map(str::to_owned);
    let line = |operator: usize| {
        let accelerator = topology.operators()[operator].accelerator;
        let at = instance.groups().iter().zip(&plan.rsnodes).filter(|(_, rsnode)| **rsnode == Some(operator));
        let groups: Vec<&str> = at.map(|(group, _)| group.id.as_str()).collect();
        [
            topology.operators()[operator].id.clone(),
            tier(topology.tier(operator), topology.tiers()),
            format!("{:.0}", loads.get(&accelerator).copied().unwrap_or(0) as f64 / 1000.0),
            format!("{:.1} %", share(instance, &loads, operator) * 100.0),
            groups.join(" "),
        ]
    };
    std::iter::once(head).chain(plan.in_use().into_iter().map(line)).collect()
}

fn tier(tier: usize, tiers: usize) -> String {
    match (tier, tiers) {
        (tier, tiers) if tier + 1 == tiers => "ToR".into(),
        (0, _) => "core".into(),
        (1, 3) => "aggregation".into(),
        _ => format!("tier {tier}"),
    }
}
