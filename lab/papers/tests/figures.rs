//! All figures exist, and given results produce the stated verdicts.

#![allow(clippy::unwrap_used, reason = "tests may")]

use midflight_papers::cell::{Cell, CellResult, Load, Percentiles, QUANTILES, Replace, Scheme};
use midflight_papers::experiment::{Experiment, Outcome};
use midflight_papers::figures::{ALL, Case, Effort, Figure, TRACES, find};
use midflight_papers::findings::{Class, Findings, Verdict};
use std::collections::{BTreeMap, BTreeSet};

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

fn told(figure: &Figure, cases: &[Case], result: impl Fn(&str) -> CellResult) -> Findings {
    let twice = cases.iter().flat_map(|case| [case, case]);
    figure.findings(twice.map(|case| (case.name.as_str(), Outcome::Tasks(result(&case.name)))))
}

fn scheme_and_place(case: &str) -> (&str, &str) {
    case.split_once('@').unwrap()
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
    let figure = find(name).next().unwrap();
    told(figure, &figure.cases(Effort::Full, &TRACES), result)
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
        let figure = find(name).next().unwrap();
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
    let figure = find("bolt-13b").next().unwrap();
    let findings = told(figure, &figure.cases(Effort::Full, &TRACES[2..]), |_| delayed(&[(0.0, 1.0)]));
    let columns: BTreeSet<_> = findings.rows.iter().filter_map(|row| row.column).collect();
    assert_eq!(columns, ["alibaba"].into());
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
fn quick_runs_have_the_cells_that_their_rows_need() {
    for figure in ALL.iter().filter(|figure| figure.name != "scale") {
        let names = |effort| figure.cases(effort, &TRACES).into_iter().map(|case| case.name).collect::<Vec<_>>();
        assert_eq!(names(Effort::Full), names(Effort::Quick), "{}", figure.name);
    }
}

#[test]
fn a_paper_s_name_stands_for_its_figures() {
    let names = |name| find(name).map(|figure| figure.name).collect::<Vec<_>>();
    assert_eq!(names("flair-lb"), ["flair-lb"]);
    assert_eq!(names("falcon"), ["falcon-8", "falcon-9-10"]);
    assert_eq!((names("flair").len(), names("fal").len(), names("").len()), (9, 0, 0));
}
