//! Walks through the safe queue, packet by packet.

mod common;

use common::page_shows;
use midflight_rmt::tasks::check::{Passes, passes};
use midflight_rmt::tasks::safe::{Answer, Config, Kind, Safe, Task, Why};
use midflight_rmt::{Machine, Packet, Refusal, Target, To, Word};

const CLIENT: (u32, u16) = (0x0A00_0001, 40_001);
const JOB: (u32, u32) = (7, 8);

struct Switch {
    safe: Safe,
    machine: Machine,
    passes: u32,
}

/// A packet's next pass, or its result.
enum Next {
    Inside(Packet),
    Out(Answer),
}

impl Switch {
    fn new(levels: u32, size: u32) -> Self {
        Self::starting_at(levels, size, 0)
    }

    fn starting_at(levels: u32, size: u32, start: u32) -> Self {
        let safe = Safe::build(Config { levels, size, words: 1 }, &Target::TOFINO_1).expect("it fits");
        Self { machine: safe.machine_from(start), safe, passes: 0 }
    }

    fn step(&mut self, packet: Packet) -> Next {
        self.passes += 1;
        let outputs = self.machine.pass(packet);
        assert_eq!(outputs.copies, [None, None], "the safe queue mirrors nothing");
        match self.safe.answer(&outputs.packet) {
            Some(answer) => Next::Out(answer),
            None => {
                assert_eq!(outputs.packet.to, To::Recirculated);
                Next::Inside(outputs.packet.packet)
            }
        }
    }

    fn run(&mut self, packet: Packet) -> Answer {
        match self.step(packet) {
            Next::Inside(packet) => self.run(packet),
            Next::Out(answer) => answer,
        }
    }

    /// Returns the bitmaps of taken and refused tasks.
    fn submit(&mut self, tasks: &[Task]) -> (u32, u32) {
        let packet = self.safe.submit(CLIENT, JOB, 5, tasks);
        match self.run(packet) {
            Answer::Ack { client, sequence: 5, taken, refused, why } if client == CLIENT.0 => {
                assert_eq!(why != 0, refused != 0);
                (taken, refused)
            }
            answer => panic!("{answer:?}"),
        }
    }

    fn poll(&self, resources: u8) -> Packet {
        self.safe.retrieve(9, resources, 1)
    }

    fn retrieve(&mut self, resources: u8) -> Option<u32> {
        let packet = self.poll(resources);
        let answer = self.run(packet);
        given(answer)
    }
}

/// The task of an ASSIGN, all of whose words must be its own.
fn given(answer: Answer) -> Option<u32> {
    match answer {
        Answer::Assign { executor: 9, client, job, task: found, .. } => {
            assert_eq!((client, job), (CLIENT, JOB));
            assert_eq!(found, task(found.tid, found.level, found.resources));
            Some(found.tid)
        }
        Answer::NoOp { executor: 9 } => None,
        answer => panic!("{answer:?}"),
    }
}

fn task(tid: u32, level: u8, resources: u8) -> Task {
    let [attempt, argument_length] = [tid as u8 ^ 0x55, tid as u8 & 3];
    Task { tid, level, resources, attempt, argument_length, words: [tid + 1000, !tid, 0, 0, 0] }
}

fn plain(tids: impl IntoIterator<Item = u32>) -> Vec<Task> {
    tids.into_iter().map(|tid| task(tid, 1, 0)).collect()
}

#[test]
fn it_fits_tofino_1_with_four_levels_of_32_k_entries() {
    let safe = Safe::build(Config::LARGEST, &Target::TOFINO_1).unwrap_or_else(|refusal| panic!("{refusal}"));
    let report = safe.program().report();
    assert_eq!(report.depth, [12, 0], "all of it in ingress");
    let entries: Vec<_> = report.registers.iter().filter(|register| register.name.starts_with("entry_")).collect();
    assert!(entries.iter().all(|register| register.cells == 4 * 32 * 1024));
    let bits: u32 = entries.iter().map(|register| register.cell.word_bits()).sum();
    assert_eq!(bits, 8 * 30, "an entry");
    for (levels, size, words) in [(1, 128 << 10, 1), (2, 64 << 10, 1), (4, 16 << 10, 4), (1, 64 << 10, 4)] {
        assert!(Safe::build(Config { levels, size, words }, &Target::TOFINO_1).is_ok());
    }
    for (levels, size) in [(0, 4), (5, 4), (1, 3), (1, 1), (4, 512 << 10)] {
        let refusal =
            Safe::build(Config { levels, size, words: 1 }, &Target::TOFINO_1).map(|_| ()).expect_err("no such program");
        assert!(matches!(refusal, Refusal::Parameters { .. }), "{refusal}");
    }
}

/// On Tofino 2 a word has two registers: tests the last entries of the first, and the first ones of the second.
#[test]
fn t1_words_in_two_banks_are_one_queue() {
    let safe = Safe::build(Config::LARGEST_ON_TOFINO_2, &Target::TOFINO_2).expect("it fits");
    let mut switch = Switch { machine: safe.machine_from((32 << 10) - 2), safe, passes: 0 };
    for start in [1, 5] {
        assert_eq!(switch.submit(&plain(start..start + 4)), (0b1111, 0));
        assert_eq!(switch.safe.queue(&switch.machine, 0), [start, start + 1, start + 2, start + 3]);
        (start..start + 4).for_each(|tid| assert_eq!(switch.retrieve(0), Some(tid)));
    }
    // A search through both.
    let mut switch = Switch { machine: switch.safe.machine_from((32 << 10) - 2), safe: switch.safe, passes: 0 };
    let (lacking, last) = ((1..=3).map(|tid| task(tid, 1, 1)), task(4, 1, 0));
    assert_eq!(switch.submit(&lacking.chain([last]).collect::<Vec<_>>()), (0b1111, 0));
    assert_eq!(switch.retrieve(0), Some(4));
    (1..=3).for_each(|tid| assert_eq!(switch.retrieve(1), Some(tid)));
}

#[test]
fn t7_what_a_full_queue_refuses_is_listed() {
    let mut switch = Switch::new(2, 4);
    assert_eq!(switch.submit(&plain(1..=3)), (0b111, 0));
    let batch = [task(4, 1, 0), task(5, 1, 0), task(6, 2, 0), task(7, 1, 0), task(8, 3, 0), task(9, 0, 0)];
    assert_eq!(switch.submit(&batch), (0b000101, 0b111010), "one of level 1, one of level 2; no level 3 or 0");
    let expected = [Some(1), Some(2), Some(3), Some(4), Some(6), None];
    assert_eq!((0..6).map(|_| switch.retrieve(0)).collect::<Vec<_>>(), expected);
    let packet = switch.safe.submit(CLIENT, JOB, 5, &[task(1, 1, 0), task(1, 9, 0)]);
    assert!(matches!(switch.run(packet), Answer::Ack { taken: 1, refused: 2, why, .. } if why == Why::Level as u32));
    assert_eq!(switch.submit(&plain(0..32)), (0b111, !0b111));
    let packet = switch.safe.submit(CLIENT, JOB, 5, &plain([1]));
    assert!(matches!(switch.run(packet), Answer::Ack { taken: 0, refused: 1, why, .. } if why == Why::Full as u32));
}

#[test]
fn t11_malformed_packets_change_nothing() {
    let switch = Switch::new(3, 4);
    let f = switch.safe.fields().clone();
    let mut packets = vec![switch.safe.submit(CLIENT, JOB, 5, &[]), switch.safe.submit(CLIENT, JOB, 5, &plain(0..33))];
    packets.extend([0, 4, 255].map(|level| switch.safe.retrieve(9, 0, level)));
    packets.extend([0, 5, 99].map(|op| switch.poll(0).with(f.op, op)));
    packets.extend(Kind::ALL[4..].iter().map(|&kind| switch.poll(0).with(f.op, kind as u32)));
    for packet in packets {
        let mut machine = switch.machine.clone();
        let outputs = machine.pass(packet.clone());
        assert_eq!(outputs.packet.to, To::Dropped("malformed"), "{packet:?}");
        assert!(machine == switch.machine, "{packet:?}");
    }
    // Fewer records than the packet says: the missing ones have no level.
    let mut switch = switch;
    let packet = switch.safe.submit(CLIENT, JOB, 5, &plain([1])).with(f.tasks, 3);
    assert!(matches!(switch.run(packet), Answer::Ack { taken: 0b001, refused: 0b110, .. }));
}

#[test]
fn a_client_cannot_grant_itself_credit() {
    let mut switch = Switch::new(1, 2);
    let f = switch.safe.fields().clone();
    let packet = switch.safe.submit(CLIENT, JOB, 5, &plain(1..=4));
    let packet = packet.with(f.credit, 99).with(f.credit_of, 1).with(f.taken, !0).with(f.bit, 16);
    assert!(matches!(switch.run(packet), Answer::Ack { taken: 0b0011, refused: 0b1100, .. }));
    let seen = switch.safe.program().register("credit_seen").expect("a register");
    assert_eq!(switch.machine.read(seen, 0, Word::Low), 2);
}

/// Passes of retrieves, and of all that they cause; those of submissions are separate.
#[test]
fn a_task_takes_one_pass_to_retrieve() {
    let Passes { submit, retrieve } = passes(&Switch::new(1, 64).safe);
    println!("passes a task: {retrieve:.3} to retrieve it, {submit:.3} to submit it");
    assert!((1.0..=1.1).contains(&retrieve) && (1.0..=1.1).contains(&submit), "{submit} {retrieve}");
}

/// `UPDATE_DOCS=1 cargo test -p midflight-rmt` writes it.
#[test]
fn the_page_shows_this_program() {
    let safe = Safe::build(Config::LARGEST, &Target::TOFINO_1).unwrap_or_else(|refusal| panic!("{refusal}"));
    let program = safe.program();
    let route = program.entries("route").expect("a table");
    for (name, shown) in [("stages", program.stages()), ("route", route), ("report", program.report().to_string())] {
        page_shows("printed/asic.md", &format!("safe: {name}"), &shown);
    }
}
