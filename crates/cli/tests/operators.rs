//! Operators and controllers of a cache as processes: the guide's commands, and what users see when one dies.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{CommandOutput, Directory, Running, assert_error, run, status, wait_until};
use serde_json::Value;

const CONTROLLERS: [&str; 2] = ["127.70.9.1:7790", "127.70.9.2:7790"];

/// A client's rack and a backend's, below one switch.
const NETWORK: &str = r#"
controllers = ["127.70.9.1:7790", "127.70.9.2:7790"]
secret = "controller.secret"
topology = "topology.toml"

[[operator]]
switch = "core-0"
address = "127.70.2.1:7700"
control = "127.70.2.1:7702"
selector = "127.70.2.1:7703"

[[operator]]
switch = "tor-0"
address = "127.70.0.1:7700"
control = "127.70.0.1:7702"
selector = "127.70.0.1:7703"

[[operator]]
switch = "tor-1"
address = "127.70.1.1:7700"
control = "127.70.1.1:7702"

[[host]]
host = "client-0"
ip = "127.70.0.10"

[[server]]
at = "backend-0"
address = "127.70.1.10:7800"

[keyspace]
replicas = 1

[plan]
start = "own-rack"

[times]
ask_every = "20ms"
dead_after = "1s"
takeover_after = "300ms"
longest_response = "200ms"
"#;

const TOPOLOGY: &str = r#"
core = ["core-0"]
racks = [
  { id = "rack-0", tor = "tor-0", hosts = ["client-0"] },
  { id = "rack-1", tor = "tor-1", hosts = ["backend-0"] },
]
"#;

struct Network {
    directory: Directory,
    config: String,
}

impl Network {
    fn new(name: &str) -> Self {
        let directory = Directory::new(name);
        directory.write("topology.toml", TOPOLOGY);
        let config = directory.write("controller.toml", NETWORK);
        let said = run(&["controller", "--init", &directory.path("controller.secret")]);
        assert_eq!(said.code, Some(0), "{said:?}");
        Self { directory, config }
    }

    /// As in the guide, generated from the controllers' file.
    fn operator(&self, switch: &str) -> Running {
        let said = run(&["controller", "operator", switch, "--config", &self.config]);
        assert_eq!(said.code, Some(0), "{said:?}");
        let config = self.directory.write(&format!("{switch}.toml"), &said.stdout);
        Running::start(&["switch", "--config", &config, "--http", "127.0.0.1:0"])
    }

    fn controller(&self, place: usize) -> Running {
        let controller = Running::start(&["controller", "--config", &self.config, "--place", &place.to_string()]);
        assert_eq!(controller.http(), CONTROLLERS[place]);
        controller
    }
}

fn seen(place: usize) -> Value {
    let said = run(&["controller", "status", "--http", CONTROLLERS[place], "--json"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    serde_json::from_str(&said.stdout).unwrap()
}

fn operator<'a>(seen: &'a Value, switch: &str) -> &'a Value {
    seen["operators"].as_array().unwrap().iter().find(|operator| operator["switch"] == switch).unwrap()
}

/// N6. All state is in the operators: a process that died returns without help from others.
#[test]
fn n6_operators_and_controllers_die_and_come_back() {
    let network = Network::new("operators");
    let first = network.controller(0);
    let mut operators = ["core-0", "tor-0", "tor-1"].map(|switch| network.operator(switch));
    let http = operators[1].http();
    assert!(operators[1].first_line.contains("selector on 127.70.0.1:7703, orders on 127.70.0.1:7702"));
    assert!(operators[2].first_line.contains("without a selector"));
    wait_until("the client's rack has its RSNode", || seen(0)["groups"][0]["label"].is_u64());
    // Start it later: the first controller to reach the operators becomes active.
    let second = network.controller(1);
    let now = seen(0);
    assert_eq!((&now["role"], &now["term"]), (&"active".into(), &1.into()));
    assert_eq!(seen(1)["role"], "standby");
    assert!(status(&http)["shell"]["control_rules"].as_u64().unwrap() >= 8);
    let said: CommandOutput = run(&["controller", "status", "--http", CONTROLLERS[0]]);
    assert!(said.stdout.contains("tor-0        127.70.0.1:7700       up to date"), "{said:?}");
    assert!(said.stdout.contains("degraded   rack-1"), "no host of that rack sends requests: {said:?}");
    let said = run(&["top", "--http", CONTROLLERS[0]]);
    for part in [
        "controller at place 0, of 2, active, term 1",
        "3 of 3 answer",
        "\nOperators\n",
        "127.70.0.1:7700",
        "\nGroups\n",
    ] {
        assert!(said.stdout.contains(part), "no {part:?} in {said:?}");
    }
    assert!(run(&["top", "--http", CONTROLLERS[1]]).stdout.contains("another one is active"));
    let said = run(&["top", "--http", &http]);
    for part in ["\nServers\n", "127.70.1.10:7800  unknown", "\nGroups\n", "labelled", "\nRSNodes\n", "here"] {
        assert!(said.stdout.contains(part), "no {part:?} in {said:?}");
    }

    let failures = seen(0)["counters"]["failures"].as_u64().unwrap();
    operators[1].child.kill().unwrap();
    wait_until("its death is noticed", || seen(0)["counters"]["failures"] == failures + 1);
    assert_eq!(operator(&seen(0), "tor-0")["is_alive"], false);
    operators[1].child.wait().unwrap();
    operators[1] = network.operator("tor-0");
    wait_until("it has its rules again", || operator(&seen(0), "tor-0")["is_up_to_date"] == true);
    assert_eq!(operator(&seen(0), "tor-0")["is_barred"], true, "it is in no plan for a while");

    drop(first);
    wait_until("the standby is active", || seen(1)["role"] == "active");
    wait_until("it knows all", || {
        let now = seen(1);
        now["operators"].as_array().unwrap().iter().all(|operator| operator["is_up_to_date"] == true)
    });
    assert_eq!(seen(1)["term"], 2);
    drop(second);
}

#[test]
fn what_cannot_be_done_is_said() {
    let network = Network::new("operators-wrong");
    assert_error(&run(&["controller"]), 2, &["--config FILE", "--print-config"]);
    assert_error(&run(&["controller", "--config", "/nonexistent"]), 2, &["/nonexistent", "--print-config"]);
    let place = ["controller", "--config", &network.config, "--place", "2"];
    assert_error(&run(&place), 2, &["--place 2", "2 controllers"]);
    let unknown = ["controller", "operator", "tor-7", "--config", &network.config];
    assert_error(&run(&unknown), 2, &["tor-7", "core-0, tor-0, tor-1"]);
    let core = ["controller", "operator", "tor-0", "--config", &network.config, "--in-core", "--selector", "tars"];
    assert_error(&run(&core), 2, &["--selector tars", "one of random, least-outstanding, power-of-two, c3"]);
    assert_error(&run(&["controller", "status", "--http", "127.0.0.1:1"]), 1, &["no controller answers", "--http"]);
    let kept = ["switch", "--program", "cache", "--engine", "kernel", "--interface", "lo", "--keep"];
    assert_error(&run(&kept), 2, &["leave out --keep"]);
    let everywhere = network.directory.write("s.toml", "[cache.selector]\nlisten = \"127.70.8.1:7703\"\n");
    let said = run(&["switch", "--config", &everywhere, "--http", "off", "--listen", "0.0.0.0:0"]);
    assert_error(&said, 2, &["one address", "--listen"]);
    std::fs::remove_file(network.directory.path("topology.toml")).unwrap();
    assert_error(&run(&["controller", "--config", &network.config]), 2, &["topology.toml", "No such file"]);
}
