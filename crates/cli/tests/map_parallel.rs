//! `midflight map` for users of GNU parallel.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{
    CommandOutput, Directory, Small, assert_error, midflight, run, run_with, signal, skip, spawn_with, wait_until,
};
use rustix::process::Signal;
use std::path::Path;
use std::process::Command;

/// Asserts that all commands succeeded; returns the lines of stdout.
#[track_caller]
fn lines(said: &CommandOutput) -> Vec<&str> {
    assert_eq!(said.code, Some(0), "{said:?}");
    said.stdout.lines().collect()
}

#[test]
fn sources_combine() {
    let said = run(&["map", "--", "echo", "{1}-{2}", ":::", "a", "b", ":::", "1", "2"]);
    assert_eq!(lines(&said), ["a-1", "a-2", "b-1", "b-2"]);
    let directory = Directory::new("map-sources");
    let (names, numbers) = (directory.write("names", "x\ny\n"), directory.write("numbers", "1\n2\n3\n"));
    let said = run(&["map", "--", "echo", "::::", &names, "::::+", &numbers, ":::", "last"]);
    assert_eq!(lines(&said), ["x 1 last", "y 2 last"]);
    let said = run_with(&["map", "-a", "-", "echo", "{2}{1}", ":::", "a", "b"], "1\n2\n");
    assert_eq!(lines(&said), ["a1", "b1", "a2", "b2"]);
    assert_eq!(lines(&run(&["map", ":::", "echo one", "echo two"])), ["one", "two"]);
    assert_eq!(lines(&run(&["map", "--", "echo", ":::"])), [""; 0]);
}

#[test]
fn replacement_strings_are_parallels() {
    let said = run(&["map", "--", "echo", "{#}", "{}", "{.}", "{/}", "{//}", "{/.}", ":::", "a/b c.d", "e"]);
    assert_eq!(lines(&said), ["1 a/b c.d a/b c b c.d a b c", "2 e e e . e"]);
    let said = run_with(&["map", "--colsep", "[,;] *", "--", "echo", "{2} {-1} {1.}"], "a.b,c; d\n");
    assert_eq!(lines(&said), ["c d a"]);
    let said = run_with(&["map", "-0", "--", "printf", "'<%s>\\n'"], "a\nb\0c\0");
    assert_eq!(lines(&said), ["<a", "b>", "<c>"]);
}

#[test]
fn a_cr_belongs_to_its_line() {
    let directory = Directory::new("map-cr");
    let path = directory.path("");
    let files = || {
        let mut names: Vec<_> =
            std::fs::read_dir(&path).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let both = ["f", "f\r"].map(|name| directory.write(name, ""));
    assert_eq!(run_with(&["map", "--workdir", &path, "rm"], "f\r\n").code, Some(0));
    assert_eq!(files(), ["f"]);
    std::fs::write(&both[1], "").unwrap();
    assert_eq!(lines(&run_with(&["map", "--workdir", &path, "--crlf", "rm"], "f\r\n")), [""; 0]);
    assert_eq!(files(), ["f\r"]);
    let said = run_with(&["map", "--colsep", ",", "printf '<%s>' {2} {1}"], "a,b\r\nc,d\n");
    assert_eq!((said.code, said.stdout.as_str()), (Some(0), "<b\r><a><d><c>"), "{said:?}");
    assert!(
        said.stderr.contains("line 1 of the standard input ends with a CR, which belongs to it: --crlf"),
        "{said:?}"
    );
    let file = directory.write("lines", "x\r\n");
    let said = run(&["map", "printf '<%s>'", "::::", &file, ":::", "y\r"]);
    assert_eq!((said.code, said.stdout.as_str()), (Some(0), "<x\r><y\r>"), "{said:?}");
}

/// Options in the guide's table of those that `map` lacks.
fn left_out() -> Vec<String> {
    let guide = include_str!("../../../docs/map.md");
    let (_, table) = guide.split_once("## From GNU parallel").unwrap();
    let rows = table.lines().filter(|row| row.split('|').nth(2).is_some_and(|map| map.trim() == "left out"));
    let code = |row: &str| row.split('|').nth(1).unwrap().split('`').skip(1).step_by(2).collect::<Vec<_>>().join(" ");
    let options: String = rows.map(|row| code(row) + " ").collect();
    options.split([' ', ',']).filter(|word| word.starts_with('-')).map(str::to_owned).collect()
}

#[test]
fn options_of_parallel_that_are_left_out_name_the_way_without_them() {
    let options = left_out();
    assert!(options.len() >= 25 && options.contains(&"--pipe".to_owned()), "{options:?}");
    let more = ["--bar", "-P", "-u", "--nice"].map(str::to_owned);
    for option in options.into_iter().chain(more) {
        let said = run(&["map", &option, "echo", ":::", "a"]);
        assert_error(&said, 2, &[&format!("map has no {option}: "), "(docs/map.md, From GNU parallel)"]);
    }
    for (args, parts) in [
        (["-j", "200%"], &["a number from 1 to 4096, no percentage", "docs/map.md"][..]),
        (["--timeout", "30"], &["it has no unit: write 30s"]),
    ] {
        assert_error(&run(&[&["map"], &args[..], &["echo", ":::", "a"]].concat()), 2, parts);
    }
}

#[test]
fn slots_are_numbered_up_to_the_jobs() {
    let said = run_with(&["map", "-j", "2", "--unordered", "--", "echo {%}; sleep 0.0{}"], "1\n2\n1\n2\n1\n2\n");
    let seen = lines(&said);
    assert!(seen.len() == 6 && seen.iter().all(|slot| ["1", "2"].contains(slot)), "{said:?}");
    let refused = run(&["map", "--switch", "127.0.0.1:1", "--", "echo", "{%}", ":::", "a"]);
    assert_error(&refused, 2, &["{%} needs --jobs"]);
}

#[test]
fn what_does_not_exist_is_a_usage_error() {
    for (args, part) in [
        (&["--", "echo {3}", ":::", "a", ":::", "b"][..], "there is no argument for {3}"),
        (&["--", "echo {..}", ":::", "a"], "{..} is no replacement string"),
        (&["--", "echo", "::::", "/nonexistent"], "cannot read /nonexistent"),
        (&["--halt", "later", "true", ":::", "a"], "soon,fail=N"),
        (&["--halt", "soon,fail=10%", "true", ":::", "a"], "give a number"),
        (&["--env", "NO_SUCH_VARIABLE", "true", ":::", "a"], "--env NO_SUCH_VARIABLE"),
        (&["--colsep", "(", "true", ":::", "a"], "colsep"),
        (&["--resume", "true", ":::", "a"], "--joblog"),
    ] {
        assert_error(&run(&[&["map"], args].concat()), 2, &[part]);
    }
    let said = run_with(&["map", "--colsep", ",", "--", "echo {2}"], "a,b\nc\nd,e\n");
    assert_eq!((said.code, said.stdout.as_str()), (Some(1), "b\ne\n"), "{said:?}");
    assert!(said.stderr.contains("line 2: there is no column for {2}: it has 1 column: c"), "{said:?}");
}

#[test]
fn a_dry_run_prints_the_commands_and_runs_none() {
    let directory = Directory::new("map-dry");
    let file = directory.path("touched");
    let said = run_with(&["map", "--dry-run", "--", "touch", &file, "{}"], "a b\nc\n");
    assert_eq!(lines(&said), [format!("touch {file} 'a b'"), format!("touch {file} c")]);
    assert!(!Path::new(&file).exists());
}

#[test]
fn a_dry_run_prints_only_what_would_run() {
    let directory = Directory::new("map-dry-resume");
    let log = directory.path("log");
    let map =
        |more: &[&str], input: &str| run_with(&[&["map", "--joblog", &log], more, &["--", "echo"]].concat(), input);
    assert_eq!(lines(&map(&["--dry-run", "--resume"], "1\n")), ["echo 1"], "without a joblog");
    assert!(!Path::new(&log).exists());
    assert_eq!(lines(&map(&[], "1\n2\n")), ["1", "2"]);
    let before = std::fs::read(&log).unwrap();
    assert_eq!(lines(&map(&["--dry-run", "--resume"], "1\n2\n3\n")), ["echo 3"]);
    assert_error(&map(&["--dry-run", "--resume"], "1\n7\n"), 2, &["another command as number 2"]);
    assert_eq!(std::fs::read(&log).unwrap(), before);
    let long = "x".repeat(131_072);
    let said = run_with(&["map", "--dry-run"], &format!("true\n{long}\nfalse\n"));
    assert_eq!((said.code, said.stdout.as_str()), (Some(1), "true\nfalse\n"), "{said:?}");
    assert!(said.stderr.contains("line 2: a command line of 131072 bytes exceeds 131071"), "{said:?}");
}

#[test]
fn a_dry_run_ends_with_its_reader() {
    let script = format!("yes | {} map --dry-run -- echo | head -n 1", common::MIDFLIGHT);
    let mut shell = std::process::Command::new("sh");
    let mut shell = shell.args(["-c", &script]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    wait_until("all have ended", || shell.try_wait().unwrap().is_some());
    assert_eq!(std::io::read_to_string(shell.stdout.unwrap()).unwrap(), "echo y\n");
}

#[test]
fn tags_stand_before_each_line() {
    let said = run(&["map", "--tag", "--", "echo {1}; echo {2}; echo e >&2", ":::", "a", "b", ":::", "c"]);
    assert_eq!(lines(&said), ["a c\ta", "a c\tc", "b c\tb", "b c\tc"]);
    assert_eq!(said.stderr, "a c\te\nb c\te\n");
}

#[test]
fn commands_run_in_a_directory_and_with_variables() {
    let directory = Directory::new("map-workdir");
    let path = directory.path("");
    let mut command =
        midflight(&["map", "--workdir", &path, "--env", "MAP_ONE,MAP_TWO", "pwd; echo $MAP_ONE$MAP_TWO; :", ":::", ""]);
    let said: CommandOutput = command.env("MAP_ONE", "1").env("MAP_TWO", "two words").output().unwrap().into();
    assert_eq!(lines(&said), [path.trim_end_matches('/'), "1two words"]);
    let said = run(&["map", "--workdir", "/nonexistent", "pwd", ":::", ""]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("/nonexistent"), "{said:?}");
}

#[test]
fn it_halts_when_it_is_told_to() {
    let said =
        run_with(&["map", "-j", "1", "--halt", "soon,fail=1"], &format!("true\nexit 7\n{}", "sleep 1\n".repeat(1000)));
    assert_eq!(said.code, Some(7), "{said:?}");
    assert!(said.stderr.contains("halted: ") && said.stderr.contains("cancelled before they started"), "{said:?}");
    let said = run_with(&["map", "-j", "2", "--halt", "now,success=1"], "sleep 60\ntrue\n");
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stderr.contains("line 1: stopped: sleep 60"), "{said:?}");
    assert_eq!(run_with(&["map", "--halt", "soon,fail=2"], "false\ntrue\n").code, Some(1));
}

#[test]
fn nothing_starts_behind_a_failure_that_halts() {
    let directory = Directory::new("map-halt");
    let later: String = (0..5).map(|number| format!("touch {}\n", directory.path(&number.to_string()))).collect();
    for when in ["now", "soon"] {
        let said = run_with(&["map", "-j", "1", "--halt", &format!("{when},fail=1")], &format!("true\nfalse\n{later}"));
        assert_eq!(said.code, Some(1), "{said:?}");
        assert_eq!(std::fs::read_dir(directory.path("")).unwrap().count(), 0, "{said:?}");
    }
}

#[test]
fn results_are_files_in_parallels_tree() {
    let directory = Directory::new("map-results");
    let root = directory.path("out");
    let said = run(&["map", "--results", &root, "--", "echo {1}{2}; echo e >&2", ":::", "a", "b/c", ":::", "1"]);
    assert_eq!(lines(&said), ["a1", "b/c1"]);
    let read = |name: &str| std::fs::read_to_string(Path::new(&root).join(name)).unwrap();
    assert_eq!(
        (read("1/a/2/1/stdout"), read("1/b\\_c/2/1/stderr"), read("1/b\\_c/2/1/seq")),
        ("a1\n".into(), "e\n".into(), "2".into())
    );
    let file = directory.write("file", "");
    let said = run(&["map", "--results", &file, "--", "echo", ":::", "a"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("command 1: its output cannot be kept in"), "{said:?}");
}

#[test]
fn results_that_cannot_be_written_stop_the_run_and_resume_goes_on() {
    let directory = Directory::new("map-results-full");
    let Some(small) = Small::mount(directory.path("disk"), "8m") else {
        skip("a full disk needs a tmpfs, and that root");
        return;
    };
    let (log, ran, results) = (directory.path("log"), directory.write("ran", ""), directory.path("disk/results"));
    let template = format!("echo >> {ran}; echo {{}}");
    let input: String = (1..=1000).map(|number| format!("{number}\n")).collect();
    let map = |more: &[&str]| {
        let all = ["map", "-q", "-j", "1", "--results", &results, "--joblog", &log];
        run_with(&[&all[..], more, &["--", &template]].concat(), &input)
    };
    let filler = small.fill();
    let said = map(&[]);
    assert_eq!(said.code, Some(1), "{said:?}");
    let error = said.stderr.lines().last().unwrap();
    assert!(error.starts_with("error: nothing new has started since the results of line 1 were lost"), "{said:?}");
    assert!(error.contains("No space left") && error.contains("--resume"), "{said:?}");
    let ran = std::fs::read_to_string(&ran).unwrap().len();
    assert!(ran < 500, "{ran} of 1000 ran");
    assert_eq!(joblog(&log), [""; 0], "what is not kept runs again");
    let parts = Command::new("find").args([&results, "-name", "stdout"]).output().unwrap().stdout;
    assert_eq!(String::from_utf8(parts).unwrap(), "", "no part of a result");
    std::fs::remove_file(&filler).unwrap();
    assert_eq!(lines(&map(&["--resume"])).len(), 1000);
    assert_eq!(std::fs::read_to_string(Path::new(&results).join("1/1000/stdout")).unwrap(), "1000\n");
}

#[test]
fn a_reader_that_has_gone_ends_it_without_a_word() {
    let directory = Directory::new("map-head");
    let go = directory.path("go");
    let input = format!("echo first\nwhile [ ! -e {go} ]; do sleep 0.01; done; echo second\n");
    let mut map = spawn_with(&["map", "-j", "1"], &input);
    let mut stdout = std::io::BufReader::new(map.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut stdout, &mut String::new()).unwrap();
    drop(stdout);
    directory.write("go", "");
    let said: CommandOutput = map.wait_with_output().unwrap().into();
    assert_eq!((said.code, said.stderr.as_str()), (Some(141), ""), "as a program that SIGPIPE ends");
}

#[test]
fn a_joblog_with_a_command_that_is_too_long_can_be_gone_on_with() {
    let directory = Directory::new("map-long-log");
    let (log, long) = (directory.path("log"), "x".repeat(100_000));
    let map = |more: &[&str]| {
        let values = ["--", "true", ":::", &long, ":::", &long, ":::", &long];
        run(&[&["map", "--joblog", &log], more, &values].concat())
    };
    assert_eq!(map(&[]).code, Some(1));
    let said = map(&["--resume"]);
    assert!(said.code == Some(1) && !said.stderr.contains("error: "), "{}", said.stderr);
}

/// The reproducible fields of a joblog's lines: Seq, Exitval, Signal and Command.
fn joblog(path: &str) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand"));
    let fields = lines.map(|line| line.split('\t').collect::<Vec<_>>());
    fields.map(|fields| [fields[0], fields[6], fields[7], fields[8]].join(" ")).collect()
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a joblog has dates")]
fn a_joblog_says_what_ran_where_and_when() {
    let directory = Directory::new("map-joblog");
    let log = directory.path("log");
    let said = run_with(&["map", "--joblog", &log], "echo abc\nexit 3\nkill -9 $$\n");
    assert_eq!(said.code, Some(2), "{said:?}");
    assert_eq!(joblog(&log), ["1 0 0 echo abc", "2 3 0 exit 3", "3 0 9 kill -9 $$"]);
    let text = std::fs::read_to_string(&log).unwrap();
    let first: Vec<_> = text.lines().nth(1).unwrap().split('\t').collect();
    let host = rustix::system::uname().nodename().to_str().unwrap().to_owned();
    assert_eq!((first[1], first[4], first[5]), (host.as_str(), "8", "4"));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
    let (start, took): (f64, f64) = (first[2].parse().unwrap(), first[3].trim().parse().unwrap());
    assert!((now - start).abs() < 60.0 && (0.0..10.0).contains(&took), "{text}");
}

#[test]
fn a_run_goes_on_where_the_joblog_ends() {
    let directory = Directory::new("map-resume");
    let (log, ran) = (directory.path("log"), directory.path("ran"));
    let template = format!("echo {{}} >> {ran}; test {{}} != 2");
    let input = "1\n2\n3\n4\n";
    let map = |more: &[&str], input: &str| {
        run_with(&[&["map", "-j", "1", "--joblog", &log], more, &["--", &template]].concat(), input)
    };
    assert_eq!(map(&[], "1\n2\n").code, Some(1));
    assert_eq!(map(&["--resume"], input).code, Some(0));
    let all_ran = || std::fs::read_to_string(&ran).unwrap();
    assert_eq!(all_ran(), "1\n2\n3\n4\n");
    assert_eq!(map(&["--resume-failed"], input).code, Some(1));
    assert_eq!(all_ran(), "1\n2\n3\n4\n2\n");
    assert_error(&map(&["--resume-failed"], "1\n7\n"), 2, &["another command as number 2", "--resume needs the input"]);
    assert_eq!(all_ran(), "1\n2\n3\n4\n2\n");
}

#[test]
fn resume_runs_again_what_was_stopped_and_what_has_no_output() {
    let directory = Directory::new("map-undone");
    let (log, gate) = (directory.path("log"), directory.path("gate"));
    let line = "echo begun >&2; test -e GATE || sleep 60; echo done; head -c SIZE /dev/zero".replace("GATE", &gate);
    let input = format!("{}\n{}\n", line.replace("SIZE", "0"), line.replace("SIZE", "3000000"));
    let map = spawn_with(&["map", "-j", "2", "--joblog", &log], &input);
    std::thread::sleep(std::time::Duration::from_millis(700));
    signal(&map, Signal::INT);
    std::thread::sleep(std::time::Duration::from_millis(200));
    signal(&map, Signal::INT);
    let said: CommandOutput = map.wait_with_output().unwrap().into();
    assert!(said.code == Some(130) && said.stderr.contains("line 1: stopped"), "{said:?}");
    assert_eq!(joblog(&log), [""; 0], "they were stopped");
    std::fs::write(&gate, "").unwrap();
    let map = |more: &[&str]| run_with(&[&["map", "--joblog", &log, "--resume"], more].concat(), &input);
    let said = map(&["--output-disk", "1"]);
    assert_eq!((said.code, said.stdout.as_str()), (Some(1), "done\n"), "{said:?}");
    assert_eq!(joblog(&log).len(), 1, "the other one has no output");
    let said = map(&[]);
    assert_eq!((said.code, said.stdout.len()), (Some(0), 3_000_005), "{}", said.stderr);
}

#[test]
fn a_directory_for_what_has_to_wait_that_is_none_is_named_at_once() {
    assert_error(&run(&["map", "--tmpdir", "/nowhere", "true", ":::", "a"]), 2, &["--tmpdir /nowhere is no directory"]);
}

#[test]
fn two_runs_do_not_write_one_joblog() {
    let directory = Directory::new("map-two-logs");
    let (log, go) = (directory.path("log"), directory.path("go"));
    let first = format!("touch {}; while [ ! -e {go} ]; do sleep 0.01; done\n", directory.path("started"));
    let map = spawn_with(&["map", "--joblog", &log], &first);
    wait_until("the first one runs", || Path::new(&directory.path("started")).exists());
    for more in [&[][..], &["--resume"], &["--resume-failed"]] {
        let said = run_with(&[&["map", "--joblog", &log], more].concat(), "echo second\n");
        assert_error(&said, 2, &["--joblog", "another run writes it"]);
    }
    directory.write("go", "");
    assert_eq!(lines(&map.wait_with_output().unwrap().into()), [""; 0]);
    assert_eq!(joblog(&log).len(), 1);
}

#[test]
fn slots_may_differ_from_run_to_run() {
    let directory = Directory::new("map-slots");
    let log = directory.path("log");
    let map = |more: &[&str], template: &str| {
        run_with(&[&["map", "-j", "3", "--joblog", &log], more, &["--", template]].concat(), "1\n2\n3\n")
    };
    assert_eq!(map(&[], "sleep 0.02; echo {%} {}").code, Some(0));
    assert_eq!(lines(&map(&["--resume"], "sleep 0.02; echo {%} {}")), [""; 0]);
    let said = map(&["--resume"], "sleep 0.02; echo {%} other {}");
    assert_eq!((said.code, said.stdout.as_str()), (Some(2), ""), "{said:?}");
    assert!(said.stderr.contains("another command as number 1"), "{said:?}");
}

#[test]
fn a_joblog_that_was_cut_short_runs_its_last_command_again() {
    let directory = Directory::new("map-cut");
    let log = directory.path("log");
    let map = |more: &[&str]| run_with(&[&["map", "--joblog", &log], more].concat(), "echo 1\necho 2\necho 3\n");
    assert_eq!(lines(&map(&[])), ["1", "2", "3"]);
    let text = std::fs::read(&log).unwrap();
    std::fs::write(&log, &text[..text.len() - 5]).unwrap();
    let said = map(&["--resume"]);
    assert_eq!(lines(&said), ["3"]);
    assert!(said.stderr.contains("is cut short: its command runs again"), "{said:?}");
    assert_eq!(joblog(&log), ["1 0 0 echo 1", "2 0 0 echo 2", "3 0 0 echo 3"]);
    for other in ["something else\n", "precious data"] {
        directory.write("log", other);
        assert_error(&map(&["--resume"]), 2, &["line 1 is not a joblog's"]);
        assert_eq!(std::fs::read_to_string(&log).unwrap(), other);
    }
}

#[test]
fn a_full_disk_under_the_joblog_is_said_and_loses_no_output() {
    let said = run_with(&["map", "--joblog", "/dev/full"], "echo 1\n");
    assert_error(&said, 1, &["cannot write the joblog /dev/full", "No space left"]);
    // Room for two of four commands.
    let directory = Directory::new("map-full");
    let log = directory.path("log");
    // In blocks of 512 bytes. With SIGXFSZ ignored, a write beyond the limit fails instead.
    let script = format!("trap '' XFSZ; ulimit -f 128; exec {} map --quiet --joblog {log} -j 1", common::MIDFLIGHT);
    let mut command = std::process::Command::new("sh");
    let long = "x".repeat(30_000);
    let child = command.args(["-c", &script]).stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = child.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let input: String = (1..=4).map(|number| format!("echo {number}; # {long}\n")).collect();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes()).unwrap();
    let said: CommandOutput = child.wait_with_output().unwrap().into();
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("cannot write the joblog") && said.stderr.contains("--resume"), "{said:?}");
    let printed: Vec<_> = said.stdout.lines().collect();
    assert!(printed.len() >= 3 && printed[..3] == ["1", "2", "3"], "{said:?}");
    assert_eq!(joblog(&log).len(), 2, "whole lines only");
    let resumed = run_with(&["map", "--joblog", &log, "--resume"], &input);
    assert_eq!(lines(&resumed), ["3", "4"]);
}

#[test]
fn unordered_output_comes_as_it_comes() {
    let directory = Directory::new("map-unordered");
    let go = directory.path("go");
    let first = format!("while [ ! -e {go} ]; do sleep 0.01; done; echo first");
    let mut map = spawn_with(&["map", "-j", "2", "--unordered"], &format!("{first}\necho second\n"));
    let mut stdout = std::io::BufReader::new(map.stdout.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut stdout, &mut line).unwrap();
    assert_eq!(line, "second\n");
    directory.write("go", "");
    assert_eq!(std::io::read_to_string(stdout).unwrap(), "first\n");
    wait_until("it has ended", || map.try_wait().unwrap().is_some());
}
