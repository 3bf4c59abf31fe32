//! The engine bmv2: a P4 program in BMv2's `simple_switch`, which has its own interfaces. This process is its controller: it answers
//! packets of the CPU port, and fills the tables.

use super::hosts::{Hosts, Learned};
use super::queue::Queue;
use midflight_asic::{self as asic, AsicConfig, Controller};
use midflight_dataplane::program::{CallError, Called, Engine};
use midflight_dataplane::{Datagram, Out, Purge, Stats, TasksProgram, Verdict};
use midflight_endpoint::Nanos;
use midflight_host::{EnginePlace, Error, Hosted, SendFrom, ShellCounts, clock};
use midflight_p4::live::{Came, INTERFACES_MAX, Live, NEXT_HOPS_MAX, Options, Question};
use midflight_p4::tools::Bmv2Tools;
use midflight_p4::{P4Error, Program};
use midflight_wire::Header;
use midflight_wire::tasks::Operation;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use zerocopy::FromBytes;

/// Why it refuses the listen address.
pub(super) const ONE_ADDRESS: &str =
    "the engine bmv2 serves one address of IPv4: name it by --listen, 10.0.0.1:7700 for example";
/// Shortest poll interval of an idle slot: BMv2 forwards only a few thousand packets a second.
pub(super) const POLL_MIN: Duration = Duration::from_millis(10);
/// Packets of the CPU port answered per turn of the thread.
const QUESTIONS_PER_TURN: u32 = 64;
/// Most slots: each is an entry of BMv2's table, with some hundred bytes of memory.
const SLOTS_MAX: u32 = 65_536;

#[derive(Debug)]
pub(super) struct Bmv2Engine {
    live: Live,
    controller: Controller,
    hosts: Hosts,
    port: u16,
    /// Tasks of each level, as the switch last reported.
    queued: [u32; 4],
    sent: Vec<Datagram>,
    counts: Counts,
    /// Why the switch cannot serve any more.
    failure: Option<String>,
}

#[derive(Debug, Default)]
struct Counts {
    questions: u64,
    answers: u64,
    /// Frames of the CPU port that are not packets for the queue's port.
    malformed: u64,
    /// The next-hop table had no room.
    hosts_full: u64,
}

impl Bmv2Engine {
    pub(super) fn start(
        place: &EnginePlace<'_, TasksProgram>,
        Queue { program, entries: queue, poll_us, .. }: Queue,
        interfaces: Vec<String>,
        interrupted: &Arc<AtomicBool>,
    ) -> Result<Self, Error> {
        let EnginePlace { program: config, listen, epoch } = *place;
        let SocketAddr::V4(own) = listen else { return Err(one_address()) };
        if own.ip().is_unspecified() {
            return Err(one_address());
        }
        if interfaces.len() > INTERFACES_MAX {
            return Err(Error::Invalid(format!("the engine bmv2 has at most {INTERFACES_MAX} interfaces")));
        }
        let slots = config.slots.min(SLOTS_MAX).next_power_of_two();
        let asic = AsicConfig {
            program,
            queue,
            slots: config.slots.min(slots),
            lease_ms: u32::try_from(config.lease_ns / 1_000_000).unwrap_or(u32::MAX),
            slot_idle_ns: config.slot_idle_ns,
            cookie_ns: config.cookie_ns,
            poll_us,
            ..AsicConfig::default()
        };
        let controller = Controller::new(&asic, epoch, rand::random());
        let controller = controller.map_err(|error| Error::Invalid(error.to_string()))?;
        let program = match program {
            asic::Program::Safe => Program::Safe,
            asic::Program::Published => Program::Published,
        };
        let options = Options { program, own, epoch, interfaces, queue, slots };
        let tools = Bmv2Tools { interrupted: Arc::clone(interrupted), ..Bmv2Tools::find().map_err(refused)? };
        Ok(Self {
            live: Live::start(&tools, &options).map_err(refused)?,
            controller,
            hosts: Hosts::new(NEXT_HOPS_MAX, config.slot_idle_ns),
            port: own.port(),
            queued: [0; 4],
            sent: Vec::new(),
            counts: Counts::default(),
            failure: None,
        })
    }

    /// The tables contain what a response promises before it leaves.
    fn answer(&mut self) -> Result<(), P4Error> {
        for _ in 0..QUESTIONS_PER_TURN {
            match self.live.next(self.port)? {
                Came::Nothing => return Ok(()),
                Came::Foreign => self.counts.malformed += 1,
                Came::Question(question) => self.take(clock::now(), &question)?,
            }
        }
        Ok(())
    }

    fn take(&mut self, now: Nanos, question: &Question) -> Result<(), P4Error> {
        self.counts.questions += 1;
        let (from, datagram) = (question.from(), question.datagram());
        let verdict = self.controller.packet(now, from.into(), datagram, &mut self.sent);
        if verdict == Verdict::Ok && shows_a_cookie(datagram) {
            self.learn(now, question)?;
        }
        self.copy_slots()?;
        for (_, datagram) in self.sent.drain(..) {
            self.live.answer(question, &datagram)?;
            self.counts.answers += 1;
        }
        Ok(())
    }

    /// Learns the sender's next hop. It showed a cookie that was sent to its address, so it receives packets there.
    fn learn(&mut self, now: Nanos, question: &Question) -> Result<(), P4Error> {
        let (host, next) = (*question.from().ip(), question.came_from());
        match self.hosts.learn(now, host, next) {
            Learned::Known => Ok(()),
            Learned::Full => {
                self.counts.hosts_full += 1;
                Ok(())
            }
            Learned::New { instead_of } => {
                if let Some(silent) = instead_of {
                    self.live.set_next_hop(silent, None)?;
                }
                self.live.set_next_hop(host, Some(next))
            }
        }
    }

    /// Copies registered and freed slots into the switch's table.
    fn copy_slots(&mut self) -> Result<(), P4Error> {
        for number in self.controller.changed() {
            let entry = self.controller.slot(number).and_then(|slot| match slot.address {
                SocketAddr::V4(address) => Some((slot.generation, address, slot.counter)),
                SocketAddr::V6(_) => None,
            });
            self.live.set_slot(number, entry)?;
        }
        Ok(())
    }
}

fn one_address() -> Error {
    Error::Invalid(ONE_ADDRESS.into())
}

fn refused(error: P4Error) -> Error {
    Error::Invalid(error.to_string())
}

/// Operations that the controller accepts only with a cookie.
fn shows_a_cookie(datagram: &[u8]) -> bool {
    let header = Header::ref_from_prefix(datagram);
    let operation = header.ok().and_then(|(header, _)| Operation::from_number(header.operation));
    matches!(operation, Some(Operation::Register | Operation::Probe))
}

impl Engine for Bmv2Engine {
    type Program = TasksProgram;

    /// Nothing arrives here: the switch has its own interfaces.
    fn packet(&mut self, _now: Nanos, _from: SocketAddr, _datagram: &mut [u8], out: &mut Out) -> Called<Verdict> {
        out.clear();
        Err(CallError("this engine takes packets at its interfaces".into()))
    }

    fn tick(&mut self, now: Nanos, out: &mut Out) -> Called<u32> {
        out.clear();
        let visited = self.controller.tick(now);
        if let Err(error) = self.copy_slots() {
            self.failure = Some(error.to_string());
        }
        Ok(visited)
    }

    fn order(&mut self, _order: &mut Purge) -> Called<bool> {
        Err(CallError("this engine has no list of its tasks".into()))
    }

    fn stats(&self) -> Stats {
        let mut stats = self.controller.stats();
        stats.queued[..self.queued.len()].copy_from_slice(&self.queued);
        stats
    }

    /// `watch` compares the tables.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

impl Hosted<TasksProgram> for Bmv2Engine {
    fn uses_socket(&self) -> bool {
        false
    }

    fn counts(&self, counts: &mut ShellCounts) {
        let Counts { questions, answers, malformed, hosts_full } = self.counts;
        *counts = vec![
            ("bmv2_answers", answers),
            ("bmv2_hosts", self.hosts.len() as u64),
            ("bmv2_hosts_full", hosts_full),
            ("bmv2_malformed", malformed),
            ("bmv2_questions", questions),
        ];
    }

    fn send_handed_over(&mut self, _send: &mut SendFrom<'_>) -> Result<(), String> {
        self.answer().map_err(|error| error.to_string())
    }

    fn handover_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.live.descriptor())
    }

    fn watch(&mut self) -> Result<(), String> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        self.queued = self.live.check().map_err(|error| error.to_string())?;
        Ok(())
    }
}
