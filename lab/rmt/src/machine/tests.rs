//! Compares the machine with a second, simple interpreter of the same program, in which each stage reads a copy of its input.

use super::*;
use crate::action::{Effect, Op, Verb};
use crate::field::{Field, Operand, Width};
use crate::program::{Builder, Pipeline, Source};
use crate::register::{Alu, Cell, Index, Output, Test};
use crate::table::{Match, Relation, Table};
use crate::{Action, Destination, Target, argument, low_bits};
use proptest::prelude::*;
use std::collections::HashMap;

type Fields = HashMap<Field, u32>;

struct Reference<'a> {
    source: &'a Source,
    /// Cells of each register, low and high.
    registers: Vec<Vec<[u32; 2]>>,
}

impl<'a> Reference<'a> {
    fn new(source: &'a Source) -> Self {
        Self { source, registers: source.registers.iter().map(|r| vec![[0; 2]; r.cells as usize]).collect() }
    }

    /// Returns the fields at the end of ingress, and the destination.
    fn pass(&mut self, mut fields: Fields) -> (Fields, To) {
        let mut to = To::Dropped("unrouted");
        for stage in 0..12 {
            let before = fields.clone();
            // In reverse: the order of a stage's tables must not matter.
            for table in self.source.tables.iter().rev().filter(|table| table.stage == stage) {
                if let Some((action, arguments)) = chosen(table, &before) {
                    self.run(action, arguments, &before, &mut fields, &mut to);
                }
            }
        }
        (fields, to)
    }

    fn run(&mut self, action: &Action, arguments: &[u32], before: &Fields, after: &mut Fields, to: &mut To) {
        let value = |operand: Operand| match operand {
            Operand::Field(field) => before[&field],
            Operand::Const(value) => value,
            Operand::Argument(n) => arguments[n as usize],
        };
        for op in &action.ops {
            let Op { verb, to, a, b, .. } = *op;
            let (a, b) = (u64::from(value(a)), u64::from(value(b)));
            let result = match verb {
                Verb::Set => a,
                Verb::Add => a + b,
                Verb::Sub => a + (1 << 32) - b,
                Verb::And => a & b,
                Verb::AndNot => a & !b,
                Verb::Or => a | b,
                Verb::Xor => a ^ b,
                Verb::ShiftLeft => a << b,
                Verb::ShiftRight => a >> b,
                Verb::Deposit { from, bits, into } => {
                    let bit = |n: u32| {
                        let taken = (into..into + bits).contains(&n);
                        if taken { a >> (n - into + from) & 1 } else { u64::from(before[&to]) >> n & 1 }
                    };
                    (0..32).map(|n| bit(n) << n).sum()
                }
            };
            after.insert(to, (result % (1 << to.width().bits())) as u32);
        }
        if let Some(access) = action.access {
            let index = match access.index {
                Index::Const(index) => index,
                Index::Slice { field, low, bits } => (before[&field] >> low) % (1 << bits),
            };
            let modulus = 1u64 << self.source.register(access.register).cell.word_bits();
            let cell = &mut self.registers[access.register.0 as usize][index as usize];
            let old = *cell;
            let met = |(word, test, operand)| {
                let (word, value) = (old[word as usize], value(operand));
                match test {
                    Test::Equal => word == value,
                    Test::NotEqual => word != value,
                    Test::Less => word < value,
                    Test::Greater => word > value,
                    Test::Before => word.wrapping_sub(value) >= 1 << 31,
                    Test::After => value.wrapping_sub(word) >= 1 << 31,
                }
            };
            let none = crate::register::Arm { low: Alu::Keep, high: Alu::Keep };
            let (arm, case) = match (access.test.is_some_and(met), access.second.map(met)) {
                (true, _) => (access.then, 1),
                (false, None) => (access.otherwise, 0),
                (false, Some(true)) => (access.otherwise, 2),
                (false, Some(false)) => (none, 0),
            };
            for (word, alu) in cell.iter_mut().zip([arm.low, arm.high]) {
                let w = u64::from(*word);
                let of = |operand: Operand| u64::from(value(operand));
                let result = match alu {
                    Alu::Keep => w,
                    Alu::Word(of) => u64::from(old[of as usize]),
                    Alu::Set(v) => of(v),
                    Alu::Add(v) => w + of(v),
                    Alu::Sub(v) => w + modulus - of(v) % modulus,
                    Alu::And(v) => w & of(v),
                    Alu::Clear(v) => w & !of(v),
                    Alu::Or(v) => w | of(v),
                    Alu::Xor(v) => w ^ of(v),
                };
                *word = (result % modulus) as u32;
            }
            if let Some((output, field)) = access.output {
                let given = match output {
                    Output::Old(word) => old[word as usize],
                    Output::New(word) => cell[word as usize],
                    Output::Predicate => case,
                };
                after.insert(field, given);
            }
        }
        for (effect, _) in &action.effects {
            match *effect {
                Effect::Forward(Destination::Port(port)) => *to = To::Port(value(port)),
                Effect::Drop(reason) => *to = To::Dropped(reason),
                _ => unreachable!("not drawn"),
            }
        }
    }
}

fn chosen<'a>(table: &'a Table, fields: &Fields) -> Option<(&'a Action, &'a [u32])> {
    let open = table.gateway.iter().all(|compare| {
        let value = fields[&compare.field];
        match compare.relation {
            Relation::Masked { mask, value: wanted, equal } => (value & mask == wanted & mask) == equal,
            Relation::Below(end) => value < end,
            Relation::AtLeast(start) => value >= start,
            Relation::Field { other, equal } => (value == fields[&other]) == equal,
        }
    });
    if !open {
        return None;
    }
    let matches = |(key, wanted): (&crate::table::Key, &Match)| match *wanted {
        Match::Masked { mask, value } => (fields[&key.field] ^ value) & mask & key.field.width().mask() == 0,
        Match::Between(low, high) => low <= fields[&key.field] && fields[&key.field] <= high,
    };
    let entry = table.entries.iter().find(|entry| table.keys.iter().zip(&entry.matches).all(matches));
    match entry {
        Some(entry) => Some((&table.actions[entry.action], &entry.arguments)),
        None => table.default.map(|action| (&table.actions[action], &[][..])),
    }
}

/// Random numbers for a table; each is taken modulo the number of choices.
type Draw = (usize, [u8; 8], [u32; 3]);

/// Header fields that tables share: four of 32 bits, two of 8.
fn fields(b: &mut Builder) -> Vec<Field> {
    let wide = (0..4).map(|n| b.header(format!("w{n}"), Width::W32)).collect::<Vec<_>>();
    let narrow = (0..2).map(|n| b.header(format!("b{n}"), Width::W8)).collect::<Vec<_>>();
    [wide, narrow].concat()
}

fn add_table(b: &mut Builder, all: &[Field], taken: &mut Vec<(usize, Field)>, number: usize, draw: &Draw) {
    let (stage, choices, words) = draw;
    let stage = stage % 3;
    let [gate, gate_field, to, a, verb, key, stateful, test] = choices.map(usize::from);
    let (wide, narrow) = (&all[..4], &all[4..]);
    let (to, a) = (wide[to % 4], wide[a % 4]);
    // One write per field and stage: a written field is not chosen again.
    let mut claim = |field: Field| {
        let free = !taken.contains(&(stage, field));
        taken.push((stage, field));
        free
    };
    let operation = |action: Action, b: Operand| match verb % 9 {
        0 => action.set(to, b),
        1 => action.add(to, a, b),
        2 => action.sub(to, a, b),
        3 => action.and(to, a, b),
        4 => action.and_not(to, a, b),
        5 => action.or(to, a, b),
        6 => action.xor(to, a, b),
        7 => action.deposit(to, 3, a, 7, 9),
        _ => action.shift_right(to, a, 5),
    };
    let (mut first, mut second) = (Action::new("first"), Action::new("second"));
    if claim(to) {
        first = operation(first, argument(0));
        second = operation(second, wide[(verb + 1) % 4].into());
    }
    let output = wide[stateful % 4];
    let (cell, word) = if test % 2 == 0 { (Cell::Pair, Word::High) } else { (Cell::W32, Word::Low) };
    let register = b.register(Pipeline::Ingress, stage, format!("r{number}"), cell, 4);
    let tests = [Test::Equal, Test::NotEqual, Test::Less, Test::Greater, Test::Before, Test::After];
    let mut access = register.at(low_bits(narrow[stateful % 2], 2)).test(tests[test % 6], words[0]);
    access = access.then(Alu::add(wide[test % 4])).otherwise(Alu::set(words[1]));
    if cell == Cell::Pair {
        access = access.then_high(Alu::Xor(wide[test % 4].into()));
        access = access.otherwise_high(Alu::Word([Word::Low, Word::High][test / 2 % 2]));
    }
    if stateful % 2 == 0 {
        access = access.otherwise_if(word, tests[stateful / 2 % 6], words[1]);
    }
    if claim(output) {
        access = access.give([Output::Old(word), Output::New(word), Output::Predicate][stateful % 3], output);
    }
    second = second.access(access);
    let table = b.table(Pipeline::Ingress, stage, format!("t{number}"));
    match gate % 5 {
        0 => table.when(wide[gate_field % 4].equals(wide[(gate_field + 1) % 4])),
        1 => table.when(narrow[gate_field % 2].below(128)),
        2 => table.when(narrow[gate_field % 2].at_least(7)).when(wide[gate_field % 4].masked(1, 1)),
        3 => table.when(wide[gate_field % 4].is_not(words[0])),
        _ => table,
    };
    match key % 3 {
        0 => table.ternary(wide[key % 4]).entry([Match::Masked { mask: words[2] % 8, value: words[1] }], &first, words),
        1 => table.range(narrow[0]).entry([Match::Between(words[2] % 256, 200)], &first, words).run(&second),
        _ => table.exact(narrow[1]).entry([Match::is(words[2] % 256)], &first, &words[1..]).run(&second),
    };
}

proptest! {
    /// All tables of a stage see the packet as it entered the stage, in any order; the next stage sees their writes.
    #[test]
    fn stages_are_parallel(
        draws in prop::collection::vec((0usize..3, any::<[u8; 8]>(), prop::array::uniform3(prop_oneof![0u32..8, any::<u32>()])), 1..8),
        packets in prop::collection::vec(prop::array::uniform6(prop_oneof![0u32..4, any::<u32>()]), 1..20),
    ) {
        let mut b = Builder::new("drawn");
        let all = fields(&mut b);
        let mut taken = Vec::new();
        for (number, draw) in draws.iter().enumerate() {
            add_table(&mut b, &all, &mut taken, number, draw);
        }
        let port = Action::new("port").forward(Destination::Port(all[0].into()));
        b.table(Pipeline::Ingress, 3, "port").when(all[4].below(9)).run(&port);
        // Allows eight registers in one stage, because this test is not about budgets. A gateway must not compare a difference.
        let target = Target { stateful_alus: 9, map_rams: 99, ..Target::TOFINO_1 };
        let Ok(program) = b.build(&target) else { return Err(TestCaseError::reject("a gateway on a difference")) };
        let (mut machine, mut reference) = (Machine::load(&program), Reference::new(&program.source));
        for values in packets {
            let mut packet = machine.packet();
            all.iter().zip(values).for_each(|(&field, value)| packet.set(field, value));
            let (fields, to) = reference.pass(all.iter().map(|&field| (field, packet.get(field))).collect());
            let sent = machine.pass(packet).packet;
            prop_assert_eq!(sent.to, to);
            all.iter().for_each(|field| assert_eq!(sent.packet.get(*field), fields[field], "{:?}", field));
            for (n, cells) in reference.registers.iter().enumerate() {
                let register = Register(n as u16);
                let pair = program.source.register(register).cell == Cell::Pair;
                for (index, cell) in (0..).zip(cells) {
                    prop_assert_eq!(machine.read(register, index, Word::Low), cell[0]);
                    prop_assert!(!pair || machine.read(register, index, Word::High) == cell[1]);
                }
            }
        }
    }
}

/// Each pass consumes one record.
#[test]
fn records_come_off_one_a_pass() {
    let mut b = Builder::new("records");
    let (left, value) = (b.header("left", Width::W8), b.header("value", Width::W32));
    b.record(&[value]);
    let again = Action::new("again").sub(left, left, 1).forward(Destination::Recirculate);
    b.table(Pipeline::Ingress, 0, "again").when(left.is_not(0)).run(&again);
    b.table(Pipeline::Egress, 0, "pop").run(&Action::new("pop").pop());
    let mut machine = Machine::load(&b.build(&Target::TOFINO_1).expect("a lawful program"));
    let mut packet = machine.packet_with_records(&[&[7], &[8], &[9]]).with(left, 3);
    for expected in [7, 8, 9, 0] {
        assert_eq!(packet.get(value), expected);
        let sent = machine.pass(packet).packet;
        assert_eq!(sent.to == To::Recirculated, expected != 0);
        packet = sent.packet;
    }
    assert_eq!(packet.tail(), &[] as &[u32]);
}

/// A record that ingress removes is gone in egress; a packet that ingress drops never gets there.
#[test]
fn records_that_ingress_takes_off_are_gone_in_egress() {
    let mut b = Builder::new("records");
    let (value, seen) = (b.header("value", Width::W32), b.header("seen", Width::W32));
    b.record(&[value]);
    b.table(Pipeline::Ingress, 0, "pop").run(&Action::new("pop").pop());
    let send = Action::new("send").forward(Destination::Requester);
    b.table(Pipeline::Ingress, 0, "send").when(value.is_not(9)).run(&send);
    b.table(Pipeline::Egress, 0, "see").run(&Action::new("see").set(seen, value));
    let mut machine = Machine::load(&b.build(&Target::TOFINO_1).expect("a lawful program"));
    for (records, to, expected) in [([7, 8], To::Requester, 8), ([9, 8], To::Dropped("unrouted"), 0)] {
        let packet = machine.packet_with_records(&[&records[..1], &records[1..]]);
        let sent = machine.pass(packet).packet;
        assert_eq!((sent.to, sent.packet.get(value), sent.packet.get(seen)), (to, 8, expected));
    }
}

/// Egress starts with bridged metadata only; a copy carries the values at the end of its pipeline.
#[test]
fn egress_sees_what_is_bridged_and_copies_carry_what_they_say() {
    let mut b = Builder::new("pipelines");
    let (kind, x, y) = (b.header("kind", Width::W8), b.header("x", Width::W32), b.header("y", Width::W32));
    let (bridged, plain) = (b.bridged("bridged", Width::W32), b.metadata("plain", Width::W32));
    let copy = b.mirror("copy", (kind, 9), &[(y, plain)]);
    let set = Action::new("set").set(bridged, 5).set(plain, 6).mirror(copy).forward(Destination::Port(1.into()));
    b.table(Pipeline::Ingress, 0, "set").run(&set);
    b.table(Pipeline::Egress, 0, "first").run(&Action::new("first").add(plain, plain, 1));
    b.table(Pipeline::Egress, 1, "second").run(&Action::new("second").set(x, plain).set(y, bridged));
    let refused = b.clone().build(&Target::TOFINO_1).expect_err("plain is read in the stage that writes it");
    assert!(refused.to_string().starts_with("reads a later stage's result: plain"), "{refused}");

    let mut b = Builder::new("pipelines");
    let (kind, x, y) = (b.header("kind", Width::W8), b.header("x", Width::W32), b.header("y", Width::W32));
    let (bridged, plain) = (b.bridged("bridged", Width::W32), b.metadata("plain", Width::W32));
    let copy = b.mirror("copy", (kind, 9), &[(y, plain)]);
    let set = Action::new("set").set(bridged, 5).set(plain, 6).mirror(copy).forward(Destination::Port(1.into()));
    b.table(Pipeline::Ingress, 0, "set").run(&set);
    b.table(Pipeline::Egress, 0, "first").when(x.is(99)).run(&Action::new("first").set(plain, 1));
    b.table(Pipeline::Egress, 1, "second").run(&Action::new("second").set(x, plain).set(y, bridged));
    let program = b.build(&Target::TOFINO_1).expect("a lawful program");
    assert_eq!(program.report().bridged_bytes, 4);
    let mut machine = Machine::load(&program);
    let packet = machine.packet().with(x, 1).with(kind, 2);
    let (crossing, copy) = machine.ingress(packet.clone());
    assert_eq!((crossing.to(), crossing.packet()), (To::Port(1), &packet), "egress has done nothing yet");
    let (halves, none) = machine.egress(crossing);
    let outputs = machine.pass(packet);
    assert_eq!(outputs, Outputs { packet: halves, copies: [copy, none] }, "two halves are a pass");
    let sent = &outputs.packet;
    assert_eq!((sent.to, sent.packet.get(x), sent.packet.get(y)), (To::Port(1), 0, 5));
    let copies: Vec<_> = outputs.clone().into_iter().skip(1).collect();
    let [Sent { to: To::Copied, packet }] = &copies[..] else { panic!("one copy: {copies:?}") };
    assert_eq!((packet.get(kind), packet.get(x), packet.get(y)), (9, 0, 6));
}
