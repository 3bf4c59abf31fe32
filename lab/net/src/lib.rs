//! A lab on one machine: network namespaces as hosts, and a switch in the middle that all packets pass.
//!
//! ```text
//!   mf-NAME-host0              mf-NAME-switch              mf-NAME-host1
//!   eth0 10.77.0.2 ──── host0 10.77.0.1                         eth0 10.77.1.2
//!        fd77:1::2            fd77:1::1    host1 10.77.1.1 ──── fd77:1:1::2
//!                             lo 10.77.255.1, fd77::1
//! ```
//!
//! Every link is a veth pair and its own network. The switch forwards between them. It has one pair of addresses, [`SWITCH_IPV4`] and
//! [`SWITCH_IPV6`], for all hosts. No route leads out of the lab.
//!
//! With racks, the lab is a tree: each rack has a switch between the central switch and its hosts.
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
//! | `setup` | creating and removing a lab, with `iproute` (`ip`, `tc`) |
//! | `ethtool`, `xdp` | make hosts accept frames sent by the switch's XDP programs |
//! | `loss`, `cut`, `disorder` | random loss; cut links; duplicates and delays; `filter` selects the packets |
//! | `bpffs` | the BPF file system, where a switch pins its queue |
//! | `netns`, `processes` | entering a namespace; ending the processes inside |
//! | `record` | which labs are complete; the lock for setup and removal |

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

/// Whether labs can run here.
///
/// # Errors
/// [`LabError::Privilege`]; [`LabError::MissingCommand`].
pub fn available() -> Result<(), LabError> {
    check_privileges()?;
    iproute::Batch::new(iproute::Tool::Ip, "do nothing").run(None)
}

/// Options of a lab.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Name: 1 to 24 of a-z, 0-9 and -, starting with a letter.
    pub name: String,
    /// Hosts: 1 to [`HOSTS_MAX`].
    pub hosts: usize,
    /// Racks, 0 to [`RACKS_MAX`]; hosts are spread evenly over them. With 0, all hosts connect to the central switch.
    pub racks: usize,
    /// Loss per link and direction.
    pub loss: Loss,
    /// Attach an XDP program to each host that passes everything. Otherwise frames that the switch's XDP program returns by `XDP_TX` are
    /// lost; redirected ones (`XDP_REDIRECT`) arrive either way.
    pub xdp: bool,
}

impl Options {
    /// Without loss and racks; hosts receive `XDP_TX` frames.
    pub fn new(name: impl Into<String>, hosts: usize) -> Self {
        Self { name: name.into(), hosts, racks: 0, loss: Loss::NONE, xdp: true }
    }

    /// Like [`Options::new`], with a name unique on this machine.
    pub fn temporary(hosts: usize) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        Self::new(format!("t{}-{}", std::process::id(), COUNT.fetch_add(1, Relaxed)), hosts)
    }

    /// Sets the number of racks.
    pub fn racks(self, racks: usize) -> Self {
        Self { racks, ..self }
    }

    /// Sets the loss.
    pub fn loss(self, loss: Loss) -> Self {
        Self { loss, ..self }
    }

    /// Sets whether hosts run the XDP program.
    pub fn xdp(self, xdp: bool) -> Self {
        Self { xdp, ..self }
    }
}

/// A running lab. Dropping it removes it if this process set it up, unless it called [`Lab::keep`].
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
    /// Sets a lab up, after removing an interrupted setup's remains. Its links carry frames on return.
    ///
    /// # Errors
    /// [`LabError`]; nothing of the lab is left then.
    pub fn up(options: &Options) -> Result<Self, LabError> {
        Self::up_unless(options, &AtomicBool::new(false))
    }

    /// Like [`Lab::up`], but fails with [`LabError::Interrupted`] once the flag is set.
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

    /// Opens a lab that is up.
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

    /// All labs on this machine, including incomplete ones.
    ///
    /// # Errors
    /// If the directories cannot be read.
    pub fn names() -> Result<Vec<String>, LabError> {
        let mut names = record::names()?;
        names.extend(netns::all()?.into_iter().map(|(lab, _)| lab));
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// Removes a lab, complete or not, with the processes inside.
    ///
    /// # Errors
    /// [`LabError::NotFound`]; [`LabError::Inside`] if the caller runs in the lab; or if something cannot be removed.
    pub fn remove(name: &str) -> Result<(), LabError> {
        names::check(name)?;
        setup::check_privileges()?;
        let lock = match Lock::take_existing(name)? {
            None if netns::of(name)?.is_empty() => return Err(LabError::NotFound(name.to_owned())),
            None => Lock::take(name)?, // of namespaces that lost their record
            Some(lock) => lock,
        };
        let known = !matches!(record::read(name), Err(LabError::Incomplete(_)));
        let found = clear(name, lock)?;
        if found || known { Ok(()) } else { Err(LabError::NotFound(name.to_owned())) }
    }

    /// Removes the lab and reports errors.
    ///
    /// # Errors
    /// As [`Lab::remove`].
    pub fn down(mut self) -> Result<(), LabError> {
        self.keep = true; // do not drop it a second time
        Self::remove(&self.name)
    }

    /// Keeps the lab when this value is dropped.
    pub fn keep(&mut self) {
        self.keep = true;
    }

    /// The lab's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The switch's network namespace, as `ip netns` names it.
    pub fn switch_netns(&self) -> &str {
        &self.switch_netns
    }

    /// The central switch's interfaces, one per rack or host. They take native XDP programs.
    pub fn interfaces(&self) -> Vec<String> {
        self.interfaces_of(Place::Switch)
    }

    /// Interfaces of any place. Racks' switches also have an uplink, hosts only that.
    pub fn interfaces_of(&self, place: Place) -> Vec<String> {
        let up = (place != Place::Switch).then(|| HOST_INTERFACE.to_owned());
        up.into_iter().chain(self.below(place).map(|host| host.name.clone())).collect()
    }

    pub(crate) fn below(&self, place: Place) -> impl Iterator<Item = &Host> {
        self.linked().filter(move |host| host.above == place)
    }

    /// Each after the switch above it.
    pub(crate) fn linked(&self) -> impl Iterator<Item = &Host> {
        self.racks.iter().chain(&self.hosts)
    }

    /// The racks' switches.
    pub fn racks(&self) -> &[Host] {
        &self.racks
    }

    /// The hosts.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// A host by number, if it exists.
    pub fn host(&self, number: usize) -> Option<&Host> {
        self.hosts.get(number)
    }

    /// Loss per link and direction.
    pub fn loss(&self) -> Loss {
        self.record.loss
    }

    /// Whether the hosts run the XDP program that passes everything.
    pub fn xdp(&self) -> bool {
        self.record.xdp
    }

    /// A place's network namespace.
    ///
    /// # Errors
    /// [`LabError::NoSuchPlace`].
    pub fn netns(&self, place: Place) -> Result<&str, LabError> {
        Ok(self.at(place)?.map_or(&self.switch_netns, |host| &host.netns))
    }

    /// A host or a rack's switch; `None` for the central switch.
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

    /// A command that runs in a place's network. Files, users and `/sys` are the machine's, so BPF objects can be pinned.
    ///
    /// # Panics
    /// If the lab has no such place.
    pub fn command(&self, place: Place, program: impl AsRef<OsStr>) -> Command {
        let netns = self.netns(place).unwrap_or_else(|error| panic!("{error}"));
        netns::command(netns, program.as_ref())
    }

    /// Runs `act` at a place, on its own thread. Sockets it opens stay there.
    ///
    /// # Errors
    /// [`LabError::NoSuchPlace`]; or if the namespace cannot be entered: no privileges, or it is gone.
    pub fn within<T: Send>(&self, place: Place, act: impl FnOnce() -> T + Send) -> Result<T, LabError> {
        netns::within(self.netns(place)?, act)
    }

    /// Like `ethtool -K INTERFACE tx on|off`. Without hardware, as on a veth, the peer receives an incomplete checksum.
    ///
    /// # Errors
    /// [`LabError::NoSuchPlace`]; or if there is no such interface, or it does not know the setting.
    pub fn checksums_by_hardware(&self, place: Place, interface: &str, on: bool) -> Result<(), LabError> {
        self.within(place, || ethtool::complete_checksums(interface, on))?
    }

    /// Recreates the link between a host and its switch: its interfaces lose attached programs and settings.
    ///
    /// # Errors
    /// [`LabError::NoSuchPlace`]; or if the lab is gone or being taken down.
    pub fn renew_link(&self, host: usize) -> Result<(), LabError> {
        self.netns(Place::Host(host))?;
        setup::renew_link(&Self::open(&self.name)?, &self.hosts[host], &Lock::take(&self.name)?)
    }

    /// Drops a host's IP traffic in this direction, or only that with `peer`. Cuts add up.
    ///
    /// # Errors
    /// [`LabError::NoSuchPlace`]; [`LabError::NoLoss`] if the kernel lacks support.
    pub fn cut(&self, host: usize, way: Way, peer: Option<Place>) -> Result<(), LabError> {
        let find = |place| Ok::<_, LabError>(self.at(place)?.map_or(cut::Peer::SWITCH, cut::Peer::new));
        let peer = peer.map(find).transpose()?;
        self.within(Place::Host(host), || cut::cut(way, peer))?
    }

    /// Removes all cuts of a host's link.
    ///
    /// # Errors
    /// [`LabError::NoSuchPlace`].
    pub fn mend(&self, host: usize) -> Result<(), LabError> {
        self.within(Place::Host(host), cut::mend)
    }

    /// Starts losing, duplicating and delaying datagrams on all links.
    ///
    /// # Errors
    /// [`LabError::Command`] if the kernel lacks support; [`Lab::order`] then undoes what was started.
    pub fn disorder(&self, disorder: Disorder) -> Result<(), LabError> {
        self.each_end(|interface| disorder::begin(interface, disorder))
    }

    /// Ends [`Lab::disorder`].
    ///
    /// # Errors
    /// If a namespace cannot be entered.
    pub fn order(&self) -> Result<(), LabError> {
        self.each_end(|interface| {
            disorder::end(interface);
            Ok(())
        })
    }

    /// Calls `act` with each end of each link, in its namespace.
    fn each_end(&self, act: impl Fn(&str) -> Result<(), LabError> + Sync) -> Result<(), LabError> {
        for host in self.linked() {
            netns::within(&host.netns, || act(HOST_INTERFACE))??;
            self.within(host.above, || act(&host.name))??;
        }
        Ok(())
    }

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

/// `false` if only the lock existed.
fn clear(name: &str, lock: Lock) -> Result<bool, LabError> {
    let found = setup::demolish(name, &lock)?;
    lock.remove()?;
    Ok(found)
}
