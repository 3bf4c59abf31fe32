//! A packet accesses a register once, and writes each field once per stage.

use super::exclusive::{Condition, excluded, gateways, ways};
use super::uses::{Written, action_writes, place};
use crate::Refusal;
use crate::field::At;
use crate::program::Source;
use crate::table::Table;

/// A table's use of a register or field, and its conditions.
struct Use<T> {
    what: T,
    at: At,
    ways: Vec<Condition>,
}

pub(super) fn check(source: &Source) -> Result<(), Refusal> {
    for (i, a) in source.tables.iter().enumerate() {
        check_action_writes(source, a)?;
        for b in source.tables[i + 1..].iter().filter(|b| place(b) == place(a)) {
            if let Some((register, first, second)) = clash(&accesses(a), &accesses(b)) {
                let register = source.register(register).name.clone();
                return Err(Refusal::TouchesTwice { register, place: place(a), first, second });
            }
            if let Some((register, first, second)) = clash(&accesses_by_gateways(a), &accesses_by_gateways(b)) {
                let register = source.register(register).name.clone();
                return Err(Refusal::SharedByKeys { register, place: place(a), first, second });
            }
            if let Some((what, first, second)) = clash(&writes(a), &writes(b)) {
                return Err(Refusal::WritesTwice { what: what.name(source), place: place(a), first, second });
            }
        }
    }
    Ok(())
}

/// Finds something that two tables may do to one packet.
fn clash<T: Copy + PartialEq>(a: &[Use<T>], b: &[Use<T>]) -> Option<(T, At, At)> {
    let pairs = a.iter().flat_map(|x| b.iter().map(move |y| (x, y)));
    let mut same = pairs.filter(|(x, y)| x.what == y.what);
    let may = |x: &Use<T>, y: &Use<T>| x.ways.iter().any(|c| y.ways.iter().any(|d| !excluded(c, d)));
    same.find(|(x, y)| may(x, y)).map(|(x, y)| (x.what, x.at, y.at))
}

fn accesses(table: &Table) -> Vec<Use<crate::Register>> {
    let actions = table.actions.iter().enumerate();
    actions
        .filter_map(|(i, action)| {
            let access = action.access?;
            Some(Use { what: access.register, at: access.at, ways: ways(table, i) })
        })
        .collect()
}

/// As [`accesses`], but conditioned only on the gateways, because the compiler does not take match keys into account.
fn accesses_by_gateways(table: &Table) -> Vec<Use<crate::Register>> {
    let accesses = table.actions.iter().filter_map(|action| action.access);
    accesses.map(|access| Use { what: access.register, at: access.at, ways: vec![gateways(table)] }).collect()
}

fn writes(table: &Table) -> Vec<Use<Written>> {
    let of = |i| action_writes(&table.actions[i]).into_iter().map(move |(what, at)| (what, at, i));
    let all = (0..table.actions.len()).flat_map(of);
    all.map(|(what, at, i)| Use { what, at, ways: ways(table, i) }).collect()
}

/// An action writes each field once.
fn check_action_writes(source: &Source, table: &Table) -> Result<(), Refusal> {
    for action in &table.actions {
        let writes = action_writes(action);
        for (i, &(what, first)) in writes.iter().enumerate() {
            if let Some(&(_, second)) = writes[i + 1..].iter().find(|(other, _)| *other == what) {
                return Err(Refusal::WritesTwice { what: what.name(source), place: place(table), first, second });
            }
        }
    }
    Ok(())
}
