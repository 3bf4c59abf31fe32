//! A compiled program: flat arrays without names, with arguments filled in.

use crate::action::{Action, Destination, Effect, Op, Verb};
use crate::field::{Field, Operand, Space, Width};
use crate::program::{Pipeline, Program, Source};
use crate::register::{Access, Alu, Index, Output, Test, Word};
use crate::table::{Match, Relation, Table};
use std::ops::Range;

/// A slot of the header vector: header fields first, then metadata.
pub(super) type Slot = u8;
/// Part of one of the flat arrays.
pub(super) type Span = Range<u32>;

#[derive(Clone, Copy, Debug)]
pub(super) enum Source32 {
    Slot(Slot),
    Const(u32),
}

/// Source of a stateful ALU arm.
#[derive(Clone, Copy, Debug)]
pub(super) enum ArmSource {
    Packet(Source32),
    /// The cell before the access.
    Word(Word),
}

#[derive(Debug)]
pub(super) struct Gate {
    pub(super) slot: Slot,
    pub(super) relation: GateRelation,
}

#[derive(Debug)]
pub(super) enum GateRelation {
    Equal { mask: u32, value: u32 },
    Unequal { mask: u32, value: u32 },
    Below(u32),
    AtLeast(u32),
    Same(Slot),
    Differs(Slot),
}

/// An entry's condition on a slot.
#[derive(Debug)]
pub(super) enum Ask {
    Masked { slot: Slot, mask: u32, value: u32 },
    Between { slot: Slot, low: u32, high: u32 },
}

#[derive(Debug)]
pub(super) struct Step {
    pub(super) to: Slot,
    /// The bits of the destination that this step writes.
    pub(super) mask: u32,
    pub(super) verb: Verb,
    pub(super) a: Source32,
    pub(super) b: Source32,
    /// A later table reads the old value, so this step writes at the end of the stage.
    pub(super) late: bool,
}

#[derive(Debug)]
pub(super) struct Touch {
    /// Index of the first cell's first word among all words.
    pub(super) base: u32,
    pub(super) words: u32,
    pub(super) mask: u32,
    pub(super) index: Source32,
    pub(super) index_low: u32,
    pub(super) index_mask: u32,
    pub(super) test: Option<(Word, Test, Source32)>,
    pub(super) second: Option<(Word, Test, Source32)>,
    /// Low and high word if the test holds, then if it does not.
    pub(super) arms: [(Verb, ArmSource); 4],
    pub(super) output: Option<(Output, Slot)>,
    pub(super) late: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Ending {
    Port(Source32),
    Requester,
    Recirculate,
    Drop(&'static str),
    Mirror(u16),
    Pop,
}

#[derive(Clone, Debug)]
pub(super) struct Body {
    pub(super) steps: Span,
    pub(super) touch: Option<u32>,
    pub(super) endings: Span,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) asks: Span,
    pub(super) body: Body,
}

#[derive(Debug)]
pub(super) struct TableCode {
    pub(super) gates: Span,
    pub(super) entries: Span,
    pub(super) selector: Option<Selector>,
    pub(super) default: Option<Body>,
}

/// A key of 8 bits that selects some of a table's entries, so that only these are compared.
#[derive(Debug)]
pub(super) struct Selector {
    pub(super) slot: Slot,
    /// For each value the entries that may match, in order, in [`Code::candidates`].
    pub(super) of: Vec<Span>,
}

#[derive(Debug)]
pub(super) struct Copied {
    pub(super) kind: (Slot, u32),
    pub(super) carries: Vec<(Slot, Slot)>,
}

#[derive(Debug, Default)]
pub(super) struct Code {
    /// For each pipeline, the tables of each stage.
    pub(super) stages: [Vec<Span>; 2],
    pub(super) tables: Vec<TableCode>,
    pub(super) gates: Vec<Gate>,
    pub(super) entries: Vec<Entry>,
    pub(super) candidates: Vec<u32>,
    pub(super) asks: Vec<Ask>,
    pub(super) steps: Vec<Step>,
    pub(super) touches: Vec<Touch>,
    pub(super) endings: Vec<Ending>,
    pub(super) mirrors: Vec<Copied>,
    pub(super) headers: usize,
    /// Header slots of a record.
    pub(super) record: Vec<Slot>,
    /// Metadata that egress gets from ingress, and metadata that is zero when egress starts.
    pub(super) bridged: Vec<Slot>,
    pub(super) unbridged: Vec<Slot>,
    /// For each register its first word and its words per cell.
    pub(super) registers: Vec<(u32, u32)>,
    pub(super) words: usize,
}

impl Code {
    pub(super) fn compile(program: &Program) -> Self {
        let source = &program.source;
        let headers = source.headers.len();
        let mut code = Self { headers, ..Self::default() };
        for register in &source.registers {
            code.registers.push((number(code.words), register.cell.words()));
            code.words += register.cells as usize * register.cell.words() as usize;
        }
        code.record = source.record.iter().map(|&field| code.slot(field)).collect();
        for (index, field) in source.metadata.iter().enumerate() {
            let slots = if field.bridged { &mut code.bridged } else { &mut code.unbridged };
            slots.push(slot_number(headers + index));
        }
        code.mirrors = source.mirrors.iter().map(|mirror| code.copied(&mirror.kind, &mirror.carries)).collect();
        for (pipeline, depth) in [Pipeline::Ingress, Pipeline::Egress].into_iter().zip(program.report().depth) {
            for stage in 0..depth {
                let here = |table: &&Table| table.pipeline == pipeline && table.stage == stage;
                let tables: Vec<&Table> = source.tables.iter().filter(here).collect();
                let span = code.stage(source, &tables);
                code.stages[pipeline as usize].push(span);
            }
        }
        code
    }

    fn slot(&self, field: Field) -> Slot {
        match field.space {
            Space::Header => slot_number(usize::from(field.index)),
            Space::Metadata => slot_number(self.headers + usize::from(field.index)),
        }
    }

    fn copied(&self, kind: &(Field, u32), carries: &[(Field, Field)]) -> Copied {
        let carries = carries.iter().map(|&(to, from)| (self.slot(to), self.slot(from))).collect();
        Copied { kind: (self.slot(kind.0), kind.1 & kind.0.width.mask()), carries }
    }

    fn stage(&mut self, source: &Source, tables: &[&Table]) -> Span {
        let start = number(self.tables.len());
        for (number, table) in tables.iter().enumerate() {
            // Within an action, too, all is read before anything is written.
            let behind = &tables[number + 1..];
            let read = |field: Field| {
                let own = crate::check::table_reads(table);
                let later = behind.iter().flat_map(|table| crate::check::table_reads(table));
                own.into_iter().chain(later).any(|(other, _)| other == field)
            };
            let table = self.table(source, table, &read);
            self.tables.push(table);
        }
        start..number(self.tables.len())
    }

    fn table(&mut self, source: &Source, table: &Table, read: &dyn Fn(Field) -> bool) -> TableCode {
        let start = number(self.gates.len());
        for compare in &table.gateway {
            let relation = match compare.relation {
                Relation::Masked { mask, value, equal: true } => GateRelation::Equal { mask, value: value & mask },
                Relation::Masked { mask, value, equal: false } => GateRelation::Unequal { mask, value: value & mask },
                Relation::Below(end) => GateRelation::Below(end),
                Relation::AtLeast(start) => GateRelation::AtLeast(start),
                Relation::Field { other, equal: true } => GateRelation::Same(self.slot(other)),
                Relation::Field { other, equal: false } => GateRelation::Differs(self.slot(other)),
            };
            self.gates.push(Gate { slot: self.slot(compare.field), relation });
        }
        let gates = start..number(self.gates.len());
        let entries: Vec<Entry> = table.entries.iter().map(|entry| self.entry(source, table, entry, read)).collect();
        let start = number(self.entries.len());
        self.entries.extend(entries);
        let entries = start..number(self.entries.len());
        let selector = self.selector(table, start);
        let default = table.default.map(|action| self.body(source, &table.actions[action], &[], read));
        TableCode { gates, entries, selector, default }
    }

    /// The first key of 8 bits, if there are enough entries to select from.
    fn selector(&mut self, table: &Table, first: u32) -> Option<Selector> {
        let narrow = table.keys.iter().position(|key| key.field.width == Width::W8)?;
        if table.entries.len() < 2 {
            return None;
        }
        let may = |wanted: Match, value: u32| match wanted {
            Match::Masked { mask, value: wanted } => (value ^ wanted) & mask & Width::W8.mask() == 0,
            Match::Between(low, high) => (low..=high).contains(&value),
        };
        let of = (0..=Width::W8.mask()).map(|value| {
            let start = number(self.candidates.len());
            let entries = (first..).zip(&table.entries).filter(|(_, entry)| may(entry.matches[narrow], value));
            self.candidates.extend(entries.map(|(index, _)| index));
            start..number(self.candidates.len())
        });
        let of = of.collect();
        Some(Selector { slot: self.slot(table.keys[narrow].field), of })
    }

    fn entry(
        &mut self,
        source: &Source,
        table: &Table,
        entry: &crate::table::Entry,
        read: &dyn Fn(Field) -> bool,
    ) -> Entry {
        let start = number(self.asks.len());
        for (key, &wanted) in table.keys.iter().zip(&entry.matches) {
            let (slot, full) = (self.slot(key.field), key.field.width.mask());
            match wanted {
                Match::Masked { mask, .. } if mask & full == 0 => {}
                Match::Masked { mask, value } => {
                    let mask = mask & full;
                    self.asks.push(Ask::Masked { slot, mask, value: value & mask });
                }
                Match::Between(low, high) => self.asks.push(Ask::Between { slot, low, high }),
            }
        }
        let asks = start..number(self.asks.len());
        Entry { asks, body: self.body(source, &table.actions[entry.action], &entry.arguments, read) }
    }

    fn body(&mut self, source: &Source, action: &Action, arguments: &[u32], read: &dyn Fn(Field) -> bool) -> Body {
        let start = number(self.steps.len());
        for Op { verb, to, a, b, .. } in &action.ops {
            let (a, b) = (self.operand(*a, arguments), self.operand(*b, arguments));
            let b = if *verb == Verb::Set { a } else { b };
            self.steps.push(Step { to: self.slot(*to), mask: to.width.mask(), verb: *verb, a, b, late: read(*to) });
        }
        let steps = start..number(self.steps.len());
        let touch = action.access.map(|access| {
            let touch = self.touch(source, &access, read);
            self.touches.push(touch);
            number(self.touches.len() - 1)
        });
        let start = number(self.endings.len());
        for (effect, _) in &action.effects {
            let ending = match *effect {
                Effect::Forward(Destination::Port(port)) => Ending::Port(self.operand(port, arguments)),
                Effect::Forward(Destination::Requester) => Ending::Requester,
                Effect::Forward(Destination::Recirculate) => Ending::Recirculate,
                Effect::Drop(reason) => Ending::Drop(reason),
                Effect::Mirror(mirror) => Ending::Mirror(mirror.0),
                Effect::Pop => Ending::Pop,
            };
            self.endings.push(ending);
        }
        Body { steps, touch, endings: start..number(self.endings.len()) }
    }

    fn operand(&self, operand: Operand, arguments: &[u32]) -> Source32 {
        match operand {
            Operand::Field(field) => Source32::Slot(self.slot(field)),
            Operand::Const(value) => Source32::Const(value),
            Operand::Argument(index) => Source32::Const(arguments[usize::from(index)]),
        }
    }

    fn touch(&self, source: &Source, access: &Access, read: &dyn Fn(Field) -> bool) -> Touch {
        let (base, words) = self.registers[usize::from(access.register.0)];
        let (index, index_low, index_mask) = match access.index {
            Index::Const(index) => (Source32::Const(index), 0, u32::MAX),
            Index::Slice { field, low, bits } => {
                let mask = if bits == 0 { 0 } else { u32::MAX >> (32 - bits) };
                (Source32::Slot(self.slot(field)), low.min(31), mask)
            }
        };
        Touch {
            base,
            words,
            mask: source.register(access.register).cell.mask(),
            index,
            index_low,
            index_mask,
            test: access.test.map(|(word, test, value)| (word, test, self.operand(value, &[]))),
            second: access.second.map(|(word, test, value)| (word, test, self.operand(value, &[]))),
            arms: access.alus().map(|alu| self.alu(alu)),
            output: access.output.map(|(output, field)| (output, self.slot(field))),
            late: access.output.is_some_and(|(_, field)| read(field)),
        }
    }

    /// Keeping a word is adding 0.
    fn alu(&self, alu: Alu) -> (Verb, ArmSource) {
        let verb = match alu {
            Alu::Keep | Alu::Add(_) => Verb::Add,
            Alu::Set(_) | Alu::Word(_) => Verb::Set,
            Alu::Sub(_) => Verb::Sub,
            Alu::And(_) => Verb::And,
            Alu::Clear(_) => Verb::AndNot,
            Alu::Or(_) => Verb::Or,
            Alu::Xor(_) => Verb::Xor,
        };
        if let Alu::Word(word) = alu {
            return (verb, ArmSource::Word(word));
        }
        let value = alu.operand().map_or(Source32::Const(0), |operand| self.operand(operand, &[]));
        (verb, ArmSource::Packet(value))
    }
}

fn number(n: usize) -> u32 {
    u32::try_from(n).expect("a program is smaller than that")
}

fn slot_number(n: usize) -> Slot {
    Slot::try_from(n).expect("the builder declares no more")
}
