//! redis-server and redis-benchmark (Debian's packages redis-server and redis-tools).

use super::turns::{LOOK_EVERY, unless, wait_for};
use crate::processes::Process;
use crate::store::cluster::Ground;
use anyhow::{Result, ensure};
use midflight_terminal::files;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use tempfile::TempDir;

/// Without persistence, as Redis is usually measured.
pub(super) const IN_MEMORY: &[&str] = &["--appendonly", "no"];
/// A write is on the disk before its reply is sent.
pub(super) const DURABLE: &[&str] = &["--appendonly", "yes", "--appendfsync", "always"];

pub(super) fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

/// Stopped on drop, and its files are removed.
pub(super) struct Redis {
    pub(super) address: SocketAddr,
    _server: Process,
    _directory: TempDir,
}

impl Redis {
    /// On this host, with [`IN_MEMORY`] or [`DURABLE`].
    pub(super) fn start(ground: Ground<'_>, host: usize, options: &[&str], interrupted: &AtomicBool) -> Result<Self> {
        let directory = files::temporary("midflight-redis-")?;
        let address = ground.free_tcp(host)?;
        let mut command = ground.command(host, "redis-server");
        command.args(["--port", &address.port().to_string(), "--bind", &address.ip().to_string()]).arg("--dir");
        command.arg(directory.path()).args(["--save", "", "--protected-mode", "no", "--daemonize", "no"]);
        let server = Process::start(command.args(["--loglevel", "warning"]).args(options))?;
        wait_for(ground, &[address], interrupted)?;
        Ok(Self { address, _server: server, _directory: directory })
    }
}

/// Runs redis-benchmark on a host. Returns the tests, such as `GET`, and their requests a second.
pub(super) fn benchmark(
    (ground, host): (Ground<'_>, usize),
    server: SocketAddr,
    options: &[&str],
    interrupted: &AtomicBool,
) -> Result<Vec<(String, f64)>> {
    let mut command = ground.command(host, "redis-benchmark");
    command.args(["-h", &server.ip().to_string(), "-p", &server.port().to_string(), "--csv"]).args(options);
    // It warns if the server has no CONFIG.
    let mut process = Process::start(command.stderr(Stdio::null()))?;
    let status = loop {
        unless(interrupted)?;
        if let Some(status) = process.wait(LOOK_EVERY)? {
            break status;
        }
    };
    let said = process.rest()?;
    // "GET","82781.46","0.353",..
    let result = |line: &str| {
        let mut words = line.split(',').map(|word| word.trim_matches('"'));
        Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
    };
    let results: Vec<_> = said.lines().filter_map(result).collect();
    ensure!(status.success() && !results.is_empty(), "redis-benchmark ended with {status} and said {said:?}");
    Ok(results)
}
