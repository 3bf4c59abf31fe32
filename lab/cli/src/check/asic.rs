//! `midflight-lab check asic`: builds and measures the asic engine's programs, and searches those of tasks exhaustively.

use super::larger::{self, Telling};
use super::planted;
use super::progress::shown;
use super::table::Table;
use crate::memory;
use anyhow::Result;
use clap::Args as ClapArgs;
use midflight_rmt::cache::{self, Cache, Rules};
use midflight_rmt::store::{self, Store};
use midflight_rmt::tasks::check::instances::{Judgement, Named, Program, all};
use midflight_rmt::tasks::check::{Passes, Verdict, passes};
use midflight_rmt::tasks::published::{self, Published};
use midflight_rmt::tasks::safe::front::{self, Entered};
use midflight_rmt::tasks::safe::{self, Guarded, Safe};
use midflight_rmt::{Refusal, Report, Target, Watch};
use midflight_terminal::envelope::{Envelope, Measure};
use midflight_terminal::signals::interrupted_flag;
use midflight_terminal::units;
use midflight_terminal::{stdout, usage};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

pub(super) const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab check asic                                  half a minute
  midflight-lab check asic --full                           millions of states: tens of minutes, 1.4 GB
  midflight-lab check asic --instance hazard-9 --transcript the fewest steps to a lost task
  midflight-lab check asic --planted                        does the check find bugs? half a minute
  midflight-lab check asic --planted late-credit            how this defect does harm, step by step
  midflight-lab check asic --full --json | jq .results

Every state of small queues on the real programs: packets that recirculate overtake each other in
all orders. hazard-… are of the published program, all others of the safe one. network… has what
stands before it in a switch too, and packets of clients and executors that get lost, late or
copied; turns… is what never ends if executors ask for ever. All is exhaustive at small sizes.
--planted plants defects in the safe program, one at a time: the same search must refute each,
else it shows nothing.
docs/internals/asic.md has rules and programs, docs/internals/asic-hazards.md what breaks and how.

RESULTS
  asic.published.counterexamples     documented ones that were found again
  asic.safe.states, .depth           searched: all states; of the deepest instance
  asic.safe.violations               rules that broke and should not
  asic.safe.stages_ingress, _egress  of the switch's 12 each; .stages_with_front: of ingress, with
                                     the tables of slots and epoch, and forwarding
  asic.safe.passes_in_a_row          until packets come to rest, at most, in any order
  asic.safe.endless                  documented ways to go on for ever that were found again
  asic.safe.entries_per_level        with four levels
  asic.tofino_2.PROGRAM.entries_per_level
                                     on Tofino 2; PROGRAM is published, safe, or safe_wide, with 16
                                     bytes of argument
  asic.safe.passes_per_task          of retrieves, one level, no constraints; the same of .published
  asic.safe.passes_per_submission    of submissions of one task; the same of .published
  asic.store.tables, .registers      of the store program; FLAIR's has 30 and 12
  asic.store.sram, .tcam             its share of the blocks, with 4,096 key groups, as FLAIR
  asic.store.kgroups_max             key groups for which there is room
  asic.cache.tables, .stages         of the program of an operator (NetRS), with its default bounds
  asic.cache.sram, .tcam             its share of the blocks
  asic.cache.places_max              hosts, servers and operators for which there is room
With --planted
  asic.safe.planted                  planted defects that break a rule
  asic.safe.planted_caught           of these, caught

EXIT CODES
  0 in what was searched the safe program is sound, the published one errs as documented, and all
  planted defects were caught; 1 a rule broke that should not, or in other steps, or one is no
  longer broken; 2 wrong usage; 130 interrupted";

#[derive(ClapArgs)]
pub(super) struct Args {
    /// The large instances too
    #[arg(long)]
    full: bool,
    /// This one only
    #[arg(long, value_name = "NAME", conflicts_with = "full")]
    instance: Option<String>,
    /// Search the safe program with each planted defect instead, or with this one, and print its steps
    #[arg(long, value_name = "NAME", conflicts_with_all = ["full", "instance", "limit"])]
    planted: Option<Option<String>>,
    /// End each search after about so many states, those that are met again included
    #[arg(long, value_name = "STATES", value_parser = clap::value_parser!(u64).range(1..1 << 40))]
    limit: Option<u64>,
    /// Threads of a search; with more than one, the depth may be overstated
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: u16,
    /// Print the fewest steps that break each broken rule
    #[arg(long)]
    transcript: bool,
    /// Print the results as one JSON object
    #[arg(long)]
    json: bool,
}

struct Searched {
    named: Named,
    verdict: Verdict,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    if let Some(name) = &args.planted {
        let &Args { threads, transcript, json, .. } = args;
        return planted::run(planted::Options { name: name.as_deref(), threads: threads.into(), transcript, json });
    }
    let chosen = choose(args)?;
    let needed = chosen.iter().map(Named::memory).max().unwrap_or(0);
    memory::check(needed, "bound each search by --limit, or choose one with --instance").map_err(usage::error)?;
    let stop = interrupted_flag()?;
    let (sizes, on_tofino_2) = (Size::on_tofino_1()?, Size::on_tofino_2()?);
    let store = StoreSize::all()?;
    let cache = CacheSize::all()?;
    print(args, &(summary(&sizes) + &summary(&on_tofino_2) + &store_summary(&store) + &cache_summary(&cache)))?;
    let searched = search(args, chosen, &stop)?;
    let mut code = judge(&searched, &stop);
    let telling = Telling { transcript: args.transcript, json: args.json };
    let mut more = larger::Found::default();
    if !stop.load(Ordering::Relaxed) && args.limit.is_none() {
        more = larger::endless(args.instance.as_deref(), telling, &stop)?;
        if args.full && !stop.load(Ordering::Relaxed) {
            more.surprise |= larger::sizes(args.threads.into(), telling, &stop)?.surprise;
        }
    }
    if more.surprise {
        code = usage::FAILURE;
    } else if code == 0 && stop.load(Ordering::Relaxed) {
        code = usage::INTERRUPTED;
    }
    if code == usage::INTERRUPTED {
        eprintln!("interrupted");
    } else if args.json {
        let others = [store_measures(&store), cache_measures(&cache)].concat();
        let queues = [measures(&sizes, &searched), measures_on_tofino_2(&on_tofino_2)].concat();
        Envelope::new("check asic", [queues, more.measures, others].concat()).print(true)?;
    } else {
        stdout::print(&format!("\n{}", Envelope::new("check asic", Vec::new()).footer()))?;
    }
    Ok(ExitCode::from(code))
}

fn choose(args: &Args) -> Result<Vec<Named>> {
    let all = all();
    let wanted = |named: &Named| match &args.instance {
        Some(name) => named.name == name,
        None => args.full || named.large.is_none(),
    };
    let mut chosen: Vec<Named> = all.iter().filter(|named| wanted(named)).cloned().collect();
    if chosen.is_empty() && !args.instance.as_deref().is_some_and(larger::is_named) {
        let names: Vec<_> = all.iter().map(|named| named.name).collect();
        let unknown = args.instance.as_deref().unwrap_or_default();
        return Err(usage::error(format!(
            "--instance: there is no instance `{unknown}`; there are {}",
            names.join(", ")
        )));
    }
    let limit = args.limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
    chosen.iter_mut().for_each(|named| named.instance.limit = limit);
    Ok(chosen)
}

struct Size {
    name: &'static str,
    report: Report,
    /// Per level, of four.
    entries: u32,
    /// Bytes of an entry in registers.
    bytes: u32,
    passes: Passes,
}

impl Size {
    /// Each at its largest size; the last one with the tables around it.
    fn all(
        target: &Target,
        bolt: published::Config,
        large: safe::Config,
        wide: safe::Config,
    ) -> Result<[Self; 4], Refusal> {
        let whole = Guarded::build(wide, front::Size::LARGEST, &Entered::default(), target)?;
        let whole = whole.program().report().clone();
        Ok([
            Self::published(bolt, target)?,
            Self::safe("safe", large, target)?,
            Self::safe("safe, wide", wide, target)?,
            Self { report: whole, ..Self::safe("with front", wide, target)? },
        ])
    }

    fn on_tofino_1() -> Result<[Self; 4], Refusal> {
        use safe::Config;
        Self::all(&Target::TOFINO_1, published::Config::BOLT, Config::LARGEST, Config::WIDEST)
    }

    fn on_tofino_2() -> Result<[Self; 4], Refusal> {
        use safe::Config;
        let bolt = published::Config::LARGEST_ON_TOFINO_2;
        Self::all(&Target::TOFINO_2, bolt, Config::LARGEST_ON_TOFINO_2, Config::WIDEST_ON_TOFINO_2)
    }

    fn published(large: published::Config, target: &Target) -> Result<Self, Refusal> {
        let report = Published::build(large, target)?.program().report().clone();
        let one = published::Config { levels: 1, size: 64, ..large };
        Ok(Self::of("published", report, (large.levels, large.size), passes(&Published::build(one, target)?)))
    }

    fn safe(name: &'static str, large: safe::Config, target: &Target) -> Result<Self, Refusal> {
        let report = Safe::build(large, target)?.program().report().clone();
        let one = safe::Config { levels: 1, size: 64, ..large };
        Ok(Self::of(name, report, (large.levels, large.size), passes(&Safe::build(one, target)?)))
    }

    fn of(name: &'static str, report: Report, (levels, entries): (u32, u32), passes: Passes) -> Self {
        // A word's registers together have a cell per entry.
        let words = report.registers.iter().filter(|register| register.cells > levels);
        let bits: u64 = words.map(|register| u64::from(register.cell.word_bits()) * u64::from(register.cells)).sum();
        let bytes = (bits / 8 / u64::from(levels * entries)) as u32;
        Self { name, report, entries, bytes, passes }
    }
}

fn summary(sizes: &[Size]) -> String {
    let target = sizes.first().map_or("", |size| size.report.target.name);
    let mut text =
        format!("on {target}  stages: ingress  egress  entries a level  bytes each  passes: submit  retrieve\n");
    for Size { name, report, entries, bytes, passes } in sizes {
        let ([ingress, egress], entries) = (report.depth, units::thousands(u64::from(*entries)));
        let Passes { submit, retrieve } = passes;
        text += &format!(
            "{name:11}  {ingress:>15}  {egress:>6}  {entries:>15}  {bytes:>10}  {submit:>14.3}  {retrieve:>8.3}\n"
        );
    }
    text + "\n"
}

struct StoreSize {
    name: &'static str,
    report: Report,
    kgroups: u32,
}

impl StoreSize {
    /// At FLAIR's size, and the largest.
    fn all() -> Result<[Self; 2], Refusal> {
        let of = |name, size: store::Config| {
            let report = Store::build(size, &Target::TOFINO_1)?.program().report().clone();
            Ok(Self { name, report, kgroups: size.sets << size.kgroup_bits })
        };
        Ok([of("store, 1 set", store::Config::FLAIR)?, of("store, 32 sets", store::Config::LARGEST)?])
    }
}

/// The first row is from FLAIR's authors (NSDI '20, 6.2).
fn store_summary(sizes: &[StoreSize]) -> String {
    let mut text = "on Tofino 1     stages  tables  registers  key groups  SRAM blocks  TCAM blocks\n".to_owned();
    text += "FLAIR, as published  -      30         12       4,096      under 5 % of memory\n";
    for StoreSize { name, report, kgroups } in sizes {
        let ([ingress, _], kgroups) = (report.depth, units::thousands(u64::from(*kgroups)));
        let ([sram, tcam], tables, registers) = (report.memory_share(), report.tables(), report.registers.len());
        let [sram, tcam] = [sram, tcam].map(|share| format!("{:.1} %", 100.0 * share));
        text +=
            &format!("{name:14}  {ingress:>6}  {tables:>6}  {registers:>9}  {kgroups:>10}  {sram:>11}  {tcam:>11}\n");
    }
    text + "\n"
}

fn store_measures([flair, largest]: &[StoreSize; 2]) -> Vec<Measure> {
    let [sram, tcam] = flair.report.memory_share().map(|share| 100.0 * share);
    vec![
        Measure::count("asic.store.tables", flair.report.tables().into(), "tables"),
        Measure::count("asic.store.registers", flair.report.registers.len() as u64, "registers"),
        Measure::quantity("asic.store.sram", sram, "%"),
        Measure::quantity("asic.store.tcam", tcam, "%"),
        Measure::count("asic.store.kgroups_max", largest.kgroups.into(), "key groups"),
    ]
}

struct CacheSize {
    name: &'static str,
    report: Report,
    places: u32,
}

impl CacheSize {
    /// With default bounds, and the largest.
    fn all() -> Result<[Self; 2], Refusal> {
        let of = |name, size: cache::Config| {
            let report = Cache::build(size, &Rules::default(), &Target::TOFINO_1)?.program().report().clone();
            Ok(Self { name, report, places: size.places })
        };
        Ok([of("cache", cache::Config::DEFAULT)?, of("cache, large", cache::Config::LARGEST)?])
    }
}

fn cache_summary(sizes: &[CacheSize]) -> String {
    let mut text = "on Tofino 1      stages  tables  registers      places  SRAM blocks  TCAM blocks\n".to_owned();
    for CacheSize { name, report, places } in sizes {
        let ([ingress, _], places) = (report.depth, units::thousands(u64::from(*places)));
        let ([sram, tcam], tables, registers) = (report.memory_share(), report.tables(), report.registers.len());
        let [sram, tcam] = [sram, tcam].map(|share| format!("{:.1} %", 100.0 * share));
        text +=
            &format!("{name:15}  {ingress:>6}  {tables:>6}  {registers:>9}  {places:>10}  {sram:>11}  {tcam:>11}\n");
    }
    text + "\n"
}

fn cache_measures([default, largest]: &[CacheSize; 2]) -> Vec<Measure> {
    let [sram, tcam] = default.report.memory_share().map(|share| 100.0 * share);
    vec![
        Measure::count("asic.cache.tables", default.report.tables().into(), "tables"),
        Measure::count("asic.cache.stages", default.report.depth[0] as u64, "stages"),
        Measure::quantity("asic.cache.sram", sram, "%"),
        Measure::quantity("asic.cache.tcam", tcam, "%"),
        Measure::count("asic.cache.places_max", largest.places.into(), "places"),
    ]
}

/// Reports each search when it ends. After Ctrl-C, returns those that ended.
fn search(args: &Args, chosen: Vec<Named>, stop: &Arc<AtomicBool>) -> Result<Vec<Searched>> {
    let (table, mut searched) = (Table::of(&chosen), Vec::new());
    print(args, &table.head())?;
    for named in chosen {
        let (watch, start) = (Watch::stopped_by(Arc::clone(stop)), Instant::now());
        let verdict = shown(named.name, &watch, || named.search(args.threads.into(), &watch))?;
        print(args, &table.row(&named, &verdict, start.elapsed().as_secs_f64()))?;
        let surprise = named.judge(&verdict) == Judgement::Otherwise;
        for violation in verdict.violations.iter().filter(|_| surprise || args.transcript) {
            stdout::print_beside(args.json, &format!("\n{violation}\n"))?;
        }
        searched.push(Searched { named, verdict });
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(searched)
}

/// With --json only results go to stdout.
fn print(args: &Args, text: &str) -> Result<()> {
    if args.json { Ok(()) } else { stdout::print(text) }
}

fn judge(searched: &[Searched], stop: &AtomicBool) -> u8 {
    let surprise = |Searched { named, verdict }: &Searched| named.judge(verdict) == Judgement::Otherwise;
    match searched.iter().any(surprise) {
        true => midflight_terminal::usage::FAILURE,
        false if stop.load(Ordering::Relaxed) => usage::INTERRUPTED,
        false => 0,
    }
}

fn measures([published, safe, _, front]: &[Size; 4], searched: &[Searched]) -> Vec<Measure> {
    let of = |kind: fn(&Program) -> bool| searched.iter().filter(move |searched| kind(&searched.named.program));
    let ways = of(|program| matches!(program, Program::Published(_)));
    let ways = ways.filter(|of| of.named.finds.is_some() && of.named.judge(&of.verdict) == Judgement::AsExpected);
    let sound = || {
        of(|program| matches!(program, Program::Safe(_) | Program::Guarded(_))).filter(|of| of.named.finds.is_none())
    };
    let states = sound().map(|of| of.verdict.states as u64).sum();
    let depth = sound().map(|of| of.verdict.depth as u64).max().unwrap_or(0);
    let violations = sound().map(|of| of.verdict.violations.len() as u64).sum();
    let [ingress, egress] = safe.report.depth.map(|stages| stages as u64);
    let passes = |name: &str, value| Measure::quantity(&format!("asic.{name}"), value, "passes");
    vec![
        Measure::count("asic.published.counterexamples", ways.count() as u64, "ways"),
        Measure::count("asic.safe.states", states, "states"),
        Measure::count("asic.safe.depth", depth, "steps"),
        Measure::count("asic.safe.violations", violations, "violations"),
        Measure::count("asic.safe.stages_ingress", ingress, "stages"),
        Measure::count("asic.safe.stages_with_front", front.report.depth[0] as u64, "stages"),
        Measure::count("asic.safe.stages_egress", egress, "stages"),
        Measure::count("asic.safe.entries_per_level", safe.entries.into(), "entries"),
        passes("safe.passes_per_task", safe.passes.retrieve),
        passes("safe.passes_per_submission", safe.passes.submit),
        passes("published.passes_per_task", published.passes.retrieve),
        passes("published.passes_per_submission", published.passes.submit),
    ]
}

fn measures_on_tofino_2([published, safe, wide, _]: &[Size; 4]) -> Vec<Measure> {
    let entries = |name: &str, size: &Size| {
        Measure::count(&format!("asic.tofino_2.{name}.entries_per_level"), size.entries.into(), "entries")
    };
    vec![entries("published", published), entries("safe", safe), entries("safe_wide", wide)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use midflight_rmt::tasks::check::instances::named;

    /// A lost SWAP: T1 breaks in three steps.
    fn searched(finds: Option<(&'static str, usize)>) -> Searched {
        let named = Named { finds, ..named("lost-swap").unwrap() };
        Searched { verdict: named.search(1, &Watch::default()).unwrap(), named }
    }

    #[test]
    fn what_is_not_found_as_it_is_documented_fails() {
        let (runs, stopped) = (AtomicBool::new(false), AtomicBool::new(true));
        let judge = |finds, stop| judge(&[searched(finds)], stop);
        assert_eq!(judge(Some(("T1", 3)), &runs), 0);
        for finds in [None, Some(("T1", 2)), Some(("T2", 3))] {
            assert_eq!(judge(finds, &runs), midflight_terminal::usage::FAILURE, "{finds:?}");
            assert_eq!(judge(finds, &stopped), midflight_terminal::usage::FAILURE, "interrupted or not: {finds:?}");
        }
        assert_eq!(judge(Some(("T1", 3)), &stopped), usage::INTERRUPTED);
    }

    #[test]
    fn a_way_that_may_not_be_the_shortest_is_no_surprise() {
        let mut searched = searched(Some(("T1", 2)));
        assert_eq!(searched.named.judge(&searched.verdict), Judgement::Otherwise, "two steps do not suffice");
        searched.verdict.violations[0].shortest = false;
        assert_eq!(searched.named.judge(&searched.verdict), Judgement::Open);
        let row = Table::of(std::slice::from_ref(&searched.named)).row(&searched.named, &searched.verdict, 0.1);
        assert!(row.contains("T1 in 3 steps so far"), "{row}");
    }

    #[test]
    fn a_rule_that_should_not_break_is_a_violation_and_says_so() {
        let sizes = Size::on_tofino_1().unwrap();
        let searched = searched(None);
        let row = Table::of(std::slice::from_ref(&searched.named)).row(&searched.named, &searched.verdict, 0.1);
        assert!(row.contains("T1 in 3 steps, EXPECTED: nothing"), "{row}");
        let measures = measures(&sizes, &[searched]);
        let of = |name: &str| measures.iter().find(|measure| measure.name == name).unwrap().value.clone();
        assert_eq!((of("asic.safe.violations"), of("asic.published.counterexamples")), (1.into(), 0.into()));
    }
}
