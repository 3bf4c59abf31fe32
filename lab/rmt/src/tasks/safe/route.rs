//! Stages 7 and 8: whether the executor may run the task, credit, and the packet's destination.

use super::Config;
use super::fields::{Fields, Kind, Why, any_level, role};
use crate::Pipeline::Ingress;
use crate::{Action, Alu, Builder, Cell, Destination, Match, Register, low_bits};

const ANY: Match = Match::ANY;
const ONE: Match = Match::is(1);
const NONE: Match = Match::is(0);

pub(super) fn declare(b: &mut Builder, f: &Fields, config: Config) -> Register {
    compare(b, f, config);
    route(b, f, config);
    credit(b, f)
}

/// Stage 7: the resources that the executor lacks; the entry that a search reads next.
fn compare(b: &mut Builder, f: &Fields, config: Config) {
    let i = &f.inside;
    let missing = Action::new("compare").and_not(i.missing, f.trsrc, f.exec_rsrc);
    b.table(Ingress, 7, "compare").run(&missing).note("what the task asks for and the executor lacks");
    let behind = Action::new("behind").add(f.swap_idx, i.at, config.step());
    let there = Action::new("there").set(f.swap_idx, i.at);
    let table = b.table(Ingress, 7, "next").ternary(i.role);
    table.entry([any_level(role::TAKE)], &behind, &[]).entry([any_level(role::SWAP)], &behind, &[]);
    table.entry([any_level(role::AGAIN)], &there, &[]).note("SWAP_IDX: the entry behind this one");
}

/// Stage 8: `credit`, N plus the tasks that have left.
fn credit(b: &mut Builder, f: &Fields) -> Register {
    let i = &f.inside;
    let credit = b.register(Ingress, 8, "credit", Cell::W32, 4);
    let cell = credit.at(low_bits(i.role, 2));
    let pay = Action::new("pay").access(cell.always(Alu::add(1)));
    let read = Action::new("read").access(cell.give_old(f.credit)).set(f.credit_of, f.tprio);
    let table = b.table(Ingress, 8, "credit").ternary(i.role).ternary(i.missing);
    for leaves in [role::TAKE, role::SWAP] {
        table.entry([any_level(leaves), NONE], &pay, &[]);
    }
    for wants in [role::SUBMIT, role::REST, role::STORE] {
        table.entry([any_level(wants), ANY], &read, &[]);
    }
    table.note("a task leaves for good: + 1. A SUBMIT reads it, for itself or for its next task");
    credit
}

/// Stage 8: destination and kind of the packet.
fn route(b: &mut Builder, f: &Fields, config: Config) {
    let i = &f.inside;
    let answer = |name: &str, kind: Kind| Action::new(name).forward(Destination::Requester).set(f.op, kind as u32);
    let again = |name: &str, kind: Kind| Action::new(name).forward(Destination::Recirculate).set(f.op, kind as u32);
    let counted = |action: Action| action.sub(f.tasks, f.tasks, 1).add(f.index, f.index, 1);
    let taken = |action: Action| counted(action).or(f.taken, f.taken, f.bit);
    let refused = |action: Action, why: Why| counted(action).or(f.refused, f.refused, f.bit).set(f.why, why as u32);
    // After the OR with the bit: statements are sequential.
    let then = |action: Action| action.shift_left(f.bit, f.bit, 1).pop();
    let next = |name: &str| again(name, Kind::Rest);
    let last = |name: &str| answer(name, Kind::SubmitAck);
    let any = any_level;

    let table = b.table(Ingress, 8, "route").ternary(i.role).ternary(i.missing).ternary(f.level).ternary(f.tasks);
    table.entry([any(role::STORE), ANY, ANY, ONE], &taken(last("taken, last")), &[]);
    table.entry([any(role::STORE), ANY, ANY, ANY], &then(taken(next("taken"))), &[]);
    table.entry([any(role::SUBMIT), ANY, ANY, ANY], &again("ask for credit", Kind::Rest), &[]);
    for (is, why, names) in [
        (role::REST, Why::Full, ["full, last", "full"]),
        (role::REFUSE, Why::Level, ["no such level, last", "no such level"]),
    ] {
        table.entry([any(is), ANY, ANY, ONE], &refused(last(names[0]), why), &[]);
        table.entry([any(is), ANY, ANY, ANY], &then(refused(next(names[1]), why)), &[]);
    }
    for holds in [role::TAKE, role::SWAP] {
        table.entry([any(holds), NONE, ANY, ANY], &answer("assign", Kind::Assign), &[]);
        table.entry([any(holds), ANY, ANY, ANY], &again("search", Kind::Swap), &[]);
    }
    table.entry([any(role::AGAIN), ANY, ANY, ANY], &again("search", Kind::Swap), &[]);
    let no_op = answer("no-op", Kind::NoOp);
    let lower = again("next level", Kind::Retrieve).add(f.level, f.level, 1);
    table.entry([any(role::PLACE), ANY, Match::is(config.levels), ANY], &no_op, &[]);
    table.entry([any(role::PLACE), ANY, ANY, ANY], &lower, &[]);
    table.entry([any(role::RETRIEVE), ANY, ANY, ANY], &no_op, &[]);
    table.note("where the packet goes, as what; a SUBMIT's bitmaps, its index, and its next task");
}
