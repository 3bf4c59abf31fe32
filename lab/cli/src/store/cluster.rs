//! A store as processes of this program, on loopback or on hosts of a lab.

use super::disks::SmallDisk;
use super::slow_sync::SlowSync;
use crate::engines::{LabEngine, at, own_port};
use crate::processes::{Process, ours};
use anyhow::{Context, Result, bail};
use midflight_control::store::{ReadMode, ReplicaAnswer, ReplicaRequest, ReplicaStatus, ReplicaTable, SetTable};
use midflight_dataplane::store::{Policy, ReplyCheck};
use midflight_host::store::{StoreBuilder, StoreClient};
use midflight_net::{Lab, LabError, Place, SWITCH_IPV4};
use midflight_terminal::files;
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Timeout for a store to become healthy after it starts or loses a process.
const WELL: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Entries that a replica may lag while clients write.
const BEHIND: u64 = 100;
/// A lab's hosts: a client, then the replicas, the standby switch, and more clients.
pub(crate) const FIRST_CLIENT: usize = 0;

/// Numbers of the switches.
pub(crate) const PREFERRED_SWITCH: usize = 1;
pub(crate) const STANDBY_SWITCH: usize = 2;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) replicas: usize,
    /// One, or two with a standby.
    pub(crate) switches: usize,
    /// Hosts with clients, in a lab.
    pub(crate) clients: usize,
    /// Each replica has its own small file system.
    pub(crate) small_disks: bool,
    /// Syncs can be slowed down.
    pub(crate) slow_disks: bool,
    pub(crate) reads: ReadMode,
    /// Which of the consistent replicas gets a read.
    pub(crate) policy: Policy,
    /// The path of responses.
    pub(crate) reply_check: ReplyCheck,
    /// Switches and replicas poll their sockets before they sleep.
    pub(crate) busy_poll: bool,
}

impl Size {
    /// Small, with the usual settings.
    pub(crate) const USUAL: Self = Self {
        replicas: 3,
        switches: 1,
        clients: 1,
        small_disks: false,
        slow_disks: false,
        reads: ReadMode::Flair,
        policy: Policy::LeaderAvoidance,
        reply_check: ReplyCheck::Strict,
        busy_poll: true,
    };

    pub(crate) fn hosts(&self) -> usize {
        self.replicas + (self.switches - 1) + self.clients
    }
}

#[derive(Clone, Copy)]
pub(crate) enum Ground<'l> {
    Loopback,
    /// The engine is the first switch's; the standby is a process.
    Lab(&'l Lab, LabEngine),
}

impl Ground<'_> {
    /// A program on this host, which is a number in a lab.
    pub(crate) fn command(self, host: usize, program: &str) -> Command {
        match self {
            Self::Loopback => Command::new(program),
            Self::Lab(lab, _) => lab.command(Place::Host(host), program),
        }
    }

    /// Sockets that `act` opens belong to this host.
    pub(crate) fn within<T: Send>(self, host: usize, act: impl FnOnce() -> T + Send) -> Result<T> {
        match self {
            Self::Loopback => Ok(act()),
            Self::Lab(lab, _) => Ok(lab.within(Place::Host(host), act)?),
        }
    }

    /// A TCP address of this host that was free a moment ago.
    pub(crate) fn free_tcp(self, host: usize) -> Result<SocketAddr> {
        let ip = match self {
            Self::Loopback => Ipv4Addr::LOCALHOST,
            Self::Lab(lab, _) => lab.at(Place::Host(host))?.context("a host has an address")?.ipv4,
        };
        Ok(self.within(host, || TcpListener::bind((ip, 0)).and_then(|listener| listener.local_addr()))??)
    }
}

/// Stops on drop, and removes its files.
pub(crate) struct Cluster<'l> {
    ground: Ground<'l>,
    size: Size,
    directory: PathBuf,
    set: SetTable,
    switches: Vec<Option<Process>>,
    replicas: Vec<Option<Process>>,
    disks: Vec<SmallDisk>,
    slow: Option<SlowSync>,
}

impl<'l> Cluster<'l> {
    /// [`Cluster::wait_until_well`] waits until it serves.
    pub(crate) fn start(ground: Ground<'l>, size: Size) -> Result<Self> {
        let addresses = match ground {
            Ground::Loopback => on_loopback(&size)?,
            Ground::Lab(lab, _) => in_lab(lab, &size)?,
        };
        let set = SetTable { reads: size.reads, policy: size.policy, reply_check: size.reply_check, ..addresses };
        let directory = files::temporary(&format!("midflight-store-{}-", std::process::id()))?.keep();
        let (switches, replicas) = (Vec::new(), Vec::new());
        let mut cluster = Self { ground, size, directory, set, switches, replicas, disks: Vec::new(), slow: None };
        let socket = if size.busy_poll { "" } else { "[socket]\nbusy_poll = \"0s\"\n" };
        std::fs::write(cluster.config(), socket.to_owned() + &cluster.set.to_toml())?;
        if size.small_disks {
            cluster.disks = (1..=size.replicas).map(|id| cluster.small_disk(id)).collect::<Result<_>>()?;
        }
        if size.slow_disks {
            cluster.slow = Some(SlowSync::build(&cluster.directory)?);
        }
        cluster.switches.resize_with(size.switches, || None);
        cluster.replicas.resize_with(size.replicas, || None);
        cluster.start_all()?;
        Ok(cluster)
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.directory.join("store.toml")
    }

    fn small_disk(&self, id: usize) -> Result<SmallDisk> {
        SmallDisk::mount(self.directory.join(format!("disk-{id}")))
    }

    fn data(&self, id: usize) -> PathBuf {
        self.disks.get(id - 1).map_or(&self.directory, SmallDisk::path).join(format!("data-{id}"))
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn size(&self) -> Size {
        self.size
    }

    pub(crate) fn lab(&self) -> Option<&'l Lab> {
        match self.ground {
            Ground::Loopback => None,
            Ground::Lab(lab, _) => Some(lab),
        }
    }

    /// `number` of a client's host, from 0.
    pub(crate) fn client(
        &self,
        number: usize,
        describe: impl FnOnce(StoreBuilder) -> StoreBuilder + Send,
    ) -> Result<StoreClient> {
        let switches = self.set.switches.clone();
        let connect = || describe(StoreClient::builder().switches(switches)).connect_lazy();
        let client = match self.lab() {
            None => connect(),
            Some(lab) => lab.within(Place::Host(client_host(&self.size, number)), connect)?,
        };
        client.context("cannot start a client")
    }

    /// Waits until it runs. Its stderr goes to a file.
    fn begin(&self, name: &str, mut command: Command) -> Result<Process> {
        let path = self.log(name);
        let log = File::options().create(true).append(true).open(&path).context("cannot make a log")?;
        let mut process = Process::start(command.stderr(log))?;
        let said = || std::fs::read_to_string(&path).unwrap_or_default();
        process.line().with_context(|| said().lines().last().unwrap_or_default().to_owned())?;
        Ok(process)
    }

    fn log(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.log"))
    }

    /// Stderr of all processes, with their names.
    pub(crate) fn said(&self) -> String {
        let numbered = |what: &'static str, count| (1..=count).map(move |number| format!("{what}-{number}"));
        let names = numbered("switch", self.size.switches).chain(numbered("replica", self.size.replicas));
        // A process without output may have no file.
        names
            .map(|name| format!("{name}:\n{}\n", std::fs::read_to_string(self.log(&name)).unwrap_or_default()))
            .collect()
    }

    fn place(&self, host: usize) -> Result<Command> {
        match self.ground {
            Ground::Loopback => ours(),
            Ground::Lab(lab, _) => at(lab, Place::Host(host)),
        }
    }

    /// Switches and replicas count from 1.
    pub(crate) fn start_all(&mut self) -> Result<()> {
        (1..=self.size.switches).try_for_each(|number| self.start_switch(number))?;
        (1..=self.size.replicas).try_for_each(|id| self.start_replica(id))
    }

    pub(crate) fn start_switch(&mut self, number: usize) -> Result<()> {
        let mut command = match self.ground {
            Ground::Lab(lab, engine) if number == PREFERRED_SWITCH => engine.switch(lab)?,
            _ => {
                let mut command = self.place(standby_host(&self.size))?;
                command.arg("switch");
                command
            }
        };
        let listen = self.set.switches[number - 1].to_string();
        command.arg("--config").arg(self.config()).args(["--listen", &listen, "--http", "off"]);
        self.switches[number - 1] = Some(self.begin(&format!("switch-{number}"), command)?);
        Ok(())
    }

    pub(crate) fn start_replica(&mut self, id: usize) -> Result<()> {
        let mut command = self.place(replica_host(id))?;
        command.arg("replica").arg("--config").arg(self.config()).arg("--id").arg(id.to_string());
        command.arg("--data").arg(self.data(id)).args(["--new", "--http", "off"]);
        if let Some(slow) = &self.slow {
            slow.preload(&mut command, id);
        }
        self.replicas[id - 1] = Some(self.begin(&format!("replica-{id}"), command)?);
        Ok(())
    }

    /// Dropping a process sends SIGKILL.
    pub(crate) fn kill_switch(&mut self, number: usize) {
        self.switches[number - 1] = None;
    }

    pub(crate) fn kill_replica(&mut self, id: usize) {
        self.replicas[id - 1] = None;
    }

    pub(crate) fn switch(&mut self, number: usize) -> Result<&mut Process> {
        self.switches[number - 1].as_mut().context("the switch does not run")
    }

    pub(crate) fn replica(&mut self, id: usize) -> Result<&mut Process> {
        self.replicas[id - 1].as_mut().context("the replica does not run")
    }

    /// The running replicas, in the order of their numbers.
    pub(crate) fn replicas(&self) -> impl Iterator<Item = &Process> {
        self.replicas.iter().flatten()
    }

    pub(crate) fn processes(&self) -> impl Iterator<Item = &Process> {
        self.switches.iter().chain(&self.replicas).flatten()
    }

    pub(crate) fn disk(&self, id: usize) -> Result<&SmallDisk> {
        self.disks.get(id - 1).context("the store has no small disks")
    }

    /// Delays each sync of a replica by `by` from now on.
    pub(crate) fn slow_disk(&self, id: usize, by: Duration) -> Result<()> {
        self.slow.as_ref().context("the store has no slow disks")?.set(id, by)
    }

    fn statuses(&self) -> Vec<ReplicaStatus> {
        let ask = |replica: &ReplicaTable| match self.set.ask(replica.id, ReplicaRequest::Status) {
            Ok(ReplicaAnswer::Status(status)) => Some(*status),
            _ => None,
        };
        self.set.replicas.iter().filter_map(ask).collect()
    }

    /// The leader's status, and the number of the switch that has its session.
    fn led(&self) -> Option<(ReplicaStatus, usize)> {
        self.statuses().into_iter().find_map(|status| {
            let at = status.session.as_ref()?.switch;
            let number = 1 + self.set.switches.iter().position(|address| *address == at)?;
            status.has_lease.then_some((status, number))
        })
    }

    /// Waits for it: a replica that the machine does not run for a while loses its session.
    fn wait_until_led(&self) -> Result<(ReplicaStatus, usize)> {
        let deadline = Instant::now() + WELL;
        loop {
            if let Some(led) = self.led() {
                return Ok(led);
            }
            anyhow::ensure!(Instant::now() < deadline, "no replica has a session: {:?}", self.statuses());
            std::thread::sleep(LOOK_EVERY);
        }
    }

    pub(crate) fn leader(&self) -> Result<usize> {
        Ok(usize::try_from(self.wait_until_led()?.0.replica)?)
    }

    /// The number of the switch that has the session.
    pub(crate) fn active_switch(&self) -> Result<usize> {
        Ok(self.wait_until_led()?.1)
    }

    /// Waits until the replica has detected that its disk is full.
    pub(crate) fn wait_until_full(&self, id: usize) -> Result<()> {
        let deadline = Instant::now() + WELL;
        while !self.statuses().iter().any(|status| status.replica == id as u64 && status.disk_full) {
            anyhow::ensure!(Instant::now() < deadline, "replica {id} has not noticed that its disk is full");
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// All replicas run and have what the leader has committed, and the leader has a session.
    pub(crate) fn wait_until_well(&self) -> Result<()> {
        let deadline = Instant::now() + WELL;
        while Instant::now() < deadline {
            if self.is_well() {
                return Ok(());
            }
            std::thread::sleep(LOOK_EVERY);
        }
        bail!("the store is not well after {WELL:?}: {:?}", self.statuses())
    }

    pub(crate) fn is_well(&self) -> bool {
        let Some((leader, _)) = self.led() else { return false };
        let statuses = self.statuses();
        statuses.len() == self.size.replicas
            && statuses.iter().all(|status| status.applied + BEHIND >= leader.committed)
    }

    /// Moves the session to the first switch.
    pub(crate) fn bring_home(&mut self) -> Result<()> {
        self.wait_until_well()?;
        if self.active_switch()? != PREFERRED_SWITCH {
            self.kill_switch(STANDBY_SWITCH);
            self.start_switch(STANDBY_SWITCH)?;
            let deadline = Instant::now() + WELL;
            while self.led().is_none_or(|(_, number)| number != PREFERRED_SWITCH) {
                anyhow::ensure!(Instant::now() < deadline, "the first switch has no session: {:?}", self.statuses());
                std::thread::sleep(LOOK_EVERY);
            }
        }
        self.wait_until_well()
    }
}

impl Drop for Cluster<'_> {
    fn drop(&mut self) {
        self.switches.clear();
        self.replicas.clear();
        self.disks.clear();
        // Leftovers stay in the temporary directory.
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Hosts of a lab for a replica, for the standby switch, and for clients.
pub(crate) fn replica_host(id: usize) -> usize {
    FIRST_CLIENT + id
}

pub(crate) fn standby_host(size: &Size) -> usize {
    replica_host(size.replicas) + 1
}

fn client_host(size: &Size, number: usize) -> usize {
    if number == 0 { FIRST_CLIENT } else { replica_host(size.replicas) + size.switches - 1 + number }
}

fn on_loopback(size: &Size) -> Result<SetTable> {
    let mut set = SetTable::on_loopback(rand::random(), size.replicas as u16, size.switches as u16, 0);
    set.switches.iter_mut().try_for_each(|switch| free_udp().map(|free| *switch = free))?;
    for ReplicaTable { address, links, .. } in &mut set.replicas {
        (*address, *links) = (free_udp()?, TcpListener::bind("127.0.0.1:0")?.local_addr()?);
    }
    Ok(set)
}

fn in_lab(lab: &Lab, size: &Size) -> Result<SetTable> {
    let at = |host| {
        let address = lab.at(Place::Host(host))?.map_or(SWITCH_IPV4, |host| host.ipv4);
        Ok::<_, LabError>(SocketAddr::new(IpAddr::V4(address), own_port()))
    };
    let mut set = SetTable::on_loopback(rand::random(), size.replicas as u16, size.switches as u16, 0);
    set.switches[0] = (SWITCH_IPV4, own_port()).into();
    for switch in &mut set.switches[1..] {
        *switch = at(standby_host(size))?;
    }
    for (replica, id) in set.replicas.iter_mut().zip(1..) {
        (replica.address, replica.links) = (at(replica_host(id))?, at(replica_host(id))?);
    }
    Ok(set)
}

/// Free a moment ago.
fn free_udp() -> Result<SocketAddr> {
    Ok(UdpSocket::bind("127.0.0.1:0")?.local_addr()?)
}
