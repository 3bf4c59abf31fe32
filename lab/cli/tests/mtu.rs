//! T15 in labs: links of any MTU from 1,280 bytes on, even changing ones, both engines, IPv4 and IPv6; and errors below that. Needs root
//! and iproute2; otherwise prints SKIPPED.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{CommandOutput, PATIENCE, Running, client_at, kernel_works, labs_work, midflight_at};
use midflight::{Client, Completions, Executor, Job};
use midflight_net::{Lab, Options, Place, SWITCH_IPV4, SWITCH_IPV6};
use std::io::Write;
use std::net::SocketAddr;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// The longest result inside a packet.
const INLINE_MOST: usize = 1024;
/// By reference, and more than one TCP packet at any MTU.
const LONG: usize = 100_000;
/// Several full RETRIEVEs.
const SLOTS: u32 = 64;
/// The largest MTU of a veth with an XDP program in native mode: its frames must fit a page.
const NATIVE_MOST: u32 = 3_000;

fn lab() -> Option<Lab> {
    labs_work().then(|| Lab::up(&Options::temporary(2)).unwrap())
}

/// Arguments of switches that can serve `most` bytes.
fn engines(lab: &Lab, most: u32) -> Vec<Vec<String>> {
    let mut engines = vec![vec!["--engine".to_owned(), "user".to_owned()]];
    if kernel_works() {
        let mode = if most <= NATIVE_MOST { "native" } else { "generic" };
        let interfaces = lab.interfaces().join(",");
        engines.push(["--engine", "kernel", "--interface", &interfaces, "--mode", mode].map(str::to_owned).to_vec());
    }
    engines
}

/// Sets the MTU of both ends of every link. A host's end with an XDP program does not accept a large one, so the program is removed.
fn set_mtu(lab: &Lab, mtu: u32) {
    let set = |place, interface: &str| {
        let mtu = mtu.to_string();
        let ip = |arguments: &[&str]| lab.command(place, "ip").args(arguments).status().unwrap();
        if lab.xdp() && place != Place::Switch && mtu.parse::<u32>().unwrap() > NATIVE_MOST {
            assert!(ip(&["link", "set", interface, "xdp", "off"]).success());
        }
        assert!(ip(&["link", "set", interface, "mtu", &mtu]).success(), "{place} {interface} {mtu}");
    };
    for (number, interface) in lab.interfaces().iter().enumerate() {
        set(Place::Host(number), midflight_net::HOST_INTERFACE);
        set(Place::Switch, interface);
    }
}

/// Functions return what is requested.
struct Cluster {
    client: Client,
    _executor: Executor,
    _switch: Running,
}

impl Cluster {
    fn start(lab: &Lab, engine: &[String], ipv6: bool) -> Self {
        let listen = if ipv6 { format!("[{SWITCH_IPV6}]:0") } else { format!("{SWITCH_IPV4}:0") };
        let mut command = midflight_at(lab, Place::Switch, &["switch", "--listen", &listen, "--http", "127.0.0.1:0"]);
        command.args(engine);
        let switch = Running::spawn(command);
        let address: SocketAddr = switch.address();
        let builder = Executor::builder().switch(address).slots(SLOTS);
        let builder = builder.register("fill", |_, argument| Ok::<_, std::convert::Infallible>(fill(length(argument))));
        let builder = builder.register("echo", |_, argument| Ok::<_, std::convert::Infallible>(argument.to_vec()));
        let executor = lab.within(Place::Host(1), || builder.start().unwrap()).unwrap();
        assert!(executor.wait_registered(SLOTS, PATIENCE), "slots are not registered");
        Self { client: client_at(lab, Place::Host(0), address), _executor: executor, _switch: switch }
    }

    /// Results of all lengths that fit into a packet.
    fn fill(&self, tasks: usize) -> Completions {
        let job = (0..tasks).fold(Job::builder("fill"), |job, task| job.task(of_task(task).to_be_bytes()));
        self.client.submit(job.build()).unwrap().completions()
    }

    /// Arguments and results by reference.
    fn echo(&self, tasks: usize) -> Completions {
        self.client.submit(Job::builder("echo").repeat(tasks, fill(LONG)).build()).unwrap().completions()
    }
}

fn fill(length: usize) -> Vec<u8> {
    (0..length).map(|byte| byte as u8).collect()
}

fn length(argument: &[u8]) -> usize {
    usize::from(u16::from_be_bytes(argument.try_into().unwrap()))
}

/// Length of a task's result: often the longest.
fn of_task(task: usize) -> u16 {
    (if task.is_multiple_of(3) { INLINE_MOST } else { task * 37 % (INLINE_MOST + 1) }) as u16
}

#[track_caller]
fn take_all(mut completions: Completions, length: impl Fn(usize) -> usize) {
    let deadline = Instant::now() + PATIENCE;
    while completions.left() > 0 {
        let left = deadline.saturating_duration_since(Instant::now());
        let (task, outcome) =
            completions.next_timeout(left).unwrap_or_else(|| panic!("{} tasks did not end", completions.left()));
        assert_eq!(outcome.unwrap().value, fill(length(task)), "task {task}");
    }
}

fn tasks_end_at(mtu: u32) {
    let Some(lab) = lab() else { return };
    set_mtu(&lab, mtu);
    for engine in engines(&lab, mtu) {
        for ipv6 in [false, true] {
            println!("{mtu} bytes, {engine:?}, IPv6: {ipv6}");
            let cluster = Cluster::start(&lab, &engine, ipv6);
            let (inline, long) = (cluster.fill(2_000), cluster.echo(20));
            take_all(inline, |task| usize::from(of_task(task)));
            take_all(long, |_| LONG);
        }
    }
}

#[test]
fn t15_tasks_end_on_links_of_1280_bytes() {
    tasks_end_at(1280);
}

#[test]
fn t15_tasks_end_on_links_of_1400_bytes() {
    tasks_end_at(1400);
}

#[test]
fn t15_tasks_end_on_links_of_1420_bytes() {
    tasks_end_at(1420);
}

#[test]
fn t15_tasks_end_on_links_of_9000_bytes() {
    tasks_end_at(9000);
}

/// Links of 576 bytes carry short packets only.
#[test]
fn t15_commands_end_with_an_error_where_a_link_takes_less() {
    let Some(lab) = lab() else { return };
    let switch = format!("{SWITCH_IPV4}:7700");
    let _switch = Running::spawn(midflight_at(&lab, Place::Switch, &["switch", "--listen", &switch, "--http", "off"]));
    set_mtu(&lab, 576);
    let start = |arguments: &[&str]| {
        let mut command = midflight_at(&lab, Place::Host(0), arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // `submit` does not read it.
        let _ = child.stdin.take().unwrap().write_all("line\n".repeat(100).as_bytes());
        child
    };
    let submit = start(&["submit", "noop", "-n", "100", "--switch", &switch]);
    let map = start(&["map", "--switch", &switch, "--", "echo"]);
    for child in [submit, map] {
        let said: CommandOutput = child.wait_with_output().unwrap().into();
        let parts = ["do not reach the switch", "MTU below 1280 bytes", "raise it"];
        assert!(said.code == Some(1) && parts.iter().all(|part| said.stderr.contains(part)), "{said:?}");
    }
}

#[test]
fn t15_tasks_end_while_the_mtu_changes() {
    let Some(lab) = lab() else { return };
    set_mtu(&lab, 9000);
    for engine in engines(&lab, 9000) {
        for ipv6 in [false, true] {
            println!("{engine:?}, IPv6: {ipv6}");
            set_mtu(&lab, 9000);
            let cluster = Cluster::start(&lab, &engine, ipv6);
            for mtu in [9000, 1280, 1500] {
                let (inline, long) = (cluster.fill(4_000), cluster.echo(20));
                std::thread::sleep(Duration::from_millis(20));
                set_mtu(&lab, mtu);
                take_all(inline, |task| usize::from(of_task(task)));
                take_all(long, |_| LONG);
            }
        }
    }
}
