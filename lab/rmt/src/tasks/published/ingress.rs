//! Control: pointers, flags, `is_valid` with TRSRC, and the packet's destination. Seven stages.

use super::fields::{Fields, Kind, REPAIR_ADD, REPAIR_RETRIEVE, VALID, entry, pointer, status};
use super::{Config, Empty};
use crate::Pipeline::Ingress;
use crate::tasks::room::Bank;
use crate::{Action, Alu, Builder, Cell, Destination, Field, Match, Target, Width, argument, low_bits};

const SUBMIT: u32 = Kind::Submit as u32;
const RETRIEVE: u32 = Kind::Retrieve as u32;
const SWAP: u32 = Kind::Swap as u32;
const OWE_NO_OP: u32 = Kind::OweNoOp as u32;
/// The sign of a difference.
const SIGN: u32 = 1 << 31;

fn is(value: u32) -> Match {
    Match::is(value)
}

fn masked(mask: u32, value: u32) -> Match {
    Match::Masked { mask, value }
}

pub(super) fn declare(b: &mut Builder, f: &Fields, config: Config, target: &Target) {
    kinds(b, f, config);
    pointers(b, f, config);
    differences(b, f);
    judgement(b, f, config);
    guard(b, f, config, target);
    flags(b, f);
    comparisons(b, f);
    route(b, f, config);
    copies(b, f);
}

/// Stage 0: the packet's kind and level.
fn kinds(b: &mut Builder, f: &Fields, config: Config) {
    let i = &f.inside;
    let lawful = |name: &str| {
        let level = Action::new(name).set(i.kind, argument(0)).set(i.level, argument(1)).set(i.cell, argument(2));
        level.set(i.add_flag, argument(3)).set(i.retrieve_flag, argument(4))
    };
    let plain = lawful("level");
    // A REPAIR clears a flag that is known from the start.
    let repair = lawful("repair").set(i.flag, argument(5));
    let table = b.table(Ingress, 0, "kind");
    table.ternary(f.op).ternary(f.tprio).ternary(f.rtrv_prio).ternary(f.ptr).ternary(f.tasks);
    let any = Match::ANY;
    table.entry([is(SUBMIT), any, any, any, is(0)], &Action::new("no tasks").drop("no tasks"), &[]);
    for level in 0..config.levels {
        let number = is(level + 1);
        let (add_flag, retrieve_flag) = (1 << (2 * level), 2 << (2 * level));
        let of = |kind| [kind, level, level << config.index_bits(), add_flag, retrieve_flag];
        let repairing = |kind, flag| [&of(kind)[..], &[flag]].concat();
        table.entry([is(SUBMIT), number, any, any, any], &plain, &of(SUBMIT));
        table.entry([is(RETRIEVE), any, number, any, any], &plain, &of(RETRIEVE));
        table.entry([is(SWAP), any, number, any, any], &plain, &of(SWAP));
        for (which, kind, flag) in
            [(pointer::ADD, REPAIR_ADD, add_flag), (pointer::RETRIEVE, REPAIR_RETRIEVE, retrieve_flag)]
        {
            table.entry([is(Kind::Repair as u32), any, number, is(which), any], &repair, &repairing(kind, flag));
        }
    }
    table.entry([is(OWE_NO_OP), any, any, any, any], &Action::new("owe").set(i.kind, OWE_NO_OP), &[]);
    table.run(&Action::new("malformed").drop("malformed"));
    table.note("what it is; the level's number, its part of the entries and its two flags");
}

/// Stage 1: both pointers, each in one access (listing 1, lines 2 and 3; listing 2, line 2; listing 3, lines 9 and 13).
fn pointers(b: &mut Builder, f: &Fields, config: Config) {
    let i = &f.inside;
    let bits = config.levels.next_power_of_two().trailing_zeros();
    let mut pointer = |name: &str, to: Field, moves: u32, reads: &[u32], repairs: u32, note: &str| {
        let register = b.register(Ingress, 1, name, Cell::W32, config.levels.next_power_of_two());
        let cell = register.at(low_bits(i.level, bits));
        let increment = Action::new("read_and_increment").access(cell.always(Alu::add(1)).give_old(to));
        let read = Action::new("read").access(cell.give_old(to));
        let repair = Action::new("repair").access(cell.always(Alu::set(f.value)));
        let table = b.table(Ingress, 1, name).exact(i.kind);
        table.entry([is(moves)], &increment, &[]).entry([is(repairs)], &repair, &[]);
        reads.iter().for_each(|&kind| {
            table.entry([is(kind)], &read, &[]);
        });
        table.note(note);
    };
    let note = "listing 1, line 2; listing 3, line 13";
    pointer("add_ptr", i.add, SUBMIT, &[SWAP], REPAIR_ADD, note);
    let note = "listing 1, line 3; listing 2, line 2; listing 3, line 9";
    pointer("retrieve_ptr", i.retrieve, RETRIEVE, &[SUBMIT, SWAP], REPAIR_RETRIEVE, note);
    let task = Action::new("task").or(i.mine, f.trsrc, VALID);
    b.table(Ingress, 1, "task").run(&task).note("`is_valid` and TRSRC as one word");
}

/// Stage 2: the distances that decide, and the packet's entry.
fn differences(b: &mut Builder, f: &Fields) {
    let i = &f.inside;
    let length = Action::new("subtract").sub(i.length, i.add, i.retrieve).sub(i.ahead, i.add, f.swap_idx);
    b.table(Ingress, 2, "length").run(&length).note("what tells full from empty; how far SWAP_IDX is from the tail");
    let at = |pointer: Field| Action::new("at").set(i.at, pointer);
    let table = b.table(Ingress, 2, "at").exact(i.kind);
    table.entry([is(SUBMIT)], &at(i.add), &[]).entry([is(RETRIEVE)], &at(i.retrieve), &[]);
    table.note("the entry that the packet is about");
    let held = b.table(Ingress, 2, "search").when(i.kind.is(SWAP)).when(f.pkt_retrieve_ptr.equals(i.retrieve));
    held.run(&at(f.swap_idx)).note("the search goes on");
    let moved = b.table(Ingress, 2, "reset").when(i.kind.is(SWAP)).when(f.pkt_retrieve_ptr.differs(i.retrieve));
    moved.run(&at(i.retrieve)).note("`retrieve_ptr` has moved: the search begins anew");
}

/// Stage 3: the meaning of the distances, as tables, because they are differences.
fn judgement(b: &mut Builder, f: &Fields, config: Config) {
    let i = &f.inside;
    let says = |name: &str, what: u32| Action::new(name).set(i.status, what);
    let space = says("space", status::SPACE);
    let full = says("full", status::FULL).set(i.flag, i.add_flag).set(i.broken, pointer::ADD);
    let overrun = says("overrun", status::OVERRUN).set(i.flag, i.retrieve_flag).set(i.broken, pointer::RETRIEVE);
    let table = b.table(Ingress, 3, "status").when(i.kind.is(SUBMIT)).ternary(i.length);
    table.entry([masked(SIGN, SIGN)], &overrun, &[]).entry([masked(!(config.size - 1), 0)], &space, &[]).run(&full);
    table.note("listing 1, lines 4, 7 and 17: a difference below the size, not, negative");
    let (inside, tail) = (says("inside", status::INSIDE), says("tail", status::TAIL));
    let held = b.table(Ingress, 3, "place").when(i.kind.is(SWAP)).when(f.pkt_retrieve_ptr.equals(i.retrieve));
    held.ternary(i.ahead).entry([masked(SIGN, SIGN)], &tail, &[]).entry([is(0)], &tail, &[]).run(&inside);
    held.note("is SWAP_IDX at the tail?");
    let moved = b.table(Ingress, 3, "head").when(i.kind.is(SWAP)).when(f.pkt_retrieve_ptr.differs(i.retrieve));
    moved.ternary(i.length).entry([masked(SIGN, SIGN)], &tail, &[]).entry([is(0)], &tail, &[]).run(&inside);
    moved.note("is the head at the tail?");
    let cell = Action::new("cell").deposit(i.cell, 0, i.at, 0, config.index_bits()).add(i.next, i.at, 1);
    b.table(Ingress, 3, "cell").run(&cell).note("the entry's number among those of all levels");
}

/// Stage 4: `is_valid` and TRSRC of the entry (listing 1, line 5; listing 2, lines 3 and 4).
fn guard(b: &mut Builder, f: &Fields, config: Config, target: &Target) {
    let i = &f.inside;
    for bank in valid(config, target) {
        let name = bank.name("is_valid");
        let register = b.register(Ingress, bank.stage, &name, Cell::W16, 1 << bank.index_bits);
        let cell = register.at(low_bits(i.cell, bank.index_bits));
        let store = Action::new("store").access(cell.always(Alu::set(i.mine)));
        let take = Action::new("read_and_set").access(cell.always(Alu::clear(VALID)).give_old(i.theirs));
        let exchange = Action::new("exchange").access(cell.always(Alu::set(i.mine)).give_old(i.theirs));
        let table = b.table(Ingress, bank.stage, &name).exact(i.kind).exact(i.status);
        if let Some(is_here) = bank.has(i.cell) {
            table.when(is_here);
        }
        table.entry([is(SUBMIT), is(status::SPACE)], &store, &[]);
        table.entry([is(SUBMIT), is(status::OVERRUN)], &store, &[]);
        table.entry([is(RETRIEVE), is(0)], &take, &[]);
        table.entry([is(SWAP), is(status::INSIDE)], &exchange, &[]);
        table.note("listing 1, line 5; listing 2, lines 3 and 4; SWAP");
    }
}

/// The registers of `is_valid`.
pub(super) fn valid(config: Config, target: &Target) -> impl Iterator<Item = Bank> {
    Bank::fewest(4, Width::W16, config.cell_bits(), target)
}

/// Stage 4: the bitmap (listing 1, lines 9 and 19; listing 3, lines 10 and 14).
fn flags(b: &mut Builder, f: &Fields) {
    let i = &f.inside;
    let bitmap = b.register(Ingress, 4, "is_repairing", Cell::W8, 1).at(crate::Index::Const(0));
    let raise = Action::new("read_and_set").access(bitmap.always(Alu::or(i.flag)).give_old(i.flags));
    let clear = Action::new("clear").access(bitmap.always(Alu::clear(i.flag)));
    let table = b.table(Ingress, 4, "is_repairing").exact(i.kind).exact(i.status);
    table.entry([is(SUBMIT), is(status::FULL)], &raise, &[]).entry([is(SUBMIT), is(status::OVERRUN)], &raise, &[]);
    table.entry([is(REPAIR_ADD), is(0)], &clear, &[]).entry([is(REPAIR_RETRIEVE), is(0)], &clear, &[]);
    table.note("listing 1, lines 9 and 19; listing 3, lines 10 and 14");
}

/// Stage 5: prepares the results of the accesses as keys.
fn comparisons(b: &mut Builder, f: &Fields) {
    let i = &f.inside;
    let compare = Action::new("compare").and_not(i.missing, i.theirs, f.exec_rsrc).and(i.flags, i.flags, i.flag);
    b.table(Ingress, 5, "compare")
        .run(&compare)
        .note("is there a task, and what does the executor lack? listing 1, lines 10 and 20");
}

/// Stage 6: destination, kind, and egress's operation on the entry.
fn route(b: &mut Builder, f: &Fields, config: Config) {
    let i = &f.inside;
    let to = |name: &str, destination: Destination| Action::new(name).forward(destination);
    let answer = |name: &str, kind: Kind| to(name, Destination::Requester).set(f.op, kind as u32);
    let again = |name: &str, does: u32| to(name, Destination::Recirculate).set(i.entry, does);
    let no_task = match config.empty {
        Empty::NoOp => answer("no-op", Kind::NoOp),
        Empty::Ignored => Action::new("ignore").drop("empty"),
    };
    let (store, last) = (again("store", entry::STORE), again("store last", entry::STORE_LAST));
    let full = answer("full", Kind::Full);
    let mask = |action: Action| action.and(f.trsrc, i.theirs, VALID - 1);
    let assign = mask(answer("assign", Kind::Assign)).set(i.entry, argument(0));
    let lower = to("next level", Destination::Recirculate).add(f.rtrv_prio, f.rtrv_prio, 1);
    let travel = |name, does, seen| {
        mask(again(name, does)).set(f.op, SWAP).set(f.swap_idx, i.next).set(f.pkt_retrieve_ptr, seen)
    };
    let (leave, on) = (travel("swap", entry::LOAD, i.next), travel("swap on", entry::EXCHANGE, i.retrieve));
    let resubmit = again("resubmit", entry::RESUBMIT).set(f.op, SUBMIT).set(f.tasks, 1).set(f.tprio, f.rtrv_prio);

    let (any, valid, hole) = (Match::ANY, is(VALID), masked(VALID, 0));
    let table = b.table(Ingress, 6, "route");
    table.ternary(i.kind).ternary(i.status).ternary(i.missing).ternary(f.rtrv_prio).ternary(f.tasks);
    for has_room in [status::SPACE, status::OVERRUN] {
        table.entry([is(SUBMIT), is(has_room), any, any, is(1)], &last, &[]);
        table.entry([is(SUBMIT), is(has_room), any, any, any], &store, &[]);
    }
    table.entry([is(SUBMIT), is(status::FULL), any, any, any], &full, &[]);
    table.entry([is(RETRIEVE), any, valid, any, any], &assign, &[entry::LOAD]);
    table.entry([is(RETRIEVE), any, hole, is(config.levels), any], &no_task, &[]);
    table.entry([is(RETRIEVE), any, hole, any, any], &lower, &[]);
    table.entry([is(RETRIEVE), any, any, any, any], &leave, &[]);
    table.entry([is(SWAP), is(status::INSIDE), valid, any, any], &assign, &[entry::EXCHANGE]);
    // The task stays in its new entry, which was empty.
    let stays = no_task_behind(&no_task, i.entry);
    table.entry([is(SWAP), is(status::INSIDE), hole, any, any], &stays, &[]);
    table.entry([is(SWAP), is(status::INSIDE), any, any, any], &on, &[]);
    table.entry([is(SWAP), is(status::TAIL), any, any, any], &resubmit, &[]);
    table.entry([is(OWE_NO_OP), any, any, any, any], &no_task, &[]);
    let repaired = Action::new("repaired").drop("repaired");
    table.entry([is(REPAIR_ADD), any, any, any, any], &repaired, &[]);
    table.entry([is(REPAIR_RETRIEVE), any, any, any, any], &repaired, &[]);
    table.note("below");
}

/// Tells the executor that there is no task, by a packet whose task egress exchanges first.
fn no_task_behind(no_task: &Action, entry_field: Field) -> Action {
    Action { name: format!("{}, task left", no_task.name), ..no_task.clone() }.set(entry_field, entry::EXCHANGE)
}

/// Stage 6: the copies (listing 1, lines 14 and 23; the no-op of a SWAP at the tail).
fn copies(b: &mut Builder, f: &Fields) {
    let i = &f.inside;
    let repair = [(f.ptr, i.broken), (f.value, i.add), (f.rtrv_prio, f.tprio)];
    let repair = b.mirror("repair", (f.op, Kind::Repair as u32), &repair);
    let owed = b.mirror("owed no-op", (f.op, OWE_NO_OP), &[(f.address, f.address), (f.port, f.port)]);
    let (repair, owe) = (Action::new("repair").mirror(repair), Action::new("owe").mirror(owed));
    let table = b.table(Ingress, 6, "copies").ternary(i.kind).ternary(i.status).ternary(i.flags);
    table.entry([is(SUBMIT), is(status::FULL), is(0)], &repair, &[]);
    table.entry([is(SUBMIT), is(status::OVERRUN), is(0)], &repair, &[]);
    table.entry([is(SWAP), is(status::TAIL), Match::ANY], &owe, &[]);
    table.note("listing 1, lines 14 and 23; the no-op of a SWAP at the tail");
}
