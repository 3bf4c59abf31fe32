//! The cache's client commands, against agents in this process.

#![allow(clippy::unwrap_used, reason = "tests may")]

#[path = "../../../crates/host/tests/cache/agent.rs"]
#[allow(dead_code, reason = "other tests direct agents in more ways")]
mod agent;
mod common;

use agent::Agent;
use common::{Directory, assert_error, run, run_with};
use serde_json::{Value, json};
use std::net::SocketAddr;

struct Cache {
    agents: Vec<Agent>,
    _directory: Directory,
    file: String,
}

impl Cache {
    fn start(name: &str) -> Self {
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 9));
        let agents: Vec<_> = (0..3).map(|_| Agent::start(nowhere)).collect();
        let directory = Directory::new(name);
        let servers: Vec<_> = agents.iter().map(|agent| format!("{:?}", agent.address.to_string())).collect();
        let text = format!("direct = {{ selector = \"c3\" }}\nservers = [{}]\n", servers.join(", "));
        let file = directory.write("cache.toml", &text);
        Self { agents, _directory: directory, file }
    }

    fn run(&self, args: &[&str]) -> (Option<i32>, String) {
        let said = run(&[&["cache"], args, &["--cache", &self.file]].concat());
        (said.code, said.stdout)
    }
}

fn done(text: &str) -> (Option<i32>, String) {
    (Some(0), text.into())
}

#[test]
fn operations_answer_by_text_json_and_exit_code() {
    let cache = Cache::start("cache-operations");
    assert_eq!(cache.run(&["get", "a"]), (Some(3), String::new()));
    assert_eq!(cache.run(&["get", "a", "--json"]), (Some(3), "{\"found\":false}\n".into()));
    assert_eq!(cache.run(&["set", "a", "x y", "--flags", "7", "--expiry", "90s"]), done(""));
    assert!(cache.agents.iter().all(|agent| agent.backend()[&b"a"[..]] == (b"x y".to_vec(), 7, 90)));
    assert_eq!((cache.run(&["get", "a"]), cache.run(&["get", "a", "--raw"])), (done("x y\n"), done("x y")));
    let (code, text) = cache.run(&["get", "a", "--json"]);
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, answer), (Some(0), json!({ "found": true, "value": "x y", "flags": 7 })));
    let said = run_with(&["cache", "set", "--cache", &cache.file, "b", "-", "--json"], "line\nline");
    assert_eq!((said.code, said.stdout.as_str()), (Some(0), "{\"done\":true}\n"));
    assert_eq!(cache.run(&["get", "b"]), done("line\nline\n"));
    assert_eq!(cache.run(&["delete", "b"]), done(""));
    assert_eq!(cache.run(&["delete", "b"]), (Some(3), String::new()));
    // Options override the file.
    let nobody = ["--operator", "127.0.0.1:9", "--timeout", "50ms"];
    let said = run(&[&["cache", "get", "a", "--cache", &cache.file], &nobody[..]].concat());
    assert_error(&said, 1, &["no answer in time", "operator"]);
}

#[test]
fn a_load_says_what_became_of_each_get() {
    let cache = Cache::start("cache-bench");
    let load = ["--rate", "400", "--duration", "1s", "--warm-up", "200ms", "--keys", "50", "--clients", "3", "--json"];
    let load_cache = |more: &[&str]| run(&[&["load", "cache", "--cache", &cache.file], more, &load[..]].concat());
    let said = load_cache(&[]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let text = said.stdout;
    let envelope: Value = serde_json::from_str(&text).unwrap();
    let results = envelope["results"].as_array().unwrap();
    let value = |name: &str| {
        let found = results.iter().find(|result| result["name"] == format!("cache.{name}"));
        found.unwrap_or_else(|| panic!("{name}: {text}"))["value"].as_f64().unwrap()
    };
    assert!((300.0..500.0).contains(&value("gets_per_s")), "{text}");
    assert!(value("p50_us") > 0.0 && value("p50_us") <= value("p99_us") && value("p999_us") <= value("max_us"));
    assert_eq!([value("missing"), value("wrong"), value("failed"), value("failed_busy"), value("long")], [0.0; 5]);
    assert_eq!(cache.agents[0].backend().len(), 50, "all keys are set");

    // Values that the servers have lost count as missing, and values of another key as wrong.
    cache.agents.iter().for_each(|agent| agent.backend().clear());
    let said = load_cache(&["--no-fill"]);
    assert!(said.code == Some(0) && !said.stdout.contains("\"name\":\"cache.missing\",\"value\":0"), "{said:?}");
    for agent in &cache.agents {
        agent.backend().extend((0..50).map(|n| (format!("bench:{n:08}").into_bytes(), (vec![9; 100], n, 0))));
    }
    assert_error(&load_cache(&["--no-fill"]), 1, &["values were those of other keys"]);
    assert_error(&run(&["load", "cache", "--cache", &cache.file, "--rate", "0"]), 2, &["--rate 0"]);
}
