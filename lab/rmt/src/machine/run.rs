//! The interpreter. A stage reads values from before the stage: a write to a field that a later table still reads is delayed until the
//! stage ends.

use super::code::{
    ArmSource, Ask, Body, Code, Ending, Entry, GateRelation, Slot, Source32, Span, Step, TableCode, Touch,
};
use super::{Crossing, Outputs, Packet, Sent, To};
use crate::action::Verb;
use crate::register::{Output, Test};

/// Maximum number of fields: more than a switch has containers, and as many as a [`Slot`] can name.
pub(crate) const SLOTS: usize = 1 << Slot::BITS;

struct Pass<'a> {
    code: &'a Code,
    words: &'a mut [u32],
    phv: [u32; SLOTS],
    /// Delayed writes: the first `lates` entries of `late_slots` and `late_values`; no field occurs twice.
    late_slots: [Slot; SLOTS],
    late_values: [u32; SLOTS],
    lates: usize,
    to: To,
    mirror: Option<u16>,
    pop: bool,
}

pub(super) fn pass(code: &Code, words: &mut [u32], mut packet: Packet) -> Outputs {
    let mut pass = Pass::new(code, words);
    let mut copies = [pass.through(0, &mut packet), None];
    if !matches!(pass.to, To::Dropped(_)) {
        code.unbridged.iter().for_each(|&slot| pass.phv[usize::from(slot)] = 0);
        copies[1] = pass.through(1, &mut packet);
    }
    Outputs { packet: Sent { to: pass.to, packet }, copies }
}

pub(super) fn ingress(code: &Code, words: &mut [u32], mut packet: Packet) -> (Crossing, Option<Packet>) {
    let mut pass = Pass::new(code, words);
    let copy = pass.through(0, &mut packet);
    let bridged = code.bridged.iter().map(|&slot| pass.at(slot)).collect();
    (Crossing { to: pass.to, packet, bridged }, copy)
}

pub(super) fn egress(code: &Code, words: &mut [u32], crossing: Crossing) -> (Sent, Option<Packet>) {
    let Crossing { to, mut packet, bridged } = crossing;
    let mut pass = Pass::new(code, words);
    pass.to = to;
    code.bridged.iter().zip(bridged).for_each(|(&slot, value)| pass.phv[usize::from(slot)] = value);
    let dropped = matches!(to, To::Dropped(_));
    let copy = if dropped { None } else { pass.through(1, &mut packet) };
    (Sent { to: pass.to, packet }, copy)
}

/// The next record replaces the first one; after the last one the fields are zero.
fn take_off(code: &Code, packet: &mut Packet) {
    let rest = packet.tail.len().saturating_sub(code.record.len());
    for (number, &slot) in code.record.iter().enumerate() {
        packet.header[usize::from(slot)] = packet.tail.get(rest + number).copied().unwrap_or(0);
    }
    packet.tail.truncate(rest);
}

fn of<'a, T>(all: &'a [T], span: &Span) -> &'a [T] {
    &all[span.start as usize..span.end as usize]
}

impl<'a> Pass<'a> {
    fn new(code: &'a Code, words: &'a mut [u32]) -> Self {
        let (to, mirror, pop) = (To::Dropped("unrouted"), None, false);
        let (phv, late_slots, late_values) = ([0; SLOTS], [0; SLOTS], [0; SLOTS]);
        Self { code, words, phv, late_slots, late_values, lates: 0, to, mirror, pop }
    }

    /// Parser, stages and deparser of one pipeline. Returns the requested copy.
    fn through(&mut self, pipeline: usize, packet: &mut Packet) -> Option<Packet> {
        let code = self.code;
        self.phv[..code.headers].copy_from_slice(&packet.header);
        self.pipeline(pipeline);
        let copy = self.copy();
        packet.header.copy_from_slice(&self.phv[..code.headers]);
        if std::mem::take(&mut self.pop) {
            take_off(code, packet);
        }
        copy
    }

    fn pipeline(&mut self, pipeline: usize) {
        let code = self.code;
        for stage in &code.stages[pipeline] {
            of(&code.tables, stage).iter().for_each(|table| self.table(table));
            for index in 0..self.lates {
                self.phv[usize::from(self.late_slots[index])] = self.late_values[index];
            }
            self.lates = 0;
        }
    }

    fn table(&mut self, table: &TableCode) {
        let code = self.code;
        if !of(&code.gates, &table.gates).iter().all(|gate| self.gate(gate.slot, &gate.relation)) {
            return;
        }
        let entry = match &table.selector {
            None => of(&code.entries, &table.entries).iter().find(|entry| self.matches(entry)),
            Some(selector) => {
                let candidates = of(&code.candidates, &selector.of[self.at(selector.slot) as usize & 0xFF]);
                candidates.iter().map(|&entry| &code.entries[entry as usize]).find(|entry| self.matches(entry))
            }
        };
        if let Some(body) = entry.map(|entry| &entry.body).or(table.default.as_ref()) {
            self.body(body);
        }
    }

    fn at(&self, slot: Slot) -> u32 {
        self.phv[usize::from(slot)]
    }

    fn gate(&self, slot: Slot, relation: &GateRelation) -> bool {
        let value = self.at(slot);
        match *relation {
            GateRelation::Equal { mask, value: wanted } => value & mask == wanted,
            GateRelation::Unequal { mask, value: wanted } => value & mask != wanted,
            GateRelation::Below(end) => value < end,
            GateRelation::AtLeast(start) => value >= start,
            GateRelation::Same(other) => value == self.at(other),
            GateRelation::Differs(other) => value != self.at(other),
        }
    }

    fn matches(&self, entry: &Entry) -> bool {
        of(&self.code.asks, &entry.asks).iter().all(|ask| match *ask {
            Ask::Masked { slot, mask, value } => self.at(slot) & mask == value,
            Ask::Between { slot, low, high } => (low..=high).contains(&self.at(slot)),
        })
    }

    fn value(&self, source: Source32) -> u32 {
        match source {
            Source32::Slot(slot) => self.at(slot),
            Source32::Const(value) => value,
        }
    }

    fn write(&mut self, slot: Slot, value: u32, late: bool) {
        if late {
            self.late_slots[self.lates] = slot;
            self.late_values[self.lates] = value;
            self.lates += 1;
        } else {
            self.phv[usize::from(slot)] = value;
        }
    }

    fn body(&mut self, body: &Body) {
        let code = self.code;
        of(&code.steps, &body.steps).iter().for_each(|step| self.step(step));
        if let Some(touch) = body.touch {
            self.touch(&code.touches[touch as usize]);
        }
        for ending in of(&code.endings, &body.endings) {
            match *ending {
                Ending::Port(port) => self.to = To::Port(self.value(port)),
                Ending::Requester => self.to = To::Requester,
                Ending::Recirculate => self.to = To::Recirculated,
                Ending::Drop(reason) => self.to = To::Dropped(reason),
                Ending::Mirror(mirror) => self.mirror = Some(mirror),
                Ending::Pop => self.pop = true,
            }
        }
    }

    fn step(&mut self, step: &Step) {
        let (a, b) = (self.value(step.a), self.value(step.b));
        let value = match step.verb {
            Verb::Deposit { from, bits, into } => {
                let mask = (u32::MAX >> (32 - bits)) << into;
                self.at(step.to) & !mask | (a >> from) << into & mask
            }
            verb => compute(verb, a, b),
        };
        self.write(step.to, value & step.mask, step.late);
    }

    fn touch(&mut self, touch: &Touch) {
        let index = (self.value(touch.index) >> touch.index_low) & touch.index_mask;
        let at = (touch.base + index * touch.words) as usize;
        let pair = touch.words == 2;
        let old = [self.words[at], if pair { self.words[at + 1] } else { 0 }];
        let holds = |(word, test, value)| holds(test, old[word as usize], self.value(value));
        let (first, second) = (touch.test.is_some_and(holds), touch.second.is_none_or(holds));
        let changed = |(verb, source): (Verb, ArmSource), word: usize| {
            let value = match source {
                ArmSource::Packet(source) => self.value(source),
                ArmSource::Word(word) => old[word as usize],
            };
            compute(verb, old[word], value) & touch.mask
        };
        let arms = if first { Some(&touch.arms[..2]) } else { Some(&touch.arms[2..]).filter(|_| second) };
        let mut new = old;
        if let Some(arms) = arms {
            new[0] = changed(arms[0], 0);
            if pair {
                new[1] = changed(arms[1], 1);
                self.words[at + 1] = new[1];
            }
            self.words[at] = new[0];
        }
        if let Some((output, slot)) = touch.output {
            let value = match output {
                Output::Old(word) => old[word as usize],
                Output::New(word) => new[word as usize],
                Output::Predicate if first => 1,
                Output::Predicate => {
                    if touch.second.is_some() && second {
                        2
                    } else {
                        0
                    }
                }
            };
            self.write(slot, value, touch.late);
        }
    }

    fn copy(&mut self) -> Option<Packet> {
        let mirror = &self.code.mirrors[usize::from(self.mirror.take()?)];
        let mut copy = Packet::new(self.code.headers);
        for &(to, from) in &mirror.carries {
            copy.header[usize::from(to)] = self.at(from);
        }
        copy.header[usize::from(mirror.kind.0)] = mirror.kind.1;
        Some(copy)
    }
}

fn holds(test: Test, word: u32, value: u32) -> bool {
    match test {
        Test::Equal => word == value,
        Test::NotEqual => word != value,
        Test::Less => word < value,
        Test::Greater => word > value,
        Test::Before => word.wrapping_sub(value).cast_signed() < 0,
        Test::After => value.wrapping_sub(word).cast_signed() < 0,
    }
}

/// Computes an ALU operation on two sources; `Set` takes the second. Deposits also read their destination, so they are not computed here.
fn compute(verb: Verb, a: u32, b: u32) -> u32 {
    match verb {
        Verb::Set => b,
        Verb::Add => a.wrapping_add(b),
        Verb::Sub => a.wrapping_sub(b),
        Verb::And => a & b,
        Verb::AndNot => a & !b,
        Verb::Or => a | b,
        Verb::Xor => a ^ b,
        Verb::ShiftLeft => a << b,
        Verb::ShiftRight => a >> b,
        Verb::Deposit { .. } => a,
    }
}
