//! A running BMv2 switch with one of the programs.

use crate::ports::{Port, enter_a_new_namespace};
use crate::thrift::{Key, Thrift};
use crate::tools::Bmv2Tools;
use crate::twin::set_up;
use crate::{P4Error, Program, frame};
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Where it listens for the controller, in its own namespace.
const THRIFT_PORT: u16 = 9090;
/// The mirror session of copies, as in `p4/target/v1model.p4`.
const COPIES: i32 = 1;
/// How long it may take to start, or to send out a frame, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the controller enters.
#[derive(Clone, Debug)]
pub(crate) struct Entered {
    pub(crate) epoch: u32,
    /// Slot, generation, address and port.
    pub(crate) slots: Vec<(u32, u32, u32, u16)>,
    /// Entries of each level, and how many of them tasks may have.
    pub(crate) size: u32,
    pub(crate) room: u32,
    /// Where serial numbers begin.
    pub(crate) start: u32,
    /// Slots that the switch has room for, a power of two.
    pub(crate) slot_cells: u32,
}

/// The switch; it ends when this is dropped.
pub(crate) struct Bmv2 {
    process: Child,
    thrift: Thrift,
    ports: Vec<Port>,
}

impl Bmv2 {
    /// Starts it in a new network namespace, which this thread enters too.
    pub(crate) fn start(tools: &Bmv2Tools, json: &Path) -> Result<Self, P4Error> {
        enter_a_new_namespace()?;
        let numbers = [frame::CLIENTS, frame::EXECUTORS, frame::NEIGHBOURS, frame::RECIRCULATION, frame::CPU];
        let ports = numbers.into_iter().map(Port::make).collect::<Result<Vec<_>, _>>()?;
        let mut command = Command::new(&tools.switch);
        for port in numbers {
            command.arg("-i").arg(format!("{port}@{}", Port::interface(port)));
        }
        command.arg("--thrift-port").arg(THRIFT_PORT.to_string()).arg(json);
        let log = json.with_extension("log");
        let said = File::create(&log).map_err(P4Error::io(format!("write {}", log.display())))?;
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said).spawn();
        let mut process = process.map_err(P4Error::io(format!("run {}", tools.switch.display())))?;
        let thrift = Self::connect(&mut process, &log)?;
        Ok(Self { process, thrift, ports })
    }

    fn connect(process: &mut Child, log: &Path) -> Result<Thrift, P4Error> {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Ok(Some(status)) = process.try_wait() {
                let said = std::fs::read(log).map(|said| String::from_utf8_lossy(&said).trim().to_owned());
                return Err(P4Error::Switch { what: format!("ended at once, {status}: {}", said.unwrap_or_default()) });
            }
            match Thrift::connect(THRIFT_PORT) {
                Ok(thrift) => return Ok(thrift),
                Err(error) if Instant::now() > until => {
                    let _ = process.kill();
                    let _ = process.wait();
                    return Err(error);
                }
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
            }
        }
    }

    /// Fills tables and registers as the controller does.
    pub(crate) fn enter(&mut self, program: Program, entered: &Entered) -> Result<(), P4Error> {
        let word = |word: u32| word.to_be_bytes().to_vec();
        let exact = |bytes: Vec<u8>| Key::Exact(bytes);
        let thrift = &mut self.thrift;
        thrift.add("Pipe.own.own", &[exact(frame::SWITCH.1.to_be_bytes().to_vec())], "Pipe.own.is_own", &[])?;
        let present = [exact(word(entered.epoch))];
        thrift.add("Pipe.queue.look_up.epoch", &present, "Pipe.queue.look_up.is_present", &[])?;
        let epoch = [word(entered.epoch)];
        // Answers are turned round behind the entries, which the published program has in egress.
        let (turn, turn_round) = match program {
            Program::Safe => ("Pipe.queue.answer.turn", "Pipe.queue.answer.turn_round"),
            Program::Published => ("Leave.behind.answer.turn", "Leave.behind.answer.turn_round"),
        };
        thrift.set_default(turn, turn_round, &epoch)?;
        thrift.mirror(COPIES, frame::RECIRCULATION)?;
        for &(slot, generation, ip, port) in &entered.slots {
            let [high, low] = port.to_be_bytes().map(|byte| vec![byte]);
            let key = [word(slot), word(generation), word(ip), high, low].map(Key::Exact);
            thrift.add("Pipe.queue.look_up.slot", &key, "Pipe.queue.look_up.is_known", &[])?;
        }
        let port = |number: u16| number.to_be_bytes().to_vec();
        for number in [frame::CLIENTS, frame::EXECUTORS, frame::NEIGHBOURS, frame::RECIRCULATION, frame::CPU] {
            let key = [exact(frame::marker_to(number).to_vec())];
            thrift.add("Pipe.forward.mac", &key, "Pipe.forward.bridge_to", &[port(number)])?;
        }
        let via = [port(frame::NEIGHBOURS), frame::NEIGHBOUR.0.to_vec(), frame::SWITCH.0.to_vec()];
        let net = [Key::Prefix(word(frame::NEIGHBOUR.1), 16)];
        thrift.add("Pipe.forward.route", &net, "Pipe.forward.via", &via)?;
        for (name, cell, value) in set_up(program, entered) {
            self.thrift.write(name, cell, value)?;
        }
        // All are 0 at first.
        let slots = if entered.start == 0 { 0 } else { entered.slot_cells };
        (0..slots).try_for_each(|slot| self.thrift.write("Pipe.queue.latest.last_counter", slot, entered.start))
    }

    /// All cells of a register.
    pub(crate) fn register(&mut self, name: &str) -> Result<Vec<u32>, P4Error> {
        self.thrift.read(name)
    }

    fn port(&self, number: u16) -> Result<&Port, P4Error> {
        let missing = || P4Error::Switch { what: format!("has no port {number}") };
        self.ports.iter().find(|port| port.number == number).ok_or_else(missing)
    }

    /// Sends a frame in by a port, and returns all that comes out, in the order of each port. Behind the frame goes a marker for each
    /// port: when it has come out there, nothing more can come.
    pub(crate) fn pass(&self, by: u16, frame: &[u8]) -> Result<Vec<(u16, Vec<u8>)>, P4Error> {
        let (by, mut out) = (self.port(by)?, Vec::new());
        by.send(frame)?;
        for port in &self.ports {
            by.send(&frame::marker(port.number))?;
        }
        for port in &self.ports {
            loop {
                match port.receive(PATIENCE)? {
                    Some(bytes) if bytes == frame::marker(port.number) => break,
                    Some(bytes) => out.push((port.number, bytes)),
                    None => return Err(P4Error::Switch { what: format!("sends nothing by port {}", port.number) }),
                }
            }
        }
        Ok(out)
    }
}

impl Drop for Bmv2 {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
