//! T16 with real processes in labs and both engines: processes pause, links go down and disappear, rings fill up, versions and clocks
//! differ. Every task ends, its caller sees one result, and no process is stuck afterwards. Needs root and iproute2; otherwise prints
//! SKIPPED.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{
    CommandOutput, Directory, PATIENCE, Running, Seen, client_at, kernel_works, labs_work, midflight_at, signal, skip,
    status_at, wait_until,
};
use midflight::Client;
use midflight_net::{Lab, Options, Place, SWITCH_IPV4};
use midflight_wire::tasks::{Operation, Register};
use midflight_wire::{Builder, Header, VERSION, Version};
use rustix::process::Signal;
use std::net::{SocketAddr, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};
use std::time::{Duration, Instant};
use zerocopy::{FromBytes, IntoBytes};

const CONFIG: &str = "admin = \"\"\n[tasks]\nqueue = 20000\nslots = 1024\nclients = 1024\nlease = \"300ms\"\nslot_idle = \"1s\"\n\
                      client_idle = \"1s\"\ncookie = \"500ms\"\n";
/// Four: the duration of faults.
const LEASES: Duration = Duration::from_millis(1_200);
/// After a fault, everything works again within this time (T16), with slack for a busy machine.
const HEALED_WITHIN: Duration = Duration::from_secs(10);

const CLIENT: Place = Place::Host(0);
const EXECUTORS: [Place; 2] = [Place::Host(1), Place::Host(2)];
const NEWCOMER: Place = Place::Host(3);
const SLOTS: usize = 8;
const ALL_SLOTS: usize = EXECUTORS.len() * SLOTS;
const TASKS: usize = 3_000;
/// Tasks of a client that starts after a fault.
const NEWCOMERS: usize = 100;
const SHORT: Duration = Duration::from_millis(2);

struct World {
    lab: Lab,
    address: SocketAddr,
    directory: Directory,
    engine: Vec<String>,
    switch: Running,
    executors: Vec<Running>,
}

/// Runs a scenario with each engine that this machine can run.
fn each_engine(story: impl Fn(&mut World)) {
    if !labs_work() {
        return;
    }
    let engines = if kernel_works() { &["user", "kernel"][..] } else { &["user"] };
    for engine in engines {
        println!("engine {engine}");
        story(&mut World::start(engine, &[]));
    }
}

/// Another one for each world: a kept queue is named after its port, and a switch throws away what it finds there.
fn new_port() -> u16 {
    static WORLDS: AtomicU16 = AtomicU16::new(0);
    20_000 + (std::process::id() % 600) as u16 * 16 + WORLDS.fetch_add(1, Relaxed)
}

impl World {
    fn start(engine: &str, more: &[&str]) -> Self {
        let lab = Lab::up(&Options::temporary(4)).unwrap();
        let directory = Directory::new(&format!("live-{}", lab.name()));
        directory.write("m.toml", CONFIG);
        let mut args = vec!["--engine".to_owned(), engine.to_owned()];
        if engine == "kernel" {
            args.extend(["--interface".to_owned(), lab.interfaces().join(",")]);
        }
        args.extend(more.iter().copied().map(str::to_owned));
        let address = (SWITCH_IPV4, new_port()).into();
        let switch = Running::spawn(switch_command(&lab, address, &directory, &args));
        let executors =
            EXECUTORS.iter().map(|&place| Running::spawn(executor_of(&lab, place, &address.to_string()))).collect();
        Self { lab, address, directory, engine: args, switch, executors }
    }

    /// Returns when the switch has removed the old slots.
    fn replace_executors(&mut self, others: impl IntoIterator<Item = (usize, Command)>) {
        for (number, other) in others {
            self.executors[number].child.kill().unwrap();
            self.executors[number] = Running::spawn(other);
        }
        wait_until("the former ones are forgotten", || self.status()["slots"] == ALL_SLOTS);
    }

    fn is_kernel(&self) -> bool {
        self.engine.iter().any(|arg| arg == "kernel")
    }

    /// In this process, but at its host.
    fn client(&self) -> Client {
        client_at(&self.lab, CLIENT, self.address)
    }

    /// A client, a quarter of whose tasks have ended.
    fn busy(&self) -> (Client, Seen) {
        let client = self.client();
        let mut seen = Seen::new(&client, &[(TASKS, SHORT)]);
        seen.take(TASKS / 4);
        (client, seen)
    }

    /// All tasks end, soon after the fault.
    #[track_caller]
    fn heals(&self, seen: &mut Seen, ended: Instant) {
        seen.take_all();
        self.is_well_soon(ended);
    }

    /// Each task sleeps for `sleep`.
    fn submit(&self, place: Place, tasks: usize, sleep: &str) -> Command {
        let (tasks, switch) = (tasks.to_string(), self.address.to_string());
        command(&self.lab, place, &["submit", "sleep", sleep, "-n", &tasks, "--switch", &switch, "--json"])
    }

    fn status(&self) -> serde_json::Value {
        status_at(&self.lab, &self.switch)
    }

    /// Soon all slots wait for tasks, and new clients are served.
    #[track_caller]
    fn is_well_soon(&self, ended: Instant) {
        wait_until("all slots wait", || {
            let now = self.status();
            let queued: u64 = now["queued"].as_array().unwrap().iter().filter_map(serde_json::Value::as_u64).sum();
            now["parked"] == ALL_SLOTS && now["slots"] == ALL_SLOTS && now["busy"] == 0 && queued == 0
        });
        let healed = ended.elapsed();
        println!("all slots wait {} ms after the fault", healed.as_millis());
        assert!(healed < HEALED_WITHIN, "{healed:?}");
        assert_all_ended(self.submit(NEWCOMER, NEWCOMERS, "2ms").output().unwrap().into(), NEWCOMERS);
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // A failed test must leave nothing either.
        let _ = midflight_host::detach(self.address.port());
    }
}

fn command(lab: &Lab, place: Place, args: &[&str]) -> Command {
    let mut command = midflight_at(lab, place, args);
    command.env("RUST_LOG", "warn");
    command
}

fn switch_command(lab: &Lab, address: SocketAddr, directory: &Directory, engine: &[String]) -> Command {
    let (listen, config) = (address.to_string(), directory.path("m.toml"));
    let mut command =
        command(lab, Place::Switch, &["switch", "--listen", &listen, "--http", "127.0.0.1:0", "--config", &config]);
    command.args(engine).stderr(Stdio::piped());
    command
}

fn executor_of(lab: &Lab, place: Place, switches: &str) -> Command {
    command(lab, place, &["executor", "--switch", switches, "--slots", &SLOTS.to_string()])
}

#[track_caller]
fn assert_all_ended(said: CommandOutput, tasks: usize) {
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(said.results()["submit.ok"], tasks);
}

/// When it continues, its tasks' results have already come through the other switch. Programs in the kernel serve throughout.
#[test]
fn t16_a_switch_that_stood_still_is_left_for_the_next_and_returned_to() {
    each_engine(|world| {
        let next: SocketAddr = (world.lab.hosts()[3].ipv4, world.address.port()).into();
        let args =
            ["switch", "--listen", &next.to_string(), "--http", "off", "--config", &world.directory.path("m.toml")];
        let _next = Running::spawn(command(&world.lab, NEWCOMER, &args));
        let list = format!("{},{next}", world.address);
        let both = [0, 1].map(|number| (number, executor_of(&world.lab, EXECUTORS[number], &list)));
        world.replace_executors(both);
        let builder = Client::builder().switches([world.address, next]);
        let client = world.lab.within(CLIENT, || builder.connect_lazy().unwrap()).unwrap();
        let mut seen = Seen::new(&client, &[(TASKS, SHORT)]);
        seen.take(TASKS / 10);
        signal(&world.switch.child, Signal::STOP);
        seen.take_all();
        if world.is_kernel() {
            // Its programs serve known peers, and tell executors who have waited for long that the switch lives.
            std::thread::sleep(2 * LEASES);
            Seen::new(&client, &[(TASKS / 10, SHORT)]).take_all();
            assert_eq!(client.switch(), world.address);
        } else {
            assert_eq!(client.switch(), next);
        }
        let mut more = Seen::new(&client, &[(TASKS, SHORT)]);
        signal(&world.switch.child, Signal::CONT);
        let ended = Instant::now();
        seen.take_all();
        more.take_all();
        world.is_well_soon(ended);
        assert_eq!(client.switch(), world.address);
    });
}

/// A switch in the kernel exits, because its programs are gone with the interface; its supervisor restarts it.
#[test]
fn t16_an_interface_goes_away_and_comes_back() {
    each_engine(|world| {
        let (_client, mut seen) = world.busy();
        world.lab.renew_link(1).unwrap();
        if world.is_kernel() {
            assert_eq!(world.switch.child.wait().unwrap().code(), Some(1));
            world.switch = Running::spawn(switch_command(&world.lab, world.address, &world.directory, &world.engine));
        }
        world.heals(&mut seen, Instant::now());
    });
}

#[test]
fn t1_t16_a_kept_queue_outlives_the_interface_by_which_it_served() {
    if !labs_work() || !kernel_works() {
        return;
    }
    let mut world = World::start("kernel", &["--keep"]);
    let epoch = world.status()["epoch"].clone();
    let (_client, mut seen) = world.busy();
    world.lab.renew_link(1).unwrap();
    assert_eq!(world.switch.child.wait().unwrap().code(), Some(1));
    world.switch = Running::spawn(switch_command(&world.lab, world.address, &world.directory, &world.engine));
    let ended = Instant::now();
    assert_eq!(world.status()["epoch"], epoch);
    seen.take_all();
    world.is_well_soon(ended);
    wait_until("nothing was submitted again", || world.status()["tasks"]["submitted"] == TASKS + NEWCOMERS);
}

/// The programs serve known peers; new ones need cookies from the process, which are lost when the ring is full.
#[test]
fn t16_a_ring_that_was_full_is_emptied_and_newcomers_are_served() {
    if !labs_work() || !kernel_works() {
        return;
    }
    let world = World::start("kernel", &[]);
    let client = world.client();
    let mut seen = Seen::new(&client, &[(TASKS, SHORT)]);
    seen.take(1);
    signal(&world.switch.child, Signal::STOP);
    let asked = 5_000;
    world.lab.within(NEWCOMER, || ask_for_cookies(world.address, asked)).unwrap();
    seen.take_all();
    signal(&world.switch.child, Signal::CONT);
    world.is_well_soon(Instant::now());
    let now = world.status();
    assert!(now["shell"]["hand_over_failed"].as_u64().unwrap() > asked / 2, "{now}");
    assert!(now["shell"]["handed_over"].as_u64().unwrap() > 100, "{now}");
}

/// Sends REGISTERs of unknown executors.
fn ask_for_cookies(switch: SocketAddr, packets: u64) {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    for executor in 1..=packets {
        let mut packet = Vec::new();
        let fixed = Register {
            header: Header::new(Operation::Register, 0, 1),
            executor: executor.into(),
            cookie: 0.into(),
            first: 0.into(),
            resources: 0,
            kind: 0,
            counter: 0.into(),
            places: [0.into(); 2],
        };
        Builder::new(&mut packet, &fixed).set_count(1);
        socket.send_to(&packet, switch).unwrap();
    }
}

/// A command whose clocks are ahead of this machine's by `days`.
fn ahead(lab: &Lab, place: Place, days: u32, command: &Command) -> Command {
    let seconds = (days * 86_400).to_string();
    let mut ahead = lab.command(place, "unshare");
    ahead.args(["--time", "--monotonic", &seconds, "--boottime", &seconds, "--fork", "--kill-child"]);
    ahead.arg(command.get_program()).args(command.get_args()).env("RUST_LOG", "warn").stdin(Stdio::null());
    ahead
}

/// No packet carries a point in time.
#[test]
fn t16_clocks_may_differ() {
    each_engine(|world| {
        if !ahead(&world.lab, CLIENT, 1, &Command::new("true")).status().is_ok_and(|status| status.success()) {
            skip("there are no time namespaces here");
            return;
        }
        let executor = executor_of(&world.lab, EXECUTORS[0], &world.address.to_string());
        world.replace_executors([(0, ahead(&world.lab, EXECUTORS[0], 10, &executor))]);
        let tasks = world.submit(CLIENT, TASKS, "2ms");
        assert_all_ended(ahead(&world.lab, CLIENT, 1_000, &tasks).output().unwrap().into(), TASKS);
        world.is_well_soon(Instant::now());
        assert_eq!(world.status()["tasks"]["expired"], 0);
    });
}

/// Packets of version 1, to every process.
#[test]
fn t16_packets_of_an_older_version_are_answered_and_told_once() {
    each_engine(|world| {
        let client = world.client();
        let mut seen = Seen::new(&client, &[(TASKS, SHORT)]);
        let old = world.lab.within(NEWCOMER, || UdpSocket::bind("0.0.0.0:0").unwrap()).unwrap();
        old.set_read_timeout(Some(PATIENCE)).unwrap();
        for number in 0..100 {
            let operation = Operation::ALL[number % Operation::ALL.len()];
            let mut packet = Header { version: 1, ..Header::new(operation, 0, 1) }.as_bytes().to_vec();
            packet.resize(64, 0);
            old.send_to(&packet, world.address).unwrap();
            let mut answer = [0; 64];
            let length = old.recv(&mut answer).unwrap();
            assert_eq!(Version::read_from_bytes(&answer[..length]).unwrap(), Version::OURS, "to {operation:?}");
            // Only a switch answers them.
            old.send_to(&packet, (world.lab.hosts()[0].ipv4, client.local_addr().port())).unwrap();
        }
        world.heals(&mut seen, Instant::now());
        assert_eq!(world.status()["drops"]["bad_version"], 100);
        let stderr = world.switch.child.stderr.take().unwrap();
        world.switch.child.kill().unwrap();
        let said = std::io::read_to_string(stderr).unwrap();
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains(&format!("packets of another version than {VERSION}")), "{said}");
    });
}

/// A later version's switch precedes ours in the list.
#[test]
fn t16_who_meets_a_switch_of_another_version_says_so_once_and_goes_to_the_next() {
    each_engine(|world| {
        let other = world.lab.within(NEWCOMER, || UdpSocket::bind("0.0.0.0:0").unwrap()).unwrap();
        let later: SocketAddr = (world.lab.hosts()[3].ipv4, other.local_addr().unwrap().port()).into();
        std::thread::spawn(move || answer_as_later_version(&other));
        let list = format!("{later},{}", world.address);
        let mut executor = command(&world.lab, NEWCOMER, &["executor", "--switch", &list, "--slots", "1"]);
        let mut executor = Running::spawn({
            executor.stderr(Stdio::piped());
            executor
        });
        let tasks = ["submit", "sleep", "2ms", "-n", "1000", "--json", "--switch", &list];
        let said = CommandOutput::from(command(&world.lab, CLIENT, &tasks).output().unwrap());
        let line = format!("switch {later} speaks version {} of the wire format", VERSION + 1);
        assert_eq!(said.stderr.matches(&line).count(), 1, "{said:?}");
        assert_all_ended(said, 1_000);
        let stderr = executor.child.stderr.take().unwrap();
        executor.child.kill().unwrap();
        let said = std::io::read_to_string(stderr).unwrap();
        assert_eq!(said.matches(&line).count(), 1, "{said}");
    });
}

fn answer_as_later_version(socket: &UdpSocket) {
    let mut packet = [0; 2048];
    while let Ok((_, from)) = socket.recv_from(&mut packet) {
        socket.send_to(Version { version: VERSION + 1, ..Version::OURS }.as_bytes(), from).unwrap();
    }
}
