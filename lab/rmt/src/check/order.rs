//! Values flow forward: a stage reads values that the packet brought or an earlier stage wrote.

use super::uses::{place, table_reads, table_writes};
use crate::Refusal;
use crate::action::{Action, Effect, Op, Verb};
use crate::field::{At, Field, Operand, Space};
use crate::program::{Pipeline, Source};
use crate::refusal::Place;
use crate::table::Relation;
use std::collections::HashMap;

/// Where each field is written.
type Writes = HashMap<Field, Vec<(Place, At)>>;

pub(super) fn check(source: &Source) -> Result<(), Refusal> {
    let mut writes = Writes::new();
    for table in &source.tables {
        for (field, at) in table_writes(table) {
            writes.entry(field).or_default().push((place(table), at));
        }
    }
    for table in &source.tables {
        for (field, at) in table_reads(table) {
            check_read(source, &writes, field, place(table), at)?;
        }
        table.actions.iter().try_for_each(|action| check_statements(source, table, action))?;
        check_copies(source, &writes, table)?;
        check_gateway(source, table)?;
    }
    Ok(())
}

fn check_read(source: &Source, writes: &Writes, field: Field, here: Place, read: At) -> Result<(), Refusal> {
    if field.space == Space::Header {
        return Ok(());
    }
    let info = source.field(field);
    let name = info.name.clone();
    let writes = writes.get(&field).map_or(&[][..], Vec::as_slice);
    let same = |place: Place| place.pipeline == here.pipeline;
    let crossed = |place: Place| place.pipeline == Pipeline::Ingress && here.pipeline == Pipeline::Egress;
    let earlier = |place: Place| if same(place) { place.stage < here.stage } else { info.bridged && crossed(place) };
    if writes.iter().any(|&(place, _)| earlier(place)) {
        return Ok(());
    }
    if let Some(&(by, written)) = writes.iter().find(|(place, _)| !crossed(*place)) {
        return Err(Refusal::ReadsLater { field: name, place: here, read, by, written });
    }
    match writes.first() {
        Some(&(_, written)) => Err(Refusal::NotBridged { field: name, place: here, read, written }),
        None => Err(Refusal::NeverWritten { field: name, place: here, read }),
    }
}

/// The machine gives all operations of an action the values from before the stage. In P4 they are sequential statements, which is the same
/// if none reads what a previous one has written. An exchange of two fields is exempt: in P4 a variable keeps one of them, which costs no
/// stage.
fn check_statements(source: &Source, table: &crate::Table, action: &Action) -> Result<(), Refusal> {
    for (i, op) in action.ops.iter().enumerate() {
        let reads = |field: Field| [op.a, op.b].contains(&Operand::Field(field));
        let exchanges = |other: &Op| {
            let other_way = (Operand::Field(op.to), Operand::Field(other.to)) == (other.a, op.a);
            op.verb == Verb::Set && other.verb == Verb::Set && other_way
        };
        if let Some(earlier) = action.ops[..i].iter().find(|earlier| reads(earlier.to) && !exchanges(earlier)) {
            let field = source.field(earlier.to).name.clone();
            return Err(Refusal::WrittenBefore { field, place: place(table), written: earlier.at, read: op.at });
        }
    }
    Ok(())
}

/// A copy has the values of the fields at the end of the pipeline.
fn check_copies(source: &Source, writes: &Writes, table: &crate::Table) -> Result<(), Refusal> {
    let end = Place { pipeline: table.pipeline, stage: usize::MAX };
    for (effect, at) in table.actions.iter().flat_map(|action| &action.effects) {
        let Effect::Mirror(mirror) = effect else { continue };
        for &(_, from) in &source.mirrors[usize::from(mirror.0)].carries {
            check_read(source, writes, from, end, at)?;
        }
    }
    Ok(())
}

/// A gateway cannot compare a difference, which needs a table, even if something else writes the field too.
fn check_gateway(source: &Source, table: &crate::Table) -> Result<(), Refusal> {
    for compare in &table.gateway {
        let other = if let Relation::Field { other, .. } = compare.relation { Some(other) } else { None };
        let before = source.tables.iter().filter(|t| (t.pipeline, t.stage) < (table.pipeline, table.stage));
        let mut ops = before.flat_map(|t| &t.actions).flat_map(|action| &action.ops);
        let subtracted = |field: Field| field == compare.field || Some(field) == other;
        if let Some(op) = ops.find(|op| op.verb == Verb::Sub && subtracted(op.to)) {
            let field = source.field(op.to).name.clone();
            return Err(Refusal::SubtractedCondition { field, place: place(table), at: compare.at, written: op.at });
        }
    }
    Ok(())
}
