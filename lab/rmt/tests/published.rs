//! Walks through the published queue, packet by packet.

mod common;

use common::page_shows;
use midflight_rmt::tasks::published::{Answer, Config, Empty, Kind, Published, Task};
use midflight_rmt::{Machine, Packet, Refusal, Resource, Target, To, Word};
use proptest::prelude::*;
use std::collections::VecDeque;

const CLIENT: u32 = 0x0A00_0001;
const JOB: (u32, u32) = (7, 9);

/// A switch that queues recirculated packets.
struct Switch {
    published: Published,
    machine: Machine,
    round: VecDeque<Packet>,
    passes: u32,
}

impl Switch {
    fn new(levels: u32, size: u32, empty: Empty) -> Self {
        let config = Config { levels, size, words: 1, empty };
        let published = Published::build(config, &Target::TOFINO_1).unwrap_or_else(|refusal| panic!("{refusal}"));
        Self { machine: published.machine(), published, round: VecDeque::new(), passes: 0 }
    }

    /// One pass; recirculated packets wait.
    fn pass(&mut self, packet: Packet) -> Vec<Answer> {
        self.passes += 1;
        let mut answers = Vec::new();
        for sent in self.machine.pass(packet) {
            match self.published.answer(&sent) {
                Some(answer) => answers.push(answer),
                None => self.round.push_back(sent.packet),
            }
        }
        answers
    }

    fn step(&mut self) -> Vec<Answer> {
        let packet = self.round.pop_front().expect("something goes round");
        self.pass(packet)
    }

    /// Runs until nothing recirculates. Packets that end silently in the switch are omitted.
    fn run(&mut self, packet: Packet) -> Vec<Answer> {
        let (mut answers, start) = (self.pass(packet), self.passes);
        while !self.round.is_empty() {
            assert!(self.passes < start + 1000, "goes round for ever");
            answers.extend(self.step());
        }
        answers.retain(|answer| !matches!(answer, Answer::Dropped("submitted" | "repaired" | "empty")));
        answers
    }

    fn submit(&mut self, tasks: &[Task]) -> Vec<Answer> {
        let packet = self.published.submit(CLIENT, JOB, tasks);
        self.run(packet)
    }

    fn retrieve(&mut self, executor: u32, resources: u8) -> Vec<Answer> {
        let packet = self.published.retrieve(executor, resources);
        self.run(packet)
    }

    fn pointer(&self, name: &str, level: u32) -> u32 {
        let register = self.published.program().register(name).expect("declared");
        self.machine.read(register, level, Word::Low)
    }
}

fn task(tid: u32, level: u8, resources: u8) -> Task {
    Task { tid, level, resources, words: vec![tid + 1000] }
}

fn plain(tid: u32) -> Task {
    task(tid, 1, 0)
}

fn assigned(executor: u32, task: Task) -> Vec<Answer> {
    vec![Answer::Assign { executor, client: CLIENT, job: JOB, task }]
}

fn no_op(executor: u32) -> Vec<Answer> {
    vec![Answer::NoOp { executor }]
}

fn full(tids: &[u32]) -> Vec<Answer> {
    vec![Answer::Full { client: CLIENT, tids: tids.to_vec() }]
}

/// Bolt keeps pointers in ingress and entries in egress (ch. 4). Between the two, packets wait for their ports, and a SUBMIT's differs from
/// a RETRIEVE's. So a RETRIEVE that found `is_valid` may reach the entry first, and take its former contents.
#[test]
fn a_retrieve_may_overtake_a_submit_between_pointer_and_entry() {
    let mut switch = Switch::new(1, 2, Empty::NoOp);
    let submit = switch.published.submit(CLIENT, JOB, &[plain(1)]);
    let retrieve = switch.published.retrieve(51, 0);
    let (submitted, _) = switch.machine.ingress(submit);
    let (retrieved, _) = switch.machine.ingress(retrieve);
    assert_eq!([submitted.to(), retrieved.to()], [To::Recirculated, To::Requester]);
    let (sent, _) = switch.machine.egress(retrieved);
    let task = Task { tid: 0, level: 1, resources: 0, words: vec![0] };
    let nothing = Answer::Assign { executor: 51, client: 0, job: (0, 0), task };
    assert_eq!(switch.published.answer(&sent), Some(nothing), "assigned before it was stored");
    let (sent, _) = switch.machine.egress(submitted);
    assert_eq!(sent.to, To::Dropped("submitted"));
    assert_eq!(switch.retrieve(52, 0), no_op(52), "and task 1 is lost");
}

#[test]
fn falcon_ignores_what_bolt_answers_with_a_no_op() {
    let mut switch = Switch::new(1, 4, Empty::Ignored);
    let packet = switch.published.retrieve(51, 0);
    assert_eq!(switch.pass(packet), [Answer::Dropped("empty")]);
}

#[test]
fn t11_what_is_not_lawful_changes_nothing() {
    let mut switch = Switch::new(3, 4, Empty::NoOp);
    let before = switch.machine.clone();
    let fields = switch.published.fields().clone();
    let submit = switch.published.submit(CLIENT, JOB, &[plain(1)]);
    let retrieve = switch.published.retrieve(51, 0);
    for (packet, reason) in [
        (submit.clone().with(fields.tprio, 0), "malformed"),
        (submit.clone().with(fields.tprio, 4), "malformed"),
        (submit.clone().with(fields.tasks, 0), "no tasks"),
        (submit.with(fields.op, 0), "malformed"),
        (retrieve.clone().with(fields.rtrv_prio, 4), "malformed"),
        (retrieve.clone().with(fields.op, Kind::Repair as u32), "malformed"),
        (retrieve.with(fields.op, Kind::Full as u32), "malformed"),
    ] {
        assert_eq!(switch.pass(packet), [Answer::Dropped(reason)]);
        assert!(switch.machine == before);
    }
}

#[test]
fn the_papers_sizes_fit_and_the_next_ones_do_not() {
    for config in [Config::BOLT, Config::FALCON] {
        let published = Published::build(config, &Target::TOFINO_1).unwrap_or_else(|refusal| panic!("{refusal}"));
        assert_eq!(published.program().report().depth, [7, 12]);
        let refusal = Published::build(Config { words: 8, ..config }, &Target::TOFINO_1).expect_err("no room");
        let Refusal::OverBudget { what, place, resource: Resource::MapRams, .. } = &refusal else {
            panic!("{refusal}")
        };
        assert_eq!((what.as_str(), place.stage), ("register tdesc7", 11), "{refusal}");
    }
    let twice = Published::build(Config { size: 64 << 10, ..Config::BOLT }, &Target::TOFINO_1).expect_err("no room");
    assert!(
        matches!(&twice, Refusal::OverBudget { what, resource: Resource::MapRams, .. } if what == "register tdesc1, bank 0"),
        "{twice}"
    );
    for size in [0, 1, 3, 2 << 20] {
        assert!(matches!(
            Published::build(Config { size, ..Config::FALCON }, &Target::TOFINO_1),
            Err(Refusal::Parameters { .. })
        ));
    }
}

/// On Tofino 2 a word has two registers: tests the last entries of the first, and the first ones of the second. The levels are consecutive,
/// so the second register begins with level 3.
#[test]
fn t1_levels_in_two_banks_keep_their_tasks() {
    let published = Published::build(Config::LARGEST_ON_TOFINO_2, &Target::TOFINO_2).expect("it fits");
    let mut switch = Switch { machine: published.machine(), published, round: VecDeque::new(), passes: 0 };
    let size = Config::LARGEST_ON_TOFINO_2.size;
    for (level, start) in [(0, size - 2), (1, size - 2), (2, 0), (3, size - 2)] {
        for name in ["add_ptr", "retrieve_ptr"] {
            let register = switch.published.program().register(name).expect("declared");
            switch.machine.write(register, level, Word::Low, start);
        }
    }
    let of = |tid: u32, level| Task { words: (tid..tid + 5).collect(), ..task(tid, level, 0) };
    let tasks: Vec<Task> =
        (1..=4).flat_map(|level| (0..4).map(move |n| of(u32::from(level) * 10 + n, level))).collect();
    assert_eq!(switch.submit(&tasks), []);
    tasks.into_iter().for_each(|task| assert_eq!(switch.retrieve(51, 0), assigned(51, task)));
    assert_eq!(switch.retrieve(52, 0), no_op(52));
}

/// The ideal queue, if one packet ends before the next comes.
struct Ideal {
    levels: Vec<VecDeque<Task>>,
    size: usize,
}

impl Ideal {
    fn submit(&mut self, tasks: &[Task]) -> Vec<Answer> {
        for (number, task) in tasks.iter().enumerate() {
            let level = &mut self.levels[usize::from(task.level) - 1];
            if level.len() == self.size {
                return full(&tasks[number..].iter().map(|task| task.tid).collect::<Vec<_>>());
            }
            level.push_back(task.clone());
        }
        Vec::new()
    }

    /// The first level that has a task decides, even if none of its tasks fits.
    fn retrieve(&mut self, executor: u32, resources: u8) -> Vec<Answer> {
        let Some(level) = self.levels.iter_mut().find(|level| !level.is_empty()) else { return no_op(executor) };
        match level.iter().position(|task| task.resources & !resources == 0) {
            Some(at) => assigned(executor, level.remove(at).expect("found there")),
            None => no_op(executor),
        }
    }
}

#[derive(Clone, Debug)]
enum Deed {
    Submit(Vec<(u8, u8)>),
    Retrieve(u8),
}

fn deed() -> impl Strategy<Value = Deed> {
    let tasks = prop::collection::vec((1u8..4, 0u8..4), 1..6);
    prop_oneof![tasks.prop_map(Deed::Submit), (0u8..4).prop_map(Deed::Retrieve), (0u8..4).prop_map(Deed::Retrieve)]
}

proptest! {
    /// One packet at a time the published queue is exact; its errors need crossing packets.
    #[test]
    fn without_crossing_packets_the_queue_is_ideal(
        log_size in 1u32..4, start in prop_oneof![Just(0u32), Just(u32::MAX - 3)], deeds in prop::collection::vec(deed(), 1..60),
    ) {
        let size = 1 << log_size;
        let mut switch = Switch::new(3, size, Empty::NoOp);
        for level in 0..3 {
            for name in ["add_ptr", "retrieve_ptr"] {
                let register = switch.published.program().register(name).expect("declared");
                switch.machine.write(register, level, Word::Low, start);
            }
        }
        let mut ideal = Ideal { levels: vec![VecDeque::new(); 3], size: size as usize };
        let mut tid = 0;
        for (executor, deed) in (100..).zip(deeds) {
            match deed {
                Deed::Submit(tasks) => {
                    let number = |(level, resources)| { tid += 1; task(tid, level, resources) };
                    let tasks: Vec<Task> = tasks.into_iter().map(number).collect();
                    prop_assert_eq!(switch.submit(&tasks), ideal.submit(&tasks));
                }
                Deed::Retrieve(resources) => {
                    prop_assert_eq!(switch.retrieve(executor, resources), ideal.retrieve(executor, resources));
                }
            }
            prop_assert_eq!(switch.pointer("is_repairing", 0), 0);
        }
    }
}

/// A REPAIR carries its three fields and nothing of the job that caused it.
#[test]
fn a_repair_carries_what_it_repairs_and_no_more() {
    let mut switch = Switch::new(1, 2, Empty::NoOp);
    assert_eq!(switch.submit(&[plain(1), plain(2)]), []);
    let packet = switch.published.submit(CLIENT, JOB, &[plain(3), plain(4)]);
    let outputs = switch.machine.pass(packet);
    assert_eq!(outputs.packet.to, To::Requester);
    let [Some(repair), None] = outputs.copies else { panic!("one copy, of ingress") };
    assert_eq!(repair.tail(), [0; 0]);
    assert_eq!(repair.get(switch.published.fields().address), 0);
}

/// `UPDATE_DOCS=1 cargo test -p midflight-rmt` writes it.
#[test]
fn the_page_shows_this_program() {
    let published = Published::build(Config::BOLT, &Target::TOFINO_1).unwrap_or_else(|refusal| panic!("{refusal}"));
    let program = published.program();
    let route = program.entries("route").expect("a table");
    for (name, shown) in [("stages", program.stages()), ("route", route), ("report", program.report().to_string())] {
        page_shows("printed/asic.md", &format!("published: {name}"), &shown);
    }
}
