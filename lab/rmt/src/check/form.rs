//! Checks the form of each table.

use super::uses::place;
use crate::action::{Action, Destination, Effect, Op, Verb};
use crate::field::{At, Field, Operand};
use crate::program::{Pipeline, Source};
use crate::refusal::{Place, Resource};
use crate::register::{Access, Cell, Index, Output, Test};
use crate::table::{KeyKind, Match, Relation, Table};
use crate::{Refusal, Target};

pub(super) fn check(source: &Source, target: &Target) -> Result<(), Refusal> {
    for table in &source.tables {
        let form = Form { source, target, table, place: place(table) };
        form.gateway()?;
        form.keys()?;
        form.entries()?;
        form.registers()?;
        table.actions.iter().try_for_each(|action| form.action(action))?;
    }
    Ok(())
}

struct Form<'a> {
    source: &'a Source,
    target: &'a Target,
    table: &'a Table,
    place: Place,
}

impl Form<'_> {
    fn malformed(&self, what: impl Into<String>, at: At) -> Refusal {
        let what = format!("table {}: {}", self.table.name, what.into());
        Refusal::Malformed { what, place: self.place, at }
    }

    fn budget(&self, resource: Resource, used: u32, limit: u32, at: At) -> Result<(), Refusal> {
        if used <= limit {
            return Ok(());
        }
        let what = format!("table {}", self.table.name);
        Err(Refusal::OverBudget { what, place: self.place, at, resource, used, limit })
    }

    fn gateway(&self) -> Result<(), Refusal> {
        let (mut bits, mut order) = (0, 0);
        for compare in &self.table.gateway {
            let width = compare.field.width;
            match compare.relation {
                Relation::Masked { mask, value, .. } => {
                    if value & !width.mask() != 0 {
                        return Err(self.malformed("compares with a value wider than the field", compare.at));
                    }
                    bits += (mask & width.mask()).count_ones();
                }
                Relation::Below(_) | Relation::AtLeast(_) => {
                    bits += width.bits();
                    order += width.bits();
                }
                Relation::Field { other, .. } if other.width == width => bits += width.bits(),
                Relation::Field { .. } => return Err(self.malformed("compares fields of unequal widths", compare.at)),
            }
            self.budget(Resource::GatewayOrderBits, order, self.target.gateway_order_bits, compare.at)?;
            self.budget(Resource::GatewayBits, bits, self.target.gateway_bits, compare.at)?;
        }
        Ok(())
    }

    fn keys(&self) -> Result<(), Refusal> {
        for key in self.table.keys.iter().filter(|key| key.kind == KeyKind::Range) {
            self.budget(Resource::RangeBits, key.field.width.bits(), self.target.range_bits, key.at)?;
        }
        Ok(())
    }

    fn entries(&self) -> Result<(), Refusal> {
        for entry in &self.table.entries {
            if entry.matches.len() != self.table.keys.len() {
                return Err(self.malformed("an entry that does not give each key", self.table.at));
            }
            for (key, wanted) in self.table.keys.iter().zip(&entry.matches) {
                let full = key.field.width.mask();
                let fits = match *wanted {
                    Match::Masked { mask, .. } if key.kind == KeyKind::Exact => mask & full == full,
                    Match::Masked { .. } => true,
                    Match::Between(..) => key.kind == KeyKind::Range,
                };
                if !fits {
                    return Err(self.malformed("an entry that its kind of key cannot match", key.at));
                }
            }
        }
        let given = self.table.entries.iter().map(|entry| (entry.action, entry.arguments.len()));
        let default = self.table.default.map(|action| (action, 0));
        for (action, given) in given.chain(default) {
            if self.table.actions[action].arguments() > given {
                return Err(self.malformed("an entry without the arguments of its action", self.table.at));
            }
        }
        Ok(())
    }

    /// A table has one address bus to registers.
    fn registers(&self) -> Result<(), Refusal> {
        let mut accesses = self.table.actions.iter().filter_map(|action| action.access);
        let Some(first) = accesses.next() else { return Ok(()) };
        match accesses.find(|access| access.register != first.register) {
            None => Ok(()),
            Some(second) => Err(Refusal::TwoRegisters {
                table: self.table.name.clone(),
                place: self.place,
                first: self.source.register(first.register).name.clone(),
                second: self.source.register(second.register).name.clone(),
                at: second.at,
            }),
        }
    }

    fn action(&self, action: &Action) -> Result<(), Refusal> {
        action.ops.iter().try_for_each(|op| self.op(op))?;
        action.access.iter().try_for_each(|access| self.access(access))?;
        for (effect, at) in &action.effects {
            if self.place.pipeline == Pipeline::Egress && matches!(effect, Effect::Forward(_)) {
                return Err(Refusal::PortInEgress { table: self.table.name.clone(), place: self.place, at });
            }
            if let Effect::Forward(Destination::Port(Operand::Const(port))) = effect
                && *port > 511
            {
                return Err(self.malformed("a port beyond 511", at));
            }
        }
        Ok(())
    }

    /// An ALU reads containers of its own width.
    fn op(&self, op: &Op) -> Result<(), Refusal> {
        let width = op.to.width;
        for operand in [op.a, op.b] {
            if matches!(operand, Operand::Field(field) if field.width != width) {
                return Err(self.malformed("an operand of another width than its result", op.at));
            }
            if matches!(operand, Operand::Const(value) if value & !width.mask() != 0) {
                return Err(self.malformed("a constant wider than the field", op.at));
            }
        }
        let bits = width.bits();
        let fits = match op.verb {
            Verb::Deposit { from, bits: n, into } => n > 0 && from + n <= bits && into + n <= bits,
            Verb::ShiftLeft | Verb::ShiftRight => matches!(op.b, Operand::Const(by) if by < bits),
            _ => true,
        };
        if fits { Ok(()) } else { Err(self.malformed("bits beyond the field", op.at)) }
    }

    fn access(&self, access: &Access) -> Result<(), Refusal> {
        let register = self.source.register(access.register);
        let home = Place { pipeline: register.pipeline, stage: register.stage };
        if home != self.place {
            let register = register.name.clone();
            return Err(Refusal::Elsewhere { register, home, place: self.place, at: access.at });
        }
        let last = match access.index {
            Index::Const(index) => u64::from(index),
            Index::Slice { field, low, bits } if low + bits > field.width.bits() => {
                return Err(self.malformed("an index of more bits than its field has", access.at));
            }
            Index::Slice { bits, .. } => (1u64 << bits) - 1,
        };
        if last >= u64::from(register.cells) {
            let (register, cells) = (register.name.clone(), register.cells);
            return Err(Refusal::IndexBeyond { register, place: self.place, at: access.at, last, cells });
        }
        self.stateful(access, register.cell)
    }

    fn stateful(&self, access: &Access, cell: Cell) -> Result<(), Refusal> {
        let mut fields: Vec<Field> = Vec::new();
        for operand in access.operands() {
            match operand {
                Operand::Field(field) if field.width.bits() > cell.word_bits() => {
                    return Err(self.malformed("a field wider than the register's word", access.at));
                }
                Operand::Field(field) if !fields.contains(&field) => fields.push(field),
                Operand::Const(value) if value & !cell.mask() != 0 => {
                    return Err(self.malformed("a constant wider than the register's word", access.at));
                }
                Operand::Argument(_) => {
                    return Err(self.malformed("a stateful ALU does not take arguments of entries", access.at));
                }
                _ => {}
            }
        }
        let inputs = u32::try_from(fields.len()).unwrap_or(u32::MAX);
        let limit = u32::try_from(self.target.stateful_inputs).unwrap_or(u32::MAX);
        self.budget(Resource::StatefulInputs, inputs, limit, access.at)?;
        if access.uses_high() && cell != Cell::Pair {
            return Err(self.malformed("the high word of a register that has one word", access.at));
        }
        let serial = |test: &Option<_>| matches!(test, Some((_, Test::Before | Test::After, _)));
        if [access.test, access.second].iter().any(serial) && cell.word_bits() != 32 {
            return Err(self.malformed("a serial comparison of fewer than 32 bits", access.at));
        }
        if access.second.is_some() && access.test.is_none() {
            return Err(self.malformed("a second test without a first", access.at));
        }
        match access.output {
            Some((Output::Old(_) | Output::New(_), field)) if field.width.bits() != cell.word_bits() => {
                Err(self.malformed("a register's word into a field of another width", access.at))
            }
            _ => Ok(()),
        }
    }
}
