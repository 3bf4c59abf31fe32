//! `midflight up` in a Slurm allocation: the switch in this process, and executors on each node by `srun`.

use super::Args;
use crate::commands::switch::{Running, SwitchProgram};
use crate::options;
use anyhow::{Context, Result, bail};
use midflight_control::Config;
use midflight_control::config::DEFAULT_PORT;
use midflight_dataplane::TasksProgram;
use midflight_terminal::signals::Shutdown;
use midflight_terminal::{stdout, usage};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Command, ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Slurm's limit of nodes.
const NODES_MAX: usize = 65_536;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Allocation {
    job: String,
    cpus: Vec<u16>,
}

impl Allocation {
    /// `None` outside a job.
    pub(super) fn of_environment() -> Result<Option<Self>> {
        let variable = |name| std::env::var(name).ok();
        let (Some(job), Some(cpus)) = (variable("SLURM_JOB_ID"), variable("SLURM_JOB_CPUS_PER_NODE")) else {
            return Ok(None);
        };
        let Some(parsed) = cpus_of_nodes(&cpus) else {
            bail!("cannot read SLURM_JOB_CPUS_PER_NODE={cpus}: --local starts the executors in this process");
        };
        Ok(Some(Self { job, cpus: parsed }))
    }

    /// Total slots of `executors` per node. By default an executor has one slot per CPU.
    fn slots(&self, executors: u32, slots: Option<u32>) -> u64 {
        self.cpus.iter().map(|&cpus| u64::from(executors) * u64::from(slots.unwrap_or(cpus.into()))).sum()
    }
}

/// Parses Slurm's form "72(x2),36": CPUs of each node.
fn cpus_of_nodes(text: &str) -> Option<Vec<u16>> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let (cpus, nodes) = match part.strip_suffix(')').map(|part| part.split_once("(x")) {
            Some(repeated) => repeated?,
            None => (part, "1"),
        };
        let nodes = nodes.parse().ok().filter(|&nodes| nodes <= NODES_MAX)?;
        all.extend(std::iter::repeat_n(cpus.parse::<u16>().ok()?, nodes));
    }
    Some(all)
}

/// CPUs of the Slurm step of this process on this node, if it runs in one. Without CPU confinement the process may still use only these.
pub(crate) fn cpus_of_step() -> Option<u32> {
    std::env::var("SLURM_STEP_ID").ok()?;
    std::env::var("SLURM_CPUS_ON_NODE").ok()?.parse().ok()
}

pub(super) fn run(args: &Args, allocation: &Allocation) -> Result<ExitCode> {
    args.one_executor_counts()?;
    if !args.place.is_empty() {
        bail!("--place is for executors in this process: use --local, or start `midflight executor --place` by srun");
    }
    let mut config: Config = args.file.load()?;
    if args.file.config.is_none() {
        config.switch.listen = SocketAddr::new(own_address(), DEFAULT_PORT);
    }
    options::override_addresses(&mut config.switch, args.listen.as_deref(), args.http.as_deref())?;
    let mut shutdown = Shutdown::new()?;
    let running: Running = Running::start(&config)?;
    TasksProgram::begin(TasksProgram::companion(&config, running.switch.local_addr().port())?, &running.switch, || ())?;
    let switch = reachable(running.switch.local_addr());
    let step = Step::start(args, allocation, switch, shutdown.ender())?;
    stdout::print(&greeting(args, allocation, switch, &running))?;
    shutdown.wait();
    step.end(shutdown)
}

/// One `srun`, which waits for all executors.
struct Step {
    srun: Pid,
    /// srun forwards end of file, also when this process dies; then the executors drain. A signal would also reach their commands.
    stdin: Option<ChildStdin>,
    has_ended: Arc<AtomicBool>,
    ended: JoinHandle<std::io::Result<ExitStatus>>,
}

impl Step {
    fn start(
        args: &Args,
        allocation: &Allocation,
        switch: SocketAddr,
        on_end: impl FnOnce() + Send + 'static,
    ) -> Result<Self> {
        let nodes = allocation.cpus.len();
        let mut command = Command::new("srun");
        command
            .arg(format!("--nodes={nodes}"))
            .arg(format!("--ntasks={}", nodes * args.executors as usize))
            .arg(format!("--ntasks-per-node={}", args.executors))
            // Overlap the job's other steps; give each executor all CPUs of the step; let the others run on if one exits or a node fails.
            .args([
                "--overlap",
                "--cpu-bind=none",
                "--kill-on-bad-exit=0",
                "--no-kill",
                "--input=all",
                "--job-name=midflight",
            ])
            .arg(std::env::current_exe().context("cannot find the path of this command")?)
            .args(["executor", "--until-eof", "--switch", &switch.to_string()])
            .arg(format!("--drain={}", humantime::format_duration(args.drain)))
            .args(args.outputs.arguments())
            .args(args.python.arguments());
        command.args(args.slots.map(|slots| format!("--slots={slots}")));
        if !args.counts.is_empty() {
            command.args(args.counts.arguments());
            let named_in = args.file.config.iter().map(|file| file.as_os_str());
            command.args(named_in.flat_map(|file| [OsStr::new("--config"), file]));
        }
        // Ctrl-C is for this process. Slurm forwards the executors' output, but this stdout is not theirs.
        command.stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0);
        let mut child =
            command.spawn().context("cannot start srun: is Slurm's client installed here? --local does without")?;
        let (srun, stdin) = (Pid::from_child(&child), child.stdin.take());
        let has_ended = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&has_ended);
        let ended = std::thread::spawn(move || {
            let status = child.wait();
            is_over.store(true, Ordering::Release);
            on_end();
            status
        });
        Ok(Self { srun, stdin, has_ended, ended })
    }

    /// It is an error if the executors ended by themselves.
    fn end(self, shutdown: Shutdown) -> Result<ExitCode> {
        let by_itself = self.has_ended.load(Ordering::Acquire);
        if !by_itself {
            eprintln!("finishing what runs; Ctrl-C again ends at once");
            drop(self.stdin);
            let srun = self.srun;
            shutdown.each(move |_| {
                // srun kills them, unless it has exited.
                let _ = kill_process(srun, Signal::TERM);
                std::process::exit(i32::from(usage::FAILURE));
            });
        }
        let status = self.ended.join().map_err(|_| anyhow::anyhow!("the thread that waits for srun panicked"))?;
        let status = status.context("cannot wait for srun")?;
        if by_itself || !status.success() {
            bail!("the executors have ended ({status}): srun has said why");
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn greeting(args: &Args, allocation: &Allocation, switch: SocketAddr, running: &Running) -> String {
    let Allocation { job, cpus } = allocation;
    let (nodes, slots) = (cpus.len(), allocation.slots(args.executors, args.slots));
    let nodes = if nodes == 1 { "its node".into() } else { format!("its {nodes} nodes") };
    let status = running
        .http()
        .map_or_else(String::new, |http| format!("  midflight status --http {http}     on this machine\n"));
    format!(
        "switch on {switch}, Slurm job {job}: executors with {slots} slots start on {nodes}. On any of them, or here:\n\n  \
         midflight submit noop -n 100000 --switch {switch}\n  \
         seq 20 | midflight map --switch {switch} -- 'sleep 0.5; echo done:'\n{status}\nCtrl-C ends it.\n"
    )
}

/// The address by which other machines reach this listener.
fn reachable(mut listener: SocketAddr) -> SocketAddr {
    if listener.ip().is_unspecified() {
        listener.set_ip(own_address());
    }
    listener
}

/// This machine's address by its hostname, else by its default route, else loopback.
fn own_address() -> IpAddr {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let named = (name.as_str(), 0).to_socket_addrs().into_iter().flatten().map(|address| address.ip());
    named
        .filter(|address| !address.is_loopback())
        .min_by_key(IpAddr::is_ipv6)
        .or_else(sends_from)
        .unwrap_or(Ipv4Addr::LOCALHOST.into())
}

/// Sends no packet: only chooses a route.
fn sends_from() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    // For documentation (RFC 5737), in no real network.
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpus_of_nodes_are_read_in_slurms_form() {
        assert_eq!(cpus_of_nodes("4"), Some(vec![4]));
        assert_eq!(cpus_of_nodes("72(x2),36"), Some(vec![72, 72, 36]));
        for wrong in ["", "x", "2(x", "2(y3)", "2(x3", "(x3)", "1(x4000000000)"] {
            assert_eq!(cpus_of_nodes(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_executor_has_the_cpus_of_its_node_unless_told_otherwise() {
        let allocation = Allocation { job: "7".into(), cpus: vec![72, 72, 36] };
        assert_eq!((allocation.slots(1, None), allocation.slots(2, Some(8))), (180, 48));
    }
}
