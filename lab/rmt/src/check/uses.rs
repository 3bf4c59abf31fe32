//! Reads and writes of a table.

use crate::action::{Action, Destination, Effect, Verb};
use crate::field::{At, Field, Operand};
use crate::program::Source;
use crate::refusal::Place;
use crate::register::{Access, Index};
use crate::table::{Relation, Table};

/// Fields, and the source lines that read them.
pub(crate) type Reads = Vec<(Field, At)>;

/// Something that a packet has one of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Written {
    Field(Field),
    Destination,
    Mirror,
    Record,
}

impl Written {
    pub(crate) fn name(self, source: &Source) -> String {
        match self {
            Self::Field(field) => source.field(field).name.clone(),
            Self::Destination => "the packet's destination".into(),
            Self::Mirror => "the packet's mirror session".into(),
            Self::Record => "the packet's list of records".into(),
        }
    }
}

pub(crate) fn place(table: &Table) -> Place {
    Place { pipeline: table.pipeline, stage: table.stage }
}

fn field(operand: Operand) -> Option<Field> {
    if let Operand::Field(field) = operand { Some(field) } else { None }
}

pub(crate) fn table_reads(table: &Table) -> Reads {
    let mut reads: Reads = table.keys.iter().map(|key| (key.field, key.at)).collect();
    for compare in &table.gateway {
        reads.push((compare.field, compare.at));
        if let Relation::Field { other, .. } = compare.relation {
            reads.push((other, compare.at));
        }
    }
    table.actions.iter().for_each(|action| action_reads(action, &mut reads));
    reads
}

fn action_reads(action: &Action, reads: &mut Reads) {
    for op in &action.ops {
        reads.extend([op.a, op.b].into_iter().filter_map(field).map(|field| (field, op.at)));
        if matches!(op.verb, Verb::Deposit { .. }) {
            reads.push((op.to, op.at));
        }
    }
    if let Some(access) = &action.access {
        reads.extend(access_reads(access).map(|field| (field, access.at)));
    }
    for (effect, at) in &action.effects {
        if let Effect::Forward(Destination::Port(port)) = effect {
            reads.extend(field(*port).map(|field| (field, *at)));
        }
    }
}

fn access_reads(access: &Access) -> impl Iterator<Item = Field> {
    let index = if let Index::Slice { field, .. } = access.index { Some(field) } else { None };
    access.operands().filter_map(field).chain(index)
}

pub(crate) fn action_writes(action: &Action) -> Vec<(Written, At)> {
    let fields = action.ops.iter().map(|op| (Written::Field(op.to), op.at));
    let output = action.access.iter().filter_map(|access| Some((Written::Field(access.output?.1), access.at)));
    let effects = action.effects.iter().map(|(effect, at)| {
        let what = match effect {
            Effect::Forward(_) | Effect::Drop(_) => Written::Destination,
            Effect::Mirror(_) => Written::Mirror,
            Effect::Pop => Written::Record,
        };
        (what, *at)
    });
    fields.chain(output).chain(effects).collect()
}

pub(crate) fn table_writes(table: &Table) -> Reads {
    let writes = table.actions.iter().flat_map(action_writes);
    writes.filter_map(|(what, at)| if let Written::Field(field) = what { Some((field, at)) } else { None }).collect()
}
