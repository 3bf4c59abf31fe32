//! Prints a program as tables for readers, stage by stage.

use crate::action::{Action, Destination, Effect, Op, Verb};
use crate::field::{Field, Operand};
use crate::program::{Pipeline, Source};
use crate::register::{Access, Alu, Arm, Index, Output, Test, Word};
use crate::table::{Compare, Entry, Key, KeyKind, Match, Relation, Table};
use std::fmt::Write;

/// One row per table, ingress first, in the order of the stages.
pub(crate) fn print(source: &Source) -> String {
    let mut text = String::from("| stage | table | runs when | looks up | does | |\n|---|---|---|---|---|---|\n");
    for pipeline in [Pipeline::Ingress, Pipeline::Egress] {
        let mut tables: Vec<&Table> = source.tables.iter().filter(|table| table.pipeline == pipeline).collect();
        tables.sort_by_key(|table| table.stage);
        for table in tables {
            let Table { name, stage, note, .. } = table;
            let print = Print { source };
            let (when, keys, does) = (print.gateway(table), print.keys(table), print.actions(table));
            writeln!(text, "| {pipeline} {stage} | {name} | {when} | {keys} | {does} | {note} |").expect("memory");
        }
    }
    text
}

pub(crate) fn entries(source: &Source, table: &Table) -> String {
    let print = Print { source };
    let heads: Vec<&str> = table.keys.iter().map(|key| print.name(key.field)).collect();
    let mut text = format!("| {} | action |\n|{}\n", heads.join(" | "), "---|".repeat(heads.len() + 1));
    for entry in &table.entries {
        writeln!(text, "| {} |", print.entry(table, entry)).expect("memory");
    }
    if let Some(action) = table.default {
        writeln!(text, "| {}{} |", "else | ".repeat(heads.len()), table.actions[action].name).expect("memory");
    }
    text
}

struct Print<'a> {
    source: &'a Source,
}

fn join(parts: impl IntoIterator<Item = String>, between: &str) -> String {
    parts.into_iter().collect::<Vec<_>>().join(between)
}

impl Print<'_> {
    fn name(&self, field: Field) -> &str {
        &self.source.field(field).name
    }

    /// A value of a field, by its name if it has one.
    fn value(&self, field: Field, value: u32) -> String {
        self.named(field, value).map_or_else(|| value.to_string(), str::to_owned)
    }

    fn named(&self, field: Field, value: u32) -> Option<&'static str> {
        let named = self.source.names.iter().find(|(of, number, _)| (*of, *number) == (field, value));
        named.map(|(_, _, name)| *name)
    }

    fn gateway(&self, table: &Table) -> String {
        join(table.gateway.iter().map(|compare| self.comparison(compare)), ", ")
    }

    fn comparison(&self, &Compare { field, relation, .. }: &Compare) -> String {
        let name = self.name(field);
        let sign = |equal: bool| if equal { "=" } else { "≠" };
        match relation {
            Relation::Masked { mask, value, equal } if mask == field.width().mask() => {
                format!("{name} {} {}", sign(equal), self.value(field, value))
            }
            Relation::Masked { mask, value, equal } => format!("{name} & {mask:#x} {} {value:#x}", sign(equal)),
            Relation::Below(end) => format!("{name} < {end}"),
            Relation::AtLeast(start) => format!("{name} ≥ {start}"),
            Relation::Field { other, equal } => format!("{name} {} {}", sign(equal), self.name(other)),
        }
    }

    /// The keys, and the kind of memory that they need.
    fn keys(&self, table: &Table) -> String {
        let kind = |kind| match kind {
            KeyKind::Exact => "",
            KeyKind::Ternary => "~",
            KeyKind::Range => "…",
        };
        join(table.keys.iter().map(|key| format!("{}{}", self.name(key.field), kind(key.kind))), ", ")
    }

    fn entry(&self, table: &Table, entry: &Entry) -> String {
        let wanted = |(key, wanted): (&Key, &Match)| {
            let full = key.field.width().mask();
            match *wanted {
                Match::Masked { mask, .. } if mask & full == 0 => String::new(),
                Match::Masked { mask, value } if mask & full == full => self.value(key.field, value & full),
                // Part of a field may have a name too: a kind without its level.
                Match::Masked { value, .. } if self.named(key.field, value).is_some() => self.value(key.field, value),
                Match::Masked { mask, value } => format!("& {:#x} = {:#x}", mask & full, value & full),
                Match::Between(low, high) => format!("{low} to {high}"),
            }
        };
        let matches = table.keys.iter().zip(&entry.matches).map(wanted);
        let arguments = join(entry.arguments.iter().map(u32::to_string), ", ");
        let arguments = if arguments.is_empty() { arguments } else { format!(" ({arguments})") };
        format!("{} | {}{arguments}", join(matches, " | "), table.actions[entry.action].name)
    }

    fn actions(&self, table: &Table) -> String {
        let all = table.actions.iter().map(|action| format!("*{}*: {}", action.name, self.action(action)));
        join(all, "; ")
    }

    fn action(&self, action: &Action) -> String {
        let ops = action.ops.iter().map(|op| self.op(op));
        let access = action.access.iter().map(|access| self.access(access));
        let effects = action.effects.iter().map(|(effect, _)| self.effect(*effect));
        join(access.chain(ops).chain(effects), ", ")
    }

    fn operand(&self, operand: Operand) -> String {
        match operand {
            Operand::Field(field) => self.name(field).to_owned(),
            Operand::Const(value) => value.to_string(),
            Operand::Argument(number) => format!("${number}"),
        }
    }

    fn op(&self, op: &Op) -> String {
        let (to, a, b) = (self.name(op.to), self.operand(op.a), self.operand(op.b));
        let sign = match op.verb {
            Verb::Set => match op.a {
                Operand::Const(value) => return format!("{to} := {}", self.value(op.to, value)),
                _ => return format!("{to} := {a}"),
            },
            Verb::Deposit { from, bits, into } => {
                return format!("{to}[{into}, {bits} bits] := {a}[{from}, {bits} bits]");
            }
            Verb::Add => "+",
            Verb::Sub => "−",
            Verb::And => "and",
            Verb::AndNot => "and not",
            Verb::Or => "or",
            Verb::Xor => "xor",
            Verb::ShiftLeft => "<<",
            Verb::ShiftRight => ">>",
        };
        format!("{to} := {a} {sign} {b}")
    }

    fn effect(&self, effect: Effect) -> String {
        match effect {
            Effect::Forward(Destination::Port(port)) => format!("to port {}", self.operand(port)),
            Effect::Forward(Destination::Requester) => "to the requester".into(),
            Effect::Forward(Destination::Recirculate) => "recirculates".into(),
            Effect::Drop(reason) => format!("drops as “{reason}”"),
            Effect::Mirror(mirror) => format!("mirrors “{}”", self.source.mirrors[usize::from(mirror.0)].name),
            Effect::Pop => "takes the first record off".into(),
        }
    }

    fn access(&self, access: &Access) -> String {
        let index = match access.index {
            Index::Const(cell) => cell.to_string(),
            Index::Slice { field, .. } => self.name(field).to_owned(),
        };
        let cell = format!("{}[{index}]", self.source.register(access.register).name);
        let (then, otherwise) = (self.arm(access.then), self.arm(access.otherwise));
        let change = match access.test {
            None => otherwise,
            Some(test) => {
                let second = access.second.map(|test| format!(" if {}", self.test(test))).unwrap_or_default();
                format!("if {}: {then}, else{second}: {otherwise}", self.test(test))
            }
        };
        let given = access.output.map(|(output, field)| {
            let output = match output {
                Output::Old(word) => format!("old {}", Self::word(word)),
                Output::New(word) => format!("new {}", Self::word(word)),
                Output::Predicate => "predicate".into(),
            };
            format!(", {} := {output}", self.name(field))
        });
        format!("{cell} {change}{}", given.unwrap_or_default())
    }

    fn word(word: Word) -> &'static str {
        match word {
            Word::Low => "word",
            Word::High => "high word",
        }
    }

    fn test(&self, (word, test, value): (Word, Test, Operand)) -> String {
        let sign = match test {
            Test::Equal => "=",
            Test::NotEqual => "≠",
            Test::Less => "<",
            Test::Greater => ">",
            Test::Before => "before",
            Test::After => "after",
        };
        format!("{} {sign} {}", Self::word(word), self.operand(value))
    }

    fn arm(&self, Arm { low, high }: Arm) -> String {
        let alu = |alu: Alu| {
            let sign = match alu {
                Alu::Keep => return "stays".into(),
                Alu::Word(word) => return format!(":= {}", Self::word(word)),
                Alu::Set(_) => ":=",
                Alu::Add(_) => "+=",
                Alu::Sub(_) => "−=",
                Alu::And(_) => "and=",
                Alu::Clear(_) => "clears",
                Alu::Or(_) => "or=",
                Alu::Xor(_) => "xor=",
            };
            format!("{sign} {}", alu.operand().map_or_else(String::new, |operand| self.operand(operand)))
        };
        if high == Alu::Keep { alu(low) } else { format!("{}, high {}", alu(low), alu(high)) }
    }
}
