//! Workers that are shell scripts.

use super::*;
use crate::blob::{BlobLease, BlobOptions, BlobServer, BlobStore};
use crate::tasks::exec::tests::context;
use std::fs::Permissions;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicU32, Ordering};

/// A worker's hello for `printf`: version 4 of the frames, Python 3.11, no description.
const HELLO: &str = r"printf '\1\0\0\0\4\0\0\0\2\0\0\0\0\0\0\0\3\13' >&0";

/// An interpreter that runs this script.
struct Interpreter(PathBuf);

impl Interpreter {
    fn new(script: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("midflight-python-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        // By another process: a concurrent fork of this one would keep the file open for writing, and it could not be executed.
        let write = r#"printf '%s\n' "$1" > "$0""#;
        let script = format!("#!/bin/sh\n{script}");
        let written = std::process::Command::new("/bin/sh").arg("-c").arg(write).arg(&path).arg(script).status();
        assert!(written.unwrap().success());
        std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        Self(path)
    }

    fn start(&self) -> Result<Pythons, Error> {
        Pythons::start(PythonOptions::new(&self.0), 1, Duration::from_secs(60))
    }
}

impl Drop for Interpreter {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0); // it is in a temporary directory
    }
}

/// A client's function, with its server.
struct Function {
    lease: BlobLease,
    server: BlobServer,
}

impl Function {
    fn new() -> Self {
        let store = BlobStore::new(BlobOptions::default());
        let lease = store.keep(Arc::new(vec![1; 100]), Duration::ZERO).unwrap();
        let server = BlobServer::start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), store, false).unwrap();
        Self { lease, server }
    }

    /// The argument of a call from Python 3.11, with one attempt.
    fn argument(&self) -> Vec<u8> {
        self.argument_within(None)
    }

    fn argument_within(&self, timeout: Option<Duration>) -> Vec<u8> {
        let options = PythonCallOptions { python: (3, 11), retries: 0, attempts: 1, environment: 0, timeout };
        let mut bytes = Vec::new();
        options.append_head(&mut bytes, &self.lease.reference(self.server.port()), []);
        bytes.extend(b"calls");
        bytes
    }
}

fn text(result: Result<Vec<u8>, String>) -> String {
    String::from_utf8_lossy(&result.unwrap()).into_owned()
}

#[test]
fn a_worker_that_closes_its_socket_while_it_ends_is_not_said_to_be_killed() {
    let interpreter = Interpreter::new(&format!("{HELLO}; head -c 1 <&0 >/dev/null; exec 0<&-; sleep 0.1; exit 7"));
    let pythons = interpreter.start().unwrap();
    let said = text(pythons.call(&context(), &Function::new().argument()));
    assert!(said.contains("exit code 7"), "{said}");
    let counts = pythons.counts();
    assert_eq!([counts.started, counts.died, counts.killed, counts.blobs_fetched], [1, 1, 0, 1]);
}

#[test]
fn an_answer_to_another_call_is_invalid() {
    let done = r"printf '\3\0\0\0\2\0\0\0\0\0\0\0\0\0\0\0' >&0";
    let interpreter = Interpreter::new(&format!("{HELLO}; head -c 1 <&0 >/dev/null; {done}; sleep 600"));
    let pythons = interpreter.start().unwrap();
    let said = text(pythons.call(&context(), &Function::new().argument()));
    assert!(said.contains("an invalid answer"), "{said}");
}

/// The client learns of the timeout whether the worker continues, dies, or raises an exception.
#[test]
fn a_call_is_stopped_at_its_timeout() {
    let begun = r"printf '\5\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0' >&0";
    let raised = r"sleep 0.1; printf '\3\1\0\0\1\0\0\0\0\0\0\0\0\0\0\0' >&0; sleep 600";
    for (does, killed, died) in [("sleep 600", 1, 0), ("sleep 0.1; exit 3", 0, 1), (raised, 0, 0)] {
        let interpreter = Interpreter::new(&format!("trap '' INT; {HELLO}; head -c 1 <&0 >/dev/null; {begun}; {does}"));
        let pythons = interpreter.start().unwrap();
        let result =
            pythons.call(&context(), &Function::new().argument_within(Some(Duration::from_millis(10)))).unwrap();
        assert_eq!(result[..2], [b'E', PythonError::TimedOut as u8], "{does}");
        assert!(text(Ok(result)).contains("its timeout of 10ms"));
        let counts = pythons.counts();
        assert_eq!([counts.timed_out, counts.killed, counts.died], [1, killed, died], "{does}");
    }
}

/// Bytes after a frame belong to the next frame; an unexpected answer must not reach the next task.
#[test]
fn frames_that_come_at_once_are_told_apart() {
    let begun = r"\5\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0";
    let done = |number| format!(r"\3\0\0\0\{number}\0\0\0\2\0\0\0\0\0\0\0ok");
    let answers = format!("{begun}{}{}", done(1), done(2));
    let interpreter =
        Interpreter::new(&format!("{HELLO}; head -c 1 <&0 >/dev/null; printf '{answers}' >&0; exec sleep 600"));
    let pythons = interpreter.start().unwrap();
    let function = Function::new();
    assert_eq!(pythons.call(&context(), &function.argument_within(Some(Duration::from_secs(600)))).unwrap(), b"ok");
    let Ok(_other) = pythons.worker_for(&context()) else { panic!("another one starts") };
    let counts = pythons.counts();
    assert_eq!([counts.started, counts.died_idle], [2, 1]);
}

/// Bytes of a first call, with the function, and of later calls.
const FIRST_CALL_BYTES: usize = 16 + 100 + 16 + 4 + 5;
const NEXT_CALL_BYTES: usize = 16 + 4 + 5;

#[test]
fn a_worker_with_stale_modules_is_replaced_before_the_calls_begin() {
    let done = r"printf '\3\0\0\0\1\0\0\0\2\0\0\0\0\0\0\0ok' >&0";
    let stale = r"printf '\11\0\0\0\2\0\0\0\0\0\0\0\0\0\0\0' >&0";
    let takes = |bytes| format!("head -c {bytes} <&0 >/dev/null");
    let (first, next) = (takes(FIRST_CALL_BYTES), takes(NEXT_CALL_BYTES));
    let interpreter = Interpreter::new(&format!("{HELLO}; {first}; {done}; {next}; {stale}; head -c 1 <&0"));
    let pythons = interpreter.start().unwrap();
    let function = Function::new();
    for _ in 0..2 {
        assert_eq!(pythons.call(&context(), &function.argument()).unwrap(), b"ok");
    }
    let counts = pythons.counts();
    assert_eq!([counts.started, counts.stale, counts.died, counts.killed], [2, 1, 0, 0]);
}

/// The object is many times as large as its pickle.
#[test]
fn what_a_worker_has_unpickled_is_part_of_the_memory_of_the_executor() {
    let loaded = r"printf '\12\0\0\0\1\0\0\0\14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\2\0\0\0' >&0"; // 8 GiB
    let done = |number| format!(r"printf '\3\0\0\0\{number}\0\0\0\2\0\0\0\0\0\0\0ok' >&0");
    let takes = |bytes| format!("head -c {bytes} <&0 >/dev/null");
    let (first, next) = (takes(FIRST_CALL_BYTES), takes(16 + FIRST_CALL_BYTES)); // it forgets the first blob
    let script = format!("{HELLO}; {first}; {loaded}; {}; {next}; {}; head -c 1 <&0", done(1), done(2));
    let interpreter = Interpreter::new(&script);
    let pythons = interpreter.start().unwrap();
    let function = Function::new();
    for fetched in [1, 2] {
        assert_eq!(pythons.call(&context(), &function.argument()).unwrap(), b"ok");
        let counts = pythons.counts();
        assert_eq!([counts.blobs_fetched, counts.blobs_dropped, counts.started, counts.died], [fetched, 1, 1, 0]);
    }
}

#[test]
fn a_new_worker_that_says_that_it_is_stale_is_not_replaced_for_ever() {
    let stale = r"printf '\11\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0' >&0";
    let interpreter = Interpreter::new(&format!("{HELLO}; head -c 1 <&0 >/dev/null; {stale}; exec sleep 600"));
    let pythons = interpreter.start().unwrap();
    let said = text(pythons.call(&context(), &Function::new().argument()));
    assert!(said.contains("an invalid answer"), "{said}");
    assert_eq!(pythons.counts().stale, 0);
}

#[test]
fn what_is_cancelled_before_it_begins_costs_no_worker() {
    let pythons = Interpreter::new(&format!("{HELLO}; sleep 600")).start().unwrap();
    let context = context();
    context.cancellation().cancel();
    assert_eq!(pythons.call(&context, &Function::new().argument()).unwrap_err(), "cancelled");
    let counts = pythons.counts();
    assert_eq!([counts.started, counts.died, counts.killed], [1, 0, 0]);
}

#[test]
fn a_worker_that_does_not_start_says_why_and_is_counted() {
    let other_version = HELLO.replace(r"\1\0\0\0\4", r"\1\0\0\0\7");
    for (script, said) in
        [("echo 'no such thing' >&2; exit 3", "(exit code 3): no such thing"), (&other_version, "release")]
    {
        let error = Interpreter::new(script).start().map(drop).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn a_worker_that_dies_while_it_is_idle_is_replaced_and_counted() {
    let interpreter = Interpreter::new(&format!("{HELLO}; exec sleep 600"));
    let pythons = interpreter.start().unwrap();
    let Ok(worker) = pythons.worker_for(&context()) else { panic!("the first one is idle") };
    let (_, group) = worker.names().unwrap();
    pythons.pool.give_back(worker, 0);
    rustix::process::kill_process(group, rustix::process::Signal::KILL).unwrap();
    while rustix::process::test_kill_process_group(group).is_ok() && !is_zombie(group) {
        std::thread::yield_now();
    }
    let Ok(worker) = pythons.worker_for(&context()) else { panic!("another one starts") };
    assert_ne!(worker.names().unwrap().1, group);
    let counts = pythons.counts();
    assert_eq!([counts.started, counts.died_idle], [2, 1]);
}

fn is_zombie(process: rustix::process::Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero()));
    stat.is_ok_and(|stat| stat.contains(") Z "))
}
