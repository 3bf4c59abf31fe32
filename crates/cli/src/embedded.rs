//! A switch and executors inside this process, on loopback: no root, no configuration.

use crate::commands::switch::Running;
use anyhow::{Result, ensure};
use midflight_control::{Config, SwitchTable};
use midflight_host::{BlobOptions, Executor};
use midflight_terminal::switches::ANSWER_WITHIN;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

/// All resources: executors on this machine may use all of it.
const ALL_RESOURCES: u8 = u8::MAX;

/// A running switch and its executors; dropping it ends them and kills what runs.
#[derive(Debug)]
pub(crate) struct Embedded {
    /// Dropped first: executors leave before their switch does.
    pub executors: Vec<Executor>,
    /// The switch.
    pub running: Running,
}

impl Embedded {
    /// `executors` executors with `slots` slots each, all registered. They are at these places in turn, if there are any.
    pub(crate) fn start(config: &Config, executors: u32, slots: u32, places: &[String]) -> Result<Self> {
        Self::start_with(config, executors, slots, places, &BlobOptions::default())
    }

    fn start_with(config: &Config, executors: u32, slots: u32, places: &[String], blobs: &BlobOptions) -> Result<Self> {
        let running = Running::start(config)?;
        let address = loopback(running.switch.local_addr());
        let ahead = config.program.executors.ahead;
        let builder = || Executor::builder().switch(address).slots(slots).resources(ALL_RESOURCES).ahead(ahead);
        let start = |place: Option<&String>| {
            let builder = builder().blobs(blobs.clone());
            place.iter().fold(builder, |builder, place| builder.place(place)).start()
        };
        let mut places = places.iter().cycle();
        let executors = (0..executors).map(|_| start(places.next())).collect::<Result<Vec<_>, _>>()?;
        for executor in &executors {
            ensure!(
                executor.wait_registered(slots, ANSWER_WITHIN),
                "the executor got {} of {slots} slots: raise tasks.slots in the configuration",
                executor.registered()
            );
        }
        Ok(Self { executors, running })
    }

    /// One executor on free ports, without HTTP; large outputs are in this directory.
    pub(crate) fn quiet(slots: u32, directory: &Path) -> Result<Self> {
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let switch = SwitchTable { listen, http: None, ..SwitchTable::default() };
        let blobs = BlobOptions { directory: Some(directory.to_owned()), ..BlobOptions::default() };
        Self::start_with(&Config { switch, ..Config::default() }, 1, slots, &[], &blobs)
    }

    /// The address of the switch for clients on this machine.
    pub(crate) fn address(&self) -> SocketAddr {
        loopback(self.running.switch.local_addr())
    }
}

/// The address by which this machine reaches a listener.
fn loopback(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    address
}
