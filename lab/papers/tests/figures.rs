//! All figures exist, and given results produce the stated verdicts.

#![allow(clippy::unwrap_used, reason = "tests may")]

use midflight_papers::cell::{Cell, CellResult, LevelResult, Load, Percentiles, QUANTILES, Replace, Scheme, Step};
use midflight_papers::experiment::{Experiment, Outcome};
use midflight_papers::figures::{ALL, Case, Effort, Figure, TRACES, find};
use midflight_papers::findings::{Class, Findings, Verdict};
use midflight_papers::netrs;
use std::collections::{BTreeMap, BTreeSet};

const NAMES: [&str; 19] = [
    "falcon-8",
    "falcon-9-10",
    "bolt-11",
    "bolt-12",
    "bolt-13a",
    "bolt-13b",
    "bolt-14",
    "bolt-15",
    "bolt-16",
    "bolt-17",
    "scale",
    "asic-passes",
    "netrs-4",
    "netrs-5",
    "netrs-6",
    "netrs-7",
    "netrs-change",
    "netrs-flat",
    "netrs-selectors",
];

/// A distribution that is `ms` from each quantile on, in rising order.
fn percentiles(from: &[(f64, f64)]) -> Percentiles {
    let at = |quantile: f64| from.iter().rev().find(|(q, _)| *q <= quantile + 1e-9).map_or(0.0, |(_, ms)| *ms);
    let quantiles_ms: Vec<f64> = QUANTILES.iter().map(|&quantile| at(quantile)).collect();
    Percentiles { count: 1_000, mean_ms: quantiles_ms.iter().sum::<f64>() / quantiles_ms.len() as f64, quantiles_ms }
}

/// With one task per job.
fn delayed(from: &[(f64, f64)]) -> CellResult {
    CellResult {
        delay: percentiles(from),
        jobs: percentiles(from),
        submitted: 10,
        started: 10,
        ended: 10,
        ..CellResult::default()
    }
}

/// Each case has this result with two seeds.
fn findings(name: &str, result: impl Fn(&str) -> CellResult) -> Findings {
    let figure = find(name).unwrap();
    told(figure, &(figure.cases)(Effort::Full), result)
}

fn told(figure: &Figure, cases: &[Case], result: impl Fn(&str) -> CellResult) -> Findings {
    let twice = cases.iter().flat_map(|case| [case, case]);
    figure.findings(twice.map(|case| (case.name.as_str(), Outcome::Tasks(result(&case.name)))))
}

#[track_caller]
fn assert_passes(findings: &Findings) {
    for row in &findings.rows {
        assert_eq!(row.verdict(), Verdict::Pass, "{}: {:?} for {:?}", row.name, row.ours, row.paper);
    }
}

fn nothing(case: &Case) -> Outcome {
    match case.cell {
        Experiment::Tasks(_) => Outcome::Tasks(CellResult::default()),
        Experiment::Cache(_) => Outcome::Cache(netrs::CellResult::default()),
    }
}

fn scheme_and_place(case: &str) -> (&str, &str) {
    case.split_once('@').unwrap()
}

#[test]
fn every_figure_of_the_design_is_there() {
    let names: Vec<&str> = ALL.iter().map(|figure| figure.name).collect();
    assert_eq!(names, NAMES);
    for figure in &ALL {
        for text in [figure.title, figure.source, figure.set_up, figure.differs] {
            assert!(!text.is_empty(), "{}", figure.name);
        }
    }
}

#[test]
fn every_cell_of_every_figure_makes_sense_and_has_its_own_name() {
    for figure in &ALL {
        for effort in [Effort::Full, Effort::Quick] {
            let cases = figure.cases(effort, &TRACES);
            assert!(!cases.is_empty(), "{}", figure.name);
            for Case { name, cell } in &cases {
                cell.check().unwrap_or_else(|error| panic!("{} {name}: {error}", figure.name));
            }
            let names: BTreeSet<&String> = cases.iter().map(|case| &case.name).collect();
            assert_eq!(names.len(), cases.len(), "{}: two cells of one name", figure.name);
        }
    }
}

#[test]
fn rows_have_names_of_their_own_and_fit_results() {
    for figure in &ALL {
        let cases = figure.cases(Effort::Full, &TRACES);
        let rows = figure.findings(cases.iter().map(|case| (case.name.as_str(), nothing(case)))).rows;
        let names: BTreeSet<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        assert!(!rows.is_empty() && names.len() == rows.len(), "{}", figure.name);
        assert!(
            names.iter().all(|name| name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'))
        );
    }
}

#[test]
fn without_results_nothing_passes_and_nothing_panics() {
    for figure in &ALL {
        let findings = figure.findings([]);
        assert!(findings.rows.iter().all(|row| row.verdict() == Verdict::Fail), "{}", figure.name);
    }
}

/// Arrivals follow from cluster, load and times.
#[test]
fn schemes_are_compared_under_the_same_arrivals() {
    for figure in &ALL {
        let mut places: BTreeMap<String, Cell> = BTreeMap::new();
        for Case { name, cell } in figure.cases(Effort::Full, &TRACES) {
            let place = scheme_and_place(&name).1.to_owned();
            let Experiment::Tasks(cell) = cell else { continue };
            let alike = Cell { scheme: Scheme::Midflight, ..cell };
            let first = places.entry(place).or_insert_with(|| alike.clone());
            // Spark runs longer, with arrivals that begin alike.
            if !name.starts_with("spark") {
                assert_eq!(*first, alike, "{} {name}", figure.name);
            }
        }
    }
}

/// Each case with two seeds.
fn with_columns(name: &str, result: impl Fn(&str) -> CellResult) -> Findings {
    let figure = find(name).unwrap();
    told(figure, &figure.cases(Effort::Full, &TRACES), result)
}

#[test]
fn three_figures_have_columns_for_real_traces() {
    let names: Vec<&str> = ALL.iter().filter(|figure| figure.has_columns()).map(|figure| figure.name).collect();
    assert_eq!(names, ["bolt-13a", "bolt-13b", "bolt-15"]);
}

/// That the Google traces give other factors in 13a was known.
#[test]
fn a_column_has_the_rows_and_rules_of_the_generated_workload_and_its_own_class() {
    for name in ["bolt-13a", "bolt-13b", "bolt-15"] {
        let rows = with_columns(name, |_| delayed(&[(0.0, 1.0)])).rows;
        let own: Vec<_> = rows.iter().filter(|row| row.column.is_none()).collect();
        // They take too long.
        let without = own.iter().filter(|row| row.name.starts_with("asic-safe")).count();
        assert_eq!(rows.len(), own.len() + (own.len() - without) * TRACES.len(), "{name}");
        for trace in &TRACES {
            let column = rows.iter().filter(|row| row.column == Some(trace.name));
            for (row, plain) in column.zip(&own) {
                assert_eq!((row.plain_name(), row.paper, row.unit), (plain.name.as_str(), plain.paper, plain.unit));
                assert_eq!(row.name, format!("{}-{}", trace.name, plain.name));
                let seen = name == "bolt-13a" && trace.name.starts_with("google");
                let class = match plain.class {
                    ours if ours.is_ours() => ours,
                    _ if seen => Class::Seen,
                    _ => Class::Predicted,
                };
                assert_eq!(row.class, class, "{name} {}", row.name);
            }
        }
    }
}

#[test]
fn a_column_is_run_with_the_generated_workload_s_schemes_clusters_and_loads() {
    for name in ["bolt-13a", "bolt-13b", "bolt-15"] {
        let figure = find(name).unwrap();
        let cases = figure.cases(Effort::Full, &TRACES);
        for trace in &TRACES {
            let cases_of_columns = |case: &Case| !case.name.ends_with("-short");
            for Case { name: plain, cell } in (figure.cases)(Effort::Full).into_iter().filter(cases_of_columns) {
                let column = cases.iter().find(|case| case.name == format!("{plain}-{}", trace.name)).unwrap();
                assert_eq!(column.column(), Some(trace.name));
                let (Experiment::Tasks(column), Experiment::Tasks(cell)) = (&column.cell, &cell) else {
                    panic!("{plain}")
                };
                assert_eq!((&column.scheme, &column.cluster), (&cell.scheme, &cell.cluster));
                let (Load::Sample { file, median_ms, load, priorities, clients, work, replace }, Load::Trace { .. }) =
                    (&column.load, &cell.load)
                else {
                    panic!("{plain}: {:?}", column.load);
                };
                let trace_file = std::path::Path::new(trace.file);
                assert_eq!((file.as_path(), *replace), (trace_file, Replace::Nothing));
                let generated = Load::Trace {
                    file: None,
                    sample: midflight_papers::calibration::SAMPLE_TASKS,
                    median_ms: *median_ms,
                    load: *load,
                    priorities: *priorities,
                    clients: *clients,
                    work: *work,
                };
                assert_eq!(generated, cell.load);
            }
        }
    }
}

#[test]
fn without_a_trace_its_column_is_left_out_and_the_others_stay() {
    let figure = find("bolt-13b").unwrap();
    let findings = told(figure, &figure.cases(Effort::Full, &TRACES[2..]), |_| delayed(&[(0.0, 1.0)]));
    let columns: BTreeSet<_> = findings.rows.iter().filter_map(|row| row.column).collect();
    assert_eq!(columns, ["alibaba"].into());
}

#[test]
fn a_note_says_what_was_sampled() {
    let counters = |case: &str| {
        let squeezed = if case.ends_with("google-like") { 4_490_000 } else { 1_000_000 };
        let numbers = [("rate_ppm", 7_300), ("squeezed_ppm", squeezed), ("jobs", 100), ("tasks", 250)];
        let rest = [("largest_job", 36), ("pass_us", 1_490_000), ("offered_ppm", 195_000)];
        let all = numbers.into_iter().chain(rest).map(|(name, number)| (format!("trace.{name}"), number));
        CellResult { counters: all.collect(), ..delayed(&[(0.0, 1.0)]) }
    };
    let notes = with_columns("bolt-13a", counters).notes;
    assert_eq!(notes.len(), 4);
    for part in ["google-sub: 0.7 % of the tasks", "2.50 tasks a job", "has 36", "1.5 s", "19.5 %"] {
        assert!(notes[1].contains(part), "no {part} in {}", notes[1]);
    }
    assert!(!notes[1].contains("squeezed") && notes[2].contains("squeezed 4.49 times"), "{notes:?}");
}

fn falcon_8(case: &str) -> CellResult {
    match scheme_and_place(case) {
        ("bolt", _) => delayed(&[(0.0, 0.05), (0.5, 0.09), (0.95, 0.25)]),
        ("sparrow", "0.5") => delayed(&[(0.0, 1.5), (0.5, 1.98), (0.95, 2.2)]),
        ("sparrow", _) => delayed(&[(0.0, 1.5), (0.5, 2.22), (0.95, 2.68)]),
        ("spark", "0.6") => delayed(&[(0.0, 9_000.0)]),
        ("spark", "0.6-short") => delayed(&[(0.0, 5_000.0)]),
        ("spark", _) => delayed(&[(0.0, 3_000.0)]),
        _ => delayed(&[(0.0, 0.02), (0.5, 0.04), (0.95, 0.06)]),
    }
}

#[test]
fn falcon_8_as_in_the_paper_passes() {
    assert_passes(&findings("falcon-8", falcon_8));
}

#[test]
fn falcon_8_with_another_factor_has_the_shape_and_in_another_order_fails() {
    let slower = findings("falcon-8", |case| match scheme_and_place(case) {
        ("bolt", _) => delayed(&[(0.0, 0.1), (0.5, 0.2), (0.95, 0.6)]),
        _ => falcon_8(case),
    });
    assert_eq!(slower.verdict("factor-median-95"), Some(Verdict::Shape));
    assert_eq!(slower.verdict("sparrow-median-95"), Some(Verdict::Pass));
    assert_eq!(slower.verdict("falcon-flat"), Some(Verdict::Pass));
    let reversed = findings("falcon-8", |case| match scheme_and_place(case) {
        ("bolt", _) => delayed(&[(0.0, 9.0)]),
        _ => falcon_8(case),
    });
    assert_eq!(reversed.verdict("factor-median-95"), Some(Verdict::Fail));
    let climbing = findings("falcon-8", |case| match scheme_and_place(case) {
        ("bolt", "0.95") => delayed(&[(0.0, 0.2)]),
        _ => falcon_8(case),
    });
    assert_eq!(climbing.verdict("falcon-flat"), Some(Verdict::Fail));
}

#[test]
fn bolt_11_as_in_the_paper_passes_and_a_bend_elsewhere_does_not() {
    let rate = |case: &str| {
        let (scheme, place) = scheme_and_place(case);
        let executors: f64 = place.trim_end_matches("-lasting").trim_end_matches("-settled").parse().unwrap();
        let started_per_s = match scheme {
            "bolt" => executors * 32e3,
            "midflight" | "asic-safe" => executors * 33e3,
            "midflight-kernel" => executors * 30e3,
            "sparrow-4" => (executors * 20e3).min(1.9e6),
            "midflight-server" => (executors * 20e3).min(0.9e6),
            _ => (executors * 10e3).min(0.5e6),
        };
        CellResult { started_per_s, ..CellResult::default() }
    };
    assert_passes(&findings("bolt-11", rate));
    let rising = findings("bolt-11", |case| match scheme_and_place(case) {
        ("bolt-server", place) => {
            let executors: f64 = place.trim_end_matches("-lasting").parse().unwrap();
            CellResult { started_per_s: executors * 1e3, ..CellResult::default() }
        }
        _ => rate(case),
    });
    assert_eq!(rising.verdict("bolt-server-flat"), Some(Verdict::Fail));
    let one_core = findings("bolt-11", |case| match scheme_and_place(case).0 {
        "midflight-kernel" => CellResult { started_per_s: 3e6, ..CellResult::default() },
        _ => rate(case),
    });
    assert_eq!(one_core.verdict("midflight-kernel-peak"), Some(Verdict::Pass));
    assert_eq!(one_core.verdict("midflight-kernel-keeps-up"), Some(Verdict::Fail));
}

#[test]
fn ours_are_as_fast_as_the_published_switch_or_fail() {
    let with = |kernel_ms| {
        findings("falcon-8", move |case| match scheme_and_place(case).0 {
            "midflight-kernel" => delayed(&[(0.0, kernel_ms)]),
            _ => falcon_8(case),
        })
    };
    for (kernel_ms, median, keeps_up) in [
        (0.08, Verdict::Pass, Verdict::Pass),
        (0.11, Verdict::Shape, Verdict::Pass),
        (0.13, Verdict::Shape, Verdict::Fail),
        (3.0, Verdict::Fail, Verdict::Fail),
    ] {
        let findings = with(kernel_ms);
        assert_eq!(findings.verdict("midflight-kernel-median-95"), Some(median), "{kernel_ms}");
        assert_eq!(findings.verdict("midflight-kernel-keeps-up-95"), Some(keeps_up), "{kernel_ms}");
    }
    let of = |name| with(0.08).rows.into_iter().find(|row| row.name == name).unwrap().class;
    assert_eq!(of("midflight-kernel-median-95"), Class::Measured);
    assert_eq!(of("asic-safe-median-95"), Class::Hypothetical);
}

#[test]
fn what_is_hypothetical_says_so() {
    for figure in &ALL {
        let plots = told(figure, &figure.cases(Effort::Full, &[]), |_| delayed(&[(0.0, 1.0)])).plots;
        for curve in plots.iter().flat_map(|plot| &plot.curves).filter(|curve| curve.name.contains("Midflight")) {
            let says = ["(hypothetical)", "(measured costs)"].iter().any(|word| curve.name.contains(word));
            assert!(says, "{}: {}", figure.name, curve.name);
        }
    }
}

#[test]
fn bolt_13b_as_in_the_paper_passes() {
    let median = |case: &str| match scheme_and_place(case).0 {
        "bolt" => 0.14,
        "sparrow" => 40.0,
        "sparrow-2" => 14.0,
        "bolt-server" => 370.0,
        "midflight" | "midflight-kernel" => 0.05,
        _ => 0.3,
    };
    assert_passes(&findings("bolt-13b", |case| delayed(&[(0.0, median(case))])));
    // A Bolt-Server that does not collapse is not the paper's.
    let healthy = findings("bolt-13b", |case| {
        delayed(&[(0.0, if case.starts_with("bolt-server") { 20.0 } else { median(case) })])
    });
    assert_eq!(healthy.verdict("bolt-server-median"), Some(Verdict::Fail));
}

#[test]
fn falcon_9_10_and_bolt_14_read_the_steps() {
    let stepped = |steps: &[(Step, f64)], delay: f64| CellResult {
        steps: steps.iter().map(|&(step, ms)| (step, percentiles(&[(0.0, ms)]))).collect(),
        ..delayed(&[(0.0, delay)])
    };
    let falcon = findings("falcon-9-10", |case| match scheme_and_place(case).0 {
        "sparrow" => stepped(&[(Step::Reservation, 1.0), (Step::Queueing, 1.2), (Step::GetTask, 2.5)], 4.7),
        _ => stepped(&[(Step::Submit, 0.01), (Step::Queueing, 0.06), (Step::GetTask, 0.03)], 0.09),
    });
    assert_passes(&falcon);
    let bolt = findings("bolt-14", |case| match scheme_and_place(case).0 {
        "sparrow" => stepped(&[(Step::Submit, 0.05), (Step::Reservation, 0.6), (Step::GetTask, 0.4)], 1.6),
        _ => stepped(&[(Step::Submit, 0.02), (Step::Queueing, 1.2), (Step::GetTask, 0.03)], 0.04),
    });
    assert_passes(&bolt);
}

#[test]
fn quick_runs_have_the_cells_that_their_rows_need() {
    for figure in ALL.iter().filter(|figure| figure.name != "scale") {
        let names = |effort| figure.cases(effort, &TRACES).into_iter().map(|case| case.name).collect::<Vec<_>>();
        assert_eq!(names(Effort::Full), names(Effort::Quick), "{}", figure.name);
    }
}

#[test]
fn bolt_16_holds_the_pipelines_to_the_thesis() {
    let by_level = |step_us: f64| {
        let level = |level: u8| {
            let get_task = percentiles(&[(0.0, 0.030 + step_us / 1e3 * f64::from(level - 1))]);
            (level, LevelResult { steps: [(Step::GetTask, get_task)].into(), ..LevelResult::default() })
        };
        CellResult { levels: (1..=4).map(level).collect(), ..CellResult::default() }
    };
    let found = |safe: f64, published: f64| {
        findings("bolt-16", |case| match scheme_and_place(case).0 {
            "bolt" => by_level(1.0),
            "asic-published" => by_level(published),
            "asic-safe" => by_level(safe),
            _ => by_level(0.0),
        })
    };
    let as_published = found(0.0, 0.65);
    assert_eq!(as_published.verdict("asic-published-level-4"), Some(Verdict::Pass));
    assert_eq!(as_published.verdict("asic-safe-level-4"), Some(Verdict::Pass));
    assert_eq!(found(0.0, 0.0).verdict("asic-published-level-4"), Some(Verdict::Fail));
    assert_ne!(found(1.0, 0.65).verdict("asic-safe-level-4"), Some(Verdict::Pass));
}

#[test]
fn asic_passes_tells_what_is_linear() {
    let counted = |vain: fn(f64) -> f64| {
        move |case: &str| {
            let (length, mix) = scheme_and_place(case).1.split_once('-').unwrap();
            let (length, mix): (f64, f64) = (length.parse().unwrap(), mix.parse().unwrap());
            let counters = [
                ("submit.tasks", 1_000.0),
                ("submit.passes", 1_000.0),
                ("mixed.tasks", 1_000.0),
                ("mixed.passes", 100_000.0 / (100.0 - mix)),
                ("emptied.tasks", 1_000.0),
                ("emptied.passes", 1_000.0 * length * mix / 200.0),
                ("vain.passes", vain(length)),
                ("level4.passes", if case.starts_with("safe") { 1.0 } else { 4.0 }),
            ];
            let counters = counters.into_iter().map(|(name, number)| (name.to_owned(), number as u64)).collect();
            CellResult { counters, ..CellResult::default() }
        }
    };
    assert_passes(&findings("asic-passes", counted(|length| length + 2.0)));
    let faster = findings("asic-passes", counted(f64::sqrt));
    assert_eq!(faster.verdict("safe-in-vain"), Some(Verdict::Fail));
    assert_eq!(faster.verdict("published-mixed"), Some(Verdict::Pass));
}
