//! A lab on one machine: network namespaces for hosts, and a switch in the middle that all their packets pass.
//!
//! ```text
//!   mf-NAME-host0              mf-NAME-switch              mf-NAME-host1
//!   eth0 10.77.0.2 ──── host0 10.77.0.1                         eth0 10.77.1.2
//!        fd77:1::2            fd77:1::1    host1 10.77.1.1 ──── fd77:1:1::2
//!                             lo 10.77.255.1, fd77::1
//! ```
//!
//! Every link is a veth pair and a network of its own. The switch's namespace forwards between them, and has one pair of
//! addresses, [`SWITCH_IPV4`] and [`SWITCH_IPV6`], that is the same for all. No route leads out of the lab.
//!
//! With racks it is a tree: each rack has a switch of its own, between the one in the middle and the rack's hosts.
//!
//! ```no_run
//! use midflight_net::{Lab, Options, Place};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let lab = Lab::up(&Options::temporary(2))?;
//! let target = lab.hosts()[1].ipv4.to_string();
//! assert!(lab.command(Place::Host(0), "ping").args(["-c1", &target]).status()?.success());
//! # Ok(()) // the lab goes as it is dropped
//! # }
//! ```
//!
//! | file | subject |
//! |---|---|
//! | `names` | names and addresses |
//! | `setup` | making and removing it all, by `iproute` (`ip`, `tc`) |
//! | `ethtool`, `xdp` | what makes the hosts take what XDP programs of the switch send them |
//! | `loss`, `cut`, `disorder` | packets lost at random, or all of a link; some twice or late; `filter`: how they are chosen |
//! | `bpffs` | the BPF file system, for switches that keep their queue |
//! | `netns`, `processes` | entering a namespace; ending what runs inside |
//! | `record` | which labs are whole; one at a time sets a lab up |

mod bpffs;
mod cut;
mod disorder;
mod error;
pub mod ethtool;
mod filter;
mod iproute;
mod loss;
mod names;
mod netns;
mod processes;
mod record;
mod setup;
pub mod testing;
mod xdp;

pub use cut::Way;
pub use disorder::Disorder;
pub use error::LabError;
pub use loss::Loss;
pub use names::{HOST_INTERFACE, HOSTS_MAX, Host, Place, RACKS_MAX, SWITCH_IPV4, SWITCH_IPV6};
pub use setup::check_privileges;

use record::{Lock, Record};
use std::ffi::OsStr;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// Whether there can be labs here: for tests, which otherwise skip and say why.
///
/// # Errors
/// [`LabError::Privilege`]; [`LabError::MissingCommand`].
pub fn available() -> Result<(), LabError> {
    check_privileges()?;
    iproute::Batch::new(iproute::Tool::Ip, "do nothing").run(None)
}

/// What a lab is to be like.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Its name, part of the names of its namespaces: a-z, 0-9 and -, at most 24, a letter first.
    pub name: String,
    /// Hosts: 1 to [`HOSTS_MAX`].
    pub hosts: usize,
    /// Racks, to which the hosts belong in the order of their numbers, as many to each as can be: 0 to [`RACKS_MAX`]. With 0 all hosts are
    /// at the switch in the middle.
    pub racks: usize,
    /// What each link loses in each direction, so a packet from host to host passes two chances.
    pub loss: Loss,
    /// The hosts run an XDP program that passes everything: without it, what an XDP program of the switch sends back by
    /// `XDP_TX` is lost; what it redirects (`XDP_REDIRECT`) arrives either way.
    pub xdp: bool,
}

impl Options {
    /// A lab that loses nothing and whose hosts take `XDP_TX`.
    pub fn new(name: impl Into<String>, hosts: usize) -> Self {
        Self { name: name.into(), hosts, racks: 0, loss: Loss::NONE, xdp: true }
    }

    /// The same with a name that no other lab of this machine has.
    pub fn temporary(hosts: usize) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        Self::new(format!("t{}-{}", std::process::id(), COUNT.fetch_add(1, Relaxed)), hosts)
    }

    /// The same as a tree with so many racks.
    pub fn racks(self, racks: usize) -> Self {
        Self { racks, ..self }
    }

    /// The same with loss.
    pub fn loss(self, loss: Loss) -> Self {
        Self { loss, ..self }
    }

    /// The same with or without XDP on the hosts' side.
    pub fn xdp(self, xdp: bool) -> Self {
        Self { xdp, ..self }
    }
}

/// A lab that is up. One that this process set up goes as it is dropped, unless [`Lab::keep`] was called; one that it
/// [opened](Lab::open) stays.
#[derive(Debug)]
pub struct Lab {
    name: String,
    switch_netns: String,
    racks: Vec<Host>,
    hosts: Vec<Host>,
    record: Record,
    keep: bool,
}

impl Lab {
    /// Sets a lab up; its links carry frames when this returns. First removes what an interrupted setup of the same name
    /// left.
    ///
    /// # Errors
    /// [`LabError`], in which case nothing is left of it.
    pub fn up(options: &Options) -> Result<Self, LabError> {
        Self::up_unless(options, &AtomicBool::new(false))
    }

    /// The same, but gives up with [`LabError::Interrupted`] once the flag is set, by a signal for example.
    ///
    /// # Errors
    /// As [`Lab::up`].
    pub fn up_unless(options: &Options, interrupted: &AtomicBool) -> Result<Self, LabError> {
        let &Options { ref name, hosts, racks, loss, xdp } = options;
        names::check(name)?;
        if !(1..=HOSTS_MAX).contains(&hosts) {
            return Err(LabError::Hosts(hosts));
        }
        if racks > RACKS_MAX.min(hosts) {
            return Err(LabError::Racks { racks, hosts });
        }
        setup::check_privileges()?;
        bpffs::provide();
        let lock = Lock::take(name)?;
        if matches!(record::read(name), Ok(Some(_))) {
            return Err(LabError::Exists(name.clone()));
        }
        let record = Record { hosts, racks, loss, xdp };
        let mut lab = Self::of_record(name, record);
        let go_on = || if interrupted.load(Relaxed) { Err(LabError::Interrupted(name.clone())) } else { Ok(()) };
        let raised = setup::demolish(name, &lock)
            .and_then(|_| setup::raise(&lab, &lock, &go_on))
            .and_then(|()| lock.complete(record));
        match raised {
            Ok(()) => {
                lab.keep = false;
                Ok(lab)
            }
            Err(error) => {
                clear(name, lock)?;
                Err(error)
            }
        }
    }

    /// A lab that is up already, perhaps by another process.
    ///
    /// # Errors
    /// [`LabError::NotFound`]; [`LabError::Incomplete`].
    pub fn open(name: &str) -> Result<Self, LabError> {
        names::check(name)?;
        match record::read(name)? {
            Some(record) => Ok(Self::of_record(name, record)),
            None if netns::of(name)?.is_empty() => Err(LabError::NotFound(name.to_owned())),
            None => Err(LabError::Incomplete(name.to_owned())),
        }
    }

    /// The names of all labs of this machine, also of those that are not whole.
    ///
    /// # Errors
    /// Where the directories cannot be read.
    pub fn names() -> Result<Vec<String>, LabError> {
        let mut names = record::names()?;
        names.extend(netns::all()?.into_iter().map(|(lab, _)| lab));
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// Takes down the lab of this name, whole or not: ends the processes inside, then removes links and namespaces.
    ///
    /// # Errors
    /// [`LabError::NotFound`]; [`LabError::Inside`] for a process of the lab; where something cannot be removed.
    pub fn remove(name: &str) -> Result<(), LabError> {
        names::check(name)?;
        setup::check_privileges()?;
        let lock = Lock::take(name)?;
        let known = !matches!(record::read(name), Err(LabError::Incomplete(_)));
        let found = clear(name, lock)?;
        if found || known { Ok(()) } else { Err(LabError::NotFound(name.to_owned())) }
    }

    /// Takes it down now, and says what went wrong if something did.
    ///
    /// # Errors
    /// As [`Lab::remove`].
    pub fn down(mut self) -> Result<(), LabError> {
        self.keep = true; // it is not dropped a second time
        Self::remove(&self.name)
    }

    /// It stays when this is dropped.
    pub fn keep(&mut self) {
        self.keep = true;
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The switch's network namespace, as `ip netns` names it.
    pub fn switch_netns(&self) -> &str {
        &self.switch_netns
    }

    /// The interfaces of the switch in the middle, one to each host or rack in their order. They are in its namespace, and take XDP
    /// programs in native mode.
    pub fn interfaces(&self) -> Vec<String> {
        self.interfaces_of(Place::Switch)
    }

    /// The same for any place. A rack's switch has one that leads up, and a host only that.
    pub fn interfaces_of(&self, place: Place) -> Vec<String> {
        let up = (place != Place::Switch).then(|| HOST_INTERFACE.to_owned());
        up.into_iter().chain(self.below(place).map(|host| host.name.clone())).collect()
    }

    /// What has its link to a switch.
    pub(crate) fn below(&self, place: Place) -> impl Iterator<Item = &Host> {
        self.linked().filter(move |host| host.above == place)
    }

    /// Racks and hosts: all that has a link to a switch above it, which is before it.
    pub(crate) fn linked(&self) -> impl Iterator<Item = &Host> {
        self.racks.iter().chain(&self.hosts)
    }

    /// The switches of its racks.
    pub fn racks(&self) -> &[Host] {
        &self.racks
    }

    /// Its hosts.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// A host by number, if there is one.
    pub fn host(&self, number: usize) -> Option<&Host> {
        self.hosts.get(number)
    }

    /// What each link loses in each direction.
    pub fn loss(&self) -> Loss {
        self.record.loss
    }

    /// Whether the hosts run an XDP program that passes everything.
    pub fn xdp(&self) -> bool {
        self.record.xdp
    }

    /// The network namespace of a place.
    ///
    /// # Errors
    /// [`LabError::NoSuchPlace`].
    pub fn netns(&self, place: Place) -> Result<&str, LabError> {
        Ok(self.at(place)?.map_or(&self.switch_netns, |host| &host.netns))
    }

    /// A host or a rack's switch; `None` is the switch in the middle.
    ///
    /// # Errors
    /// [`LabError::NoSuchPlace`].
    pub fn at(&self, place: Place) -> Result<Option<&Host>, LabError> {
        let found = match place {
            Place::Switch => return Ok(None),
            Place::Rack(number) => self.racks.get(number),
            Place::Host(number) => self.hosts.get(number),
        };
        let (hosts, racks) = (self.hosts.len(), self.racks.len());
        found.map(Some).ok_or_else(|| LabError::NoSuchPlace { lab: self.name.clone(), place, hosts, racks })
    }

    /// A command that runs at a place. Only its network is the place's: files, users and `/sys` are the machine's, so
    /// that BPF objects can be pinned as anywhere.
    ///
    /// # Panics
    /// For a host that the lab does not have.
    pub fn command(&self, place: Place, program: impl AsRef<OsStr>) -> Command {
        let netns = self.netns(place).unwrap_or_else(|error| panic!("{error}"));
        netns::command(netns, program.as_ref())
    }

    /// Calls `act` at a place, on a thread of its own, and waits for it. Sockets that it opens stay there.
    ///
    /// # Errors
    /// [`LabError::NoSuchPlace`]; where the namespace cannot be entered, for want of privileges or because it is gone.
    pub fn within<T: Send>(&self, place: Place, act: impl FnOnce() -> T + Send) -> Result<T, LabError> {
        netns::within(self.netns(place)?, act)
    }

    /// Whether hardware completes the checksums of what an interface sends, as by `ethtool -K INTERFACE tx on|off`. A veth
    /// has no hardware: its peer gets the datagram with the checksum to be completed.
    ///
    /// # Errors
    /// [`LabError::NoSuchPlace`]; where there is no such interface, or it does not know the setting.
    pub fn checksums_by_hardware(&self, place: Place, interface: &str, on: bool) -> Result<(), LabError> {
        self.within(place, || ethtool::complete_checksums(interface, on))?
    }

    /// Deletes the link between a host and the switch and makes it again, as where a network card is taken out and put
    /// back: what was attached to its interfaces is gone, and so is what their settings were.
    ///
    /// # Errors
    /// [`LabError::NoSuchPlace`]; where the lab is gone, or is being taken down.
    pub fn renew_link(&self, host: usize) -> Result<(), LabError> {
        self.netns(Place::Host(host))?;
        setup::renew_link(&Self::open(&self.name)?, &self.hosts[host], &Lock::take(&self.name)?)
    }

    /// Drops all of IP that passes a host's link this way; with a peer, only what comes from there or goes there. Cuts add up.
    ///
    /// # Errors
    /// [`LabError::NoSuchPlace`]; [`LabError::NoLoss`] where the kernel cannot do it.
    pub fn cut(&self, host: usize, way: Way, peer: Option<Place>) -> Result<(), LabError> {
        let find = |place| Ok::<_, LabError>(self.at(place)?.map_or(cut::Peer::SWITCH, cut::Peer::new));
        let peer = peer.map(find).transpose()?;
        self.within(Place::Host(host), || cut::cut(way, peer))?
    }

    /// Takes all cuts of a host's link away.
    ///
    /// # Errors
    /// [`LabError::NoSuchPlace`].
    pub fn mend(&self, host: usize) -> Result<(), LabError> {
        self.within(Place::Host(host), cut::mend)
    }

    /// From now on all links lose some datagrams, and bring some twice, and some late.
    ///
    /// # Errors
    /// [`LabError::Command`] where the kernel cannot do it; then [`Lab::order`] takes away what was begun.
    pub fn disorder(&self, disorder: Disorder) -> Result<(), LabError> {
        self.each_end(|interface| disorder::begin(interface, disorder))
    }

    /// Ends what [`Lab::disorder`] began.
    ///
    /// # Errors
    /// Where a namespace cannot be entered.
    pub fn order(&self) -> Result<(), LabError> {
        self.each_end(|interface| {
            disorder::end(interface);
            Ok(())
        })
    }

    /// Calls `act` with each interface of each link, in its namespace.
    fn each_end(&self, act: impl Fn(&str) -> Result<(), LabError> + Sync) -> Result<(), LabError> {
        for host in self.linked() {
            netns::within(&host.netns, || act(HOST_INTERFACE))??;
            self.within(host.above, || act(&host.name))??;
        }
        Ok(())
    }

    /// One that stays.
    fn of_record(name: &str, record: Record) -> Self {
        let Record { hosts, racks, .. } = record;
        let above = |host| if racks == 0 { Place::Switch } else { Place::Rack(host * racks / hosts) };
        Self {
            name: name.to_owned(),
            switch_netns: names::namespace(name, Place::Switch),
            racks: (0..racks).map(|number| Host::rack(name, number)).collect(),
            hosts: (0..hosts).map(|number| Host::new(name, number, above(number))).collect(),
            record,
            keep: true,
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if !self.keep
            && let Err(error) = Self::remove(&self.name)
        {
            tracing::warn!("lab {} was not taken down: {error}", self.name);
        }
    }
}

/// Removes all of a lab and gives the lock back; `false` if there was nothing but the lock.
fn clear(name: &str, lock: Lock) -> Result<bool, LabError> {
    let found = setup::demolish(name, &lock)?;
    lock.remove()?;
    Ok(found)
}
