//! `midflight map`: output, order and exit code.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{
    CommandOutput, Directory, MIDFLIGHT, Running, assert_error, midflight, run, run_with, signal, spawn_with,
    wait_until,
};
use rustix::process::Signal;
use std::io::{BufRead, BufReader, Read, Write, read_to_string};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

#[test]
fn output_comes_in_the_order_of_the_input() {
    // Later commands end sooner.
    let lines: String = (0..8).map(|i| format!("sleep 0.0{}; echo out {i}; echo err {i} >&2\n", 8 - i)).collect();
    let said = run_with(&["map", "--jobs", "8"], &lines);
    let expected = |name: &str| (0..8).map(|i| format!("{name} {i}\n")).collect::<String>();
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!((said.stdout, said.stderr), (expected("out"), expected("err")));
}

#[test]
fn a_template_takes_the_line_as_one_word() {
    let said = run_with(&["map", "--", "printf", "'<%s>\\n'", "{}", "x"], "a b\nit's\n$HOME\n");
    assert_eq!(
        (said.code, said.stdout.as_str()),
        (Some(0), "<a b>\n<x>\n<it's>\n<x>\n<$HOME>\n<x>\n"),
        "{}",
        said.stderr
    );
}

#[test]
fn lines_come_from_a_file_too_and_empty_ones_are_skipped() {
    let directory = Directory::new("map-file");
    let file = directory.write("commands", "echo 1\n\necho 2");
    let said = run(&["map", "-f", &file]);
    assert_eq!((said.code, said.stdout.as_str()), (Some(0), "1\n2\n"));
    assert_eq!(run_with(&["map"], "").code, Some(0));
}

#[test]
fn the_exit_code_counts_failures_up_to_101() {
    let said = run_with(&["map"], "exit 3\ntrue\nkill -9 $$\n/nonexistent/command\n");
    assert_eq!(said.code, Some(3), "{said:?}");
    assert!(said.stderr.starts_with("midflight: line 1: exit code 3: exit 3\n"), "{said:?}");
    assert!(said.stderr.contains("midflight: line 3: ended by signal 9 (SIGKILL): kill -9 $$\n"), "{said:?}");
    assert!(said.stderr.ends_with("midflight: 1 finished, 3 failed (lines 1, 3-4)\n"), "{said:?}");
    let said = run_with(&["map", "--jobs", "16"], &"false\n".repeat(150));
    assert_eq!(said.code, Some(101));
}

#[test]
fn what_failed_runs_again_as_often_as_allowed() {
    let directory = Directory::new("map-retries");
    let log = directory.path("runs");
    // Succeeds in the third run.
    let command = format!("echo run >> {log}; [ $(wc -l < {log}) -ge 3 ]\n");
    assert_eq!(run_with(&["map", "--retries", "1"], &command).code, Some(1));
    assert_eq!(run_with(&["map", "--retries", "1"], &command).code, Some(0));
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "run\n".repeat(3));
}

#[test]
fn a_run_that_takes_too_long_is_ended() {
    let said = run_with(&["map", "--timeout", "100ms", "--jobs", "2"], "sleep 60 | cat\necho fast\n");
    assert_eq!((said.code, said.stdout.as_str()), (Some(1), "fast\n"), "{said:?}");
    assert!(said.stderr.starts_with("midflight: line 1: timed out after 100ms: sleep 60 | cat\n"), "{said:?}");
}

#[test]
fn large_arguments_and_outputs_come_through() {
    let long = "x".repeat(100_000);
    let said = run_with(&["map", "--", "printf", "%s", "{}"], &format!("{long}\n"));
    assert_eq!((said.code, said.stdout.len()), (Some(0), 100_000), "{}", said.stderr);
    let said = run_with(&["map"], "head -c 3000000 /dev/zero | tr '\\0' y\n");
    assert_eq!((said.code, said.stdout.len()), (Some(0), 3_000_000), "{}", said.stderr);
}

#[test]
fn t5_commands_run_where_their_resources_are() {
    let directory = Directory::new("map-resources");
    let config = directory.write("m.toml", "[tasks.resources]\ngpu = 0\nssd = 1\n");
    let switch = Running::switch("127.0.0.1:0", &[]);
    let address = switch.address();
    let _plain = Running::executor(address, 4, &[]);
    let rich = Running::executor(address, 1, &["--config", &config, "--resources", "gpu,ssd"]);
    let map = ["map", "--switch", &address.to_string(), "--config", &config, "--resources", "gpu"];
    let said = run_with(&map, &"ps -o ppid= -p $$ | tr -d ' '\n".repeat(6));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(said.stdout, format!("{}\n", rich.child.id()).repeat(6));
}

/// 50 commands on one slot; the first one waits for the file `go`. Waits until it runs.
fn blocked(directory: &Directory) -> Child {
    let (started, go) = (directory.path("started"), directory.path("go"));
    let first = format!("touch {started}; while [ ! -e {go} ]; do sleep 0.01; done; echo first\n");
    let map = spawn_with(&["map", "--jobs", "1"], &format!("{first}{}", "echo never\n".repeat(49)));
    wait_until("the first command runs", || Path::new(&started).exists());
    map
}

/// Waits for `map`'s message, and returns the rest of its stderr.
fn interrupt(map: &mut Child) -> impl Read + use<> {
    let mut stderr = BufReader::new(map.stderr.take().unwrap());
    signal(map, Signal::INT);
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert!(line.contains("interrupted: cancelling what has not started"), "{line}");
    stderr
}

#[test]
fn ctrl_c_cancels_what_has_not_started_and_says_what_was() {
    let directory = Directory::new("map-ctrl-c");
    let mut map = blocked(&directory);
    let stderr = interrupt(&mut map);
    directory.write("go", "");
    let said = CommandOutput { stderr: read_to_string(stderr).unwrap(), ..map.wait_with_output().unwrap().into() };
    assert_eq!((said.code, said.stdout.as_str()), (Some(130), "first\n"), "{said:?}");
    let summary = "midflight: interrupted: 1 finished, 49 cancelled before they started (lines 2-50)\n";
    assert!(said.stderr.ends_with(summary), "{said:?}");
}

#[test]
fn t17_a_second_ctrl_c_kills_what_runs() {
    let directory = Directory::new("map-ctrl-c-twice");
    let mut map = blocked(&directory);
    let stderr = interrupt(&mut map);
    signal(&map, Signal::INT);
    let said = CommandOutput { stderr: read_to_string(stderr).unwrap(), ..map.wait_with_output().unwrap().into() };
    assert_eq!((said.code, said.stdout.as_str()), (Some(130), ""), "{said:?}");
    assert!(said.stderr.contains("line 1: stopped"), "{said:?}");
}

#[test]
fn a_reader_that_does_not_read_keeps_nobody_from_ending_it() {
    let directory = Directory::new("map-unread");
    let ran = directory.path("ran");
    let line = format!("head -c 300000 /dev/zero; echo >> {ran}; sleep 60\n");
    for last in [&[Signal::INT, Signal::INT][..], &[Signal::TERM]] {
        let first = last[0];
        let mut map = spawn_with(&["map", "-j", "1"], &format!("head -c 300000 /dev/zero\n{line}"));
        wait_until("its second command runs", || Path::new(&ran).exists());
        let mut stderr = BufReader::new(map.stderr.take().unwrap());
        signal(&map, first);
        let mut said = String::new();
        stderr.read_line(&mut said).unwrap();
        assert!(said.contains("interrupted: cancelling"), "{said}");
        for &next in last {
            std::thread::sleep(Duration::from_millis(50)); // two pending signals would merge into one
            signal(&map, next);
        }
        wait_until("it has ended, though nobody has read", || map.try_wait().unwrap().is_some());
        assert_eq!(map.wait().unwrap().code(), Some(130));
        std::fs::remove_file(&ran).unwrap();
    }
}

#[test]
fn a_reader_that_does_not_read_costs_little_memory() {
    let directory = Directory::new("map-unread-memory");
    let ran = directory.write("ran", "");
    let input = format!("head -c 500000 /dev/zero; echo >> {ran}\n").repeat(400);
    let mut map = spawn_with(&["map", "-j", "4"], &input);
    let count = || std::fs::read_to_string(&ran).unwrap().len();
    wait_until("all have run, though nobody has read", || count() == 400);
    let peak = peak_mib(&map);
    map.kill().unwrap();
    map.wait().unwrap();
    assert!(peak <= 100, "{peak} MiB of 200");
}

fn peak_mib(child: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

#[test]
fn it_starts_while_its_input_is_being_read() {
    let mut map = midflight(&["map"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut stdin, mut stdout) = (map.stdin.take().unwrap(), BufReader::new(map.stdout.take().unwrap()));
    for number in 1..=3 {
        writeln!(stdin, "echo {number}").unwrap();
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert_eq!(line, format!("{number}\n"));
    }
    drop(stdin);
    assert_eq!(map.wait().unwrap().code(), Some(0));
}

#[test]
fn an_input_without_an_end_takes_little_memory() {
    let mut map = midflight(&["map", "-q"]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut stdin = map.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        let lines = format!("echo {}\n", "x".repeat(54)).repeat(1000);
        (0..).take_while(|_| stdin.write_all(lines.as_bytes()).is_ok()).count()
    });
    std::thread::sleep(Duration::from_secs(2));
    let peak = peak_mib(&map);
    map.kill().unwrap();
    map.wait().unwrap();
    let written = writer.join().unwrap();
    assert!(peak <= 100, "{peak} MiB");
    assert!(written < 1000, "it reads only as far ahead as it needs, not {written} thousand lines");
}

/// Runs commands whose outputs wait for the first one, which ends last. Each writes `lengths` bytes of a digit, and a line end.
fn waiting_for_the_first(name: &str, lengths: &[usize], more: &[&str]) -> CommandOutput {
    let directory = Directory::new(name);
    let (go, done) = (directory.path("go"), directory.write("done", ""));
    let first = format!("while [ ! -e {go} ]; do sleep 0.01; done; echo first\n");
    let line = |(number, length): (usize, &usize)| {
        format!("head -c {length} /dev/zero | tr '\\0' {}; echo; echo {number} >> {done}\n", number % 10)
    };
    let input: String = std::iter::once(first).chain(lengths.iter().enumerate().map(line)).collect();
    let map = spawn_with(&[&["map", "-j", "3"], more].concat(), &input);
    wait_until("the others have run", || std::fs::read_to_string(&done).unwrap().lines().count() == lengths.len());
    directory.write("go", "");
    map.wait_with_output().unwrap().into()
}

#[test]
fn output_that_has_to_wait_goes_to_a_file_and_is_whole() {
    let mut lengths = vec![400_000; 80];
    lengths[40] = 3_000_000;
    lengths[70] = 70_000_000;
    let said = waiting_for_the_first("map-spill", &lengths, &[]);
    let line = |(number, length): (usize, &usize)| (number % 10).to_string().repeat(*length) + "\n";
    let expected = "first\n".to_owned() + &lengths.iter().enumerate().map(line).collect::<String>();
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""));
    assert!(said.stdout == expected, "{} bytes", said.stdout.len());
}

#[test]
fn a_command_whose_output_cannot_be_kept_has_failed() {
    let said = waiting_for_the_first("map-no-spill", &[400_000; 80], &["--tmpdir", "/proc"]);
    let failed = usize::try_from(said.code.unwrap()).unwrap();
    assert!((30..=41).contains(&failed), "{failed} failed: {}", said.stderr);
    let notes = said.stderr.matches("400001 bytes of output cannot be kept in /proc: No such file").count();
    assert_eq!((notes, said.stdout.lines().count()), (failed, 81 - failed), "{}", said.stderr);
}

#[test]
fn the_output_whose_turn_it_is_needs_no_room_on_the_disk() {
    let directory = Directory::new("map-no-room");
    let (go, done) = (directory.path("go"), directory.write("done", ""));
    let output = "head -c 400000 /dev/zero | tr '\\0'";
    let first = format!("while [ ! -e {go} ]; do sleep 0.01; done; {output} a\n");
    let input = first + &format!("{output} b; echo >> {done}\n").repeat(60);
    let map = spawn_with(&["map", "-j", "3", "--tmpdir", "/proc"], &input);
    wait_until("the others have run", || std::fs::read_to_string(&done).unwrap().len() == 60);
    directory.write("go", "");
    let said: CommandOutput = map.wait_with_output().unwrap().into();
    assert!(said.code > Some(0), "those above it fill the memory");
    assert!(said.stdout.starts_with(&"a".repeat(400_000)), "{}", said.stderr);
}

#[test]
fn outputs_that_wait_leave_files_for_the_others() {
    let directory = Directory::new("map-files");
    let (go, done) = (directory.path("go"), directory.write("done", ""));
    let first = format!("while [ ! -e {go} ]; do sleep 0.01; done\n");
    let others = format!("head -c 600000 /dev/zero; echo >> {done}\n").repeat(300);
    let script = format!("ulimit -n 256; exec {} map -q -j 2", common::MIDFLIGHT);
    let mut shell = std::process::Command::new("sh");
    let shell = shell.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut map = shell.spawn().unwrap();
    map.stdin.take().unwrap().write_all((first + &others).as_bytes()).unwrap();
    let count = || std::fs::read_to_string(&done).unwrap().len();
    wait_until("a quarter of the files has outputs", || count() >= 64);
    std::thread::sleep(Duration::from_millis(300));
    assert!(count() <= 140, "{} commands have run: at most another quarter was under way", count());
    directory.write("go", "");
    let said: CommandOutput = map.wait_with_output().unwrap().into();
    assert_eq!((said.code, said.stdout.len()), (Some(0), 300 * 600_000), "{}", said.stderr);
}

#[test]
fn without_a_stdout_it_runs_nothing() {
    let directory = Directory::new("map-no-stdout");
    let file = directory.path("touched");
    let script = format!("exec {} map touch ::: {file} >&-", common::MIDFLIGHT);
    let said: CommandOutput = std::process::Command::new("sh").args(["-c", &script]).output().unwrap().into();
    assert_error(&said, 2, &["stdout is closed"]);
    assert!(!Path::new(&file).exists());
    let said: CommandOutput = midflight(&["map", "true", ":::", "a"]).stdout(Stdio::null()).output().unwrap().into();
    assert_eq!(said.code, Some(0), "{said:?}");
}

#[test]
fn words_need_not_be_utf8() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let word = OsStr::from_bytes(b"caf\xe9");
    let output = |command: &mut std::process::Command| command.output().unwrap().stdout;
    assert_eq!(output(midflight(&["map", "printf", "%s", ":::"]).arg(word)), word.as_bytes());
    assert_eq!(
        output(midflight(&["map", "printf", "%s"]).arg(word).args([":::", "x"])),
        [word.as_bytes(), b"x"].concat()
    );
    let directory = Directory::new("map-latin");
    std::fs::write(Path::new(&directory.path("")).join(word), "line\n").unwrap();
    let said = midflight(&["map", "echo", "::::"]).arg(word).current_dir(directory.path("")).output().unwrap();
    assert_eq!(said.stdout, b"line\n");
}

#[test]
fn a_command_that_is_too_long_fails_and_the_others_run() {
    let long = "x".repeat(200 << 10);
    for template in [&["--", "echo"][..], &[]] {
        let said = run_with(&[&["map"], template].concat(), &format!("echo 1\n{long}\necho 3\n"));
        assert_eq!(said.code, Some(1), "{said:?}");
        assert_eq!(said.stdout.lines().count(), 2, "{said:?}");
        assert!(
            said.stderr.starts_with("midflight: line 2: 204800 bytes exceed a command line's 131071: "),
            "{said:?}"
        );
        assert!(said.stderr.ends_with("midflight: 2 finished, 1 lost (line 2)\n"), "{said:?}");
        assert!(said.stderr.len() < 1000, "{said:?}");
    }
}

#[test]
fn a_stderr_that_takes_nothing_keeps_the_exit_code() {
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let directory = Directory::new("map-stderr");
    let file = directory.write("commands", "false\nfalse\n");
    let status = midflight(&["map", "-f", &file]).stderr(full()).status().unwrap();
    assert_eq!(status.code(), Some(2), "messages for people are nobody's output");
    let file = directory.write("commands", "echo lost >&2\n");
    let status = midflight(&["map", "-f", &file]).stderr(full()).status().unwrap();
    assert_ne!(status.code(), Some(0), "a command's output is lost");
    let status =
        midflight(&["map", "-f", &directory.write("commands", "echo lost\n")]).stdout(full()).status().unwrap();
    assert_eq!(status.code(), Some(1));
}

#[test]
fn t5_without_an_executor_that_has_the_resources_it_says_so_and_gives_up() {
    let switch = Running::switch("127.0.0.1:0", &[]);
    let address = switch.address();
    let _other = Running::executor(address, 1, &["--resources", "r0"]);
    let map = ["map", "--switch", &address.to_string(), "--resources", "r1", "--timeout", "5s"];
    let said = run_with(&map, "true\n");
    assert_eq!(said.code, Some(1), "{said:?}");
    let lines: Vec<_> = said.stderr.lines().collect();
    assert!(
        lines[0].contains("no executor has taken a command yet: either all executors with r1 are busy"),
        "{said:?}"
    );
    assert!(lines.last().unwrap().starts_with("error: no executor has taken a command within"), "{said:?}");
}

/// Two hundred parallel commands need more open files than `map`'s own limit, with or without a shell.
#[test]
fn commands_have_the_limit_of_open_files_that_map_was_started_with() {
    for line in ["grep files /proc/self/limits", "ulimit -Sn; sleep 0.3"] {
        let script =
            format!("ulimit -Sn 256; for i in $(seq 200); do echo '{line}'; done | {MIDFLIGHT} map --jobs 200");
        let said: CommandOutput = Command::new("/bin/sh").args(["-c", &script]).output().unwrap().into();
        assert_eq!(said.code, Some(0), "{said:?}");
        let limits: Vec<_> = said.stdout.lines().collect();
        assert!(limits.len() == 200 && limits.iter().all(|limit| limit.contains("256")), "{said:?}");
    }
}

#[test]
fn t19_a_task_may_have_no_patience_at_all() {
    let up = Running::start(&["up", "--listen", "127.0.0.1:0", "--http", "off", "--slots", "1", "--place", "a"]);
    let switch = up.address().to_string();
    for place in ["a", "b"] {
        let said = run(&["submit", "noop", "--prefer", place, "--patience", "0s", "--switch", &switch]);
        assert_eq!(said.code, Some(0), "{said:?}");
    }
}

#[test]
fn large_outputs_have_a_bound_that_can_be_set() {
    let said = run_with(&["map", "--output-disk", "1"], "yes\necho small\n");
    assert_eq!((said.code, said.stdout.as_str()), (Some(1), "small\n"), "{said:?}");
    assert!(said.stderr.contains("output could not be kept whole"), "{said:?}");
    let up = ["up", "--listen", "127.0.0.1:0", "--http", "off", "--slots", "1", "--output-disk", "1"];
    let up = Running::start(&up);
    let switch = up.address().to_string();
    let said = run(&["submit", "--switch", &switch, "exec", "head -c 3000000 /dev/zero"]);
    assert!(said.code == Some(1) && said.stderr.contains("output could not be kept whole"), "{said:?}");
    let said = run(&["up", "--output-dir", "/nowhere"]);
    assert_error(&said, 2, &["--output-dir /nowhere is no directory"]);
}

#[test]
fn t5_a_switch_that_vanishes_later_is_missed() {
    let directory = Directory::new("map-vanished");
    let ran = directory.path("ran");
    let mut switch = Running::switch("127.0.0.1:0", &[]);
    let address = switch.address();
    let _executor = Running::executor(address, 1, &[]);
    let map = ["map", "--switch", &address.to_string(), "--timeout", "1s"];
    let map = spawn_with(&map, &format!("touch {ran}\nsleep 0.5\nsleep 0.5\n"));
    wait_until("the first command has run", || Path::new(&ran).exists());
    switch.child.kill().unwrap();
    let said: CommandOutput = map.wait_with_output().unwrap().into();
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains(&format!("the switch {address} does not answer any more")), "{said:?}");
    assert!(
        said.stderr.lines().last().unwrap().starts_with("error: no executor has taken a command within"),
        "{said:?}"
    );
}

#[test]
fn submit_says_that_switch_and_executors_have_vanished() {
    let mut switch = Running::switch("127.0.0.1:0", &[]);
    let address = switch.address();
    let executor = Running::executor(address, 1, &[]);
    let submit = ["submit", "sleep", "50ms", "-n", "1000", "--switch", &address.to_string()];
    let mut submit = spawn_with(&submit, "");
    let mut stderr = BufReader::new(submit.stderr.take().unwrap()).lines().map_while(Result::ok);
    std::thread::sleep(Duration::from_millis(500));
    switch.child.kill().unwrap();
    drop(executor);
    let words = format!("the switch {address} does not answer any more");
    let said = stderr.find(|line| line.contains("midflight: "));
    submit.kill().unwrap();
    submit.wait().unwrap();
    assert!(said.as_ref().is_some_and(|line| line.contains(&words)), "{said:?}");
}
