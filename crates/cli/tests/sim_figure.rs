//! `midflight sim figure`: a small one from cells to report, and what a script sees.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{Directory, assert_error, run};

/// The smallest of the figures.
const SMALL: [&str; 6] = ["sim", "figure", "bolt-17", "--quick", "--seeds", "2"];

#[test]
fn a_figure_goes_from_cells_to_verdicts_plots_and_a_report() {
    let directory = Directory::new("figure");
    let out = directory.path("out");
    let said = run(&[&SMALL[..], &["--out", &out]].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stdout.starts_with("bolt-17: "), "{said:?}");
    for part in ["pass", "the last task ends", "report: ", "figure · "] {
        assert!(said.stdout.contains(part), "no {part:?} in {said:?}");
    }
    let read = |out: &str, name: &str| std::fs::read_to_string(format!("{out}/{name}")).unwrap();
    let page = read(&out, "index.html");
    for part in ["id=\"bolt-17\"", "What differs, and why", "midflight sim figure bolt-17", "A quick run"] {
        assert!(page.contains(part), "no {part:?} in the report");
    }
    assert_eq!(page.matches("<svg").count(), 2);
    assert!(!page.contains("<script"));
    assert!(read(&out, "bolt-17.bolt.svg").contains("G3 (A, B, C)"));

    // Elsewhere, with the same cells: nothing is run again, and JSON has the same.
    let (elsewhere, cells) = (directory.path("elsewhere"), format!("{out}/cells"));
    let json = run(&[&SMALL[..], &["--out", &elsewhere, "--cells", &cells, "--json"]].concat());
    assert!(json.stderr.contains("4 of 4 cells have been run before"), "{json:?}");
    let results = json.results();
    assert_eq!((&results["bench"], &results["bolt-17.fail"]), (&"figure".into(), &0.into()));
    assert_eq!(results["bolt-17.last-end.paper"], 11_000_000.0);
    assert_eq!(results["bolt-17.last-end.verdict"], "pass");
    assert_eq!(results["bolt-17.last-end.class"], "set");
    assert_eq!((&results["figures.predicted.total"], &results["figures.hypothetical.total"]), (&0.into(), &4.into()));
    assert!(results["bolt-17.last-end.ours"].as_f64().unwrap() > 9_000_000.0);
    assert!(results["bolt-17.last-end.ratio"].as_f64().unwrap() > 0.8);
    let parsed = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    assert_eq!(parsed(&read(&elsewhere, "results.json")), parsed(&json.stdout));
}

#[test]
fn one_process_and_two_give_the_same_results_and_pictures() {
    let directory = Directory::new("figure-bytes");
    let [one, two] = ["1", "2"].map(|jobs| {
        let out = directory.path(jobs);
        let said = run(&[&SMALL[..], &["--out", &out, "-j", jobs, "--json"]].concat());
        assert_eq!(said.code, Some(0), "{said:?}");
        (said.stdout, std::fs::read(format!("{out}/bolt-17.midflight.svg")).unwrap())
    });
    assert!(one == two, "the results differ");
}

#[test]
fn an_unknown_figure_names_the_known_ones() {
    assert_error(&run(&["sim", "figure", "bolt-18"]), 2, &["`bolt-18`", "falcon-8,", "bolt-13a,", "scale"]);
    assert_error(&run(&["sim", "figure"]), 2, &["NAME"]);
    assert_error(&run(&["sim", "figure", "--all", "bolt-17"]), 2, &["--all"]);
}

#[test]
fn a_trace_that_is_not_there_is_named_before_any_cell_runs() {
    let said = run(&["sim", "figure", "bolt-13a", "--trace", "/nonexistent"]);
    assert_error(&said, 2, &["--trace", "/nonexistent", "No such file"]);
}

#[test]
fn the_cells_of_a_figure_can_be_listed_with_a_trace_of_ones_own() {
    let said = run(&["sim", "figure", "bolt-13a", "--list", "--seeds", "2", "--trace", "mine.tr"]);
    let cells: Vec<serde_json::Value> = said.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(cells.len(), 10);
    assert!(cells.iter().all(|cell| cell["load"]["file"] == "mine.tr"));
    assert_eq!(cells.iter().filter(|cell| cell["seed"] == 2).count(), 5);
}
