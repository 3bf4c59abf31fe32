//! `midflight-lab net`: output, exit, and no leftovers. Needs root and iproute2; otherwise prints SKIPPED.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{CommandOutput, MIDFLIGHT, Running, assert_error, labs_work, midflight, run, signal, skip, wait_until};
use midflight_net::testing::traces_of;
use rustix::process::Signal;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A free name; its lab is removed with the test.
struct Named(String);

impl Named {
    /// `None`, with SKIPPED, without labs.
    fn new() -> Option<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        labs_work().then(|| Self(format!("t{}-{}", std::process::id(), COUNT.fetch_add(1, Relaxed))))
    }

    /// `midflight lab WHAT --name … REST`
    fn lab(&self, what: &str, rest: &[&str]) -> CommandOutput {
        run(&[&["net", what, "--name", &self.0], rest].concat())
    }

    /// Whether one of its namespaces has its file.
    fn has(&self, place: &str) -> bool {
        Path::new(&format!("/var/run/netns/mf-{}-{place}", self.0)).exists()
    }

    #[track_caller]
    fn is_gone(&self) {
        assert_eq!(traces_of(&self.0), Vec::<String>::new());
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        // Most tests have already taken it down.
        let _ = midflight_net::Lab::remove(&self.0);
    }
}

/// The arguments of a line of the guide; a nested `midflight` also runs this build.
fn arguments(line: &str) -> Vec<&str> {
    let words = line.split_whitespace().skip(1);
    words.map(|word| if word == "midflight" { MIDFLIGHT } else { word }).collect()
}

#[test]
fn up_says_what_to_type_and_it_works() {
    let Some(name) = Named::new() else { return };
    let said = name.lab("up", &["--hosts", "3"]);
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{said:?}");
    let lines = said.stdout.lines().map(str::trim).filter(|line| line.starts_with("midflight-lab "));
    let lines: Vec<_> = lines.map(arguments).collect();
    let [switch, executor, submit, down] = &lines[..] else { panic!("{said:?}") };
    let switch = Running::start(switch);
    assert!(switch.first_line.starts_with("switch on 10.77.255.1:7700"), "{}", switch.first_line);
    let executor = Running::start(executor);
    assert!(executor.first_line.contains("at switch 10.77.255.1:7700"), "{}", executor.first_line);
    let said = run(submit);
    assert!(said.code == Some(0) && said.stderr.contains("100000 ok"), "{said:?}");
    // The rest of the line is a comment.
    assert_eq!(run(&down[..4]).code, Some(0), "{down:?}");
    assert_eq!(switch.end().0, Some(0), "the switch was asked to end");
    name.is_gone();
}

#[test]
fn exec_becomes_the_command() {
    let Some(name) = Named::new() else { return };
    assert_eq!(name.lab("up", &["--hosts", "1"]).code, Some(0));
    let said = name.lab("exec", &["host0", "--", "sh", "-c", "ip -br address; exit 7"]);
    assert!(said.code == Some(7) && said.stdout.contains("10.77.0.2/24"), "{said:?}");
    let child = midflight(&["net", "exec", "--name", &name.0, "switch", "--", "sleep", "1000"]).spawn().unwrap();
    let command = format!("/proc/{}/comm", child.id());
    wait_until("it is the command", || std::fs::read_to_string(&command).unwrap() == "sleep\n");
    // Not SIGINT, which background processes inherit as ignored.
    signal(&child, Signal::TERM);
    assert_eq!(child.wait_with_output().unwrap().status.to_string(), "signal: 15 (SIGTERM)");
    assert_error(&name.lab("exec", &["host0", "--", "/nonexistent"]), 127, &["/nonexistent", "No such file"]);
    assert_error(&name.lab("exec", &["host0", "--", "/etc/passwd"]), 126, &["/etc/passwd", "denied"]);
    assert_error(&name.lab("exec", &["host1", "--", "true"]), 2, &["host1", &name.0, "host0 to host0"]);
    assert_error(&name.lab("exec", &["hostess", "--", "true"]), 2, &["\"hostess\"", "switch, rack0, host0"]);
}

#[test]
fn run_takes_the_lab_down_when_the_command_ends() {
    if !labs_work() {
        return;
    }
    let script = format!(
        "{0} net exec host2 -- sleep 1000 & echo $MIDFLIGHT_LAB; {0} net exec switch -- sh -c 'exit 5'",
        MIDFLIGHT
    );
    let said = run(&["net", "run", "--hosts", "3", "--", "sh", "-c", &script]);
    assert_eq!((said.code, said.stderr.as_str()), (Some(5), ""), "{said:?}");
    Named(said.stdout.trim().to_owned()).is_gone();
    assert_error(&run(&["net", "run", "--", "/nonexistent"]), 127, &["/nonexistent"]);

    let running = Running::start(&["net", "run", "--", "sh", "-c", "echo $MIDFLIGHT_LAB; exec sleep 1000"]);
    let name = Named(running.first_line.trim().to_owned());
    assert!(name.has("host1"));
    signal(&running.child, Signal::TERM);
    assert_eq!(running.end(), (Some(128 + 15), String::new()));
    name.is_gone();
}

#[test]
fn down_all_takes_all_labs_down() {
    if !labs_work() {
        return;
    }
    // In its own /run: this machine may have other labs.
    let script = "mount -t tmpfs tmpfs /run || exit 77
        $0 net up --name a >/dev/null && $0 net up --name b --hosts 1 >/dev/null && ip netns add mf-c-host0 || exit 1
        $0 net status | grep 'lab [abc]'; $0 net down --all; $0 net status; ls /run/netns; ls /run/midflight";
    let mut command = Command::new("unshare");
    let output = command.args(["--mount", "sh", "-c", script, MIDFLIGHT]).output();
    let Ok(output) = output else { return skip("no `unshare` here") };
    let said: CommandOutput = output.into();
    // Not permitted, for example in a chroot.
    if said.code == Some(77) || said.stderr.starts_with("unshare: ") {
        return skip(&said.stderr);
    }
    let expected = "lab a: 2 hosts, 0% loss\nlab b: 1 host, 0% loss\nlab c is not complete: being set up, or cut off; \
                    midflight-lab net down --name c\nlab a is down\nlab b is down\nlab c is down\nno lab is up: \
                    `midflight-lab net up` sets one up\n";
    assert_eq!(said.stdout, expected, "{said:?}");
    assert!(said.stderr.contains("/run/midflight") && said.stderr.lines().count() == 1, "{said:?}");
}
