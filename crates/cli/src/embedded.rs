//! A switch and executors inside this process, on loopback: no root, no configuration.

use crate::commands::switch::{Prepared, Running, SwitchProgram};
use crate::options;
use anyhow::{Context, Result, ensure};
use midflight_control::{Config, SwitchTable};
use midflight_host::{BlobOptions, CountedResource, Executor, ExecutorBuilder, PythonOptions, raise_open_files};
use midflight_terminal::switches::ANSWER_WITHIN;
use rustix::process::geteuid;
use std::net::{Ipv4Addr, SocketAddr};

/// Executors on this machine may use everything.
const ALL_RESOURCES: u8 = u8::MAX;

/// A served user can submit command lines, which run as this process's user, see others' as an executor, and use the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServedUsers {
    /// This process's user, and root. Only if the switch listens on loopback.
    Own,
    /// Everyone who reaches the switch.
    All,
}

impl ServedUsers {
    /// All if the address is not loopback, or `any_user` asks for it.
    pub(crate) fn at(listen: SocketAddr, any_user: bool) -> Self {
        if listen.ip().is_loopback() && !any_user { Self::Own } else { Self::All }
    }

    /// The only served user besides root, if there is one.
    pub(crate) fn user(self) -> Option<u32> {
        (self == Self::Own).then(|| geteuid().as_raw())
    }

    pub(crate) fn apply<P: SwitchProgram>(self, prepared: &mut Prepared<P>) -> Result<()> {
        let advice = "cannot serve one user only (midflight up --any-user serves all, and map --switch uses it)";
        self.user().map_or(Ok(()), |user| prepared.serve_only(user).context(advice))
    }
}

#[derive(Clone, Debug)]
pub(crate) struct LocalExecutors<'a> {
    pub executors: u32,
    pub slots: u32,
    pub counted: &'a [CountedResource],
    /// Places, assigned in turn; may be empty.
    pub places: &'a [String],
    /// Storage of large outputs, and its bound.
    pub blobs: BlobOptions,
    /// `None` if they run no Python functions.
    pub python: Option<PythonOptions>,
}

/// Stops on drop, and kills running commands.
#[derive(Debug)]
pub(crate) struct Embedded {
    /// Dropped first: executors leave before the switch stops.
    pub executors: Vec<Executor>,
    pub running: Running,
}

impl Embedded {
    /// Returns once all executors are registered.
    pub(crate) fn start(config: &Config, here: &LocalExecutors<'_>, served: ServedUsers) -> Result<Self> {
        let slots = here.slots;
        raise_open_files(here.executors.saturating_mul(slots));
        let mut prepared = Running::prepare(config)?;
        served.apply(&mut prepared)?;
        let running = prepared.run(|| ())?;
        let address = loopback(running.switch.local_addr());
        let executors = config.program.executors;
        let builder = || {
            let builder = Executor::builder().switch(address).slots(slots).resources(ALL_RESOURCES);
            options::ask_ahead(builder, executors)
        };
        let start = |place: Option<&String>| {
            let builder =
                here.counted.iter().cloned().fold(builder().blobs(here.blobs.clone()), ExecutorBuilder::count);
            let builder = here.python.iter().cloned().fold(builder, ExecutorBuilder::python);
            place.iter().fold(builder, |builder, place| builder.place(place)).start()
        };
        let mut places = here.places.iter().cycle();
        let executors = (0..here.executors).map(|_| start(places.next())).collect::<Result<Vec<_>, _>>()?;
        for executor in &executors {
            ensure!(
                executor.wait_registered(slots, ANSWER_WITHIN),
                "the executor got {} of {slots} slots: raise tasks.slots in the configuration",
                executor.registered()
            );
        }
        Ok(Self { executors, running })
    }

    /// One executor on free ports, without HTTP.
    pub(crate) fn quiet(slots: u32, blobs: BlobOptions) -> Result<Self> {
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let switch = SwitchTable { listen, http: None, ..SwitchTable::default() };
        let here = LocalExecutors { executors: 1, slots, counted: &[], places: &[], blobs, python: None };
        Self::start(&Config { switch, ..Config::default() }, &here, ServedUsers::Own)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        loopback(self.running.switch.local_addr())
    }
}

fn loopback(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    address
}
