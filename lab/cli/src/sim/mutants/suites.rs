//! Runs a test with a planted bug: finds the test programs in cargo's messages, and sets the bug's number in the environment.

use super::beyond::{Beyond, Suite};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Environment variable with the planted bug, read by each thread.
const VARIABLE: &str = "MIDFLIGHT_MUTANT";
const LONGEST: Duration = Duration::from_secs(120);
/// Prefix of a test's message that it was skipped.
const SKIPPED: &str = "SKIPPED: ";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Passed,
    Failed,
    /// What the test needs and this machine lacks.
    Skipped(String),
    /// Why the test is inconclusive.
    Unclear(String),
}

#[derive(Debug)]
struct Built {
    suite: Suite,
    program: PathBuf,
    /// The folder of its package, where its tests run.
    folder: PathBuf,
}

#[derive(Debug)]
pub(super) struct Suites(Vec<Built>);

impl Suites {
    /// From cargo's messages (`--message-format=json`).
    ///
    /// # Errors
    /// If one is missing.
    pub(super) fn find(messages: &str) -> Result<Self> {
        let artifacts: Vec<Value> = messages.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        Suite::ALL.into_iter().map(|suite| find(suite, &artifacts)).collect::<Result<_>>().map(Self)
    }

    /// Without the bug it must pass. Stops early if `stop` is set.
    pub(super) fn run(&self, of: &Beyond, planted: bool, stop: &AtomicBool) -> Ended {
        if of.suite == Suite::Frames && !cfg!(feature = "kernel") {
            return Ended::Skipped("this build has no kernel engine".into());
        }
        let Some(built) = self.0.iter().find(|built| built.suite == of.suite) else {
            return Ended::Unclear("its suite was not built".into());
        };
        let mut test = Command::new(&built.program);
        test.args([of.test, "--exact", "--test-threads=1"]).current_dir(&built.folder);
        test.env(VARIABLE, if planted { of.number } else { 0 }.to_string());
        match watched(test, stop) {
            Ok((succeeded, said)) => ended(succeeded, &said),
            Err(error) => Ended::Unclear(format!("{error:#}")),
        }
    }
}

fn find(suite: Suite, artifacts: &[Value]) -> Result<Built> {
    let (package, target) = suite.names();
    let is_it = |artifact: &&Value| {
        artifact["target"]["name"] == target
            && artifact["profile"]["test"] == true
            && artifact["package_id"].as_str().is_some_and(|id| id.contains(&format!("#{package}@")))
    };
    let artifact =
        artifacts.iter().find(is_it).with_context(|| format!("cargo has built no tests {package}: {target}"))?;
    let (Some(program), Some(manifest)) = (artifact["executable"].as_str(), artifact["manifest_path"].as_str()) else {
        bail!("cargo does not say where the tests {package}: {target} are");
    };
    let folder = PathBuf::from(manifest).parent().map(PathBuf::from).unwrap_or_default();
    Ok(Built { suite, program: program.into(), folder })
}

/// Returns success, and the output.
fn watched(mut command: Command, stop: &AtomicBool) -> Result<(bool, String)> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let (status, said) = std::thread::scope(|scope| {
        let read = |from: Option<Box<dyn Read + Send>>| {
            scope.spawn(move || {
                let mut bytes = Vec::new();
                from.map(|mut from| from.read_to_end(&mut bytes));
                String::from_utf8_lossy(&bytes).into_owned()
            })
        };
        let said = [read(out.map(|out| Box::new(out) as _)), read(err.map(|err| Box::new(err) as _))];
        let status = wait(&mut child, stop);
        (status, said.map(|said| said.join().unwrap_or_default()).concat())
    });
    Ok((status?, said))
}

fn wait(child: &mut Child, stop: &AtomicBool) -> Result<bool> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        let is_late = started.elapsed() > LONGEST;
        if is_late || stop.load(Ordering::Relaxed) {
            child.kill()?;
            child.wait()?;
            bail!(if is_late { "no end" } else { "interrupted" });
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn ended(succeeded: bool, said: &str) -> Ended {
    let skipped = said.lines().find_map(|line| line.split_once(SKIPPED)).map(|(_, why)| why.to_owned());
    match (succeeded, skipped) {
        (true, Some(why)) => Ended::Skipped(why),
        (true, None) if said.contains(" 1 passed;") => Ended::Passed,
        (true, None) => Ended::Unclear("there is no such test".into()),
        (false, _) => Ended::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_test_that_ran_says_something() {
        let summary = |passed, failed| format!("test result: x. {passed} passed; {failed} failed; 0 ignored;");
        assert_eq!(ended(true, &summary(1, 0)), Ended::Passed);
        assert_eq!(ended(false, &summary(0, 1)), Ended::Failed);
        assert_eq!(ended(true, &summary(0, 0)), Ended::Unclear("there is no such test".into()));
        let skipped = format!("SKIPPED: a_test: needs root\n{}", summary(1, 0));
        assert_eq!(ended(true, &skipped), Ended::Skipped("a_test: needs root".into()));
    }

    #[test]
    fn a_program_without_end_is_stopped() {
        let mut sleep = Command::new("sleep");
        sleep.arg("100");
        let error = watched(sleep, &AtomicBool::new(true)).unwrap_err();
        assert_eq!(error.to_string(), "interrupted");
    }

    #[test]
    fn what_cargo_has_built_is_found_by_package_and_target() {
        let artifact = |id: &str, name: &str, test: bool| {
            serde_json::json!({
                "package_id": id, "target": {"name": name}, "profile": {"test": test},
                "executable": format!("/t/{name}-1"), "manifest_path": "/p/crates/wire/Cargo.toml",
            })
        };
        let id = "path+file:///p/crates/wire#midflight-wire@0.1.0";
        let others =
            [artifact(id, "wire", false), artifact("path+file:///p/crates/host#midflight-host@0.1.0", "wire", true)];
        assert!(find(Suite::Wire, &others).is_err());
        let built = find(Suite::Wire, &[artifact(id, "wire", true)]).unwrap();
        assert_eq!((built.program, built.folder), ("/t/wire-1".into(), "/p/crates/wire".into()));
    }
}
