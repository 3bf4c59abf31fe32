//! Commands as real processes.

use super::run::GRACE;
use super::*;
use crate::tasks::cancellation::CancellationToken;
use crate::tasks::counted::{CountedResource, Holding};
use std::path::PathBuf;
use std::time::Instant;

/// Longest wait of a test.
const PATIENCE: Duration = Duration::from_secs(30);

/// The context of a task that is not cancelled.
pub(crate) fn context() -> TaskContext {
    let (client, run) = (([127, 0, 0, 1], 1).into(), RunKey { slot: 3, run: 4 });
    let cancellation = CancellationToken::default();
    let holding = Holding::default();
    TaskContext {
        attempt: 2,
        uid: 1,
        jid: 7,
        tid: 9,
        priority: 4,
        client,
        asked: 0,
        run,
        holding,
        cancellation,
        driver: std::sync::Weak::new(),
    }
}

fn processes() -> Processes {
    Processes::new(SpillRoom::new(None, 1 << 30))
}

fn run(request: &ExecRequest) -> Result<ExecResult, String> {
    match processes().run(&context(), request)? {
        Value::Bytes(bytes) => Ok(ExecResult::decode(&bytes).unwrap()),
        Value::Large(_) => panic!("it is in a file"),
    }
}

fn exec(command_line: &str) -> ExecResult {
    run(&ExecRequest::new(command_line)).unwrap()
}

fn within(command_line: &str, timeout: Duration) -> ExecRequest {
    ExecRequest { timeout: Some(timeout), ..ExecRequest::new(command_line) }
}

#[track_caller]
fn wait_until(what: &str, mut so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !so() {
        assert!(Instant::now() < deadline, "still not so: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Whether the process whose id is in the file is alive.
fn is_alive(file: &Path) -> bool {
    let pid = std::fs::read_to_string(file).unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

/// A temporary file for a test's commands.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("midflight-exec-{name}-{}", std::process::id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn a_command_knows_its_attempt_and_its_name() {
    assert_eq!(exec("echo $MIDFLIGHT_ATTEMPT $MIDFLIGHT_JID $MIDFLIGHT_TID").stdout, b"2 7 9\n");
}

#[test]
fn outputs_and_the_exit_code_are_captured() {
    let before = clock::unix();
    let result = exec("echo out; echo err >&2; sleep 0.01; exit 3");
    assert_eq!((result.code, &result.stdout[..], &result.stderr[..]), (3, &b"out\n"[..], &b"err\n"[..]));
    assert_eq!((result.signal, result.timed_out), (None, false));
    assert!(result.started >= before && result.started < before + PATIENCE);
    assert!(result.run_time >= Duration::from_millis(10), "{:?}", result.run_time);
    assert_eq!(result.host, String::from_utf8(exec("printf %s \"$(cat /proc/sys/kernel/hostname)\"").stdout).unwrap());
}

#[test]
fn a_signal_is_not_an_exit_code() {
    let killed = exec("kill -TERM $$");
    assert_eq!((killed.code, killed.signal), (128 + 15, Some(15)));
    let exited = exec("exit 143");
    assert_eq!((exited.code, exited.signal), (128 + 15, None));
}

#[test]
fn a_request_has_a_directory_and_variables() {
    let request = ExecRequest {
        directory: Some(b"/usr/lib".to_vec()),
        environment: vec![(b"COLOUR".to_vec(), b"dark blue".to_vec()), (b"MIDFLIGHT_JID".to_vec(), b"mine".to_vec())],
        ..ExecRequest::new("pwd; echo $COLOUR; echo $MIDFLIGHT_JID")
    };
    assert_eq!(run(&request).unwrap().stdout, b"/usr/lib\ndark blue\nmine\n");
}

/// A line that begins with `:;` needs a shell.
#[test]
fn a_command_sees_the_same_with_and_without_a_shell() {
    let directory = Scratch::new("plain");
    std::fs::create_dir(&directory.0).unwrap();
    let script = directory.0.join("script");
    std::fs::write(&script, "echo script $0 $*\n").unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let directories = [None, Some(directory.0.clone().into_os_string().into_encoded_bytes())];
    let lines = [
        "env -u MIDFLIGHT_RUN",
        "readlink /proc/self/fd/0",
        "cat /proc/self/cmdline",
        "sh --version",
        "no-such-program a b",
        "/no/such/program",
        "/etc/passwd",
        "/usr",
        "./script a  b",
    ];
    for (line, directory) in lines.iter().flat_map(|line| directories.iter().map(move |at| (line, at))) {
        let by = |line: String| {
            let request = ExecRequest { directory: directory.clone(), ..ExecRequest::new(line) };
            let result = run(&request).unwrap();
            // The order of environment variables is not defined.
            let mut lines: Vec<_> = result.stdout.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
            lines.sort();
            (lines, result.stderr, result.code, result.signal)
        };
        assert_eq!(by(format!(":; {line}")), by((*line).to_owned()), "{line} in {directory:?}");
    }
    let _ = std::fs::remove_file(script);
    std::fs::remove_dir(&directory.0).unwrap();
}

#[test]
fn what_cannot_be_run_is_said() {
    let nowhere = ExecRequest { directory: Some(b"/no/where".to_vec()), ..ExecRequest::new("true") };
    let error = run(&nowhere).unwrap_err();
    assert!(error.starts_with("cannot run in the directory /no/where: No such file"), "{error}");
    let error = run(&ExecRequest::new("x".repeat(200 << 10))).unwrap_err();
    assert!(error.contains("a command line of 204800 bytes exceeds 131071"), "{error}");
    assert!(processes().command(&context(), b"echo").unwrap_err().contains("one version"));
}

#[test]
fn the_longest_command_line_is_run() {
    let text = "x".repeat(midflight_tasks::functions::COMMAND_LINE_MAX - 5);
    assert_eq!(exec(&format!("echo {text}")).stdout.len(), text.len() + 1);
}

#[test]
fn a_timeout_ends_the_whole_group() {
    let result = run(&within("sleep 100 | sleep 100", Duration::from_millis(50))).unwrap();
    assert_eq!((result.code, result.signal, result.timed_out), (124, Some(15), true));
    assert!(result.run_time < GRACE, "{:?}", result.run_time);
}

#[test]
fn a_timeout_lets_go_of_an_output_that_a_background_process_holds() {
    let result = run(&within("sleep 100 & echo begun", Duration::from_millis(50))).unwrap();
    assert_eq!((result.code, result.signal, result.timed_out), (124, None, true));
    assert_eq!(result.stdout, b"begun\n");
    assert!(result.run_time < GRACE, "{:?}", result.run_time);
}

#[test]
fn what_ignores_the_first_signal_or_left_the_group_is_killed_a_second_later() {
    let deaf = Scratch::new("deaf");
    let line = format!("trap '' TERM; setsid sh -c 'echo $$ > {}; sleep 100; sleep 100'", deaf.0.display());
    let result = run(&within(&line, Duration::from_millis(200))).unwrap();
    assert_eq!((result.code, result.timed_out), (124, true));
    assert!(result.run_time >= GRACE && result.run_time < PATIENCE, "{:?}", result.run_time);
    wait_until("the process outside the group is dead", || !is_alive(&deaf.0));
}

#[test]
fn an_output_is_let_go_whoever_holds_it() {
    // A new session with an empty environment: no mark.
    let escaped = Scratch::new("escaped");
    let line = format!("setsid env -i sh -c 'echo $$ > {}; exec sleep 100' & wait", escaped.0.display());
    let result = run(&within(&line, Duration::from_millis(200))).unwrap();
    assert!(result.timed_out && result.run_time < PATIENCE, "{result:?}");
    assert!(is_alive(&escaped.0));
    exec(&format!("kill -KILL $(cat {})", escaped.0.display()));
}

#[test]
fn a_process_that_closed_both_outputs_outlives_its_command() {
    let left = Scratch::new("left");
    let line = format!("sleep 100 >/dev/null 2>&1 & echo $! > {}", left.0.display());
    assert_eq!(run(&within(&line, PATIENCE)).unwrap().code, 0);
    assert!(is_alive(&left.0));
    exec(&format!("kill -KILL $(cat {})", left.0.display()));
}

#[test]
fn a_shell_that_goes_on_with_closed_outputs_is_waited_for() {
    assert_eq!(exec("exec >&- 2>&-; sleep 0.05; exit 3").code, 3);
    let late = within("exec >&- 2>&-; sleep 100", Duration::from_millis(50));
    assert_eq!(run(&late).unwrap().code, 124);
}

#[test]
fn a_long_output_is_kept_whole_in_a_file() {
    let room = SpillRoom::new(None, 1 << 30);
    let processes = Processes::new(Arc::clone(&room));
    let value = processes.exec(&context(), b"head -c 70000000 /dev/zero; echo late >&2; exit 3").unwrap();
    let Value::Large(content) = value else { panic!("it is in the memory") };
    assert_eq!(room.used(), 70_000_000);
    let [Piece::Memory(head), Piece::File(stdout), Piece::Memory(stderr)] = content.pieces() else {
        panic!("{content:?}")
    };
    let (result, place) = ExecResult::decode_head(head).unwrap();
    assert_eq!((result.code, place.len() as u64, stdout.len()), (3, 70_000_000, 70_000_000));
    assert_eq!(stderr.as_slice(), b"late\n");
    drop(content);
    assert_eq!((room.used(), processes.not_kept()), (0, 0));
}

#[test]
fn an_output_that_cannot_be_kept_whole_has_failed_and_ends_the_command() {
    let room = SpillRoom::new(None, 1_000_000);
    let processes = Processes::new(Arc::clone(&room));
    let error = processes.exec(&context(), b"yes").unwrap_err();
    assert!(error.starts_with("its output could not be kept whole"), "{error}");
    assert!(error.contains("would exceed 1000000 bytes"), "{error}");
    assert_eq!((processes.not_kept(), room.used()), (1, 0));
}

#[test]
fn a_cancelled_command_ends_with_its_group_even_before_it_is_listed() {
    for line in ["sleep 100 & sleep 100", "exec >&- 2>&-; sleep 100", "trap '' TERM; sleep 100 & sleep 100; sleep 100"]
    {
        let (processes, context) = (processes(), context());
        let result = std::thread::scope(|scope| {
            let running = scope.spawn(|| processes.exec(&context, line.as_bytes()));
            wait_until("it runs", || !lock(&processes.running).commands.is_empty());
            context.cancellation.cancel();
            processes.stop(RunKey { slot: 3, run: 3 }); // another run of the slot
            processes.stop(context.run);
            running.join().unwrap()
        });
        assert_eq!(result.unwrap_err(), "cancelled");
        assert_eq!(processes.exec(&context, b"sleep 100").unwrap_err(), "cancelled");
    }
}

#[test]
fn killing_ends_the_whole_group_and_refuses_more() {
    let processes = processes();
    let result = std::thread::scope(|scope| {
        let running = scope.spawn(|| processes.exec(&context(), b"sleep 100 & sleep 100"));
        wait_until("it runs", || !lock(&processes.running).commands.is_empty());
        processes.kill_all();
        running.join().unwrap().unwrap()
    });
    let Value::Bytes(result) = result else { panic!("it is in a file") };
    assert_eq!(ExecResult::decode(&result).unwrap().signal, Some(9));
    assert!(processes.exec(&context(), b"true").is_err());
    assert!(lock(&processes.running).commands.is_empty());
}

#[test]
fn a_reaper_that_died_is_replaced() {
    let processes = processes();
    let reaper = || lock(&processes.reaper).as_ref().and_then(|reaper| reaper.process());
    assert_eq!(reaper(), None, "no command, no process");
    processes.exec(&context(), b"true").unwrap();
    let first = reaper().unwrap();
    rustix::process::kill_process(first, Signal::KILL).unwrap();
    wait_until("another one is there", || {
        processes.exec(&context(), b"true").unwrap();
        reaper() != Some(first)
    });
}

#[test]
fn t18_a_command_finds_its_bundles_and_its_request_does_not_choose_others() {
    let gpus = CountedResource::new(0, "gpu", ["4", "6"]).variable("CUDA_VISIBLE_DEVICES");
    let holding = Holding::new(&vec![gpus].into(), [(0, 1)].into_iter().collect());
    let mut request = ExecRequest::new("echo $MIDFLIGHT_GPU $CUDA_VISIBLE_DEVICES");
    request.environment = vec![(b"CUDA_VISIBLE_DEVICES".to_vec(), b"4".to_vec())];
    let Value::Bytes(bytes) = processes().run(&TaskContext { holding, ..context() }, &request).unwrap() else {
        panic!("it is in a file");
    };
    assert_eq!(ExecResult::decode(&bytes).unwrap().stdout, b"6 6\n");
}
