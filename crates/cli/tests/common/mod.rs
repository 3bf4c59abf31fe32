#![allow(dead_code, reason = "each test binary uses what it needs")]
#![allow(clippy::unwrap_used, reason = "tests may")]

mod machine;
mod seen;
mod small;
mod store;

#[allow(unused_imports, reason = "each test binary uses what it needs")]
pub(crate) use machine::{kernel_works, skip};
#[allow(unused_imports, reason = "each test binary uses what it needs")]
pub(crate) use seen::Seen;
#[allow(unused_imports, reason = "each test binary uses what it needs")]
pub(crate) use small::Small;
#[allow(unused_imports, reason = "each test binary uses what it needs")]
pub(crate) use store::Store;

use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The product's command, or in laboratory tests `midflight-lab`, which includes it.
pub(crate) const MIDFLIGHT: &str = match option_env!("CARGO_BIN_EXE_midflight") {
    Some(product) => product,
    None => match option_env!("CARGO_BIN_EXE_midflight-lab") {
        Some(laboratory) => laboratory,
        None => panic!("cargo names the command of this package"),
    },
};
/// Timeout of every wait in a test.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn midflight(args: &[&str]) -> Command {
    quiet(Command::new(MIDFLIGHT), args)
}

/// Without input; logs only errors, and ignores traces in the environment.
pub(crate) fn quiet(mut command: Command, args: &[impl AsRef<OsStr>]) -> Command {
    command.args(args).env("RUST_LOG", "error").env_remove("MIDFLIGHT_TRACES").stdin(Stdio::null());
    command
}

#[derive(Debug)]
pub(crate) struct CommandOutput {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for CommandOutput {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

impl CommandOutput {
    /// By name, with the bench's name as `bench`. A missing value is null.
    #[track_caller]
    pub(crate) fn results(&self) -> serde_json::Value {
        let json: serde_json::Value =
            serde_json::from_str(&self.stdout).unwrap_or_else(|why| panic!("{why}: {self:?}"));
        let result = |one: &serde_json::Value| (one["name"].as_str().unwrap().to_owned(), one["value"].clone());
        let results = json["results"].as_array().unwrap().iter().map(result);
        results.chain([("bench".to_owned(), json["bench"].clone())]).collect()
    }
}

pub(crate) fn run(args: &[&str]) -> CommandOutput {
    midflight(args).output().unwrap().into()
}

/// As [`run`], with this stdin.
pub(crate) fn run_with(args: &[&str], stdin: &str) -> CommandOutput {
    spawn_with(args, stdin).wait_with_output().unwrap().into()
}

pub(crate) fn spawn_with(args: &[&str], stdin: &str) -> Child {
    let mut command = midflight(args);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A command that refuses its arguments does not read stdin.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    child
}

/// Calls `look` once a line on stderr satisfies `is_at_work`, then interrupts. The returned stderr starts after that line.
#[track_caller]
pub(crate) fn interrupted(
    args: &[&str],
    is_at_work: impl Fn(&str) -> bool,
    look: impl FnOnce(&Child),
) -> CommandOutput {
    let mut child = spawn_with(args, "");
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !is_at_work(&line) {
        line.clear();
        assert!(stderr.read_line(&mut line).unwrap() > 0, "it ended by itself");
    }
    look(&child);
    signal(&child, Signal::INT);
    let stderr = std::io::read_to_string(stderr).unwrap();
    CommandOutput { stderr, ..child.wait_with_output().unwrap().into() }
}

/// Reports a skip if that is not possible.
pub(crate) fn run_as_nobody(args: &[&str]) -> Option<CommandOutput> {
    // Others may have no access to the build directory.
    let open = tempfile::Builder::new().permissions(PermissionsExt::from_mode(0o755)).tempdir().unwrap();
    let program = open.path().join("midflight");
    std::fs::hard_link(MIDFLIGHT, &program).or_else(|_| std::fs::copy(MIDFLIGHT, &program).map(drop)).unwrap();
    let mut command = quiet(Command::new(program), args);
    if rustix::process::geteuid().is_root() {
        command.uid(65_534).gid(65_534).current_dir("/");
    }
    command.output().map_err(skip).ok().map(CommandOutput::from)
}

/// Asserts that a command failed with one line on stderr that contains all parts.
#[track_caller]
pub(crate) fn assert_error(said: &CommandOutput, code: i32, parts: &[&str]) {
    assert_eq!(said.code, Some(code), "{said:?}");
    assert_eq!(said.stderr.lines().count(), 1, "not one line: {said:?}");
    assert!(said.stderr.starts_with("error: "), "{said:?}");
    for part in parts {
        assert!(said.stderr.contains(part), "{part:?} is not in {said:?}");
    }
}

pub(crate) fn signal(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// A long-running subcommand, killed on drop.
#[derive(Debug)]
pub(crate) struct Running {
    pub child: Child,
    stdout: BufReader<ChildStdout>,
    pub first_line: String,
}

impl Running {
    /// Waits for its first line.
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::spawn(midflight(args))
    }

    /// As [`Self::start`], with any command.
    pub(crate) fn spawn(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut first_line = String::new();
        stdout.read_line(&mut first_line).unwrap();
        assert!(!first_line.is_empty(), "{command:?} ended without a line");
        Self { child, stdout, first_line }
    }

    /// A switch on this address, with HTTP on a free port.
    pub(crate) fn switch(listen: &str, more: &[&str]) -> Self {
        Self::start(&[&["switch", "--listen", listen, "--http", "127.0.0.1:0"], more].concat())
    }

    /// Waits until its slots are registered.
    pub(crate) fn executor(switch: SocketAddr, slots: u32, more: &[&str]) -> Self {
        let (switch, slots) = (switch.to_string(), slots.to_string());
        Self::start(&[&["executor", "--switch", &switch, "--slots", &slots], more].concat())
    }

    pub(crate) fn address(&self) -> SocketAddr {
        let word = self.first_line.split([' ', ',']).nth(2);
        word.unwrap().parse().unwrap()
    }

    pub(crate) fn http(&self) -> String {
        self.first_line.trim().rsplit("http://").next().unwrap().to_owned()
    }

    /// The exit code and the rest of stdout.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let mut rest = String::new();
        while self.stdout.read_line(&mut rest).unwrap() > 0 {}
        (self.child.wait().unwrap().code(), rest)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[track_caller]
pub(crate) fn wait_until(what: &str, mut so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !so() {
        assert!(Instant::now() < deadline, "still not so: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn status(http: &str) -> serde_json::Value {
    let said = run(&["status", "--json", "--http", http]);
    assert_eq!(said.code, Some(0), "{said:?}");
    serde_json::from_str(&said.stdout).unwrap()
}

/// A loopback port that stays reserved for this process, with the 49 ports above it: for servers that restart on the same ports. The range
/// is below the kernel's ephemeral ports, and a locked file reserves it against other tests.
pub(crate) fn free_address() -> SocketAddr {
    static HELD: Mutex<Vec<File>> = Mutex::new(Vec::new());
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    let is_free =
        |port: u16| UdpSocket::bind(("127.0.0.1", port)).is_ok() && TcpListener::bind(("127.0.0.1", port)).is_ok();
    for number in 0..400 {
        let port = 12_000 + 50 * number;
        let file = File::create(format!("{}/port-{port}", env!("CARGO_TARGET_TMPDIR"))).unwrap();
        if file.try_lock().is_ok() && is_free(port) {
            held.push(file);
            return SocketAddr::from(([127, 0, 0, 1], port));
        }
    }
    panic!("no port is free");
}

/// Removed on drop.
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        std::fs::write(self.0.join(name), text).unwrap();
        self.path(name)
    }

    /// An executable script.
    pub(crate) fn script(&self, name: &str, text: &str) -> String {
        let path = self.write(name, &format!("#!/bin/sh\n{text}\n"));
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // Leftovers stay in the target directory.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
