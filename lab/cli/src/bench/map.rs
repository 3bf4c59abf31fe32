//! `midflight-lab bench map`: command lines by `midflight map`, `xargs -P`, GNU parallel, and a loop of `posix_spawn`.

use super::How;
use super::ratio::Ratio;
use crate::median::median;
use crate::memory::kib;
use crate::processes::ours;
use anyhow::{Context, Result, ensure};
use midflight_terminal::envelope::{Envelope, Measure};
use midflight_terminal::files;
use midflight_terminal::machine::cores;
use rustix::process::{WaitOptions, wait};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Bytes of a line, including its end.
const LINE: usize = 60;

pub(super) const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab bench map
  midflight-lab bench map --quick            fewer lines and rounds, less exact
  midflight-lab bench map --json

5,000 lines of 60 bytes, each of which runs /bin/true, in as many slots as there are cores. The
others run each line by /bin/sh -c. map does so with the same lines behind \":;\", and without a
shell where the line needs none. In each round all run them, one after the other. GNU parallel
(Debian's package `parallel`) and xargs are left out, loudly, where they are not installed. Then
`yes` is the input of map for 20 s.

RESULTS (medians of the rounds; a ratio has its 95 % interval in .low and .high)
  map.commands_per_s   by midflight map, with its start and end
  map.spawn_ratio      by a bare loop of posix_spawn's: 1 is a map that costs nothing
  map.xargs_ratio      by those of xargs -P
  map.parallel_ratio   by those of GNU parallel
  map.shell_ratio      of those that need a shell: by those of the bare loop
  map.stream_rss_mib   the most memory that map took for an input without an end

EXIT CODES
  0 measured, 1 failed, 2 wrong usage";

struct Effort {
    rounds: u32,
    lines: usize,
    stream: Duration,
}

pub(super) fn run(how: &How) -> Result<ExitCode> {
    let effort = match how.quick {
        true => Effort { rounds: 3, lines: 500, stream: Duration::from_secs(2) },
        false => Effort { rounds: 7, lines: 5_000, stream: Duration::from_secs(20) },
    };
    let mut results = rounds(&effort)?;
    results.push(Measure::quantity("map.stream_rss_mib", stream(effort.stream)?, "MiB"));
    Envelope::new("map", results).print(how.json)?;
    Ok(ExitCode::SUCCESS)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Runner {
    Map,
    /// Lines that need a shell.
    Shell,
    Spawn,
    Xargs,
    Parallel,
}

impl Runner {
    const ALL: [Self; 5] = [Self::Map, Self::Shell, Self::Spawn, Self::Xargs, Self::Parallel];

    fn name(self) -> &'static str {
        match self {
            Self::Map => "map",
            Self::Shell => "map by a shell",
            Self::Spawn => "spawn",
            Self::Xargs => "xargs",
            Self::Parallel => "parallel",
        }
    }

    /// `None` if it can be measured here.
    fn missing(self) -> Option<String> {
        let (program, package) = match self {
            Self::Map | Self::Shell | Self::Spawn => return None,
            Self::Xargs => ("xargs", "findutils"),
            Self::Parallel => ("parallel", "parallel"),
        };
        let version = Command::new(program).arg("--version").stdin(Stdio::null()).output();
        let is_gnu = |text: &[u8]| String::from_utf8_lossy(text).contains("GNU");
        match version {
            Ok(output) if is_gnu(&output.stdout) => None,
            _ => Some(format!("GNU {program} is not installed: Debian's package `{package}` has it")),
        }
    }

    /// Runs all lines of the file, and returns the commands per second.
    fn run(self, lines: &Lines, slots: u32) -> Result<f64> {
        let slots = slots.to_string();
        let started = Instant::now();
        match self {
            Self::Spawn => spawn_all(&lines.lines, slots.parse()?)?,
            Self::Map => map(&lines.path, &slots)?,
            Self::Shell => map(&lines.for_shell, &slots)?,
            Self::Xargs => succeed(
                Command::new("xargs")
                    .args(["-d", "\n", "-n", "1", "-P", &slots, "/bin/sh", "-c"])
                    .stdin(File::open(&lines.path)?),
            )?,
            Self::Parallel => {
                let mut command = Command::new("parallel");
                command.args(["--will-cite", "--jobs", &slots, "-a"]).arg(&lines.path);
                succeed(command.env("SHELL", "/bin/sh").env("PARALLEL_SHELL", "/bin/sh"))?;
            }
        }
        Ok(lines.lines.len() as f64 / started.elapsed().as_secs_f64())
    }
}

/// Removed on drop.
struct Lines {
    _directory: TempDir,
    path: PathBuf,
    /// The same commands in lines that need a shell.
    for_shell: PathBuf,
    lines: Vec<String>,
}

impl Lines {
    fn write(count: usize) -> Result<Self> {
        let directory = files::temporary("midflight-bench-")?;
        let path = directory.path().join("lines");
        let lines: Vec<String> = (1..=count).map(|number| line(&format!("/bin/true {number} "))).collect();
        let for_shell: Vec<String> = (1..=count).map(|number| line(&format!(":;/bin/true {number} "))).collect();
        let written = Self { for_shell: path.with_extension("shell"), path, lines, _directory: directory };
        for (path, lines) in [(&written.path, &written.lines), (&written.for_shell, &for_shell)] {
            std::fs::write(path, lines.join("\n") + "\n")
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(written)
    }
}

fn line(command: &str) -> String {
    format!("{command:x<width$}", width = LINE - 1)
}

fn rounds(effort: &Effort) -> Result<Vec<Measure>> {
    let (lines, slots) = (Lines::write(effort.lines)?, cores());
    let mut runners = Vec::new();
    for runner in Runner::ALL {
        match runner.missing() {
            Some(why) => eprintln!("SKIPPED: {}: {why}", runner.name()),
            None => runners.push((runner, Vec::new())),
        }
    }
    for round in 1..=effort.rounds {
        for (runner, rates) in &mut runners {
            let rate = runner.run(&lines, slots)?;
            eprintln!("round {round} of {}: {} {rate:.0} commands/s", effort.rounds, runner.name());
            rates.push(rate);
        }
    }
    Ok(measures(&runners))
}

fn measures(runners: &[(Runner, Vec<f64>)]) -> Vec<Measure> {
    let rates = |wanted: Runner| runners.iter().find(|(runner, _)| *runner == wanted).map(|(_, rates)| rates);
    let ratio = |name: &str, of: Runner, by: Runner| {
        let Ratio { value, low, high } = Ratio::of(rates(of)?, rates(by)?)?;
        let named = |(end, value)| Measure::quantity(&format!("map.{name}_ratio{end}"), value, "");
        Some([("", value), (".low", low), (".high", high)].map(named))
    };
    let rate = rates(Runner::Map).map(|rates| Measure::quantity("map.commands_per_s", median(rates.clone()), "1/s"));
    let ratios = [
        ratio("spawn", Runner::Map, Runner::Spawn),
        ratio("xargs", Runner::Map, Runner::Xargs),
        ratio("parallel", Runner::Map, Runner::Parallel),
        ratio("shell", Runner::Shell, Runner::Spawn),
    ];
    rate.into_iter().chain(ratios.into_iter().flatten().flatten()).collect()
}

fn map(path: &Path, slots: &str) -> Result<()> {
    succeed(ours()?.args(["map", "--quiet", "--jobs", slots, "--file"]).arg(path))
}

/// It must succeed.
fn succeed(command: &mut Command) -> Result<()> {
    let status = command.stdout(Stdio::null()).status().with_context(|| format!("cannot start {command:?}"))?;
    ensure!(status.success(), "{command:?} failed: {status}");
    Ok(())
}

/// One per slot. The standard library uses `posix_spawn` for a program without special options.
fn spawn_all(lines: &[String], slots: usize) -> Result<()> {
    let mut running = 0;
    let mut lines = lines.iter();
    loop {
        while running < slots
            && let Some(line) = lines.next()
        {
            Command::new("/bin/sh").arg("-c").arg(line).spawn().context("cannot start /bin/sh")?;
            running += 1;
        }
        if running == 0 {
            return Ok(());
        }
        let ended = wait(WaitOptions::empty()).context("cannot wait for a command")?;
        let is_ok = ended.is_some_and(|(_, status)| status.exit_status() == Some(0));
        ensure!(is_ok, "a command failed: {ended:?}");
        running -= 1;
    }
}

/// Peak MiB of `map` with an endless input.
fn stream(time: Duration) -> Result<f64> {
    let line = line("echo ");
    let mut yes =
        Command::new("yes").arg(line).stdout(Stdio::piped()).spawn().map(Killed).context("cannot start yes")?;
    let input = yes.0.stdout.take().context("a child without stdout")?;
    let mut map = ours()?;
    map.args(["map", "--quiet", "--jobs", &cores().to_string()]).stdin(input).stdout(Stdio::null());
    let mut map = map.spawn().map(Killed).context("cannot start map")?;
    eprintln!("an input without an end for {time:?}");
    std::thread::sleep(time);
    ensure!(map.0.try_wait()?.is_none(), "map ended before its input did");
    let status = PathBuf::from(format!("/proc/{}/status", map.0.id()));
    peak(&status).with_context(|| format!("{} does not say how much memory map took", status.display()))
}

/// In MiB.
fn peak(status: &Path) -> Option<f64> {
    kib(status.to_str()?, "VmHWM:").map(|kib| kib as f64 / 1024.0)
}

/// Killed on drop.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // It may have exited by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_sixty_bytes_and_are_commands() {
        let lines = Lines::write(3).unwrap();
        let text = std::fs::read_to_string(&lines.path).unwrap();
        assert_eq!(text.len(), 3 * LINE);
        assert!(text.lines().all(|line| line.starts_with("/bin/true ")));
        let text = std::fs::read_to_string(&lines.for_shell).unwrap();
        assert_eq!(text.len(), 3 * LINE);
        assert!(text.lines().all(|line| line.starts_with(":;/bin/true ")));
    }

    #[test]
    fn ratios_are_of_maps_rate() {
        let rates = [(Runner::Map, vec![10.0, 20.0]), (Runner::Xargs, vec![5.0, 10.0])];
        let measures = measures(&rates);
        let names: Vec<_> = measures.iter().map(|measure| (measure.name.as_str(), measure.value.as_f64())).collect();
        assert_eq!(names[..2], [("map.commands_per_s", Some(15.0)), ("map.xargs_ratio", Some(2.0))]);
        assert_eq!(names.len(), 4);
    }
}
