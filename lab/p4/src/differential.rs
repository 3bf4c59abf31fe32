//! Sends the same packets into BMv2 and into the model: the outputs and the registers must be equal.

use crate::around::{CLIENTS, named};
use crate::bmv2::{Bmv2, Entered};
use crate::frame::{Host, MF, RECIRCULATION, byte};
use crate::heard;
use crate::random::{Draw, entered};
use crate::sources::Planted;
use crate::tools::Bmv2Tools;
use crate::twin::{Expected, Flight, Twin};
use crate::{P4Error, Program};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeMap;
use std::path::Path;

/// Entries of each level: few, so that queues are often full and empty.
const SIZE: u32 = 4;
/// Slots of the switch under test, as a power of two.
const SLOT_BITS: u32 = 4;
/// Most recirculating packets before one of them must continue.
const FLIGHTS_MAX: usize = 12;
/// Packets between two comparisons of registers.
const EVERY: u32 = 500;
/// After this many differences the run ends.
const DIFFERENCES_MAX: usize = 10;

/// The same for transcripts, whose queues have up to 100 tasks, and whose switches have up to 3,000 slots.
const TRANSCRIPT_SIZE: u32 = 128;
const TRANSCRIPT_SLOT_BITS: u32 = 12;
/// The largest datagram that a frame carries.
const DATAGRAM_MAX: usize = 1472;

pub(crate) fn macros(size: u32, slot_bits: u32) -> Vec<String> {
    let cell_bits = (4 * size).trailing_zeros();
    vec![format!("CELL_BITS={cell_bits}"), format!("SLOT_BITS={slot_bits}")]
}

/// Result of a comparison.
#[derive(Clone, Debug, Default)]
pub struct Compared {
    /// Packets from outside.
    pub packets: u32,
    /// Passes, including those of recirculated packets.
    pub passes: u32,
    /// Omitted datagrams of transcripts: of IPv6, or too long for a frame.
    pub left_out: u32,
    /// Comparisons of registers.
    pub registers: u32,
    /// Expected outputs, counted: by operation, `nothing`, `forwarded`.
    pub seen: BTreeMap<&'static str, u32>,
    /// Differences, each as a sentence.
    pub differences: Vec<String>,
}

/// Sends random packets from this seed into both.
///
/// # Errors
/// If the program does not compile or the switch does not run. Differences are no error.
pub fn random(tools: &Bmv2Tools, program: Program, packets: u32, seed: u64) -> Result<Compared, P4Error> {
    random_planted(tools, program, &[], packets, seed)
}

/// The same with changed sources, which must show as differences.
///
/// # Errors
/// As [`random`]; if a source has no such text.
pub fn random_planted(
    tools: &Bmv2Tools,
    program: Program,
    planted: &[Planted],
    packets: u32,
    seed: u64,
) -> Result<Compared, P4Error> {
    let folder = tools.folder()?;
    let json = tools.compile(program, planted, &macros(SIZE, SLOT_BITS), folder.path())?;
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    // Serial numbers begin just before they wrap.
    let start = u32::MAX - rng.random_range(0..20);
    let entered = entered(SIZE, 1 << SLOT_BITS, start);
    apart(|| Both::start(tools, program, &json, &entered)?.random(&mut Draw::new(entered.clone(), rng), packets))
}

/// Sends the datagrams of transcripts into both: files' names and texts. Each switch of a transcript is a separate switch, with its slots
/// registered from the start.
///
/// # Errors
/// As [`random`]; if a transcript is invalid.
pub fn transcripts(tools: &Bmv2Tools, program: Program, files: &[(String, String)]) -> Result<Compared, P4Error> {
    let folder = tools.folder()?;
    let json = tools.compile(program, &[], &macros(TRANSCRIPT_SIZE, TRANSCRIPT_SLOT_BITS), folder.path())?;
    let mut all = Compared::default();
    for (name, text) in files {
        for switch in heard::switches(name, text)? {
            let size = (TRANSCRIPT_SIZE, 1 << TRANSCRIPT_SLOT_BITS);
            let entered = switch.entered(size.0, size.1);
            all.add(name, apart(|| Both::start(tools, program, &json, &entered)?.datagrams(&switch.datagrams))?);
            all.left_out += switch.of_ipv6;
        }
    }
    Ok(all)
}

/// Runs on a separate thread, which enters a network namespace that ends with it.
fn apart<T: Send>(act: impl FnOnce() -> Result<T, P4Error> + Send) -> Result<T, P4Error> {
    std::thread::scope(|scope| scope.spawn(act).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
}

impl Compared {
    fn add(&mut self, name: &str, other: Self) {
        self.packets += other.packets;
        self.passes += other.passes;
        self.left_out += other.left_out;
        self.registers += other.registers;
        other.seen.into_iter().for_each(|(kind, times)| *self.seen.entry(kind).or_default() += times);
        self.differences.extend(other.differences.into_iter().map(|difference| format!("{name}: {difference}")));
    }
}

struct Both {
    switch: Bmv2,
    twin: Twin,
    /// Recirculating packets: in the model, and as the switch sent them.
    flights: Vec<(Flight, Vec<u8>)>,
    compared: Compared,
}

impl Both {
    fn start(tools: &Bmv2Tools, program: Program, json: &Path, entered: &Entered) -> Result<Self, P4Error> {
        let twin = Twin::build(program, entered)?;
        let switch = Bmv2::start(tools, program, json, entered)?;
        Ok(Self { switch, twin, flights: Vec::new(), compared: Compared::default() })
    }

    fn random(mut self, draw: &mut Draw, packets: u32) -> Result<Compared, P4Error> {
        while self.compared.packets < packets && !self.is_hopeless() {
            let goes_on = draw.rng().random_bool(0.5);
            if self.flights.len() >= FLIGHTS_MAX || goes_on && !self.flights.is_empty() {
                let at = draw.rng().random_range(0..self.flights.len());
                self.again(at)?;
                continue;
            }
            let (by, frame) = draw.frame();
            self.arrives(by, &frame)?;
            if self.compared.packets.is_multiple_of(EVERY) {
                self.registers()?;
            }
        }
        self.finish()?;
        self.registers()?;
        Ok(self.compared)
    }

    /// Sends datagrams one by one, each with all its passes.
    fn datagrams(mut self, datagrams: &[(Host, Vec<u8>)]) -> Result<Compared, P4Error> {
        for (from, datagram) in datagrams {
            if self.is_hopeless() {
                break;
            }
            if datagram.len() > DATAGRAM_MAX {
                self.compared.left_out += 1;
                continue;
            }
            self.arrives(CLIENTS, &from.to_switch(datagram))?;
            self.finish()?;
        }
        self.registers()?;
        Ok(self.compared)
    }

    fn is_hopeless(&self) -> bool {
        self.compared.differences.len() >= DIFFERENCES_MAX
    }

    fn arrives(&mut self, by: u16, frame: &[u8]) -> Result<(), P4Error> {
        self.compared.packets += 1;
        let expected = self.twin.frame(by, frame);
        self.pass(by, frame, expected)
    }

    /// One more pass of a recirculating packet.
    fn again(&mut self, at: usize) -> Result<(), P4Error> {
        let (flight, frame) = self.flights.swap_remove(at);
        let expected = self.twin.again(flight);
        self.pass(RECIRCULATION, &frame, expected)
    }

    fn finish(&mut self) -> Result<(), P4Error> {
        while !self.flights.is_empty() && !self.is_hopeless() {
            self.again(0)?;
        }
        Ok(())
    }

    fn pass(&mut self, by: u16, frame: &[u8], expected: Expected) -> Result<(), P4Error> {
        let mut out = self.switch.pass(by, frame)?;
        self.compared.passes += 1;
        for kind in self.names(&expected) {
            *self.compared.seen.entry(kind).or_default() += 1;
        }
        let Expected { frame: answer, round } = expected;
        let mut wrong = None;
        for flight in round {
            let operation = self.twin.operation(&flight);
            let is_it = |(port, sent): &(u16, Vec<u8>)| *port == RECIRCULATION && byte(sent, MF + 3) == operation;
            let Some(at) = out.iter().position(is_it) else {
                wrong = Some(format!("a packet of operation {operation} did not go round; out came {}", listed(&out)));
                continue;
            };
            let sent = out.swap_remove(at).1;
            wrong = wrong.or(self.twin.differs(&flight, &sent));
            self.flights.push((flight, sent));
        }
        let wrong = wrong.or_else(|| match (answer, &out[..]) {
            (None, []) => None,
            (Some((port, frame)), [(by, sent)]) if port == *by => differs(&frame, sent),
            (Some((port, frame)), _) => Some(format!(
                "{} was expected by port {port}: {}; out came {}",
                named(port, &frame),
                hex(&frame),
                listed(&out)
            )),
            (None, _) => Some(format!("nothing more was expected; out came {}", listed(&out))),
        });
        if let Some(wrong) = wrong {
            self.compared.differences.push(format!("packet {}: {wrong}; in: {}", self.compared.packets, hex(frame)));
        }
        Ok(())
    }

    /// The outputs, for counts.
    fn names(&self, expected: &Expected) -> Vec<&'static str> {
        let mut names: Vec<_> = expected.round.iter().map(|flight| self.twin.named(flight)).collect();
        names.extend(expected.frame.iter().map(|(port, frame)| named(*port, frame)));
        if names.is_empty() { vec!["nothing"] } else { names }
    }

    fn registers(&mut self) -> Result<(), P4Error> {
        self.compared.registers += 1;
        for (name, model) in self.twin.registers() {
            let switch = self.switch.register(name)?;
            if switch.len() != model.len() {
                let what = format!("{name} has {} cells in the switch, {} in the model", switch.len(), model.len());
                self.compared.differences.push(what);
            }
            if let Some(cell) = (0..model.len()).find(|&cell| switch.get(cell) != Some(&model[cell])) {
                let (switch, model) = (switch.get(cell), model[cell]);
                let what = format!("{name}[{cell}] is {switch:x?} in the switch, {model:#x} in the model");
                self.compared.differences.push(format!("after packet {}: {what}", self.compared.packets));
            }
        }
        Ok(())
    }
}

fn differs(model: &[u8], switch: &[u8]) -> Option<String> {
    if model == switch {
        return None;
    }
    let at = (0..).find(|&at| model.get(at) != switch.get(at))?;
    Some(format!("byte {at} differs: model {}, switch {}", hex(model), hex(switch)))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn listed(out: &[(u16, Vec<u8>)]) -> String {
    if out.is_empty() {
        return "nothing".to_owned();
    }
    out.iter().map(|(port, frame)| format!("{port}: {}", hex(frame))).collect::<Vec<_>>().join(", ")
}
