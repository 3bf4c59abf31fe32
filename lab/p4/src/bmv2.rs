//! A running BMv2 switch with one of the programs; this process holds the far ends of its ports.

use crate::around::{CLIENTS, EXECUTORS, NEIGHBOUR, NEIGHBOURS, SWITCH, marker, marker_to};
use crate::frame::{CPU, RECIRCULATION};
use crate::ports::{Port, ip, make_pair};
use crate::process::Process;
use crate::tables::{Start, Tables, Via};
use crate::tools::Bmv2Tools;
use crate::{P4Error, Program};
use std::io;
use std::path::Path;
use std::time::Duration;

const PORTS: [u16; 5] = [CLIENTS, EXECUTORS, NEIGHBOURS, RECIRCULATION, CPU];

#[derive(Clone, Debug)]
pub(crate) struct Entered {
    pub(crate) epoch: u32,
    /// Slot, generation, address and port.
    pub(crate) slots: Vec<(u32, u32, u32, u16)>,
    /// Entries of each level, and how many of them tasks may use.
    pub(crate) size: u32,
    pub(crate) room: u32,
    /// First serial number.
    pub(crate) start: u32,
    /// Capacity for slots, a power of two.
    pub(crate) slot_cells: u32,
}

/// The switch; it ends when this is dropped.
pub(crate) struct Bmv2 {
    pub(crate) process: Process,
    tables: Tables,
    ports: Vec<Port>,
    /// Timeout for an outgoing frame.
    pub(crate) patience: Duration,
}

impl Bmv2 {
    /// Starts it in a new network namespace, which this thread enters too, and fills tables and registers as the controller does.
    pub(crate) fn start(tools: &Bmv2Tools, program: Program, json: &Path, entered: &Entered) -> Result<Self, P4Error> {
        enter_a_new_namespace()?;
        let near = PORTS.map(|number| format!("port{number}"));
        let mut ports = Vec::new();
        for (number, near) in PORTS.into_iter().zip(&near) {
            let far = format!("far{number}");
            make_pair(near, &far)?;
            ports.push(Port::open(number, &far)?);
        }
        let numbered: Vec<_> = PORTS.into_iter().zip(near.iter().map(String::as_str)).collect();
        let (process, thrift) = Process::start(tools, json, &numbered)?;
        let patience = tools.patience.passing;
        let mut switch = Self { process, tables: Tables::new(program, thrift), ports, patience };
        switch.enter(entered)?;
        Ok(switch)
    }

    fn enter(&mut self, entered: &Entered) -> Result<(), P4Error> {
        let &Entered { epoch, ref slots, room, start, slot_cells, .. } = entered;
        self.tables.begin(&Start { own: SWITCH.1, epoch, room, serial: start })?;
        for &(slot, generation, ip, port) in slots {
            self.tables.add_slot([slot, generation], (ip, port), start)?;
        }
        // All are 0 at first.
        let others = if start == 0 { 0 } else { slot_cells };
        (0..others).try_for_each(|slot| self.tables.set_counter(slot, start))?;
        for number in PORTS {
            self.tables.add_mac(marker_to(number), number)?;
        }
        let via = Via { port: NEIGHBOURS, to: NEIGHBOUR.0, from: SWITCH.0 };
        self.tables.add_route((NEIGHBOUR.1, 16), via).map(drop)
    }

    pub(crate) fn register(&mut self, name: &str) -> Result<Vec<u32>, P4Error> {
        self.tables.register(name)
    }

    /// Sends a frame in by a port, and returns all that comes out, in the order of each port. A marker for each port follows the frame:
    /// after it has come out there, nothing more can come.
    pub(crate) fn pass(&mut self, by: u16, frame: &[u8]) -> Result<Vec<(u16, Vec<u8>)>, P4Error> {
        let Self { process, ports, patience, .. } = self;
        let missing = || P4Error::Switch { what: format!("has no port {by}") };
        let by = ports.iter().find(|port| port.number == by).ok_or_else(missing)?;
        let mut out = Vec::new();
        by.send(frame)?;
        for port in &*ports {
            by.send(&marker(port.number))?;
        }
        for port in &*ports {
            loop {
                match port.receive(*patience, process.descriptor())? {
                    Some(bytes) if bytes == marker(port.number) => break,
                    Some(bytes) => out.push((port.number, bytes)),
                    None => {
                        process.check()?;
                        let what =
                            format!("sends nothing by port {} for {patience:?}: it hangs, or was stopped", port.number);
                        return Err(P4Error::Switch { what });
                    }
                }
            }
        }
        Ok(out)
    }
}

/// Moves this thread, and the processes that it starts from now on, into a new network namespace, which ends with them.
pub(crate) fn enter_a_new_namespace() -> Result<(), P4Error> {
    // SAFETY: changes the calling thread's network namespace, and nothing else.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        return Err(P4Error::not_here("make a network namespace")(io::Error::last_os_error()));
    }
    // The kernel's own packets would be taken for the switch's.
    let quiet = std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
    match quiet {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {} // this kernel has no IPv6
        quiet => quiet.map_err(P4Error::io("turn IPv6 off in a network namespace"))?,
    }
    ip(&["link", "set", "lo", "up"])
}
