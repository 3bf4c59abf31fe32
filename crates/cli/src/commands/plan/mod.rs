//! `midflight plan`: computes which operators select replicas for which traffic.

mod show;

use anyhow::Result;
use clap::{Args as ClapArgs, ValueEnum};
use midflight_placement::explain::why_infeasible;
use midflight_placement::generate::{GENERATORS, Generator, Grain, generate, merge_racks};
use midflight_placement::topology::{Accelerator, Topology};
use midflight_placement::{
    Degraded, Group, HAS_ILP, Instance, MinimumDegraded, Options, Outcome, Use, input, solve, solve_or_degrade,
};
use midflight_terminal::{stdout, usage};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Refuses larger files.
const LARGEST_BYTES: u64 = 64 << 20;
const FAT_TREE: &str = "fat-tree:";

const EXAMPLES: &str = "\
EXAMPLES
  midflight plan --topology fat-tree:16 --generate uniform --seed 7 --load 0.9 > traffic.toml
  midflight plan --topology fat-tree:16 --traffic traffic.toml
  midflight plan --topology net.toml --traffic traffic.toml --groups rack --extra-hops 0.1
  midflight plan --topology net.toml --traffic traffic.toml --failed core-0,agg-1-2 --drs
  midflight plan --topology net.toml --traffic traffic.toml --json

The fewer RSNodes, the better each knows the servers. A plan keeps three limits: one RSNode for
each group, the load of each accelerator, the extra hops of all requests. It says how many RSNodes
there must be at least, and which limit keeps it from having fewer. docs/plan.md shows the files.

RESULTS
  plan.rsnodes, plan.bound               RSNodes, and how many there must be at least
  plan.optimal, plan.method, plan.why    whether no plan has fewer; how it was found; what limits it
  plan.groups, plan.drs, plan.drs_least  groups; under DRS; how many must be, at least
  plan.extra_hops_requests_per_s         extra forwardings of requests; of responses as many again
  plan.extra_hops_responses_per_s
  plan.extra_hops_limit_per_s            the limit for those of requests
  plan.load.NAME                         load of an RSNode's accelerator, as a share of its limit
  plan.rsnode.GROUP                      RSNode of a group; \"drs\" if it has none

EXIT CODES
  0 a plan, 1 failed, 2 wrong usage, topology or traffic, 3 no plan serves all groups, or none was
  found: --drs leaves some out";

#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The network: a file, or fat-tree:K with K ports a switch
    #[arg(long, value_name = "FILE|fat-tree:K")]
    topology: String,
    /// Requests per second of each group
    #[arg(long, value_name = "FILE", required_unless_present = "generate", conflicts_with = "generate")]
    traffic: Option<std::path::PathBuf>,
    /// Print a file of generated traffic instead of a plan
    #[arg(long, value_name = "GENERATOR", value_parser = generator)]
    generate: Option<Generator>,
    /// What the generated traffic is drawn from
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Highest load of a rack in generated traffic, as a share of what an accelerator may get
    #[arg(long, value_name = "SHARE", default_value_t = 0.5)]
    load: f64,
    /// Groups to plan for; default: as they are in the file, and racks in generated traffic
    #[arg(long, value_enum)]
    groups: Option<Groups>,
    /// U: how busy an accelerator may be, where the topology does not say
    #[arg(long, value_name = "SHARE", default_value_t = 0.5)]
    utilisation: f64,
    /// E: extra hops that requests may take, for each request on average
    #[arg(long, value_name = "HOPS", default_value_t = 0.2)]
    extra_hops: f64,
    /// Count responses too in the load of accelerators, which get a copy of each
    #[arg(long)]
    count_responses: bool,
    /// Operators that no plan may use
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    failed: Vec<String>,
    /// If no plan serves all groups: degraded replica selection for some, the heaviest first
    #[arg(long)]
    drs: bool,
    /// How long the solver may take
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = usage::duration)]
    time_limit: Duration,
    /// Without the ILP: first-fit decreasing
    #[arg(long)]
    first_fit: bool,
    /// One JSON object on stdout
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Groups {
    /// Each rack is a group
    Rack,
    /// Each host is a group
    Host,
}

fn generator(name: &str) -> Result<Generator, String> {
    let found = GENERATORS.iter().find(|(known, _)| *known == name);
    found.map(|(_, generator)| *generator).ok_or_else(|| {
        let known: Vec<&str> = GENERATORS.iter().map(|(known, _)| *known).collect();
        format!("the generators are {}", known.join(", "))
    })
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let topology = topology(args)?;
    if let Some(generator) = args.generate {
        let grain = if args.groups == Some(Groups::Host) { Grain::Host } else { Grain::Rack };
        let groups = generate(&topology, generator, args.seed, args.load, grain).map_err(usage::error)?;
        stdout::print(&input::write_traffic(&groups, &topology))?;
        return Ok(ExitCode::SUCCESS);
    }
    let groups = groups(args, &topology)?;
    let instance = instance(args, topology, groups)?;
    if !HAS_ILP && !args.first_fit {
        eprintln!("this build has no ILP (cargo feature `ilp`): first-fit decreasing, whose bound is weaker");
    }
    let methods = if args.first_fit { Use::FirstFit } else { Use::Best };
    let options = Options { methods, time_limit: args.time_limit };
    let degraded = if args.drs {
        solve_or_degrade(&instance, &options)
    } else {
        match solve(&instance, &options) {
            Outcome::Solved(solved) => {
                Degraded { solved, groups: vec![], least: MinimumDegraded { number: 0, exact: true } }
            }
            outcome => return Ok(no_plan(&instance, &outcome, methods)),
        }
    };
    show::show(&instance, &degraded, &options, args.json)?;
    Ok(ExitCode::SUCCESS)
}

fn no_plan(instance: &Instance, outcome: &Outcome, methods: Use) -> ExitCode {
    let help = "use --drs to leave groups out, --groups host for smaller ones, or more --utilisation or --extra-hops";
    if *outcome == Outcome::Infeasible {
        eprintln!("no plan serves all groups: {}; {help}", why_infeasible(instance));
    } else if methods == Use::FirstFit || !HAS_ILP {
        eprintln!("first-fit found no plan that serves all groups; there may be one: plan with the ILP, or {help}");
    } else {
        eprintln!("no plan was found in time; there may be one: use a longer --time-limit, or {help}");
    }
    ExitCode::from(usage::NO)
}

fn topology(args: &Args) -> Result<Topology> {
    let default = Accelerator { utilisation: args.utilisation, ..Accelerator::paper("--utilisation".into()) };
    input::check_accelerator(&default).map_err(usage::error)?;
    if let Some(ports) = args.topology.strip_prefix(FAT_TREE) {
        let wrong = || usage::error(format!("--topology {}: write it like fat-tree:16", args.topology));
        let ports = ports.parse().map_err(|_| wrong())?;
        return Topology::fat_tree(ports, &default).map_err(|error| usage::error(format!("--topology {error}")));
    }
    let file = Path::new(&args.topology);
    let text = read(file, "or say fat-tree:16")?;
    input::topology(&text, &default).map_err(|error| usage::error(format!("{}: {error}", file.display())))
}

fn groups(args: &Args, topology: &Topology) -> Result<Vec<Group>> {
    // clap requires --traffic or --generate.
    let file = args.traffic.as_deref().unwrap_or_else(|| Path::new(""));
    let text = read(file, "--generate prints one")?;
    let wrong = |error: String| usage::error(format!("{}: {error}", file.display()));
    let groups = input::traffic(&text, topology).map_err(|error| wrong(error.to_string()))?;
    match args.groups {
        Some(Groups::Rack) => Ok(merge_racks(topology, &groups)),
        Some(Groups::Host) => match groups.iter().find(|group| group.hosts.len() != 1) {
            Some(group) => {
                let what =
                    format!("group `{}` has no single host, and cannot be divided: leave --groups out", group.id);
                Err(wrong(what))
            }
            None => Ok(groups),
        },
        None => Ok(groups),
    }
}

fn instance(args: &Args, topology: Topology, groups: Vec<Group>) -> Result<Instance> {
    if !(0.0..=100.0).contains(&args.extra_hops) {
        return Err(usage::error(format!("--extra-hops {}: from 0 to 100 for each request", args.extra_hops)));
    }
    let failed = args.failed.iter().map(|name| {
        let unknown = || usage::error(format!("--failed {name}: there is no such operator in the topology"));
        topology.operator(name).ok_or_else(unknown)
    });
    let failed: Vec<usize> = failed.collect::<Result<_>>()?;
    let packets = if args.count_responses { 2 } else { 1 };
    Ok(Instance::with_share(topology, groups, args.extra_hops, packets).bar(failed))
}

/// Reads a file; `help` is added to an error.
fn read(file: &Path, help: &str) -> Result<String> {
    let wrong = |error: &dyn std::fmt::Display| usage::error(format!("{}: {error}; {help}", file.display()));
    midflight_files::read_text(file, LARGEST_BYTES).map_err(|error| wrong(&error))
}
