//! `midflight-lab sim figure`: a small figure from cells to report.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{CommandOutput, Directory, assert_error, run};

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
    for part in ["id=\"bolt-17\"", "What differs, and why", "midflight-lab sim figure bolt-17", "A quick run"] {
        assert!(page.contains(part), "no {part:?} in the report");
    }
    assert_eq!(page.matches("<svg").count(), 2);
    assert!(!page.contains("<script"));
    assert!(read(&out, "bolt-17.bolt.svg").contains("G3 (A, B, C)"));

    // Another directory with the same cells: nothing runs again, and the JSON is the same.
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
fn results_of_earlier_sources_stay_valid_if_those_of_now_give_the_same() {
    let directory = Directory::new("figure-recheck");
    let (out, cells) = (directory.path("out"), directory.path("out/cells"));
    let small = [&SMALL[..], &["--out", &out]].concat();
    assert_eq!(run(&small).code, Some(0));
    let recheck = || run(&["sim", "figure", "--recheck", "--cells", &cells]);
    let said = recheck();
    assert!(said.code == Some(0) && said.stdout.contains("all kept results are of today's sources"), "{said:?}");

    // The same results, as if a comment had changed since.
    let pack = format!("{cells}/bolt.jsonl");
    let text = std::fs::read_to_string(&pack).unwrap();
    let first: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let earlier = text.replace(first["version"].as_str().unwrap(), "earlier");
    std::fs::write(&pack, &earlier).unwrap();
    let said = recheck();
    assert!(said.code == Some(0) && said.stdout.contains("2 of 2 cells were run again; all are equal"), "{said:?}");
    let said = run(&small);
    assert!(said.code == Some(0) && said.stderr.contains("4 of 4 cells have been run before"), "{said:?}");
    let page = std::fs::read_to_string(format!("{out}/index.html")).unwrap();
    assert!(page.contains("2 of the results were computed by earlier sources"));

    // Other results.
    let ended = first["result"]["ended"].as_u64().unwrap();
    let other =
        earlier.replace("earlier", "other").replace(&format!("\"ended\":{ended}"), &format!("\"ended\":{}", ended + 1));
    std::fs::write(&pack, other).unwrap();
    let said = recheck();
    assert!(said.code == Some(1) && said.stdout.contains("these differ"), "{said:?}");
    let said = run(&small);
    assert!(
        said.stderr.contains("2 kept results are of other sources") && said.stderr.contains("--recheck"),
        "{said:?}"
    );
    assert!(said.stderr.contains("2 of 4 cells have been run before"), "{said:?}");
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
fn the_cells_of_a_figure_can_be_listed_with_a_trace_of_ones_own() {
    let said = run(&["sim", "figure", "bolt-13a", "--list", "--seeds", "2", "--trace", "mine.tr"]);
    let cells: Vec<serde_json::Value> = said.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(cells.len(), 18);
    assert!(cells.iter().all(|cell| cell["load"]["file"] == "mine.tr"));
    assert_eq!(cells.iter().filter(|cell| cell["seed"] == 2).count(), 9);
}

const TRACES: [&str; 3] = ["google-sub.tr", "google-like-80.tr", "alibaba2017-batch_task.csv"];

fn cells(said: &CommandOutput) -> Vec<serde_json::Value> {
    said.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn traces_that_are_there_have_columns_and_the_others_are_said_to_be_left_out() {
    let directory = Directory::new("figure-traces");
    let folder = directory.path("");
    let listed = || run(&["sim", "figure", "bolt-13a", "--list", "--seeds", "1", "--traces", &folder]);
    let none = listed();
    assert_eq!(cells(&none).len(), 9);
    assert!(none.stderr.contains("LEFT OUT") && none.stderr.contains("google-sub, google-like, alibaba"), "{none:?}");
    directory.write(TRACES[0], "");
    let one = listed();
    assert!(!one.stderr.contains("google-sub,") && one.stderr.contains("google-like, alibaba"), "{one:?}");
    let column: Vec<_> = cells(&one).into_iter().filter(|cell| cell["load"]["name"] == "sample").collect();
    assert_eq!(column.len(), 6);
    // Without its folder, so that kept results do not depend on the file's location.
    assert!(column.iter().all(|cell| cell["load"]["file"] == TRACES[0]));
    TRACES.iter().for_each(|file| drop(directory.write(file, "")));
    let all = listed();
    assert_eq!((cells(&all).len(), all.stderr.contains("LEFT OUT")), (27, false));
    // A figure without a trace has nothing to leave out.
    assert!(!run(&["sim", "figure", "bolt-17", "--list"]).stderr.contains("LEFT OUT"));
    assert_error(&run(&["sim", "figure", "bolt-13a", "--traces", "/nonexistent"]), 2, &["--traces", "/nonexistent"]);
}

#[test]
fn a_cell_samples_the_trace_in_the_folder_that_is_named() {
    let directory = Directory::new("cell-traces");
    let folder = directory.path("");
    directory.write("mine.tr", &(0..50).map(|n| format!("{n} 4 1 1 1 1 1\n")).collect::<String>());
    let cell = r#"{"scheme":{"name":"bolt"},"cluster":{"groups":[{"nodes":2,"executors":2}]},"seed":1,"warmup_ms":0,"duration_ms":1000,
        "load":{"name":"sample","file":"mine.tr","median_ms":5,"load":0.5,"priorities":false,"work":"compute"}}"#;
    let cell = directory.write("cell.json", cell);
    let said = run(&["sim", "cell", &cell, "--traces", &folder]);
    let result: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(result["cell"]["load"]["file"], "mine.tr");
    assert_eq!(result["result"]["counters"]["trace.squeezed_ppm"], 1_000_000);
    let jobs = result["result"]["counters"]["trace.jobs"].as_u64().unwrap();
    assert!(jobs > 50, "{said:?}");
    assert_error(&run(&["sim", "cell", &cell]), 2, &["mine.tr"]);
}
