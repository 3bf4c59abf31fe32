//! Errors for a full disk, hanging tools and Ctrl-C, with shell scripts in the place of p4c and BMv2. Tests that need root are skipped
//! without it.

use midflight_net::testing::skip;
use midflight_p4::live::{Live, Options};
use midflight_p4::tools::{Bmv2Tools, Patience};
use midflight_p4::{P4Error, Program};
use std::fs::Permissions;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longest wait of a test.
const PATIENCE: Duration = Duration::from_secs(60);
/// Timeout for a tool that hangs.
const SHORT: Duration = Duration::from_millis(200);
/// A tool that starts another one and hangs.
const HANGS: &str = "sleep 600 & echo $! > $HERE/pid; wait";
/// A compiler script, up to the name of its output file.
const OUT: &str = "while [ $1 != -o ]; do shift; done; out=$2";

/// Two scripts, in a folder that they know as HERE.
struct Fakes {
    folder: TempDir,
    tools: Bmv2Tools,
}

impl Fakes {
    fn new(compiler: &str, switch: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let scratch = folder.path().join("scratch");
        std::fs::create_dir(&scratch).expect("a folder");
        let script = |name: &str, text: &str| {
            let path = folder.path().join(name);
            let text = format!("#!/bin/sh\nHERE={}\n{text}\n", folder.path().display());
            std::fs::write(&path, text).expect("written");
            std::fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("made a program");
            path
        };
        let (compiler, switch) = (script("compiler", compiler), script("switch", switch));
        let tools = Bmv2Tools { scratch, ..Bmv2Tools::at(compiler, switch) };
        Self { folder, tools }
    }

    fn patience(mut self, patience: Patience) -> Self {
        self.tools.patience = patience;
        self
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn compile(&self) -> Result<PathBuf, P4Error> {
        self.tools.compile(Program::Safe, &[], &[], &self.tools.scratch)
    }

    fn start(&self) -> Result<Live, P4Error> {
        let options = Options {
            program: Program::Safe,
            own: "10.0.0.254:7700".parse().expect("an address"),
            epoch: 7,
            interfaces: vec!["lo".into()],
            queue: 4,
            slots: 16,
        };
        Live::start(&self.tools, &options)
    }

    /// The process that a hanging script has started.
    fn pid(&self) -> String {
        let pid = || std::fs::read_to_string(self.file("pid")).ok().filter(|pid| pid.ends_with('\n'));
        until(|| pid().is_some());
        pid().expect("a number").trim().to_owned()
    }

    fn is_gone(&self) -> bool {
        let stat = format!("/proc/{}/stat", self.pid());
        // A process that has ended but was not waited for is a zombie.
        until_true(|| std::fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z ")))
    }

    /// Sets the flag once a script hangs, and measures the time of the rest.
    fn interrupted<T>(&self, act: impl FnOnce() -> T) -> (T, Duration) {
        std::thread::scope(|scope| {
            let interrupts = scope.spawn(|| {
                self.pid();
                self.tools.interrupted.store(true, Ordering::Relaxed);
                Instant::now()
            });
            let done = act();
            (done, interrupts.join().expect("no panic").elapsed())
        })
    }

    fn left_in_scratch(&self) -> usize {
        std::fs::read_dir(&self.tools.scratch).expect("readable").count()
    }
}

fn until_true(is: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + PATIENCE;
    while !is() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    is()
}

fn until(is: impl Fn() -> bool) {
    assert!(until_true(is), "it does not come to that");
}

fn patience(compiling: Duration, starting: Duration, answering: Duration) -> Patience {
    Patience { compiling, starting, answering, ..Patience::default() }
}

fn apart(namespaces: libc::c_int, act: impl FnOnce() + Send) {
    let act = || {
        // SAFETY: changes the calling thread's namespaces, and nothing else.
        if unsafe { libc::unshare(namespaces) } != 0 {
            return skip(format!("no namespaces here: {}", std::io::Error::last_os_error()));
        }
        act();
    };
    std::thread::scope(|scope| scope.spawn(act).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
}

fn runs(program: &str, arguments: &[&str]) {
    let status = Command::new(program).args(arguments).status().expect("a program of this machine");
    assert!(status.success(), "{program} {arguments:?}: {status}");
}

/// In a network namespace, so that loopback can be a port of a switch.
fn bring_up_loopback() {
    runs("ip", &["link", "set", "lo", "up"]);
    // Initially as in the machine's own namespace.
    std::fs::write("/proc/sys/net/ipv4/ip_forward", "0").expect("a setting of this namespace");
}

fn named<T: std::fmt::Debug>(result: Result<T, P4Error>) -> String {
    result.expect_err("it cannot work").to_string()
}

#[test]
fn a_compiler_that_hangs_is_ended_with_all_that_it_has_started() {
    let fakes = Fakes::new(HANGS, "").patience(patience(SHORT, PATIENCE, PATIENCE));
    let error = named(fakes.compile());
    assert!(error.contains("compiler: it hangs: it did not end within 200ms"), "{error}");
    assert!(fakes.is_gone());
}

#[test]
fn an_interrupted_compiler_is_no_error_of_the_compiler() {
    let fakes = Fakes::new(HANGS, "");
    let (compiled, after) = fakes.interrupted(|| fakes.compile());
    assert!(matches!(compiled, Err(P4Error::Interrupted)), "{compiled:?}");
    assert!(after < Duration::from_secs(10) && fakes.is_gone(), "{after:?}");
}

#[test]
fn what_a_compiler_says_is_bounded_and_its_end_is_kept() {
    let fakes = Fakes::new("yes | head -c 3000000 >&2; echo 'the last word' >&2; exit 3", "");
    let error = named(fakes.compile());
    assert!(error.starts_with("tasks_safe does not compile:\n") && error.ends_with("\nthe last word"), "{error}");
    assert!(error.len() < 300_000, "{}", error.len());
}

#[test]
fn a_full_disk_is_named() {
    // It exits successfully although it has written only a part, as p4c does.
    let writes = format!(
        "{OUT}; (printf '\"'; head -c 4000000 /dev/zero | tr '\\0' x; printf '\"') > $out 2> /dev/null; exit 0"
    );
    let fakes = Fakes::new(&writes, "");
    let scratch = fakes.tools.scratch.display().to_string();
    apart(libc::CLONE_NEWNS, || {
        runs("mount", &["--make-rprivate", "/"]);
        for (size, says) in [("64k", "No space left on device"), ("1m", "is there no room on that disk?")] {
            runs("mount", &["-t", "tmpfs", "-o", &format!("size={size}"), "none", &scratch]);
            let error = named(fakes.compile());
            assert!(error.contains(&scratch) && error.contains(says), "{size}: {error}");
            runs("umount", &[&scratch]);
        }
    });
}

const COMPILES: &str = "while [ $1 != -o ]; do shift; done; echo '{}' > $2";

#[test]
fn a_switch_that_does_not_serve_its_controller_is_named() {
    let fakes = Fakes::new(COMPILES, HANGS).patience(patience(PATIENCE, SHORT, PATIENCE));
    apart(libc::CLONE_NEWNET, || {
        bring_up_loopback();
        let error = named(fakes.start());
        let says = "switch) does not serve its controller after 200ms: it hangs, or is another program";
        assert!(error.starts_with("simple_switch (") && error.contains(says), "{error}");
        assert!(fakes.is_gone() && fakes.left_in_scratch() == 0);
    });
}

#[test]
fn a_switch_that_does_not_answer_is_named() {
    let fakes = Fakes::new(COMPILES, HANGS).patience(patience(PATIENCE, PATIENCE, SHORT));
    apart(libc::CLONE_NEWNET, || {
        bring_up_loopback();
        std::thread::scope(|scope| {
            // The test listens in its place, once it runs.
            let listens = scope.spawn(|| {
                fakes.pid();
                TcpListener::bind((Ipv4Addr::LOCALHOST, 9090)).expect("nobody else is in this namespace")
            });
            let error = named(fakes.start());
            let says = "the switch's Thrift interface: the switch has not answered for 200ms: it hangs, or was stopped";
            assert_eq!(error, says);
            drop(listens.join());
        });
        assert!(fakes.is_gone());
    });
}

/// Starts a switch that is this script, and passes the error to `says`.
fn switch_ends(script: &str, says: impl FnOnce(String) + Send) {
    let fakes = Fakes::new(COMPILES, script);
    apart(libc::CLONE_NEWNET, || {
        bring_up_loopback();
        says(named(fakes.start()));
    });
}

#[test]
fn a_switch_that_ends_is_named_with_its_last_words_however_many_there_were() {
    switch_ends("yes | head -c 3000000 >&2; echo 'port 0: no such interface' >&2; exit 7", |error| {
        let says = "switch) has ended with exit code 7; it said: port 0: no such interface";
        assert!(error.starts_with("simple_switch (") && error.ends_with(says), "{error}");
    });
}

#[test]
fn an_interrupted_start_leaves_nothing() {
    for (compiler, switch) in [(HANGS, ""), (COMPILES, HANGS)] {
        let fakes = Fakes::new(compiler, switch);
        apart(libc::CLONE_NEWNET, || {
            bring_up_loopback();
            let (started, after) = fakes.interrupted(|| fakes.start());
            assert!(matches!(started, Err(P4Error::Interrupted)), "{started:?}");
            assert!(after < Duration::from_secs(10) && fakes.is_gone(), "{after:?}");
            assert_eq!(fakes.left_in_scratch(), 0);
            let links = Command::new("ip").args(["-br", "link"]).output().expect("iproute2").stdout;
            assert!(!String::from_utf8_lossy(&links).contains("mf"), "a link is left");
        });
    }
}
