//! The asic engine on the wire: what its parser, deparser and controller do with each packet, and that no interleaving of what goes
//! round loses a task or changes it.

use midflight_dataplane::Verdict;
use midflight_dataplane::asic::{AsicConfig, AsicError, AsicTasks, Inside, Program, Turn};
use midflight_dataplane::model::play_asic;
use midflight_wire::*;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use rand::Rng;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use zerocopy::byteorder::network_endian::U32;

const EPOCH: u32 = 77;
const CLIENT: u64 = 0x5EED_0000_0000_0007;

fn address(host: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host], 7000))
}

fn switch(program: Program, levels: u32, queue: u32) -> AsicTasks {
    with_argument(16, program, levels, queue)
}

fn with_argument(argument: u32, program: Program, levels: u32, queue: u32) -> AsicTasks {
    let small = AsicConfig { slots: 4, slot_idle_ns: 1_000, ..AsicConfig::default() };
    let config = AsicConfig { program, levels, queue, argument, ..small };
    AsicTasks::new(&config, EPOCH, 1).expect("fits Tofino 1")
}

fn task(tid: u32, priority: u8, resources: u8, argument: &[u8]) -> TaskInfo {
    let mut bytes = [0; 16];
    bytes[..argument.len()].copy_from_slice(argument);
    TaskInfo {
        tid: tid.into(),
        function: (tid + 7).into(),
        priority,
        resources,
        argument_length: argument.len() as u8,
        attempt: (tid % 3) as u8,
        argument: bytes,
    }
}

fn submit(sequence: u32, tasks: &[TaskInfo]) -> Vec<u8> {
    let header = Header::new(Operation::Submit, 0, sequence);
    let mut bytes = Vec::new();
    let fixed = Submit { header, client: CLIENT.into(), uid: 1.into(), jid: 1.into() };
    let mut packet = Builder::new(&mut bytes, &fixed);
    tasks.iter().for_each(|task| packet.push(task));
    bytes
}

fn register(sequence: u32, first: u32, count: u8) -> Vec<u8> {
    let header = Header::new(Operation::Register, 0, sequence);
    let mut bytes = Vec::new();
    let fixed = Register { header, executor: 9.into(), first: first.into(), resources: 0, reserved: [0; 3] };
    Builder::new(&mut bytes, &fixed).set_count(count);
    bytes
}

fn retrieve(epoch: u32, resources: u8, waits: &[Wait]) -> Vec<u8> {
    let fixed = Retrieve { header: Header::new(Operation::Retrieve, epoch, 0), resources, reserved: [0; 3] };
    let mut bytes = Vec::new();
    let mut packet = Builder::new(&mut bytes, &fixed);
    waits.iter().for_each(|wait| packet.push(wait));
    bytes
}

/// A wait that nobody has.
const SOMEBODY: Wait = Wait { slot: U32::new(0), generation: U32::new(0), sequence: U32::new(1) };

/// Of one task.
fn probe() -> Vec<u8> {
    let name = TaskName { submission: 1.into(), index: 0, reserved: [0; 3] };
    let mut bytes = Vec::new();
    let probe = Probe { header: Header::new(Operation::Probe, 0, 3), client: CLIENT.into() };
    Builder::new(&mut bytes, &probe).push(&name);
    bytes
}

fn wait(name: &SlotName, sequence: u32) -> Wait {
    Wait { slot: name.slot, generation: name.generation, sequence: sequence.into() }
}

/// A datagram and all that it causes, at once.
fn give(switch: &mut AsicTasks, from: SocketAddr, datagram: &[u8]) -> (Verdict, Vec<(SocketAddr, Vec<u8>)>) {
    let mut turn = Turn::default();
    let verdict = switch.packet(0, from, datagram, &mut turn);
    switch.finish(&mut turn);
    (verdict, turn.sent)
}

/// Slots of the executor at host 9.
fn slots(switch: &mut AsicTasks, count: u8) -> Vec<SlotName> {
    let (verdict, sent) = give(switch, address(9), &register(1, 0, count));
    assert_eq!(verdict, Verdict::Ok);
    let Ok(Packet::Registered(registered, names)) = parse(&sent[0].1) else { panic!("{sent:?}") };
    assert_eq!((registered.poll_us.get(), names.len()), (50, usize::from(count)));
    names.to_vec()
}

fn acked(bytes: &[u8]) -> (u32, u32, u8) {
    let Ok(Packet::SubmitAck(ack)) = parse(bytes) else { panic!("no SUBMIT_ACK: {bytes:02x?}") };
    assert_eq!((ack.client.get(), ack.header.epoch.get()), (CLIENT, EPOCH));
    (ack.taken.get(), ack.not_taken.get(), ack.reason)
}

/// What a client said of a task comes out of both programs as it went in, but for what no entry holds.
#[test]
fn an_assignment_says_what_the_submission_said() {
    for (program, bytes) in [(Program::Safe, 4), (Program::Safe, 12), (Program::Safe, 16), (Program::Published, 16)] {
        let mut switch = with_argument(bytes, program, 4, 8);
        let mut tasks = [task(100, 3, 1, &b"0123456789abcdef"[..bytes as usize]), task(101, 3, 0, b"xyz")];
        if bytes == 16 {
            tasks[1].argument_length = BY_REFERENCE;
        }
        assert_eq!(acked(&give(&mut switch, address(1), &submit(41, &tasks)).1[0].1), (0b11, 0, 0), "{program}");
        let name = slots(&mut switch, 1)[0];
        for (index, task) in (0..).zip(&tasks) {
            let (_, sent) = give(&mut switch, address(9), &retrieve(EPOCH, 1, &[wait(&name, 5 + index)]));
            let Ok(Packet::Assign(_, [a])) = parse(&sent[0].1) else { panic!("{program}: {sent:?}") };
            assert_eq!(a.task, TaskInfo { attempt: task.attempt + 1, ..*task }, "{program}");
            assert_eq!((a.slot, a.generation, a.sequence.get()), (name.slot, name.generation, 5 + index));
            assert_eq!(
                (a.client.get(), SocketAddr::from(a.address)),
                (7, address(1)),
                "the lower half of the identity"
            );
            assert_eq!((a.submission.get(), u32::from(a.index)), (41, index));
        }
        let (_, sent) = give(&mut switch, address(9), &retrieve(EPOCH, 1, &[wait(&name, 9)]));
        assert!(matches!(parse(&sent[0].1), Ok(Packet::NoOp(_, [told])) if *told == wait(&name, 9)), "{program}");
        assert_eq!((switch.stats().submitted, switch.stats().assigned, switch.counters().no_ops), (2, 2, 1));
    }
}

/// T7: each of a SUBMIT's tasks is in one of the two bitmaps, though the published program says nothing of those that it took.
#[test]
fn t7_a_full_level_names_what_it_did_not_take() {
    for program in [Program::Safe, Program::Published] {
        let mut switch = switch(program, 2, 4);
        let tasks: Vec<_> = (0..6).map(|tid| task(tid, 1, 0, &[])).collect();
        assert_eq!(
            acked(&give(&mut switch, address(1), &submit(1, &tasks)).1[0].1),
            (0b1111, 0b11_0000, 1),
            "{program}"
        );
        assert_eq!(switch.stats().reasons[Verdict::Full as usize], 2);
        assert_eq!(
            acked(&give(&mut switch, address(1), &submit(2, &[task(9, 2, 0, &[])])).1[0].1),
            (1, 0, 0),
            "{program}"
        );
        assert_eq!(switch.queued()[1], 1);
    }
}

/// T11: what a pipeline has no place for is refused whole, and changes nothing.
#[test]
fn t11_what_no_entry_holds_is_refused() {
    let mut switch = with_argument(4, Program::Safe, 2, 4);
    let refused = |switch: &mut AsicTasks, from, datagram: &[u8]| {
        let (verdict, sent) = give(switch, from, datagram);
        assert!(sent.is_empty(), "{sent:?}");
        verdict
    };
    let fine = task(1, 1, 0, b"1234");
    let long = submit(1, &[fine, task(1, 1, 0, b"12345")]);
    assert_eq!(refused(&mut switch, address(1), &long), Verdict::BadArgument);
    let by_reference = submit(1, &[TaskInfo { argument_length: BY_REFERENCE, ..fine }]);
    assert_eq!(refused(&mut switch, address(1), &by_reference), Verdict::BadArgument);
    let level = submit(1, &[fine, task(1, 3, 0, &[])]);
    assert_eq!(refused(&mut switch, address(1), &level), Verdict::BadPriority);
    let ipv6 = SocketAddr::from(([0, 1, 2, 3, 4, 5, 6, 7], 7000));
    for datagram in [submit(1, &[fine]), register(1, 0, 1), probe(), retrieve(EPOCH, 0, &[SOMEBODY])] {
        assert_eq!(refused(&mut switch, ipv6, &datagram), Verdict::NotForSwitch, "it would be heard, and get nothing");
    }
    let names = slots(&mut switch, 2);
    let two = retrieve(EPOCH, 0, &[wait(&names[0], 1), wait(&names[1], 1)]);
    assert_eq!(refused(&mut switch, address(9), &two), Verdict::BadCount);
    assert_eq!((switch.counters().passes, switch.counters().dropped), (0, 0));
}

#[test]
fn t11_nobody_speaks_for_anothers_slot() {
    let mut switch = switch(Program::Safe, 1, 4);
    let name = slots(&mut switch, 1)[0];
    let (verdict, sent) = give(&mut switch, address(8), &retrieve(EPOCH, 0, &[wait(&name, 1)]));
    assert_eq!((verdict, sent.len(), switch.stats().reasons[Verdict::SpoofedSlot as usize]), (Verdict::Ok, 0, 1));
    let (verdict, sent) = give(&mut switch, address(9), &retrieve(EPOCH + 1, 0, &[wait(&name, 1)]));
    assert!(verdict == Verdict::ForeignEpoch && matches!(parse(&sent[0].1), Ok(Packet::Reset(_, []))));
    let foreign = SlotName { generation: (name.generation.get() ^ 1).into(), ..name };
    let (_, sent) = give(&mut switch, address(9), &retrieve(EPOCH, 0, &[wait(&foreign, 1)]));
    assert!(matches!(parse(&sent[0].1), Ok(Packet::Reset(_, [void])) if *void == foreign));
    assert_eq!(switch.counters().passes, 0);
}

/// The controller answers what the pipeline has no record of.
#[test]
fn t10_the_switch_keeps_no_record_of_tasks() {
    let mut switch = switch(Program::Safe, 1, 4);
    let (_, sent) = give(&mut switch, address(1), &probe());
    assert!(
        matches!(parse(&sent[0].1), Ok(Packet::ProbeAck(ack)) if ack.known == Known::NoRecord as u8 && ack.header.count == 1)
    );
    let mut bytes = Vec::new();
    let name = TaskName { submission: 1.into(), index: 0, reserved: [0; 3] };
    let cancel = Cancel { header: Header::new(Operation::Cancel, 0, 4), client: CLIENT.into() };
    Builder::new(&mut bytes, &cancel).push(&name);
    let (_, sent) = give(&mut switch, address(1), &bytes);
    assert!(matches!(parse(&sent[0].1), Ok(Packet::CancelAck(ack)) if ack.taken_out.get() == 0));
}

#[test]
fn slots_are_bounded_and_forgotten_when_they_are_silent() {
    let mut switch = switch(Program::Safe, 1, 4);
    let names = slots(&mut switch, 3);
    let (_, sent) = give(&mut switch, address(9), &register(2, 3, 2));
    assert!(matches!(parse(&sent[0].1), Ok(Packet::Registered(r, [_])) if r.reason == Reason::SlotsFull as u8));
    let (_, sent) = give(&mut switch, address(9), &register(1, 0, 3));
    assert!(matches!(parse(&sent[0].1), Ok(Packet::Registered(_, same)) if same == names), "a repeat changes nothing");

    let mut turn = Turn::default();
    let heard = retrieve(EPOCH, 0, &[wait(&names[1], 1)]);
    assert_eq!(switch.packet(900, address(9), &heard, &mut turn), Verdict::Ok);
    assert_eq!((switch.tick(1_000), switch.stats().slots), (4, 1), "one of them has spoken");
    assert_eq!(switch.packet(1_000, address(9), &heard, &mut turn), Verdict::Ok);
    assert!(matches!(parse(&turn.sent[0].1), Ok(Packet::NoOp(..))));
}

#[test]
fn a_switch_that_cannot_be_is_refused() {
    let refused = |config: AsicConfig| AsicTasks::new(&config, EPOCH, 1).expect_err("impossible").to_string();
    let fine = AsicConfig::default();
    assert_eq!(refused(AsicConfig { poll_us: 0, ..fine }), "poll_us must be 1 to 65,535");
    assert_eq!(refused(AsicConfig { slots: 0, ..fine }), "slots must be 1 to 1,048,576");
    assert_eq!(refused(AsicConfig { argument: 5, ..fine }), "argument must be 4, 8, 12 or 16");
    assert!(AsicTasks::new(&AsicConfig { queue: 32_768, argument: 4, ..fine }, EPOCH, 1).is_ok());
    let wide = refused(AsicConfig { queue: 32_768, ..fine });
    assert!(wide.contains("MAP") || wide.contains("map RAM"), "{wide}");
    let error = AsicTasks::new(&AsicConfig { queue: 65_536, ..fine }, EPOCH, 1).expect_err("4 x 65,536 entries");
    assert!(matches!(error, AsicError::Program(_)), "{error}");
}

/// A step of a story: something arrives, or something comes round.
#[derive(Clone, Debug)]
enum Step {
    Submit(Vec<(u8, u8)>),
    Poll { slot: usize, resources: u8 },
    Round(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let task = (1..=2u8, 0..4u8);
    prop_oneof![
        2 => prop::collection::vec(task, 1..6).prop_map(Step::Submit),
        3 => (0..4usize, 0..4u8).prop_map(|(slot, resources)| Step::Poll { slot, resources }),
        6 => (0..64usize).prop_map(Step::Round),
    ]
}

/// What has been submitted and what has come out, with what goes round in any order.
struct Story {
    switch: AsicTasks,
    names: Vec<SlotName>,
    round: Vec<Inside>,
    sequence: u32,
    /// By submission and index: its mask, and whether it was acknowledged, and assigned.
    tasks: BTreeMap<(u32, u8), (u8, bool, bool)>,
    /// Waits that are to be answered, by their sequences.
    waits: BTreeMap<u32, Wait>,
}

impl Story {
    fn new() -> Self {
        let mut switch = switch(Program::Safe, 2, 8);
        let names = slots(&mut switch, 4);
        Self { switch, names, round: Vec::new(), sequence: 0, tasks: BTreeMap::new(), waits: BTreeMap::new() }
    }

    fn take(&mut self, step: &Step) -> Result<(), TestCaseError> {
        let mut turn = Turn::default();
        match step {
            Step::Submit(tasks) => {
                self.sequence += 1;
                let infos: Vec<_> = (0..).zip(tasks).map(|(tid, &(level, mask))| task(tid, level, mask, &[])).collect();
                (0..).zip(tasks).for_each(|(index, &(_, mask))| {
                    self.tasks.insert((self.sequence, index), (mask, false, false));
                });
                self.switch.packet(0, address(1), &submit(self.sequence, &infos), &mut turn);
            }
            Step::Poll { slot, resources } => {
                self.sequence += 1;
                let wait = wait(&self.names[*slot], self.sequence);
                self.waits.insert(self.sequence, wait);
                let asks = retrieve(EPOCH, *resources, &[wait]);
                self.switch.packet(0, address(9), &asks, &mut turn);
            }
            Step::Round(which) if !self.round.is_empty() => {
                let inside = self.round.swap_remove(which % self.round.len());
                self.switch.again(inside, &mut turn);
            }
            Step::Round(_) => {}
        }
        self.round.append(&mut turn.round);
        turn.sent.iter().try_for_each(|(to, bytes)| self.hear(*to, bytes))
    }

    /// An answer to a wait names it, goes to its executor, and is the only one.
    fn answered(&mut self, to: SocketAddr, wait: Wait) -> Result<(), TestCaseError> {
        prop_assert_eq!(self.waits.remove(&wait.sequence.get()), Some(wait));
        prop_assert_eq!(to, address(9));
        Ok(())
    }

    fn hear(&mut self, to: SocketAddr, bytes: &[u8]) -> Result<(), TestCaseError> {
        match parse(bytes) {
            Ok(Packet::SubmitAck(ack)) => {
                prop_assert_eq!(to, address(1));
                let sequence = ack.header.sequence.get();
                prop_assert_eq!(ack.taken.get() ^ ack.not_taken.get(), u32::MAX >> (32 - u32::from(ack.header.count)));
                for index in (0..32u8).filter(|index| ack.taken.get() >> index & 1 == 1) {
                    self.tasks.get_mut(&(sequence, index)).expect("submitted").1 = true;
                }
                for index in (0..32u8).filter(|index| ack.not_taken.get() >> index & 1 == 1) {
                    prop_assert!(
                        !self.tasks.remove(&(sequence, index)).expect("submitted").2,
                        "T7: refused and assigned"
                    );
                }
            }
            Ok(Packet::Assign(_, [a])) => {
                let key = (a.submission.get(), a.index);
                let (mask, _, assigned) = self.tasks.get_mut(&key).expect("submitted, and not refused");
                prop_assert!(!*assigned, "T2: {:?} is assigned twice", key);
                prop_assert_eq!((a.task.resources, a.task.tid.get()), (*mask, key.1.into()));
                *assigned = true;
                self.answered(to, Wait { slot: a.slot, generation: a.generation, sequence: a.sequence })?;
            }
            Ok(Packet::NoOp(_, [wait])) => self.answered(to, *wait)?,
            other => prop_assert!(false, "{:?}", other),
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, rng_seed: RngSeed::Fixed(2026), ..ProptestConfig::default() })]

    /// T1, T2, T7 on the wire: whatever comes between a packet and its next round, each acknowledged task is assigned once.
    #[test]
    fn t1_each_acknowledged_task_is_assigned_once(steps in prop::collection::vec(step(), 1..120)) {
        let mut story = Story::new();
        steps.iter().try_for_each(|step| story.take(step))?;
        while !story.round.is_empty() {
            story.take(&Step::Round(0))?;
        }
        story.switch.check_at_rest().map_err(TestCaseError::fail)?;
        for _ in 0..=16 {
            story.take(&Step::Poll { slot: 0, resources: 3 })?;
        }
        prop_assert!(story.round.is_empty(), "an executor that may run all searches nothing");
        for (name, (_, acknowledged, assigned)) in &story.tasks {
            prop_assert!(*acknowledged && *assigned, "T1: {:?} is acknowledged {}, assigned {}", name, acknowledged, assigned);
        }
        prop_assert!(story.waits.is_empty(), "each is answered: {:?}", story.waits);
        prop_assert_eq!(story.switch.counters().dropped, 0);
    }

    /// T1, T2, T11: packets that are repeated, late and forged, from executors that poll: the books balance after each.
    #[test]
    fn t1_books_balance_whatever_is_sent(story in prop::collection::vec(any::<u8>(), 0..2000)) {
        let told = play_asic(&story);
        prop_assert!(told.is_ok(), "{}: b\"{}\"", told.unwrap_err(), story.escape_ascii());
    }
}

/// These stories are worth telling: tasks are taken, refused, assigned.
#[test]
fn stories_reach_the_queue() {
    let mut random = rand_pcg::Pcg64Mcg::new(2026);
    let mut seen = [0; 3];
    for _ in 0..80 {
        let bytes: Vec<u8> = (0..2000).map(|_| random.next_u32() as u8).collect();
        let stats = play_asic(&bytes).expect("the books balance");
        let here = [stats.submitted, stats.assigned, stats.reasons[Verdict::Full as usize]];
        seen.iter_mut().zip(here).for_each(|(sum, times)| *sum += times);
    }
    assert!(seen.iter().all(|&times| times >= 20), "{seen:?}");
}
