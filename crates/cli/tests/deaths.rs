//! Commands end with the process that ran them, however it ended.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{Directory, Running, midflight, signal, skip, spawn_with, wait_until};
use midflight::{Client, Job};
use rustix::process::Signal;
use std::net::SocketAddr;
use std::process::{Child, Stdio};

/// Processes of a command: its shell, which leads its group, and one that left the group.
struct Command<'a> {
    directory: &'a Directory,
}

impl Command<'_> {
    fn line(&self) -> String {
        let [shell, outside] = ["shell", "outside"].map(|name| self.directory.path(name));
        format!("setsid sh -c 'echo $$ > {outside}; sleep 1000; :' & echo $$ > {shell}; sleep 1000 | sleep 1000; :")
    }

    fn wait(&self) {
        let written = |name| std::fs::read_to_string(self.directory.path(name)).is_ok_and(|text| text.ends_with('\n'));
        wait_until("the command runs", || written("shell") && written("outside"));
        assert!(self.lives());
    }

    /// A process of its two groups exists and is no zombie.
    fn lives(&self) -> bool {
        let group = |name| std::fs::read_to_string(self.directory.path(name)).unwrap().trim().to_owned();
        let groups = [group("shell"), group("outside")];
        stats().iter().any(|stat| stat.state != "Z" && groups.contains(&stat.group))
    }
}

/// Fields of `/proc/PID/stat`.
struct Stat {
    state: String,
    parent: String,
    group: String,
}

fn stats() -> Vec<Stat> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let stats = processes.filter_map(|process| std::fs::read_to_string(process.path().join("stat")).ok());
    let stat = |text: String| {
        // Fields after the name, which may contain blanks.
        let mut fields = text.rsplit(')').next().unwrap().split_whitespace().map(str::to_owned);
        let mut next = || fields.next().unwrap();
        Stat { state: next(), parent: next(), group: next() }
    };
    stats.map(stat).collect()
}

/// Waits until it runs.
fn submit(command: &Command<'_>, switch: SocketAddr) -> Client {
    let client = Client::builder().switch(switch).connect().unwrap();
    let _job = client.submit(Job::builder("exec").task(command.line()).build()).unwrap();
    command.wait();
    client
}

/// The first signal only drains.
fn interrupt_twice(child: &mut Child) {
    wait_until("the second Ctrl-C ends it", || {
        signal(child, Signal::INT);
        child.try_wait().unwrap().is_some()
    });
}

fn kill(child: &mut Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Starts an executor with a command, stops the executor with `end`, and checks that the command ends.
#[track_caller]
fn ends_with_an_executor(name: &str, end: fn(&mut Child)) {
    let directory = Directory::new(name);
    let command = Command { directory: &directory };
    let switch = Running::switch("127.0.0.1:0", &[]);
    let mut executor = Running::executor(switch.address(), 1, &[]);
    let _client = submit(&command, switch.address());
    end(&mut executor.child);
    wait_until("its command is dead", || !command.lives());
}

#[track_caller]
fn ends_with_up(name: &str, end: fn(&mut Child)) {
    let directory = Directory::new(name);
    let command = Command { directory: &directory };
    let mut up = midflight(&["up", "--listen", "127.0.0.1:0", "--http", "off", "--executors", "2", "--slots", "1"]);
    up.stderr(Stdio::null());
    let mut up = Running::spawn(up);
    let _client = submit(&command, up.address());
    end(&mut up.child);
    wait_until("its command is dead", || !command.lives());
}

#[track_caller]
fn ends_with_map(name: &str, end: Signal) {
    let directory = Directory::new(name);
    let command = Command { directory: &directory };
    let mut map = spawn_with(&["map"], &format!("{}\n", command.line()));
    command.wait();
    signal(&map, end);
    map.wait().unwrap();
    wait_until("its command is dead", || !command.lives());
}

#[test]
fn a_command_ends_when_its_executor_is_interrupted_twice() {
    ends_with_an_executor("deaths-executor-interrupted", interrupt_twice);
}

#[test]
fn a_command_ends_when_its_executor_is_killed() {
    ends_with_an_executor("deaths-executor-killed", kill);
}

#[test]
fn a_command_ends_when_up_is_interrupted_twice() {
    ends_with_up("deaths-up-interrupted", interrupt_twice);
}

#[test]
fn a_command_ends_when_up_is_killed() {
    ends_with_up("deaths-up-killed", kill);
}

#[test]
fn a_command_ends_when_the_terminal_of_its_map_goes_away() {
    // Under nohup(1), all children of the test ignore the signal too.
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    if u64::from_str_radix(ignored.trim(), 16).unwrap() & 1 << (Signal::HUP.as_raw() - 1) != 0 {
        skip("this test was started with SIGHUP ignored");
        return;
    }
    ends_with_map("deaths-map-hung-up", Signal::HUP);
}

#[test]
fn a_command_ends_when_its_map_is_killed() {
    ends_with_map("deaths-map-killed", Signal::KILL);
}

/// An executor may be the command of another one, whose reaper must not be killed with it.
#[test]
fn commands_of_a_command_end_with_the_outer_executor() {
    let directory = Directory::new("deaths-nested");
    let command = Command { directory: &directory };
    let lines = directory.write("lines", &format!("{}\n", command.line()));
    let mut map = spawn_with(&["map"], &format!("{} map -f {lines}\n", common::MIDFLIGHT));
    command.wait();
    signal(&map, Signal::KILL);
    map.wait().unwrap();
    wait_until("the inner command is dead", || !command.lives());
}

#[test]
fn no_process_watches_where_no_command_is_run() {
    let switch = Running::switch("127.0.0.1:0", &[]);
    let executor = Running::executor(switch.address(), 1, &[]);
    let client = Client::builder().switch(switch.address()).connect().unwrap();
    for (function, watched) in [("noop", false), ("exec", true)] {
        assert!(client.submit(Job::builder(function).task("").build()).unwrap().wait().iter().all(Result::is_ok));
        let parent = executor.child.id().to_string();
        assert_eq!(stats().iter().any(|stat| stat.parent == parent), watched, "{function}");
    }
}
