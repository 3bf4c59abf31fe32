//! A store with its switch in the kernel, in a lab: clients and replicas see no difference. Needs root, iproute2 and a kernel with BPF
//! arenas; otherwise prints SKIPPED.
#![cfg(feature = "kernel")]
#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{
    CommandOutput, Directory, Running, assert_error, kernel_works, labs_work, midflight_at, status_at, wait_until,
};
use midflight_net::{HOST_INTERFACE, Lab, Options, Place, SWITCH_IPV4};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The client's host; those of the replicas follow.
const CLIENT: Place = Place::Host(0);
/// Host of the standby switch.
const STANDBY: Place = Place::Host(4);
const STANDBY_IPV4: &str = "10.77.4.2";
/// Whether a host announces a new hardware address.
const ANNOUNCE: &str = "/proc/sys/net/ipv4/conf/eth0/arp_notify";

/// Leases much longer than a busy machine delays a replica: only the test ends a session.
const LONG_LEASES: &str =
    "timing = { session_lease = \"1s\", leader_lease = \"900ms\", promise = \"1s\", stagger = \"100ms\" }";

/// Each on its own host.
struct Store {
    lab: Lab,
    directory: Directory,
    port: u16,
    replicas: Vec<Running>,
}

impl Store {
    fn new(name: &str) -> Option<Self> {
        Self::with(name, false)
    }

    /// `None`, with SKIPPED, if it cannot run here.
    fn with(name: &str, stands_by: bool) -> Option<Self> {
        if !labs_work() || !kernel_works() {
            return None;
        }
        let lab = Lab::up(&Options::temporary(5)).unwrap();
        let port = 20_000 + (std::process::id() % 5_000) as u16 * 2 + u16::from(name.len() as u8 % 2);
        let mut store = Self { lab, directory: Directory::new(name), port, replicas: Vec::new() };
        let mut text = store.configuration("leader-avoidance", 12);
        if stands_by {
            text = text.replacen("\"]", &format!("\", \"{STANDBY_IPV4}:{port}\"]"), 1);
        }
        store.directory.write("store.toml", &text);
        for id in 1..=3 {
            let (number, data) = (id.to_string(), store.directory.path(&format!("data-{id}")));
            let args = ["replica", "--config", &store.config(), "--id", &number, "--data", &data, "--new"];
            store.replicas.push(Running::spawn(midflight_at(&store.lab, Place::Host(id), &args)));
        }
        Some(store)
    }

    fn configuration(&self, policy: &str, kgroup_bits: u8) -> String {
        let replica =
            |id| format!("  {{ id = {id}, address = \"10.77.{id}.2:7710\", links = \"10.77.{id}.2:7711\" }},\n");
        let replicas: String = (1..=3).map(replica).collect();
        format!(
            "http = \"\"\n[store]\ncookie = \"500ms\"\n[[store.set]]\nnumber = 1\ncluster = 42\nswitches = [\"{SWITCH_IPV4}:{}\"]\n\
             policy = \"{policy}\"\nkgroup_bits = {kgroup_bits}\n{LONG_LEASES}\nreplicas = [\n{replicas}]\n",
            self.port
        )
    }

    fn config(&self) -> String {
        self.directory.path("store.toml")
    }

    fn switch_command(&self, more: &[&str]) -> Command {
        let (config, listen) = (self.config(), format!("{SWITCH_IPV4}:{}", self.port));
        let args =
            ["switch", "--engine", "kernel", "--interface", "host0,host1,host2,host3,host4", "--config", &config];
        let args = [&args[..], &["--listen", &listen, "--http", "127.0.0.1:0"], more].concat();
        midflight_at(&self.lab, Place::Switch, &args)
    }

    fn switch(&self, more: &[&str]) -> Running {
        Running::spawn(self.switch_command(more))
    }

    fn refused(&self, more: &[&str]) -> CommandOutput {
        self.switch_command(more).output().unwrap().into()
    }

    fn detach(&self) {
        let listen = format!("{SWITCH_IPV4}:{}", self.port);
        let said: CommandOutput = midflight_at(&self.lab, Place::Switch, &["switch", "--detach", "--listen", &listen])
            .output()
            .unwrap()
            .into();
        assert_eq!(said.code, Some(0), "{said:?}");
    }

    fn cli(&self, args: &[&str]) -> CommandOutput {
        let config = self.config();
        let args = [&["store", args[0], "--config", &config], &args[1..]].concat();
        midflight_at(&self.lab, CLIENT, &args).output().unwrap().into()
    }

    fn wait_until_it_serves(&self) {
        wait_until("the store serves", || self.cli(&["put", "first", "one", "--timeout", "1s"]).code == Some(0));
    }

    fn load(&self, seconds: &str) -> Child {
        let (config, history) = (self.config(), self.directory.path("history.jsonl"));
        let args = ["load", "store", "--config", &config, "--seconds", seconds, "--history", &history, "--json"];
        let args = [&args[..], &["--clients", "6", "--keys", "30", "--value-bytes", "333"]].concat();
        let mut command = midflight_at(&self.lab, CLIENT, &args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// The results of a load, whose history is linearizable.
    fn results(&self, load: Child) -> serde_json::Map<String, serde_json::Value> {
        let said: CommandOutput = load.wait_with_output().unwrap().into();
        assert_eq!(said.code, Some(0), "{said:?}");
        let checked = common::run(&["check", "history", &self.directory.path("history.jsonl")]);
        assert!(checked.stdout.starts_with("linearizable: "), "{checked:?}");
        said.results().as_object().unwrap().clone()
    }
}

fn count(status: &serde_json::Value, name: &str) -> f64 {
    status["shell"][name].as_f64().unwrap_or(0.0)
}

/// R1, R6: almost all packets pass through XDP.
#[test]
fn r1_a_store_with_its_switch_in_the_kernel() {
    let Some(store) = Store::new("store-kernel") else { return };
    let switch = store.switch(&[]);
    store.wait_until_it_serves();
    assert_eq!(store.cli(&["get", "first"]).stdout.trim_end(), "one");
    let results = store.results(store.load("2"));
    assert_eq!(results["load.failed"], 0, "{results:?}");
    let status = status_at(&store.lab, &switch);
    let (taken, forwarded) = (count(&status, "xdp_taken"), count(&status, "forwarded"));
    assert!(forwarded > 1000.0 && forwarded > 0.9 * taken, "{status}");
    assert!(count(&status, "handed_over") < 0.05 * taken, "{status}");
    let set = &status["sets"][0];
    assert!(set["reads_to_followers"].as_u64() > Some(1000) && set["unstable"] == 0, "{status}");
}

/// R5: without its process, sessions and leases continue in the kernel. The next process takes the set over, with the policy of its
/// configuration; other key groups are refused.
#[test]
fn r5_a_kept_switch_serves_on_without_its_process() {
    let Some(store) = Store::new("store-kept") else { return };
    let switch = store.switch(&["--keep"]);
    store.wait_until_it_serves();
    let load = store.load("4");
    std::thread::sleep(Duration::from_secs(1));
    drop(switch); // SIGKILL
    // For all cookies to expire.
    std::thread::sleep(Duration::from_millis(2_500));
    store.directory.write("store.toml", &store.configuration("random", 12));
    let next = store.switch(&["--keep"]);
    let results = store.results(load);
    assert_eq!((&results["load.failed"], &results["load.unknown"]), (&0.into(), &0.into()), "{results:?}");
    assert!(results["load.gap_max_ms"].as_f64() < Some(1_000.0), "{results:?}");
    let status = status_at(&store.lab, &next);
    assert_eq!(status["sets"][0]["sessions"], 1, "one session, before and after: {status}");
    drop(next);

    store.directory.write("store.toml", &store.configuration("random", 11));
    assert_error(&store.refused(&["--keep"]), 1, &["set 1, which was kept", "number of key groups", "--fresh"]);
    store.detach();
}

/// R5, R7: a replica gets another network card; XDP's next hop leads nowhere until the switch hears it again.
#[test]
fn r5_a_next_hop_that_leads_nowhere_is_learned_anew() {
    let Some(store) = Store::new("store-hop") else { return };
    let switch = store.switch(&[]);
    store.wait_until_it_serves();
    let load = store.load("3");
    for replica in 1..=3 {
        std::thread::sleep(Duration::from_millis(600));
        store.lab.within(Place::Host(replica), || std::fs::write(ANNOUNCE, "1").unwrap()).unwrap();
        let address = format!("02:00:00:00:77:0{replica}");
        let args = ["link", "set", HOST_INTERFACE, "address", &address];
        assert!(store.lab.command(Place::Host(replica), "ip").args(args).status().unwrap().success());
    }
    let results = store.results(load);
    assert_eq!((&results["load.failed"], &results["load.unknown"]), (&0.into(), &0.into()), "{results:?}");
    let status = status_at(&store.lab, &switch);
    assert_eq!(status["sets"][0]["unstable"], 0, "{status}");
}

/// R5, R7: the switch reports it and exits; the standby switch serves the set.
#[test]
fn r5_a_switch_whose_interface_is_gone_says_so_and_ends() {
    let Some(store) = Store::with("store-gone", true) else { return };
    let (config, listen) = (store.config(), format!("{}:{}", STANDBY_IPV4, store.port));
    let args = ["switch", "--config", &config, "--listen", &listen, "--http", "off"];
    let _standby = Running::spawn(midflight_at(&store.lab, STANDBY, &args));
    let mut command = store.switch_command(&[]);
    command.stderr(Stdio::piped());
    let mut switch = Running::spawn(command);
    store.wait_until_it_serves();
    let load = store.load("3");
    std::thread::sleep(Duration::from_secs(1));
    store.lab.renew_link(3).unwrap();
    let stderr = std::io::read_to_string(switch.child.stderr.take().unwrap()).unwrap();
    let (code, stdout) = switch.end();
    assert_error(
        &CommandOutput { code, stdout, stderr },
        1,
        &["interface host3 went away", "start again when it is back"],
    );
    let results = store.results(load);
    assert_eq!((&results["load.failed"], &results["load.unknown"]), (&0.into(), &0.into()), "{results:?}");
}

/// R7: says which bound to raise, and continues to serve its kept sets.
#[test]
fn r7_no_room_for_another_set() {
    let Some(store) = Store::new("store-room") else { return };
    let one = store.configuration("random", 12).replacen("[store]", "[store]\nsets = 1", 1);
    let set = one.split_once("[[store.set]]").unwrap().1;
    let another = set.replace("number = 1", "number = 2").replace(":7710", ":7720").replace(":7711", ":7721");
    let two = format!("{one}[[store.set]]{another}");
    store.directory.write("store.toml", &one);
    let switch = store.switch(&["--keep"]);
    store.wait_until_it_serves();
    let load = store.load("4");
    std::thread::sleep(Duration::from_secs(1));
    drop(switch); // SIGKILL
    store.directory.write("store.toml", &two);
    assert_error(&store.refused(&["--keep"]), 2, &["2 tables [[store.set]], but store.sets = 1: raise it"]);
    store.directory.write("store.toml", &two.replace("sets = 1", "sets = 2"));
    assert_error(&store.refused(&["--keep"]), 1, &["sets", "--fresh"]);
    store.directory.write("store.toml", &one);
    let next = store.switch(&["--keep"]);
    let results = store.results(load);
    assert_eq!((&results["load.failed"], &results["load.unknown"]), (&0.into(), &0.into()), "{results:?}");
    assert_eq!(status_at(&store.lab, &next)["sets"][0]["sessions"], 1, "one session, before and after");
    drop(next);
    store.detach();
}
