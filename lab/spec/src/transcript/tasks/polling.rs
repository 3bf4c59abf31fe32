//! The asic engine behind executors that poll, so that transcripts with parked slots fit it.

use midflight_asic::{AsicConfig, AsicError, AsicTasks, Program, Turn};
use midflight_dataplane::program::{Called, Engine};
use midflight_dataplane::{Datagram, Out, Purge, Stats, TasksConfig, TasksProgram, Verdict};
use midflight_wire::packet;
use midflight_wire::tasks::{Packet, REGISTER_MAX, Retrieve, SLOTS_MAX, Wait, parse};
use std::cell::RefCell;
use std::mem::offset_of;
use std::net::SocketAddr;
use std::rc::Rc;
use zerocopy::{Immutable, IntoBytes};

/// The adapter multiplies a transcript's packet counters by this, so that hidden polls can use the numbers in between.
const COUNTER_SCALE: u64 = 1 << 16;

/// The safe program behind executors that poll. A transcript neither shows nor counts what this adapter does:
///
/// - It finishes all recirculation at once.
/// - It sends a RETRIEVE of several waits wait by wait, and merges the ASSIGNs.
/// - After each packet it repeats the waits that got NO_OP, so that their slots behave like parked ones.
///
/// A transcript's counters must be below 2^48.
#[derive(Debug)]
pub struct PollingAsic {
    tasks: AsicTasks,
    turn: Turn,
    /// Waits without a task, oldest first.
    waiting: Vec<Poll>,
    /// Verdicts of hidden polls.
    hidden: [u64; Verdict::COUNT],
    heard: Option<Heard>,
}

/// Each datagram that an asic engine received, with its answers.
pub type Heard = Rc<RefCell<Vec<(SocketAddr, Vec<u8>, Vec<Datagram>)>>>;

#[derive(Clone, Copy, Debug)]
struct Poll {
    from: SocketAddr,
    /// With the counter of the last packet that named the slot.
    retrieve: Retrieve,
    wait: Wait,
}

impl Poll {
    fn is_of(&self, from: SocketAddr, wait: &Wait) -> bool {
        (self.from, self.wait.slot, self.wait.generation) == (from, wait.slot, wait.generation)
    }
}

impl PollingAsic {
    /// A fresh switch. It has at most four levels, each with the transcript's queue size rounded up to a power of two.
    ///
    /// # Errors
    /// If a pipeline has no room for it.
    pub fn new(config: &TasksConfig, epoch: u32, secret: u128) -> Result<Self, AsicError> {
        let config = AsicConfig {
            program: Program::Safe,
            levels: config.levels.min(4),
            queue: config.queue.clamp(2, AsicConfig::default().queue).next_power_of_two(),
            slots: config.slots,
            lease_ms: (config.lease_ns / 1_000_000) as u32,
            slot_idle_ns: config.slot_idle_ns,
            cookie_ns: config.cookie_ns,
            ..AsicConfig::default()
        };
        let tasks = AsicTasks::new(&config, epoch, secret)?;
        Ok(Self { tasks, turn: Turn::default(), waiting: Vec::new(), hidden: [0; Verdict::COUNT], heard: None })
    }

    /// Also records what it receives in `heard`.
    #[must_use]
    pub fn heard_in(self, heard: &Heard) -> Self {
        Self { heard: Some(Rc::clone(heard)), ..self }
    }

    fn give(&mut self, now: u64, from: SocketAddr, datagram: &[u8]) -> (Verdict, Vec<Datagram>) {
        let verdict = self.tasks.packet(now, from, datagram, &mut self.turn);
        self.tasks.finish(&mut self.turn);
        let mut sent = std::mem::take(&mut self.turn.sent);
        if let Some(heard) = &self.heard {
            heard.borrow_mut().push((from, datagram.to_vec(), sent.clone()));
        }
        sent.iter_mut().for_each(|(_, bytes)| unscale_counter(bytes));
        (verdict, sent)
    }

    fn retrieve(
        &mut self,
        now: u64,
        from: SocketAddr,
        retrieve: &Retrieve,
        waits: &[Wait],
    ) -> (Verdict, Vec<Datagram>) {
        let mut all = Vec::new();
        for (number, &wait) in waits.iter().enumerate() {
            let poll = Poll { from, retrieve: *retrieve, wait };
            let (verdict, sent) = self.ask(now, &poll);
            all.extend(sent);
            if verdict != Verdict::Ok {
                return (verdict, all);
            }
            self.hidden[Verdict::Ok as usize] += u64::from(number > 0);
        }
        // The soft engine answers one RETRIEVE by ASSIGN before RESET.
        all.sort_by_key(|(_, bytes)| matches!(parse(bytes), Ok(Packet::Reset(..))));
        (Verdict::Ok, all)
    }

    fn ask(&mut self, now: u64, poll: &Poll) -> (Verdict, Vec<Datagram>) {
        let (verdict, mut sent) = self.give(now, poll.from, &packet(&poll.retrieve, &[poll.wait]));
        // A newer wait of a slot replaces the older one; a late copy does not.
        let is_over = |other: &Poll| {
            other.is_of(poll.from, &poll.wait) && other.retrieve.counter.get() < poll.retrieve.counter.get()
        };
        self.waiting.retain(|other| !is_over(other));
        if sent.extract_if(.., |(to, bytes)| *to == poll.from && is_no_op(bytes, &poll.wait)).next().is_some() {
            self.waiting.push(*poll);
        }
        (verdict, sent)
    }

    /// After a KEEPALIVE, the polls of its slots continue from its counter.
    fn renew_counters(&mut self, from: SocketAddr, counter: u64, waits: &[Wait]) {
        for poll in self.waiting.iter_mut().filter(|poll| waits.iter().any(|wait| poll.is_of(from, wait))) {
            poll.retrieve.counter = poll.retrieve.counter.get().max(counter).into();
        }
    }

    /// Repeats all waits, oldest first. Hides a RESET in answer: the slot was released, and a real executor would not
    /// have polled.
    fn poll_all(&mut self, now: u64) -> Vec<Datagram> {
        let before = self.tasks.stats().reasons;
        let mut all = Vec::new();
        for mut poll in std::mem::take(&mut self.waiting) {
            poll.retrieve.counter += 1;
            let (_, sent) = self.ask(now, &poll);
            all.extend(sent.into_iter().filter(|(_, bytes)| matches!(parse(bytes), Ok(Packet::Assign(..)))));
        }
        let after = self.tasks.stats().reasons;
        self.hidden
            .iter_mut()
            .zip(after.iter().zip(before))
            .for_each(|(hidden, (after, before))| *hidden += after - before);
        all
    }
}

fn with_scaled_counter(datagram: &[u8]) -> Vec<u8> {
    let mut bytes = datagram.to_vec();
    if matches!(parse(datagram), Ok(Packet::Retrieve(..) | Packet::Keepalive(..) | Packet::Release(..))) {
        recount(&mut bytes, |counter| counter.wrapping_mul(COUNTER_SCALE));
    }
    bytes
}

fn unscale_counter(bytes: &mut [u8]) {
    if matches!(parse(bytes), Ok(Packet::Reset(..) | Packet::Released(..))) {
        recount(bytes, |counter| counter / COUNTER_SCALE);
    }
}

/// The counter has the same offset in all five operations.
fn recount(bytes: &mut [u8], change: impl FnOnce(u64) -> u64) {
    let counter = bytes.get_mut(offset_of!(Retrieve, counter)..).and_then(|rest| rest.first_chunk_mut());
    if let Some(counter) = counter {
        *counter = change(u64::from_be_bytes(*counter)).to_be_bytes();
    }
}

/// Whether it is the NO_OP for this wait. Any other NO_OP is shown.
fn is_no_op(bytes: &[u8], to: &Wait) -> bool {
    matches!(parse(bytes), Ok(Packet::NoOp(_, [wait])) if wait == to)
}

/// Merges the ASSIGNs to one address at the position of the first, and RESETs likewise.
fn merged(sent: Vec<Datagram>) -> Vec<Datagram> {
    let mut all: Vec<Datagram> = Vec::new();
    for (to, bytes) in sent {
        let joined = all.iter_mut().filter(|(other, _)| *other == to).find_map(|(_, first)| {
            let both = joined(first, &bytes)?;
            *first = both;
            Some(())
        });
        if joined.is_none() {
            all.push((to, bytes));
        }
    }
    all
}

fn joined(first: &[u8], second: &[u8]) -> Option<Vec<u8>> {
    match (parse(first).ok()?, parse(second).ok()?) {
        (Packet::Assign(fixed, a, _), Packet::Assign(_, b, _)) => join(fixed, a, b, SLOTS_MAX),
        (Packet::Reset(fixed, a), Packet::Reset(_, b)) if !a.is_empty() => join(fixed, a, b, REGISTER_MAX),
        _ => None,
    }
}

fn join<H, R>(fixed: &H, a: &[R], b: &[R], most: usize) -> Option<Vec<u8>>
where
    H: IntoBytes + Immutable,
    R: IntoBytes + Immutable + Copy,
{
    (a.len() + b.len() <= most).then(|| packet(fixed, &[a, b].concat()))
}

impl Engine for PollingAsic {
    type Program = TasksProgram;

    fn packet(&mut self, now_ns: u64, from: SocketAddr, datagram: &mut [u8], out: &mut Out) -> Called<Verdict> {
        let datagram = &with_scaled_counter(datagram);
        let (verdict, mut sent) = match parse(datagram) {
            Ok(Packet::Retrieve(retrieve, waits)) => self.retrieve(now_ns, from, retrieve, waits),
            Ok(Packet::Keepalive(keepalive, waits)) => {
                self.renew_counters(from, keepalive.counter.get(), waits);
                self.give(now_ns, from, datagram)
            }
            _ => self.give(now_ns, from, datagram),
        };
        sent.extend(self.poll_all(now_ns));
        out.owe(&merged(sent))?;
        Ok(verdict)
    }

    fn tick(&mut self, now_ns: u64, out: &mut Out) -> Called<u32> {
        let visited = self.tasks.tick(now_ns);
        out.owe(&merged(self.poll_all(now_ns)))?;
        Ok(visited)
    }

    /// A pipeline cannot search its queue, so it purges nothing.
    fn order(&mut self, _: &mut Purge) -> Called<bool> {
        Ok(true)
    }

    fn stats(&self) -> Stats {
        let mut stats = self.tasks.stats();
        stats.reasons.iter_mut().zip(self.hidden).for_each(|(counted, hidden)| *counted -= hidden);
        stats
    }

    fn check(&self) -> Result<(), String> {
        self.tasks.check_at_rest()
    }
}
