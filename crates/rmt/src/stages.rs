//! A program as a table for readers: stage by stage, what runs when, and what it is for.

use crate::field::Field;
use crate::program::{Pipeline, Source};
use crate::register::Index;
use crate::table::{Compare, KeyKind, Relation, Table};
use std::fmt::Write;

/// One row for each table, ingress first, in the order of the stages.
pub(crate) fn print(source: &Source) -> String {
    let mut text = String::from("| stage | table | runs when | looks up | register | |\n|---|---|---|---|---|---|\n");
    for pipeline in [Pipeline::Ingress, Pipeline::Egress] {
        let mut tables: Vec<&Table> = source.tables.iter().filter(|table| table.pipeline == pipeline).collect();
        tables.sort_by_key(|table| table.stage);
        for table in tables {
            let Table { name, stage, note, .. } = table;
            let (when, keys, register) = (gateway(source, table), keys(source, table), register(source, table));
            writeln!(text, "| {pipeline} {stage} | {name} | {when} | {keys} | {register} | {note} |").expect("memory");
        }
    }
    text
}

fn name(source: &Source, field: Field) -> &str {
    &source.field(field).name
}

fn gateway(source: &Source, table: &Table) -> String {
    table.gateway.iter().map(|compare| comparison(source, compare)).collect::<Vec<_>>().join(", ")
}

fn comparison(source: &Source, Compare { field, relation, .. }: &Compare) -> String {
    let (name_, full) = (name(source, *field), field.width().mask());
    let sign = |equal: bool| if equal { "=" } else { "≠" };
    match *relation {
        Relation::Masked { mask, value, equal } if mask == full => format!("{name_} {} {value}", sign(equal)),
        Relation::Masked { mask, value, equal } => format!("{name_} & {mask:#x} {} {value:#x}", sign(equal)),
        Relation::Below(end) => format!("{name_} < {end}"),
        Relation::AtLeast(start) => format!("{name_} ≥ {start}"),
        Relation::Field { other, equal } => format!("{name_} {} {}", sign(equal), name(source, other)),
    }
}

fn keys(source: &Source, table: &Table) -> String {
    let key = |key: &crate::table::Key| {
        let kind = match key.kind {
            KeyKind::Exact => "",
            KeyKind::Ternary => " (ternary)",
            KeyKind::Range => " (range)",
        };
        format!("{}{kind}", name(source, key.field))
    };
    table.keys.iter().map(key).collect::<Vec<_>>().join(", ")
}

/// A table reaches one register, though its actions may index it differently.
fn register(source: &Source, table: &Table) -> String {
    let Some(access) = table.actions.iter().find_map(|action| action.access) else { return String::new() };
    let index = match access.index {
        Index::Const(cell) => cell.to_string(),
        Index::Slice { field, .. } => name(source, field).to_owned(),
    };
    format!("{}[{index}]", source.register(access.register).name)
}
