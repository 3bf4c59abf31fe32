//! `midflight switch --engine kernel` on the hosts of a lab: clients and executors see no difference; how it stops, and what it leaves
//! behind. Needs root, iproute2 and a kernel with BPF arenas; otherwise prints SKIPPED.
#![cfg(feature = "kernel")]
#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{
    CommandOutput, Directory, PATIENCE, Running, Seen, assert_error, client_at, kernel_works, labs_work, midflight_at,
    signal, status_at, wait_until,
};
use midflight::{Client, Executor, Job, TaskSpec, functions};
use midflight_net::{Lab, Options, Place, SWITCH_IPV4, SWITCH_IPV6};
use rustix::process::Signal;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

const TASKS: usize = 10_000;
const SHORT: Duration = Duration::from_millis(1);
/// Few pages to allocate, and leases within a test's patience.
const CONFIG: &str = "[tasks]\nqueue = 20000\nslots = 1024\nclients = 64\nlease = \"1s\"\n";

/// The lab of a switch with the kernel engine.
struct World {
    lab: Lab,
    port: u16,
    directory: Directory,
}

impl World {
    /// `None`, with SKIPPED, if it cannot run here.
    fn new(hosts: usize) -> Option<Self> {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        if !labs_work() || !kernel_works() {
            return None;
        }
        let lab = Lab::up(&Options::temporary(hosts)).unwrap();
        let directory = Directory::new(&format!("kernel-{number}"));
        directory.write("m.toml", CONFIG);
        // Pins are named after the port, and tests run concurrently.
        let port = 30_000 + (std::process::id() % 2_000) as u16 * 16 + number;
        Some(Self { lab, port, directory })
    }

    fn address(&self) -> SocketAddr {
        (SWITCH_IPV4, self.port).into()
    }

    fn run(&self, place: Place, args: &[&str]) -> CommandOutput {
        midflight_at(&self.lab, place, args).output().unwrap().into()
    }

    /// All tasks end.
    #[track_caller]
    fn submit(&self, place: Place, tasks: usize, switch: &str) {
        let said = self.run(place, &["submit", "noop", "-n", &tasks.to_string(), "--switch", switch, "--json"]);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert_eq!(said.results()["submit.ok"], tasks);
    }

    fn switch_command(&self, interfaces: &str, more: &[&str]) -> Command {
        let (listen, config) = (format!("[::]:{}", self.port), self.directory.path("m.toml"));
        let args = ["switch", "--engine", "kernel", "--interface", interfaces, "--listen", &listen];
        let args = [&args[..], &["--http", "127.0.0.1:0", "--config", &config], more].concat();
        midflight_at(&self.lab, Place::Switch, &args)
    }

    fn switch(&self, interfaces: &str, more: &[&str]) -> Running {
        Running::spawn(self.switch_command(interfaces, more))
    }

    fn refused(&self, interfaces: &str, more: &[&str]) -> CommandOutput {
        self.switch_command(interfaces, more).output().unwrap().into()
    }

    fn executor(&self, host: usize, slots: u32) -> Running {
        self.executor_of(self.address(), host, slots)
    }

    fn executor_of(&self, switch: SocketAddr, host: usize, slots: u32) -> Running {
        let (switch, slots) = (switch.to_string(), slots.to_string());
        Running::spawn(midflight_at(
            &self.lab,
            Place::Host(host),
            &["executor", "--switch", &switch, "--slots", &slots],
        ))
    }

    /// A client in this process, whose sockets are on a host.
    fn client(&self, host: usize) -> Client {
        client_at(&self.lab, Place::Host(host), self.address())
    }

    fn status(&self, switch: &Running) -> serde_json::Value {
        status_at(&self.lab, switch)
    }

    fn ip(&self, args: &[&str]) -> String {
        let output = self.lab.command(Place::Switch, "ip").args(args).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn is_attached(&self, interface: &str) -> bool {
        self.ip(&["link", "show", interface]).contains("prog/xdp")
    }

    fn is_kept(&self) -> bool {
        Path::new("/sys/fs/bpf/midflight").join(self.port.to_string()).exists()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // A failed test must leave nothing either.
        let _ = midflight_host::detach(self.port);
    }
}

#[test]
fn nobody_sees_which_engine_serves() {
    let Some(world) = World::new(2) else { return };
    let switch = world.switch("host0,host1", &[]);
    let said = "in the kernel on host0 and host1, XDP native, status http://";
    assert!(switch.first_line.contains(said), "{}", switch.first_line);
    for ip in [IpAddr::from(SWITCH_IPV4), SWITCH_IPV6.into()] {
        let address = SocketAddr::new(ip, world.port);
        // Executors and clients talk to each other, so both are of one family.
        let executor = world.executor_of(address, 1, 16);
        world.submit(Place::Host(0), TASKS, &address.to_string());
        signal(&executor.child, Signal::TERM);
        assert_eq!(executor.end().0, Some(0));
    }
    wait_until("all are completed", || world.status(&switch)["tasks"]["completed"] == 2 * TASKS);
    let now = world.status(&switch);
    let engine = serde_json::json!({"kind": "kernel", "mode": "native", "interfaces": ["host0", "host1"]});
    assert_eq!((&now["engine"], &now["tasks"]["submitted"]), (&engine, &(2 * TASKS).into()));
    let shells = ["xdp_taken", "xdp_answered", "tc_taken", "tc_answered"];
    assert!(shells.iter().all(|name| now["shell"][name].as_u64().unwrap() > 0), "{now}");
    assert!(now["shell"]["received"].as_u64().unwrap() < 1_000, "most packets take the short way: {now}");
    let people = world.run(Place::Switch, &["status", "--http", &switch.http()]).stdout;
    assert!(people.contains("\nengine    kernel, native XDP on host0, host1\n"), "{people}");
    signal(&switch.child, Signal::TERM);
    assert_eq!(switch.end(), (Some(0), String::new()));
    assert!(!world.is_attached("host0") && !world.is_attached("host1") && !world.is_kept());
}

#[test]
fn t10_what_a_tick_assigns_comes_from_the_address_that_executors_ask() {
    let Some(world) = World::new(3) else { return };
    let switch = world.switch("host0,host1,host2", &[]);
    let mut killed = world.executor(1, 1);
    let client = world.client(0);
    let go = world.directory.path("go");
    let job = Job::builder(functions::EXEC).retries(1).task(format!("[ -e {go} ] || sleep 1000")).build();
    let handle = client.submit(job).unwrap();
    wait_until("the task runs", || world.status(&switch)["busy"] == 1);
    let other = world.lab.within(Place::Host(2), || Executor::builder().switch(world.address()).slots(1).start());
    let other = other.unwrap().unwrap();
    wait_until("the other one is parked", || world.status(&switch)["parked"] == 1);
    world.directory.write("go", "");
    killed.child.kill().unwrap();
    assert_eq!(handle.wait()[0].as_ref().unwrap().attempt, 2);
    // A parked executor sends nothing for a third of a lease: the tick assigned the task, through the process's socket.
    assert_eq!(other.counts().protocol.foreign, 0, "{:?}", other.counts());
}

/// What the kernel leaves to the process, and what a client on the switch's machine causes, leave through the process's socket.
#[test]
fn what_the_process_sends_to_executors_comes_from_the_address_that_they_ask() {
    let Some(world) = World::new(2) else { return };
    let switch = world.switch("host0,host1", &[]);
    let of_other_family = SocketAddr::from((SWITCH_IPV6, world.port));
    for (asked, place) in [(of_other_family, Place::Host(0)), (world.address(), Place::Switch)] {
        let start = || Executor::builder().switch(asked).slots(1).start();
        let executor = world.lab.within(Place::Host(1), start).unwrap().unwrap();
        wait_until("it waits", || world.status(&switch)["parked"] == 1);
        let outcomes = client_at(&world.lab, place, world.address())
            .submit(TaskSpec::new(functions::NOOP, Vec::new()))
            .unwrap()
            .wait();
        assert!(outcomes[0].is_ok(), "{outcomes:?}");
        assert_eq!(executor.counts().protocol.foreign, 0, "{asked}: {:?}", executor.counts());
        executor.drain(PATIENCE).unwrap();
        wait_until("it has left", || world.status(&switch)["slots"] == 0);
    }
    assert_eq!(world.status(&switch)["shell"]["hand_over_failed"], 0);
}

#[test]
fn a_switch_that_serves_has_no_privileges_left() {
    let Some(world) = World::new(1) else { return };
    let switch = world.switch("host0", &[]);
    let threads = std::fs::read_dir(format!("/proc/{}/task", switch.child.id())).unwrap();
    let mut count = 0;
    for thread in threads {
        let status = std::fs::read_to_string(thread.unwrap().path().join("status")).unwrap();
        for line in ["CapPrm:\t0000000000000000", "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000"] {
            assert!(status.contains(line), "no {line} in {status}");
        }
        assert!(status.contains("NoNewPrivs:\t1") && !status.contains("Uid:\t0"), "{status}");
        count += 1;
    }
    assert!(count >= 3, "main, switch and HTTP");
}

#[test]
fn a_switch_that_is_killed_leaves_nothing() {
    let Some(world) = World::new(1) else { return };
    let mut switch = world.switch("host0", &[]);
    assert!(world.is_attached("host0"));
    switch.child.kill().unwrap();
    switch.child.wait().unwrap();
    wait_until("nothing is attached", || !world.is_attached("host0"));
    assert!(!world.is_kept());
    let _again = world.switch("host0", &[]);
}

#[test]
fn t1_a_kept_switch_serves_without_its_process_and_goes_on_with_the_next() {
    let Some(world) = World::new(2) else { return };
    let mut switch = world.switch("host0,host1", &["--keep"]);
    let epoch = world.status(&switch)["epoch"].clone();
    let client = world.client(0);
    let mut seen = Seen::new(&client, &[(TASKS, SHORT)]);
    wait_until("all are queued", || world.status(&switch)["tasks"]["submitted"] == TASKS);
    // The process sends the cookie, so it must know the new client before it dies.
    let executor = world.executor(1, 8);
    seen.take(1);
    switch.child.kill().unwrap();
    switch.child.wait().unwrap();
    assert!(world.is_attached("host0") && world.is_kept());
    seen.take(TASKS / 4);
    let again = world.switch("host0,host1", &["--keep"]);
    assert!(again.first_line.contains(", taken over with "), "{}", again.first_line);
    assert_eq!(world.status(&again)["epoch"], epoch);
    seen.take_all();
    assert_eq!(seen.again, 0, "nothing ran twice");
    wait_until("all are completed", || world.status(&again)["tasks"]["completed"] == TASKS);
    assert_eq!(world.status(&again)["tasks"]["submitted"], TASKS, "nothing was submitted again");
    // A drain needs the switch's response, with or without its process.
    signal(&again.child, Signal::TERM);
    assert_eq!(again.end().0, Some(0));
    assert!(world.is_attached("host1"), "a signal ends the process, not the switch");
    signal(&executor.child, Signal::TERM);
    assert_eq!(executor.end(), (Some(0), "drained\n".to_owned()));
    let listen = format!("0.0.0.0:{}", world.port);
    let said = world.run(Place::Switch, &["switch", "--detach", "--listen", &listen]);
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""));
    assert_eq!(said.stdout, format!("port {}: detached; its queue is gone\n", world.port));
    assert!(!world.is_attached("host0") && !world.is_attached("host1") && !world.is_kept());
    let said = world.run(Place::Switch, &["switch", "--detach", "--listen", &listen]);
    assert_eq!(said.stdout, format!("port {}: nothing is kept\n", world.port));
}

#[test]
fn an_interface_that_goes_away_ends_the_switch_with_an_error() {
    let Some(world) = World::new(2) else { return };
    let mut command = world.switch_command("host0,host1", &[]);
    command.stderr(Stdio::piped());
    let mut switch = Running::spawn(command);
    let stderr = switch.child.stderr.take().unwrap();
    world.ip(&["link", "delete", "host1"]);
    let stderr = std::io::read_to_string(stderr).unwrap();
    let said = CommandOutput { code: switch.child.wait().unwrap().code(), stdout: String::new(), stderr };
    assert_error(&said, 1, &["interface host1 went away", "start again"]);
    assert!(!world.is_attached("host0"));
}

#[test]
fn what_cannot_be_served_is_an_error_of_one_line() {
    let Some(world) = World::new(1) else { return };
    assert_error(&world.refused("eth7", &[]), 1, &["there is no interface eth7", "ip link"]);
    assert_error(&world.refused("lo", &[]), 1, &["lo takes no XDP program in native mode", "--mode generic"]);
    world.ip(&["link", "set", "host0", "down"]);
    assert_error(&world.refused("host0", &[]), 1, &["host0 is down", "ip link set host0 up"]);
    world.ip(&["link", "set", "host0", "up"]);
    let _switch = world.switch("host0", &[]);
    let other = format!("0.0.0.0:{}", world.port - 15_000);
    let args = ["switch", "--engine", "kernel", "--interface", "host0", "--http", "off", "--listen", &other];
    assert_error(&world.run(Place::Switch, &args), 1, &["host0 is served by another midflight switch"]);
}
