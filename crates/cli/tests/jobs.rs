//! Jobs that outlive their terminal, with a submitter that is killed at any time.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{CommandOutput, Directory, PATIENCE, Running, Small, assert_error, midflight, skip, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::process::{Command, Stdio};
use std::time::Instant;

/// With a private state directory.
struct Site {
    state: String,
    switch: Running,
    _executor: Running,
    directory: Directory,
    /// The state directory's own disk.
    small: Option<Small>,
}

impl Site {
    fn new(name: &str, slots: u32) -> Self {
        let directory = Directory::new(name);
        let switch = Running::switch("127.0.0.1:0", &[]);
        let executor = Running::executor(switch.address(), slots, &[]);
        Self { state: directory.path("state"), switch, _executor: executor, directory, small: None }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = midflight(args);
        command.env("MIDFLIGHT_STATE", &self.state);
        command
    }

    fn run(&self, args: &[&str]) -> CommandOutput {
        self.command(args).output().unwrap().into()
    }

    #[track_caller]
    fn submit(&self, line: &str, more: &[&str]) -> String {
        let switch = self.switch.address().to_string();
        let said = self.run(&[&["submit", "--detach", "--switch", &switch, "exec", line], more].concat());
        assert_eq!(said.code, Some(0), "{said:?}");
        said.stdout.trim().to_owned()
    }

    #[track_caller]
    fn wait(&self, job: &str) -> Option<i32> {
        self.run(&["job", "wait", job, "--timeout", "60s"]).code
    }

    #[track_caller]
    fn job(&self, job: &str) -> Value {
        let said = self.run(&["job", "show", job, "--json"]);
        assert_eq!(said.code, Some(0), "{said:?}");
        serde_json::from_str::<Value>(&said.stdout).unwrap()["jobs"][0].clone()
    }

    fn state_of(&self, job: &str) -> String {
        self.job(job)["state"].as_str().unwrap().to_owned()
    }

    /// Starts one if none runs.
    #[track_caller]
    fn submitter(&self) -> Pid {
        let said = self.run(&["job", "status", "--json"]);
        assert_eq!(said.code, Some(0), "{said:?}");
        let pid = serde_json::from_str::<Value>(&said.stdout).unwrap()["pid"].as_i64().unwrap();
        Pid::from_raw(i32::try_from(pid).unwrap()).unwrap()
    }

    fn kill_submitter(&self) {
        kill_process(self.submitter(), Signal::KILL).unwrap();
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let Ok(said) = self.command(&["job", "status", "--json"]).output() else { return };
        let status = serde_json::from_slice::<Value>(&said.stdout).unwrap_or_default();
        let pid = status["pid"].as_i64().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        if let Some(pid) = pid {
            let _ = kill_process(pid, Signal::KILL); // an error means that it has exited
        }
    }
}

#[test]
fn commands_run_once_however_often_the_submitter_is_killed() {
    let site = Site::new("jobs-killed", 4);
    let ran = site.directory.path("ran");
    let job = site
        .submit(&format!("echo $MIDFLIGHT_INDEX >> {ran}; sleep 0.03; echo $MIDFLIGHT_INDEX"), &["--array", "1-300"]);
    let lines = || std::fs::read_to_string(&ran).map_or(0, |text| text.lines().count());
    for part in 1..=5 {
        wait_until("some have run", || lines() > part * 40);
        site.kill_submitter();
        if part == 3 {
            std::fs::remove_file(format!("{}/socket", site.state)).unwrap(); // as after a reboot
        }
        site.submitter();
    }
    assert_eq!(site.wait(&job), Some(0), "{:?}", site.run(&["job", "show", &job]));
    let mut indices: Vec<u32> =
        std::fs::read_to_string(&ran).unwrap().lines().map(|line| line.parse().unwrap()).collect();
    indices.sort_unstable();
    assert_eq!(indices, (1..=300).collect::<Vec<_>>());
    let ended = site.job(&job)["ended"].as_array().unwrap().clone();
    assert_eq!(ended.len(), 300);
    assert!(ended.iter().all(|command| command["code"] == 0 && command["end"] == "succeeded"));
    let output = site.run(&["job", "output", &job]).stdout;
    assert_eq!(output, (1..=300).map(|index| format!("{index}\n")).collect::<String>());
}

#[test]
fn who_waits_for_a_job_outlives_the_submitter() {
    let site = Site::new("jobs-waits", 1);
    let gate = site.directory.path("gate");
    let job = site.submit(&format!("while ! test -e {gate}; do sleep 0.02; done; echo out"), &[]);
    let all = [&["job", "wait", &job][..], &["job", "output", &job, "--follow"]];
    let waiting = all.map(|args| site.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    std::thread::sleep(std::time::Duration::from_millis(300));
    for _ in 0..2 {
        site.kill_submitter();
        std::thread::sleep(std::time::Duration::from_millis(300));
    }
    std::fs::write(&gate, "").unwrap();
    let [wait, output]: [CommandOutput; 2] = waiting.map(|child| child.wait_with_output().unwrap().into());
    assert_eq!(wait.code, Some(0), "{wait:?}");
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "out\n"), "{output:?}");
}

#[test]
fn a_second_submitter_is_refused() {
    let site = Site::new("jobs-second", 1);
    let first = site.submitter();
    let said = site.run(&["submitter"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    assert!(said.stderr.contains("runs already"), "{said:?}");
    assert_eq!(site.submitter(), first);
}

#[test]
fn jobs_begin_or_are_skipped_as_those_before_them_have_ended() {
    let site = Site::new("jobs-after", 4);
    let gate = site.directory.path("gate");
    let good = site.submit(&format!("while ! test -e {gate}; do sleep 0.02; done"), &[]);
    let bad = site.submit("exit 7", &[]);
    let both = site.submit("true", &["--after", &good, "--after-any", &bad]);
    let cleanup = site.submit("true", &["--after-failed", &bad]);
    let never = site.submit("true", &["--after", &format!("{good},{bad}")]);
    let nor = site.submit("true", &["--after", &never]);
    assert_eq!(site.wait(&bad), Some(1));
    assert_eq!(site.wait(&cleanup), Some(0));
    assert_eq!(
        (site.state_of(&both), site.state_of(&never), site.state_of(&nor)),
        ("waiting".into(), "skipped".into(), "skipped".into())
    );
    assert_eq!(site.job(&bad)["ended"][0]["code"], 7);
    site.kill_submitter(); // the store keeps the dependencies
    std::fs::write(&gate, "").unwrap();
    assert_eq!(site.wait(&both), Some(0));
    let late = site.submit("true", &["--after", &bad]);
    assert_eq!(site.state_of(&late), "skipped");
    site.submit("true", &[]);
    let last = site.submit("true", &["--after", "last"]);
    assert_eq!(site.wait(&last), Some(0));
    let switch = site.switch.address().to_string();
    let said = site.run(&["submit", "--detach", "--switch", &switch, "exec", "true", "--after", "99"]);
    assert_error(&said, 1, &["no job 99", "midflight job list"]);
}

#[test]
fn a_cancelled_job_stops_what_runs_and_begins_nothing() {
    let site = Site::new("jobs-cancel", 2);
    let ran = site.directory.path("ran");
    let job = site.submit(&format!("echo x >> {ran}; sleep 1000"), &["--array", "1-100"]);
    let after = site.submit("true", &["--after", &job]);
    wait_until("two run", || std::fs::read_to_string(&ran).is_ok_and(|text| text.lines().count() == 2));
    let began = Instant::now();
    assert_error(&site.run(&["job", "remove", &job]), 1, &["has not ended", "midflight job cancel"]);
    assert_eq!(site.run(&["job", "cancel", &job]).code, Some(0));
    assert_eq!(site.wait(&job), Some(1));
    assert!(began.elapsed() < PATIENCE);
    let shown = site.job(&job);
    assert_eq!((shown["state"].as_str(), shown["cancelled"].as_u64()), (Some("cancelled"), Some(100)));
    assert_eq!(std::fs::read_to_string(&ran).unwrap().lines().count(), 2);
    assert_eq!(site.state_of(&after), "skipped");
    assert_eq!(site.run(&["job", "remove", "all"]).code, Some(0));
    assert_error(&site.run(&["job", "show", &job]), 2, &["no job"]);
}

#[test]
fn map_gives_each_line_a_command_and_failures_are_tried_again() {
    let site = Site::new("jobs-map", 2);
    let (switch, tried) = (site.switch.address().to_string(), site.directory.path("tried"));
    let line =
        format!("echo {{2}}{{1}}; echo why >&2; echo x >> {tried}.{{1}}{{2}}; test $(wc -l < {tried}.{{1}}{{2}}) = 2");
    let said = site.run(&[
        "map",
        "--detach",
        "--retries",
        "1",
        "--switch",
        &switch,
        "--",
        &line,
        ":::",
        "a",
        "b",
        ":::",
        "1",
        "2",
    ]);
    assert_eq!((said.code, said.stdout.as_str()), (Some(0), "1\n"), "{said:?}");
    assert_eq!(site.wait("last"), Some(0), "{:?}", site.run(&["job", "show", "1"]));
    let said = site.run(&["job", "output", "1"]);
    assert_eq!((said.stdout.as_str(), said.stderr.as_str()), ("1a\n2a\n1b\n2b\n", "why\nwhy\nwhy\nwhy\n"));
    assert_eq!(site.run(&["job", "output", "1", "--index", "3", "--only", "stdout"]).stdout, "1b\n");
    assert!(site.job("1")["ended"].as_array().unwrap().iter().all(|command| command["tries"] == 2));
    let said = site.run(&["map", "--detach", "--tag", ":::", "true"]);
    assert_error(&said, 2, &["--tag", "--detach"]);
}

#[test]
fn large_outputs_are_kept_whole_and_functions_have_results() {
    let site = Site::new("jobs-large", 2);
    let job = site.submit("head -c 3000000 /dev/zero | tr '\\0' x; echo end >&2", &[]);
    assert_eq!(site.wait(&job), Some(0), "{:?}", site.run(&["job", "show", &job]));
    let said = site.run(&["job", "output", &job, "--follow"]);
    assert_eq!((said.stdout.len(), said.stderr.as_str()), (3_000_000, "end\n"));
    let switch = site.switch.address().to_string();
    assert_eq!(site.run(&["submit", "--detach", "--switch", &switch, "noop", "-n", "2000"]).code, Some(0));
    assert_eq!(site.wait("last"), Some(0));
    assert_eq!(site.job("last")["succeeded"], 2000);
}

#[test]
fn another_cluster_has_to_wait_for_the_jobs_of_the_first_one() {
    let site = Site::new("jobs-other", 1);
    site.submit("sleep 1000", &[]);
    let said = site.run(&["submit", "--detach", "--switch", "127.0.0.1:1", "exec", "true"]);
    assert_error(&said, 1, &["serves one cluster", "MIDFLIGHT_STATE"]);
    assert_eq!(site.run(&["job", "cancel", "all"]).code, Some(0));
    assert_eq!(site.wait("all"), Some(1));
    let said = site.run(&["submit", "--detach", "--switch", "127.0.0.1:1", "exec", "true"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stderr.contains("no switch answers on 127.0.0.1:1"), "{said:?}");
}

#[test]
fn a_switch_that_was_killed_is_said_to_be_silent_and_since_when() {
    let mut site = Site::new("jobs-silent", 1);
    let job = site.submit("true", &[]);
    assert_eq!(site.wait(&job), Some(0));
    let connected = |site: &Site| {
        let said = site.run(&["job", "status", "--json"]);
        serde_json::from_str::<Value>(&said.stdout).unwrap()["connected"].clone()
    };
    std::thread::sleep(std::time::Duration::from_millis(1_200));
    assert_eq!(connected(&site), true, "nothing is open, but it is asked");
    site.switch.child.kill().unwrap();
    site.switch.child.wait().unwrap();
    let switch = site.switch.address().to_string();
    let said = site.run(&["submit", "--detach", "--switch", &switch, "exec", "true"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stderr.contains(&format!("no switch answers on {switch} (the last answer came ")), "{said:?}");
    assert_eq!(connected(&site), false);
    let said = site.run(&["job", "status"]);
    assert!(said.stdout.contains(&format!("{switch}: no answer (the last answer came ")), "{said:?}");
    site.switch = Running::switch(&switch, &[]);
    assert_eq!(site.wait("last"), Some(0));
    assert_eq!(connected(&site), true);
}

#[test]
fn a_damaged_store_is_named_and_kept() {
    let directory = Directory::new("jobs-damaged");
    let state = directory.path("state");
    std::fs::create_dir(&state).unwrap();
    Command::new("chmod").args(["700", &state]).status().unwrap();
    let store = format!("{state}/jobs.redb");
    std::fs::write(&store, "cut short").unwrap();
    let said: CommandOutput = midflight(&["job", "list"]).env("MIDFLIGHT_STATE", &state).output().unwrap().into();
    assert_error(&said, 1, &["did not start", "jobs.redb", "restore a copy"]);
    assert_eq!(std::fs::read_to_string(&store).unwrap(), "cut short");
}

#[test]
fn a_full_disk_refuses_jobs_and_loses_none_that_was_accepted() {
    let mut site = Site::new("jobs-full", 2);
    site.small = Small::mount(site.state.clone(), "8m");
    let Some(small) = &site.small else {
        skip("a full disk needs a tmpfs, and that root");
        return;
    };
    let gate = site.directory.path("gate");
    let job = site
        .submit(&format!("while ! test -e {gate}; do sleep 0.02; done; echo $MIDFLIGHT_INDEX"), &["--array", "1-20"]);
    // Another user's file fills almost all of the disk.
    let filler = small.fill();
    let switch = site.switch.address().to_string();
    let long = "x".repeat(100_000);
    let said = site.run(&["submit", "--detach", "--switch", &switch, "exec", &format!("true {long}")]);
    assert_error(&said, 1, &["No space left", "make room"]);
    std::fs::write(&gate, "").unwrap();
    std::thread::sleep(std::time::Duration::from_secs(4));
    let status = site.run(&["job", "status"]).stdout;
    assert!(status.contains("No space left") && !status.contains("no answer"), "only the disk is in trouble: {status}");
    std::fs::remove_file(&filler).unwrap();
    assert_eq!(site.wait(&job), Some(0), "{:?}", site.run(&["job", "status"]));
    assert_eq!(site.job(&job)["succeeded"], 20);
    assert_eq!(
        site.run(&["job", "list", "--json"]).stdout.matches("\"job\":").count(),
        1,
        "what was refused is not there"
    );
}
