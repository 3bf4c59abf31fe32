//! `midflight up` in a Slurm cluster of two nodes on this machine. Needs root, slurm-wlm and munge; otherwise prints SKIPPED.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{CommandOutput, MIDFLIGHT, Running, midflight, run, signal, skip, status, wait_until};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A munged, a slurmctld, and two slurmd with two CPUs each.
struct Cluster {
    /// Munge's socket needs a short path.
    directory: PathBuf,
    daemons: Vec<Child>,
}

impl Cluster {
    fn start() -> Option<Self> {
        for daemon in ["munged", "slurmctld", "slurmd"] {
            if !Path::new("/usr/sbin").join(daemon).exists() {
                skip(format!("Slurm: {daemon} is missing (packages slurm-wlm and munge)"));
                return None;
            }
        }
        if !geteuid().is_root() {
            skip("Slurm: its daemons need root");
            return None;
        }
        let directory = std::env::temp_dir().join(format!("midflight-slurm-{}", std::process::id()));
        ["state", "spool", "munge"].iter().for_each(|name| std::fs::create_dir_all(directory.join(name)).unwrap());
        std::fs::write(directory.join("munge.key"), [7; 1024]).unwrap();
        std::fs::write(directory.join("slurm.conf"), configuration(&directory)).unwrap();
        let mut cluster = Self { directory, daemons: Vec::new() };
        let path = |name: &str| cluster.directory.join(name).display().to_string();
        let munged = ["munged", "--foreground", "--force", "--key-file", &path("munge.key")];
        let files =
            ["--socket", &path("munge/socket"), "--pid-file", &path("munge/pid"), "--seed-file", &path("munge/seed")];
        let log = ["--log-file", &path("munge/log")];
        cluster.daemon(&[&munged[..], &files, &log].concat());
        wait_until("munged listens", || cluster.directory.join("munge/socket").exists());
        cluster.daemon(&["slurmctld", "-D", "-c"]);
        cluster.daemon(&["slurmd", "-D", "-N", "n1"]);
        cluster.daemon(&["slurmd", "-D", "-N", "n2"]);
        wait_until("both nodes are idle", || {
            let said =
                CommandOutput::from(cluster.command("sinfo").args(["-h", "-t", "idle", "-o", "%D"]).output().unwrap());
            said.stdout.trim() == "2"
        });
        Some(cluster)
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env("SLURM_CONF", self.directory.join("slurm.conf")).stdin(Stdio::null());
        command
    }

    fn daemon(&mut self, words: &[&str]) {
        let mut command = self.command(Path::new("/usr/sbin").join(words[0]));
        command.args(&words[1..]).stdout(Stdio::null()).stderr(Stdio::null());
        self.daemons.push(command.spawn().unwrap());
    }

    /// `midflight up` in an allocation of both nodes, and its process. `then` runs in the allocation's shell afterwards.
    fn up(&self, http: &str, then: &str) -> (Running, Pid) {
        let mut salloc = self.command("salloc");
        let shell = format!("\"$0\" \"$@\" >/dev/null & echo $!; wait $!; {then}");
        salloc.args(["--nodes=2", "--ntasks=2", "--cpus-per-task=2", "--immediate=20", "sh", "-c", &shell]);
        salloc.args([MIDFLIGHT, "up", "--http", http, "--listen", "127.0.0.1:0"]);
        let up = Running::spawn(salloc);
        let pid = Pid::from_raw(up.first_line.trim().parse().unwrap()).unwrap();
        wait_until("the switch answers", || run(&["status", "--http", http]).code == Some(0));
        wait_until("each CPU has a slot", || status(http)["slots"] == 4);
        (up, pid)
    }

    fn steps(&self) -> String {
        let said =
            CommandOutput::from(self.command("squeue").args(["-h", "--steps", "-n", "midflight"]).output().unwrap());
        said.stdout
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Cancel jobs before the daemons stop.
        let _ = self.command("scancel").args(["--user", "root"]).status();
        for daemon in self.daemons.iter_mut().rev() {
            signal(daemon, Signal::TERM);
            let _ = daemon.wait();
        }
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Free a moment ago.
fn free_ports<const N: usize>() -> [u16; N] {
    let listeners = [(); N].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

fn configuration(directory: &Path) -> String {
    let (host, directory) = (rustix::system::uname().nodename().to_string_lossy().into_owned(), directory.display());
    let [controller, first, second] = free_ports();
    format!(
        "ClusterName=midflight\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={controller}\nAuthType=auth/munge\n\
         AuthInfo=socket={directory}/munge/socket\nCredType=cred/munge\nSlurmUser=root\nSlurmdUser=root\n\
         StateSaveLocation={directory}/state\nSlurmdSpoolDir={directory}/spool/%n\n\
         SlurmctldPidFile={directory}/slurmctld.pid\nSlurmdPidFile={directory}/%n.pid\n\
         SlurmctldLogFile={directory}/slurmctld.log\nSlurmdLogFile={directory}/%n.log\n\
         ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nJobAcctGatherType=jobacct_gather/none\n\
         SelectType=select/cons_tres\nMpiDefault=none\nReturnToService=2\n\
         NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={first} CPUs=2\n\
         NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={second} CPUs=2\n\
         PartitionName=all Nodes=ALL Default=YES State=UP\n"
    )
}

#[test]
fn up_in_an_allocation_has_executors_on_its_nodes_which_finish_what_runs() {
    let Some(cluster) = Cluster::start() else { return };
    let [port] = free_ports();
    let http = format!("127.0.0.1:{port}");
    let (up, pid) = cluster.up(&http, "echo ended with $?");
    let switch = status(&http)["listen"].as_str().unwrap().to_owned();
    let started = cluster.directory.join("started");
    let command = format!("touch {}; sleep 1; echo $SLURMD_NODENAME", started.display());
    let map = common::spawn_with(&["map", "--switch", &switch, "--", &command, "; : {}"], "1\n2\n3\n4\n");
    wait_until("a command runs", || started.exists() && status(&http)["busy"] == 4);
    kill_process(pid, Signal::INT).unwrap();
    let said = CommandOutput::from(map.wait_with_output().unwrap());
    assert_eq!(said.code, Some(0), "{said:?}");
    let mut nodes: Vec<_> = said.stdout.lines().collect();
    nodes.sort_unstable();
    assert_eq!(nodes, ["n1", "n1", "n2", "n2"]);
    assert_eq!(up.end(), (Some(0), "ended with 0\n".to_owned()));
    // Killing it also ends them, but not the allocation.
    let (_up, pid) = cluster.up(&http, "exec sleep 60");
    assert!(!cluster.steps().is_empty());
    kill_process(pid, Signal::KILL).unwrap();
    wait_until("no executor is left", || cluster.steps().is_empty());
}

#[test]
fn up_with_local_is_as_elsewhere() {
    let mut up = midflight(&["up", "--local", "--listen", "127.0.0.1:0", "--http", "off", "--slots", "1"]);
    up.envs([("SLURM_JOB_ID", "1"), ("SLURM_JOB_CPUS_PER_NODE", "72(x2)")]);
    let up = Running::spawn(up);
    assert!(up.first_line.contains("an executor with 1 slots"), "{}", up.first_line);
}
