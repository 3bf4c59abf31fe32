//! The store as processes.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{Directory, Running, Store, assert_error, free_address, midflight, run, run_with, status, wait_until};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

const STORE: &str = r#"
[[store.set]]
number = 1
cluster = 42
switches = ["127.0.0.1:7700"]
replicas = [
  { id = 1, address = "127.0.0.1:7710", links = "127.0.0.1:7711" },
  { id = 2, address = "127.0.0.1:7720", links = "127.0.0.1:7721" },
  { id = 3, address = "127.0.0.1:7730", links = "127.0.0.1:7731" },
]
"#;

#[test]
fn a_switch_runs_the_program_whose_table_the_configuration_has() {
    let directory = Directory::new("store-switch");
    let file = directory.write("store.toml", STORE);
    let switch = Running::switch("127.0.0.1:0", &["--config", &file]);
    wait_until("the set is added", || status(&switch.http())["sets"][0]["set"].as_u64() == Some(1));
    let said = run(&["status", "--http", &switch.http()]);
    assert!(said.stdout.contains("\nset 1     0 sessions, 0 writes"), "{said:?}");
    let said = run(&["top", "--http", &switch.http()]);
    for part in ["\nReplicas\n", "  1        1  silent", "127.0.0.1:7730", "\nSessions\n", "none yet"] {
        assert!(said.stdout.contains(part), "no {part:?} in {said:?}");
    }

    let said = run(&["switch", "--program", "store", "--print-config"]);
    assert!(said.stdout.contains("\n[store]\n") && !said.stdout.contains("[tasks]"), "{said:?}");
}

#[test]
fn r7_a_switch_of_a_store_says_what_it_needs() {
    let directory = Directory::new("store-refused");
    let file = directory.write("store.toml", STORE);
    let switch = |more: &[&str]| run(&[&["switch", "--listen", "127.0.0.1:0", "--http", "off"], more].concat());
    assert_error(&switch(&["--config", &file, "--engine", "kernel"]), 2, &["name them", "--interface eth0"]);
    assert_error(&switch(&["--program", "store"]), 2, &["no replica set", "[[store.set]]"]);
    assert_error(&switch(&["--config", &file, "--program", "tasks"]), 2, &["store.toml:2", "`store`", "`tasks`"]);
}

fn done(text: &str) -> (Option<i32>, String) {
    (Some(0), text.into())
}

fn no(text: &str) -> (Option<i32>, String) {
    (Some(3), text.into())
}

#[test]
fn operations_answer_by_text_json_and_exit_code() {
    let store = Store::start("store-operations");
    assert_eq!(store.cli(&["get", "a"]), no(""));
    assert_eq!(store.cli(&["put", "a", "1"]), done(""));
    assert_eq!(store.cli(&["incr", "a", "-3"]), done("-2\n"));
    assert_eq!(store.cli(&["cas", "a", "-2", "x y"]), done(""));
    assert_eq!(store.cli(&["cas", "a", "-2", "z", "--json"]), no("{\"done\":false,\"present\":\"x y\"}\n"));
    assert_eq!(store.cli(&["get", "a"]), done("x y\n"));
    assert_eq!(store.cli(&["create", "c", "mine"]), done(""));
    assert_eq!(store.cli(&["create", "c", "yours", "--json"]), no("{\"done\":false,\"present\":\"mine\"}\n"));
    let said = run_with(&["store", "put", "--config", &store.config, "b", "-"], "line\nline");
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(store.cli(&["get", "b", "--json"]), done("{\"found\":true,\"value\":\"line\\nline\"}\n"));
    assert_eq!((store.cli(&["exists", "b"]), store.cli(&["del", "b"])), (done(""), done("")));
    assert_eq!((store.cli(&["exists", "b"]), store.cli(&["del", "b"])), (no(""), no("")));
    let lines = |args: &[&str]| store.cli(args).1.lines().count();
    assert_eq!((lines(&["status"]), lines(&["status", "--times"])), (4, 9), "times only if they are asked for");
    let long = "k".repeat(1200);
    for (args, parts) in [
        (&["incr", "a"][..], &["no number"][..]),
        (&["put", "", "1"], &["the key is empty", "1 to 1024"]),
        (&["put", &long, "1"], &["1200 bytes", "1024"]),
    ] {
        let said = run(&[&["store", args[0], "--config", &store.config], &args[1..]].concat());
        assert_error(&said, 1, parts);
    }
}

#[test]
fn keys_and_values_may_have_any_bytes() {
    let store = Store::start("store-bytes");
    let cli = |args: &[&OsStr]| {
        let output = midflight(&["store"]).args(args).args(["--config", &store.config]).output().unwrap();
        (output.status.code(), output.stdout)
    };
    let [put, get, raw] = ["put", "get", "--raw"].map(OsStr::new);
    let (key, value) = (OsStr::from_bytes(b"k\xff\n"), OsStr::from_bytes(b"\xfe\r"));
    assert_eq!(cli(&[put, key, value]), (Some(0), vec![]));
    assert_eq!(cli(&[get, key, raw]), (Some(0), b"\xfe\r".to_vec()));
    assert_eq!(cli(&[get, key]), (Some(0), b"\xfe\r\n".to_vec()));
    assert_eq!(store.cli(&["get", "--escaped", "k\\xff\\n"]), done("\\xfe\\r\n"));
    assert_eq!(store.cli(&["put", "--escaped", "a\\x00b", "1"]), done(""), "an argument has no NUL");
    assert_eq!(store.cli(&["get", "--escaped", "--raw", "a\\x00b"]), done("1"));
    assert_eq!(store.cli(&["get", "a"]), no(""));
    assert_error(&run(&["store", "get", "--config", &store.config, "--escaped", "\\q"]), 2, &["hexadecimal digits"]);
    let put = |length| run_with(&["store", "put", "--config", &store.config, "b", "-"], &"x".repeat(length));
    assert_eq!(put(100_000).code, Some(0));
    assert_eq!(store.cli(&["get", "--raw", "b"]), done(&"x".repeat(100_000)));
    assert_error(&put((8 << 20) + 1), 1, &["the value on stdin has more than 8 MiB"]);
}

#[test]
fn r2_a_replica_that_lost_its_disk_is_replaced_under_a_new_id() {
    let mut store = Store::start("store-replaced");
    assert_eq!(store.cli(&["put", "a", "1"]), done(""));
    let leader = store.leader();
    let lost = leader % 3 + 1;
    store.kill(lost);
    assert_eq!(store.cli(&["members", "remove", &lost.to_string()]), done("begun\n"));
    let text = std::fs::read_to_string(&store.config).unwrap().replace(&format!("id = {lost},"), "id = 4,");
    store.directory.write("store.toml", &text);
    let data = store.directory.path("data-4");
    let joins = ["replica", "--config", &store.config, "--id", "4", "--data", &data, "--join"];
    store.replicas[lost - 1] = Some(Running::start(&joins));
    let members = |store: &Store| store.cli(&["members", "--json"]).1;
    wait_until("the lost one is gone", || members(&store).matches("\"id\"").count() == 2);
    let said = run(&["store", "members", "add", "4", "--config", &store.config]);
    assert_eq!((said.code, said.stdout), done("begun\n"));
    wait_until("the new one is a follower", || {
        store.cli(&["status", "--json"]).1.contains("\"replica\":4,\"role\":\"follower\"")
    });
    store.kill((1..=3).find(|id| ![lost, leader].contains(id)).unwrap());
    assert_eq!(store.cli(&["incr", "a"]), done("2\n"), "the new one is of the majority");
}

#[test]
fn r6_the_policy_is_changed_while_the_switch_serves() {
    let mut store = Store::start("store-policy");
    assert_eq!(store.cli(&["put", "a", "1"]), done(""));
    let policy = |store: &Store, args: &[&str]| {
        let (code, said) = store.cli(&[&["policy"], args].concat());
        (code, said.split_once(": ").map_or(String::new(), |(_, now)| now.to_owned()))
    };
    let now = |policy: &str, check: &str| (Some(0), format!("policy {policy}, reply check {check}\n"));
    assert_eq!(policy(&store, &[]), now("leader-avoidance", "strict"));
    assert_eq!(policy(&store, &["load-aware"]), now("load-aware", "strict"));
    assert_eq!(policy(&store, &["--reply-check", "relaxed"]), now("load-aware", "relaxed"));
    assert_eq!(policy(&store, &[]), now("load-aware", "relaxed"));
    assert_eq!(store.cli(&["get", "a"]), done("1\n"), "the session goes on");

    let wrong = run(&["store", "policy", "fair", "--config", &store.config]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.stderr.contains("load-aware-leader-avoidance"), "{wrong:?}");
    store.kill_switch(1);
    let none = run(&["store", "policy", "random", "--config", &store.config]);
    assert!(none.code == Some(1) && none.stderr.contains("no switch of set 1"), "{none:?}");
}

#[test]
fn r7_a_replica_that_must_not_run_says_why() {
    let store = Store::start("store-bad");
    let replica = |id: &str, data: &str| {
        run(&["replica", "--config", &store.config, "--id", id, "--data", &store.directory.path(data)])
    };
    assert_error(&replica("9", "data-9"), 2, &["no replica 9", "1, 2, 3"]);
    let mut other = Store::start("store-bad-data");
    other.kill(1);
    let lost = other.directory.path("lost");
    let said = run(&["replica", "--config", &other.config, "--id", "1", "--data", &lost]);
    assert_error(&said, 1, &["no data of replica 1", "--new", "--join"]);
    let said = run(&["replica", "--config", &other.config, "--id", "1", "--data", &other.directory.path("data-2")]);
    assert_error(&said, 1, &["another process uses the data directory"]);
    other.kill(2);
    let said = run(&["replica", "--config", &other.config, "--id", "1", "--data", &other.directory.path("data-2")]);
    assert_error(&said, 1, &["belongs to node 2 of set 1", "its own data directory"]);
    for name in ["store", "kv"] {
        assert_error(&run(&[name, "init", "--replicas", "4"]), 2, &["--replicas 4", "1, 3, 5 or 7"]);
    }
}

#[test]
fn the_printed_configuration_is_a_store() {
    let directory = Directory::new("store-init");
    let said = run(&["store", "init", "--replicas", "5", "--switches", "2", "--port", "17700"]);
    let file = directory.write("store.toml", &said.stdout);
    let switch = Running::switch("127.0.0.1:0", &["--config", &file]);
    wait_until("the set is added", || status(&switch.http())["sets"][0]["set"].as_u64() == Some(1));
    assert!(said.stdout.contains("id = 5, address = \"127.0.0.1:17750\""), "{said:?}");
}

/// Another store with the same ports, at another loopback address.
fn twin(name: &str, like: &Store) -> Store {
    let mut store = Store::new(name, 1);
    let text = std::fs::read_to_string(&like.config).unwrap();
    store
        .directory
        .write("store.toml", &text.replace("127.0.0.1", "127.0.0.2").replace("cluster = 42", "cluster = 43"));
    let there = |address: &std::net::SocketAddr| std::net::SocketAddr::new([127, 0, 0, 2].into(), address.port());
    store.addresses = like.addresses.iter().map(there).collect();
    store.start_all();
    store
}

#[test]
fn r7_a_flush_is_for_the_store_that_the_file_names() {
    let one = Store::start("store-one");
    let two = twin("store-two", &one);
    assert_eq!((one.cli(&["put", "a", "1"]), two.cli(&["put", "a", "2"])), (done(""), done("")));
    wait_until("its leader is asked", || two.cli(&["members", "flush"]) == done("begun\n"));
    wait_until("the other one is empty", || two.cli(&["get", "a"]) == no(""));
    assert_eq!(one.cli(&["get", "a"]), done("1\n"));
    let text = std::fs::read_to_string(&one.config).unwrap();
    one.directory.write("store.toml", &text.replace("cluster = 42", "cluster = 44"));
    let said = run(&["store", "members", "flush", "--config", &one.config]);
    let why = "this is replica 1 of set 1 of cluster 42, and not replica 1 of set 1 of cluster 44";
    assert!(said.code == Some(1) && said.stderr.contains(why), "{said:?}");
}

#[test]
fn a_replica_that_is_stopped_keeps_no_operator_waiting() {
    let store = Store::start("store-stopped");
    let stopped = store.leader() % 3 + 1;
    common::signal(&store.replicas[stopped - 1].as_ref().unwrap().child, rustix::process::Signal::STOP);
    let said = run(&["store", "status", "--config", &store.config]);
    assert_eq!((said.code, said.stdout.lines().count()), (Some(0), 3), "{said:?}");
    assert!(said.stderr.contains(&format!("replica {stopped} of set 1")) && said.stderr.contains("3 s"), "{said:?}");
}

/// Reading a pipe without a writer blocks forever.
#[test]
fn a_replica_that_reads_its_files_can_be_interrupted() {
    let store = Store::new("store-reads", 1);
    std::fs::create_dir(store.data(1)).unwrap();
    let pipe = format!("{}/log-1", store.data(1));
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut replica = store.replica(1).stdout(std::process::Stdio::null()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(replica.try_wait().unwrap().is_none(), "it reads");
    common::signal(&replica, rustix::process::Signal::INT);
    let mut ended = None;
    wait_until("it ends", || {
        ended = replica.try_wait().unwrap();
        ended.is_some()
    });
    assert_eq!(ended.unwrap().code(), Some(0));
}

/// The last write was acknowledged by a replica that is down, and one whose data is lost. The third lacks it.
#[test]
fn r2_no_store_is_founded_beside_one_that_has_data() {
    let mut store = Store::start("store-refounded");
    let leader = store.leader();
    let (lost, stale) = (leader % 3 + 1, (leader + 1) % 3 + 1);
    store.kill(stale);
    assert_eq!(store.cli(&["put", "acked", "precious"]), done(""));
    store.kill(lost);
    store.kill(leader);
    std::fs::remove_dir_all(store.data(lost)).unwrap();
    store.start_replica(stale);
    let id = lost.to_string();
    let again = ["replica", "--config", &store.config, "--id", &id, "--data", &store.data(lost), "--new"];
    let named = format!("replica {stale} has data of this store");
    assert_error(&run(&again), 1, &[&named, "no store is founded beside it"]);
    store.start_replica(leader);
    assert_eq!(store.cli(&["get", "acked"]), done("precious\n"));
}

fn up_args<'a>(data: &'a str, listen: &'a str) -> [&'a str; 8] {
    ["up", "--store", "--data", data, "--listen", listen, "--http", "off"]
}

fn store_at(switch: &str, args: &[&str]) -> (Option<i32>, String) {
    let said = run(&[&["store", args[0], "--switch", switch], &args[1..]].concat());
    (said.code, said.stdout)
}

#[test]
fn r2_up_founds_no_replica_again_that_has_lost_its_data() {
    let directory = Directory::new("store-up");
    let data = directory.path("data");
    let up = Running::start(&up_args(&data, "127.0.0.1:0"));
    let switch = up.address().to_string();
    assert_eq!(store_at(&switch, &["put", "a", "1"]), done(""));
    drop(up);
    let args = up_args(&data, &switch);
    std::fs::rename(format!("{data}/2"), directory.path("kept")).unwrap();
    assert_error(&run(&args), 1, &["replica 2 has no data", "data/2", "put it back"]);
    std::fs::rename(directory.path("kept"), format!("{data}/2")).unwrap();
    // A user who creates this file must not get a store that has lost data.
    let founding = format!("{data}/founding");
    std::fs::write(&founding, "").unwrap();
    assert_error(&run(&args), 1, &["this replica has run", "move its data away"]);
    std::fs::remove_file(&founding).unwrap();
    let up = Running::start(&args);
    assert_eq!(store_at(&switch, &["get", "a"]), done("1\n"));
    drop(up);
    let begun = format!("was begun with --listen {switch}");
    assert_error(&run(&up_args(&data, "127.0.0.1:0")), 1, &[&begun, "that port again"]);
    std::fs::remove_dir_all(&data).unwrap();
    Running::start(&args);
}

/// Starts a store, and kills it as soon as the condition holds.
fn kill_once(data: &str, switch: &str, is_so: impl Fn() -> bool) {
    let mut up = std::process::Command::new(env!("CARGO_BIN_EXE_midflight-lab"));
    let mut up = up.args(up_args(data, switch)).stdout(std::process::Stdio::null()).spawn().unwrap();
    while !is_so() {
        assert!(up.try_wait().unwrap().is_none(), "it has ended by itself");
    }
    up.kill().unwrap();
    up.wait().unwrap();
}

#[test]
fn r2_a_store_that_is_killed_before_it_serves_begins_again() {
    let directory = Directory::new("store-founding");
    for moment in ["founding", "1", "1/identity", "1/log-1", "2", "2/snapshot-1", "3", "3/log-1"] {
        let data = directory.path(&moment.replace('/', "-"));
        let exists = |name: &str| std::path::Path::new(&data).join(name).exists();
        let switch = free_address().to_string(); // the replicas' ports follow from the switch's
        // The first file is temporary.
        kill_once(&data, &switch, || exists(moment) || exists("3/log-1"));
        let _up = Running::start(&up_args(&data, &switch));
        assert!(!exists("founding"), "{moment}");
        assert_eq!(store_at(&switch, &["put", "a", moment]), done(""), "{moment}");
    }
}
