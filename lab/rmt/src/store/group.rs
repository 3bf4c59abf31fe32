//! The registers of the key groups: five words, written together.

use super::Config;
use super::fields::{Fields, kind, role};
use crate::Pipeline::Ingress;
use crate::{Action, Alu, Builder, Cell, Index, Match, Output, Register, Test, low_bits};

const ANY: Match = Match::ANY;
const YES: Match = Match::is(1);
const NO: Match = Match::is(0);

#[derive(Clone, Debug)]
pub(super) struct Groups {
    pub(super) generation: Register,
    pub(super) seq: Register,
    pub(super) index: Register,
    pub(super) replicas: Register,
    pub(super) stable: Register,
}

pub(super) fn declare(b: &mut Builder, f: &Fields, config: Config) -> Groups {
    cell(b, f, config);
    let generation = generation(b, f, config);
    let seq = seq(b, f, config);
    checks(b, f);
    let index = index(b, f, config);
    let replicas = replicas(b, f, config);
    let stable = stable(b, f, config);
    Groups { generation, seq, index, replicas, stable }
}

/// Stages 0 and 1: the hash's top bits, as many as the set has; above them the set's place.
fn cell(b: &mut Builder, f: &Fields, config: Config) {
    let i = &f.inside;
    let table = b.table(Ingress, 0, "key group").exact(f.bits);
    for bits in 1..=config.kgroup_bits {
        let top = Action::new(format!("top {bits}")).shift_right(i.cell, f.hash, 32 - bits);
        table.entry([Match::is(bits)], &top, &[]);
    }
    table.note("the top bits of the hash");
    if config.set_bits() > 0 {
        let place = Action::new("place").deposit(i.cell, config.kgroup_bits, f.place, 0, config.set_bits());
        b.table(Ingress, 1, "set's key groups").run(&place);
    }
}

fn at(f: &Fields, config: Config) -> Index {
    low_bits(f.inside.cell, config.cell_bits())
}

fn register(b: &mut Builder, config: Config, stage: usize, name: &str, cell: Cell) -> Register {
    b.register(Ingress, stage, name, cell, 1 << config.cell_bits())
}

/// Stage 2: the session in which the entry was last written. Only an accepted WRITE changes it, because only that writes all words.
fn generation(b: &mut Builder, f: &Fields, config: Config) -> Register {
    let i = &f.inside;
    let register = register(b, config, 2, "group_generation", Cell::W32);
    let cell = register.at(at(f, config));
    let claim = Action::new("claim").access(cell.always(Alu::set(i.generation)).give_old(i.known));
    let read = Action::new("read").access(cell.give_old(i.known));
    let table = b.table(Ingress, 2, "group_generation").ternary(i.kind).ternary(i.active).ternary(i.last);
    table.entry([Match::is(kind::WRITE), YES, Match::is(u32::MAX)], &read, &[]);
    table.entry([Match::is(kind::WRITE), YES, ANY], &claim, &[]);
    for reads in [kind::READ, kind::CLOSE, kind::REPLY, kind::BEHIND] {
        table.entry([Match::is(reads), ANY, ANY], &read, &[]);
    }
    table.note("WRITE: the entry is this session's. Others: is it?");
    register
}

/// Stage 3: the SEQ of the last WRITE.
fn seq(b: &mut Builder, f: &Fields, config: Config) -> Register {
    let i = &f.inside;
    let register = register(b, config, 3, "group_seq", Cell::W32);
    let cell = register.at(at(f, config));
    let set = Action::new("set").access(cell.always(Alu::set(f.seq)));
    let read = Action::new("read").access(cell.give_old(i.group_seq));
    let table = b.table(Ingress, 3, "group_seq").exact(i.role);
    table.entry([Match::is(role::WRITE)], &set, &[]);
    for reads in [role::READ, role::CLOSE, role::CHECK, role::ODD, role::TURN] {
        table.entry([Match::is(reads)], &read, &[]);
    }
    let lazy = Action::new("lazy").set(i.lazy, 1);
    b.table(Ingress, 3, "lazy")
        .when(i.known.differs(i.generation))
        .run(&lazy)
        .note("the entry is of an earlier session");
    let none = Action::new("none").set(i.group_seq, 0);
    b.table(Ingress, 4, "no SEQ").when(i.lazy.is(1)).run(&none).note("an entry of an earlier session has SEQ 0");
    register
}

/// Stages 3 to 5: checks a reply against its key group.
fn checks(b: &mut Builder, f: &Fields) {
    let i = &f.inside;
    let becomes = |name: &str, role| Action::new(name).set(i.role, role);
    let table = b.table(Ingress, 3, "leader's").when(f.from.equals(i.leader)).exact(i.role);
    for checked in [role::CHECK, role::ODD] {
        table.entry([Match::is(checked)], &becomes("pass", role::PASS), &[]);
    }
    table.note("the leader's own reply is good");
    let pass = becomes("pass", role::PASS);
    let overtaken = b.table(Ingress, 4, "overtaken").when(i.role.is(role::CLOSE)).when(i.group_seq.differs(f.seq));
    overtaken.run(&pass).note("a later WRITE is under way: nothing is closed");
    let other = b.table(Ingress, 4, "never written").when(i.role.is(role::CLOSE)).when(i.group_seq.equals(f.seq));
    other.when(i.lazy.masked(1, 1)).run(&pass).note("the SEQ is that of an earlier session's entry");
    let turn = becomes("turn back", role::TURN);
    let outrun = b.table(Ingress, 5, "outrun").when(i.role.is(role::CHECK)).when(i.group_seq.differs(f.seq));
    outrun.run(&turn).note("a follower's reply, and a later WRITE has passed");
    b.table(Ingress, 5, "odd").when(i.role.is(role::ODD)).run(&turn).note("the same");
}

/// Stage 4: the index. A closing reply raises it.
fn index(b: &mut Builder, f: &Fields, config: Config) -> Register {
    let i = &f.inside;
    let register = register(b, config, 4, "group_index", Cell::W32);
    let cell = register.at(at(f, config));
    let read = Action::new("read").access(cell.give_old(i.at));
    let reset = Action::new("reset").access(cell.always(Alu::set(i.start)).give(Output::New(crate::Word::Low), i.at));
    let start = Action::new("start").set(i.at, i.start);
    let table = b.table(Ingress, 4, "group_index").when(i.role.is_not(role::CLOSE)).exact(i.role).exact(i.lazy);
    table.entry([Match::is(role::WRITE), NO], &read, &[]).entry([Match::is(role::WRITE), YES], &reset, &[]);
    for reads in [role::READ, role::CHECK, role::ODD, role::TURN] {
        table.entry([Match::is(reads), NO], &read, &[]).entry([Match::is(reads), YES], &start, &[]);
    }
    table.note("an entry of an earlier session has index s");
    let raise = cell.test(Test::Greater, f.index).otherwise(Alu::set(f.index)).give(Output::Predicate, i.below);
    let close = b.table(Ingress, 4, "close").when(i.role.is(role::CLOSE)).when(i.group_seq.equals(f.seq));
    close
        .when(i.lazy.masked(1, 0))
        .run(&Action::new("raise").access(raise))
        .note("the answer to the last WRITE: its index, unless that is below");
    register
}

/// Stage 5: the replicas that the leader named.
fn replicas(b: &mut Builder, f: &Fields, config: Config) -> Register {
    let i = &f.inside;
    let register = register(b, config, 5, "group_replicas", Cell::W8);
    let cell = register.at(at(f, config));
    let read = Action::new("read").access(cell.give_old(i.consistent));
    let none = Action::new("none").access(cell.always(Alu::set(0)));
    let set = Action::new("set").access(cell.always(Alu::set(f.replicas)));
    let table = b.table(Ingress, 5, "group_replicas").ternary(i.role).ternary(i.lazy).ternary(i.below);
    table.entry([Match::is(role::READ), NO, ANY], &read, &[]);
    table.entry([Match::is(role::WRITE), YES, ANY], &none, &[]);
    table.entry([Match::is(role::CLOSE), ANY, NO], &set, &[]);
    register
}

/// Stage 5: whether no write is in flight.
fn stable(b: &mut Builder, f: &Fields, config: Config) -> Register {
    let i = &f.inside;
    let register = register(b, config, 5, "group_stable", Cell::W8);
    let cell = register.at(at(f, config));
    let read = Action::new("read").access(cell.give_old(i.stable));
    let is_stable = Action::new("stable").set(i.stable, 1);
    let open = Action::new("open").access(cell.always(Alu::set(0)));
    let close = Action::new("close").access(cell.always(Alu::set(1)));
    let table = b.table(Ingress, 5, "group_stable").ternary(i.role).ternary(i.lazy).ternary(i.below);
    table.entry([Match::is(role::READ), NO, ANY], &read, &[]);
    table.entry([Match::is(role::READ), YES, ANY], &is_stable, &[]);
    table.entry([Match::is(role::WRITE), ANY, ANY], &open, &[]);
    table.entry([Match::is(role::CLOSE), ANY, NO], &close, &[]);
    table.note("an entry of an earlier session is stable");
    register
}
