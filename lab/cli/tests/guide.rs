//! The user guide agrees with the code: flags, errors, metrics.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use midflight_control::StoreStatus;
use midflight_dataplane::store::Stats;
use midflight_dataplane::{Tasks, TasksConfig};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use zerocopy::FromZeros;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All files below `folder` with this extension.
fn files(folder: PathBuf, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                found.push(path);
            }
        }
    }
    found
}

fn pages() -> Vec<(String, String)> {
    let mut pages = files(root().join("docs"), ".md");
    pages.push(root().join("README.md"));
    pages.into_iter().map(|path| (path.display().to_string(), std::fs::read_to_string(path).unwrap())).collect()
}

/// The lines of a page's shell blocks, without comments.
fn shell_lines(page: &str) -> Vec<&str> {
    let mut inside = false;
    let mut lines = Vec::new();
    for line in page.lines() {
        match line {
            "```sh" => inside = true,
            "```" => inside = false,
            _ if inside => lines.push(line.split(" #").next().unwrap().trim()),
            _ => {}
        }
    }
    lines
}

/// Subcommands of `midflight-lab` alone.
const OF_LABORATORY: [&str; 10] =
    ["attack", "baseline", "bench", "check", "faults", "load", "net", "pipeline", "sim", "soak"];

/// Each call of one of the commands: which, its subcommands, and options before a `--`. After `-p` it is a cargo package.
fn calls(line: &str) -> Vec<(&str, Vec<&str>)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let starts = words
        .iter()
        .enumerate()
        .filter(|&(at, word)| ["midflight", "midflight-lab"].contains(word) && (at == 0 || words[at - 1] != "-p"))
        .map(|(at, _)| at);
    let arguments = |at: usize| words[at + 1..].iter().take_while(|w| !["--", "|", ">", "<"].contains(w)).copied();
    starts.map(|at| (words[at], arguments(at).collect())).collect()
}

fn help(subcommands: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_midflight-lab")).args(subcommands).arg("--help").output().unwrap();
    assert!(output.status.success(), "midflight {}", subcommands.join(" "));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn commands_of_the_guide_have_these_flags() {
    let mut helps = BTreeMap::new();
    let mut checked = 0;
    let pages = pages();
    for (path, page) in &pages {
        for (command, call) in shell_lines(page).into_iter().flat_map(calls) {
            let is_of_laboratory = OF_LABORATORY.contains(&call[0]);
            assert_eq!(is_of_laboratory, command == "midflight-lab", "{path}: {command} {}", call[0]);
            let depth = match call[0] {
                "baseline" => 3,
                "bench" | "cache" | "check" | "job" | "load" | "net" | "sim" | "store" => 2,
                _ => 1,
            }
            .min(call.len());
            let help = helps.entry(call[..depth].to_vec()).or_insert_with(|| help(&call[..depth]));
            let known: BTreeSet<&str> = help.split([' ', ',', '\n', '=']).collect();
            for flag in call.iter().filter(|word| word.starts_with('-')) {
                assert!(known.contains(flag), "{path}: {command} {}: {flag} does not exist", call.join(" "));
                checked += 1;
            }
        }
    }
    assert!(checked > 20, "only {checked} flags were found: does the test still read the guide?");
}

/// The first cell of each row of the table under a heading.
fn first_cells<'a>(page: &'a str, heading: &str) -> Vec<&'a str> {
    let section = page.split_once(&format!("{heading}\n")).unwrap().1;
    let rows = section.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    rows.skip(2).map(|row| row[1..].split('|').next().unwrap().trim()).collect()
}

#[test]
fn errors_of_the_guide_stand_in_the_code() {
    let sources = ["crates", "lab"].into_iter().flat_map(|wing| files(root().join(wing), ".rs"));
    let code: String = sources.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    for page in ["docs/troubleshooting.md", "docs/store.md"] {
        let page = std::fs::read_to_string(root().join(page)).unwrap();
        for message in first_cells(&page, "## Errors") {
            // A row may have several messages; three dots stand for variable parts.
            let parts = message.trim_matches('`').split("`, `").flat_map(|one| one.split('…'));
            let missing: Vec<_> = parts.filter(|part| !code.contains(part)).collect();
            assert!(missing.is_empty(), "no error says {missing:?} of {message}");
        }
    }
}

#[test]
fn counts_of_the_kernel_engine_are_all_in_the_guide() {
    let header = std::fs::read_to_string(root().join("dataplane/xdp/arena.h")).unwrap();
    let list = header.split_once("define MF_SHELL_COUNTS(X)").unwrap().1.split("\n\n").next().unwrap();
    let mut counted: BTreeSet<&str> =
        list.lines().filter_map(|line| line.trim().strip_prefix("X(")?.split(',').next()).collect();
    assert!(counted.len() > 10, "{counted:?}");
    counted.insert("calls_failed"); // counted by the process
    let page = std::fs::read_to_string(root().join("docs/troubleshooting.md")).unwrap();
    let cells = first_cells(&page, "## The kernel engine");
    let documented = cells.into_iter().flat_map(|cell| cell.split(", ")).map(|name| name.trim_matches('`')).collect();
    assert_eq!(counted, documented);
}

fn served(text: &str) -> BTreeSet<String> {
    let ends = ["_bucket", "_sum", "_count"];
    let names = text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(['{', ' ']).next().unwrap());
    names.map(|name| ends.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name).to_owned()).collect()
}

/// The metrics in the first column of a table of a page.
fn documented(page: &str, table: &str) -> BTreeSet<String> {
    let page = std::fs::read_to_string(root().join(page)).unwrap();
    let metrics = page.split_once(table).unwrap().1;
    let rows = metrics.lines().take_while(|line| !line.is_empty()).skip(2);
    let cells = rows.flat_map(|row| row.split('|').nth(1).unwrap().split(", "));
    cells.map(|cell| cell.trim_matches([' ', '`']).split('{').next().unwrap().to_owned()).collect()
}

fn surroundings() -> midflight_control::Surroundings {
    midflight_control::Surroundings {
        listen: "127.0.0.1:7700".parse().unwrap(),
        engine: midflight_control::EngineStatus::in_process("user"),
        epoch: 1,
        uptime_ms: 0,
        shell: [("received".to_owned(), 0)].into(),
    }
}

#[test]
fn metrics_of_the_guide_are_those_of_a_switch() {
    let stats = Tasks::new(&TasksConfig::default(), 1, 1).unwrap().stats();
    let status = midflight_control::TasksStatus::new(&stats, 8);
    let snapshot = midflight_control::Snapshot::new(surroundings(), &stats, status);
    assert_eq!(documented("docs/operations.md", "| metric |"), served(&snapshot.to_prometheus()));
}

fn metrics_of_a_replica() -> BTreeSet<String> {
    let config = midflight_control::store::SetTable::on_loopback(1, 1, 1, 7700).replica_config(
        1,
        midflight_control::store::ReplicaStart::IsNew,
        1,
    );
    let replica = midflight_store::replica::Replica::new(config, Vec::new(), 0).unwrap();
    let shell = [("received".to_owned(), 0)].into();
    let status =
        midflight_control::store::ReplicaStatus::new(1, &replica.status(0), replica.counters(), replica.times(), shell);
    served(&midflight_control::metrics::AnySnapshot::to_prometheus(&status))
}

#[test]
fn metrics_of_the_guide_are_those_of_a_replica() {
    assert_eq!(documented("docs/store.md", "| metric of a replica |"), metrics_of_a_replica());
}

#[test]
fn alerts_and_dashboards_use_metrics_that_exist() {
    let mut stats = Stats::new_zeroed();
    stats.sets[0].is_used = 1;
    let snapshot = midflight_control::Snapshot::new(surroundings(), &stats, StoreStatus::new(&stats));
    let known = &served(&snapshot.to_prometheus()) | &metrics_of_a_replica();
    for file in ["deploy/prometheus/store.yml", "deploy/grafana/store.json"] {
        let text = std::fs::read_to_string(root().join(file)).unwrap();
        let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        let used: BTreeSet<String> = words.filter(|word| word.starts_with("midflight_")).map(str::to_owned).collect();
        assert!(used.len() > 5, "{file}: {used:?}");
        let unknown: Vec<_> = used.iter().filter(|name| !known.contains(name.trim_end_matches("_bucket"))).collect();
        assert!(unknown.is_empty(), "{file}: {unknown:?}");
    }
}

#[test]
fn metrics_of_the_guide_are_those_of_an_agent() {
    let counters = midflight_control::ShellCounters::from([("received".to_owned(), 0)]);
    let status = midflight_control::cache::agent_status::AgentStatus {
        version: "0.1.0".into(),
        listen: "127.0.0.1:7800".parse().unwrap(),
        operator: None,
        backend: "memcached://127.0.0.1:11211".into(),
        backend_is_gone: None,
        slots: 4,
        queue: 0,
        served: 0,
        service_time_us: None,
        utilization: 0.0,
        answered_per_s: 0.0,
        refused_per_s: 0.0,
        streams: 0,
        counters: counters.clone(),
        shell: counters,
    };
    let text = midflight_control::metrics::AnySnapshot::to_prometheus(&status);
    assert_eq!(documented("docs/cache.md", "| metric of an agent |"), served(&text));
}
