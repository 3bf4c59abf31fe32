//! Files that commands create are private to their owner, also with umask 0: `docs/internals/security.md` lists them.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{CommandOutput, Directory, MIDFLIGHT, Running, skip, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::Metadata;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

struct Place(Directory);

impl Place {
    fn new(name: &str) -> Self {
        let place = Self(Directory::new(name));
        for directory in ["home", "run", "tmp", "work"] {
            std::fs::create_dir(place.0.path(directory)).unwrap();
        }
        place
    }

    /// A command with umask 0, whose temporary, state and runtime directories are here.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", "umask 0; exec \"$0\" \"$@\"", MIDFLIGHT]).args(args);
        command.env("RUST_LOG", "error").env_remove("MIDFLIGHT_TRACES").stdin(Stdio::null());
        command.env_remove("XDG_STATE_HOME").env("MIDFLIGHT_STATE", self.0.path("home/state"));
        command.env("HOME", self.0.path("home")).env("XDG_RUNTIME_DIR", self.0.path("run"));
        command.env("TMPDIR", self.0.path("tmp")).current_dir(self.0.path("work"));
        command
    }

    fn run(&self, args: &[&str]) -> CommandOutput {
        let said = CommandOutput::from(self.command(args).output().unwrap());
        assert_eq!(said.code, Some(0), "{args:?}: {said:?}");
        said
    }

    fn start(&self, args: &[&str]) -> Running {
        Running::spawn(self.command(args))
    }

    /// No other user can access the files created here or opened by the process. Returns them.
    #[track_caller]
    fn assert_private(&self, process: Option<&Running>) -> Vec<String> {
        let mut seen = Vec::new();
        for directory in ["home", "run", "tmp", "work"] {
            walk(Path::new(&self.0.path(directory)), &mut seen);
        }
        // Other tests' sockets are here too; labs below it may be of an earlier version.
        if rustix::process::geteuid().is_root() {
            let mut all = Vec::new();
            walk(Path::new("/run/midflight"), &mut all);
            seen.extend(all.into_iter().filter(|(_, about)| about.file_type().is_socket()));
        }
        seen.extend(process.iter().flat_map(|process| opened(process.child.id())));
        let open: Vec<_> = seen.iter().filter(|(_, about)| about.mode() & 0o077 != 0).collect();
        let told: Vec<_> = open.iter().map(|(path, about)| format!("{:o} {}", about.mode(), path.display())).collect();
        assert!(told.is_empty(), "others may use:\n{}", told.join("\n"));
        seen.into_iter().map(|(path, _)| path.display().to_string()).collect()
    }

    #[track_caller]
    fn assert_made(&self, process: Option<&Running>, ends: &[&str]) {
        for end in ends {
            wait_until(&format!("{end} is made"), || {
                self.assert_private(process).iter().any(|path| path.ends_with(end))
            });
        }
    }
}

/// Everything below a directory. A file that disappears belongs to a process that exits.
fn walk(directory: &Path, seen: &mut Vec<(PathBuf, Metadata)>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let Ok(about) = entry.metadata() else { continue };
        if about.is_dir() {
            walk(&entry.path(), seen);
        }
        seen.push((entry.path(), about));
    }
}

/// Files that a process has opened and removed: they had a name for a moment.
fn opened(process: u32) -> Vec<(PathBuf, Metadata)> {
    let files = std::fs::read_dir(format!("/proc/{process}/fd")).unwrap().flatten();
    let removed = files.filter(|file| {
        std::fs::read_link(file.path()).is_ok_and(|to| {
            let to = to.to_string_lossy();
            to.ends_with(" (deleted)") && !to.starts_with("/memfd:")
        })
    });
    removed.filter_map(|file| Some((file.path(), std::fs::metadata(file.path()).ok()?))).collect()
}

#[test]
fn a_store_of_up_is_private() {
    let place = Place::new("modes-up-store");
    let up = place.start(&["up", "--store", "--listen", "127.0.0.1:0", "--http", "off", "--data", "data"]);
    let store = up.first_line.split([' ', ',']).nth(2).unwrap().to_owned();
    place.run(&["store", "put", "a", "1", "--switch", &store]);
    place.assert_made(Some(&up), &["work/data", "data/cluster", "data/1", "1/identity", "1/log-1"]);
    drop(up);
    let up = place.start(&["up", "--store", "--listen", "127.0.0.1:0", "--http", "off"]);
    place.assert_made(Some(&up), &["1/identity"]);
}

#[test]
fn a_replica_is_private() {
    let place = Place::new("modes-replica");
    let port = common::free_address().port().to_string();
    let config = place.run(&["store", "init", "--port", &port, "--replicas", "1"]).stdout;
    let config = place.0.write("store.toml", &config);
    let replica = place.start(&["replica", "--config", &config, "--id", "1", "--data", "a/b", "--new"]);
    place.assert_made(Some(&replica), &["work/a", "a/b", "b/identity", "b/log-1"]);
}

/// An administrator has made them readable by all users.
#[test]
fn a_replica_takes_from_others_what_they_could_read() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new("modes-replica-old");
    let port = common::free_address().port().to_string();
    let config = place.run(&["store", "init", "--port", &port, "--replicas", "1"]).stdout;
    let config = place.0.write("store.toml", &config);
    let args = ["replica", "--config", &config, "--id", "1", "--data", "data"];
    let replica = place.start(&[&args[..], &["--new"]].concat());
    place.assert_made(None, &["data/identity", "data/log-1"]);
    drop(replica);
    for file in ["identity", "log-1"] {
        let open = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(place.0.path(&format!("work/data/{file}")), open).unwrap();
    }
    drop(place.start(&args));
    place.assert_made(None, &["data/log-1"]);
}

#[test]
fn tasks_their_outputs_and_results_are_private() {
    let place = Place::new("modes-tasks");
    let up = place.start(&["up", "--listen", "127.0.0.1:0", "--http", "off", "--slots", "2", "--output-dir", "../tmp"]);
    let switch = up.address().to_string();
    let lines = place.0.write("lines", "400000\n5000000\n");
    place.run(&[
        "map",
        "--switch",
        &switch,
        "--quiet",
        "--file",
        &lines,
        "--results",
        "out/of",
        "--joblog",
        "log",
        "--",
        "head",
        "/dev/zero",
        "-c",
    ]);
    place.assert_made(
        Some(&up),
        &["work/log", "work/out", "out/of", "of/1", "400000/stdout", "400000/stderr", "400000/seq"],
    );
    place.run(&[
        "map",
        "--switch",
        &switch,
        "--quiet",
        "--file",
        &lines,
        "--joblog",
        "log",
        "--resume",
        "--",
        "head",
        "/dev/zero",
        "-c",
    ]);
    place.assert_private(Some(&up));
}

#[test]
fn jobs_are_private() {
    let place = Place::new("modes-jobs");
    let up = place.start(&["up", "--listen", "127.0.0.1:0", "--http", "off", "--slots", "1"]);
    place.run(&["submit", "exec", "echo a", "--detach", "--switch", &up.address().to_string()]);
    let _submitter = Submitter::of(&place);
    place.run(&["job", "wait", "last"]);
    let ends = ["home/state", "state/jobs.redb", "state/socket", "state/lock", "state/submitter.log"];
    place.assert_made(None, &ends);
}

/// In the background; killed on drop.
struct Submitter(Pid);

impl Submitter {
    fn of(place: &Place) -> Self {
        let status: serde_json::Value = serde_json::from_str(&place.run(&["job", "status", "--json"]).stdout).unwrap();
        let pid = i32::try_from(status["pid"].as_i64().unwrap()).unwrap();
        Self(Pid::from_raw(pid).unwrap())
    }
}

impl Drop for Submitter {
    fn drop(&mut self) {
        // It may have exited.
        let _ = kill_process(self.0, Signal::KILL);
    }
}

#[test]
fn sockets_of_operators_are_private() {
    let place = Place::new("modes-switch");
    let port = common::free_address().port().to_string();
    let config = place.run(&["store", "init", "--port", &port]).stdout;
    let config = place.0.write("store.toml", &config);
    let listen = format!("127.0.0.1:{port}");
    let _store = place.start(&["switch", "--config", &config, "--listen", &listen, "--http", "off"]);
    let tasks = place.start(&["switch", "--listen", "127.0.0.1:0", "--http", "off"]);
    let made = place.assert_private(Some(&tasks));
    let sockets = made.iter().filter(|path| std::fs::metadata(path).is_ok_and(|about| about.file_type().is_socket()));
    assert!(sockets.count() >= 2, "{made:?}");
}

#[test]
fn a_cache_and_its_secret_are_private() {
    let place = Place::new("modes-cache");
    place.run(&["controller", "--init", "secret"]);
    place.assert_made(None, &["work/secret"]);
    if Command::new("memcached").arg("-V").output().is_err() {
        return skip("a cache: there is no memcached");
    }
    let up = place.start(&["up", "--cache", "--listen", "127.0.0.1:0", "--http", "off"]);
    place.assert_made(Some(&up), &["backend-0", "backend-1", "backend-2"]);
}

/// They are meant to be shared, so the umask decides.
#[test]
fn manual_pages_are_for_all() {
    let place = Place::new("modes-man");
    place.run(&["man", "man1"]);
    let page = std::fs::metadata(place.0.path("work/man1/midflight.1")).unwrap();
    assert_eq!(page.mode() & 0o777, 0o666);
}
