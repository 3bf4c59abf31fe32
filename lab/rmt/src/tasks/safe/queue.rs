//! Stages 0 to 5: admission of a task, the level that gives one, and the pointer to the entry.

use super::Config;
use super::fields::{Fields, Kind, any_level, at_level, plays, plays_other, role};
use crate::Pipeline::Ingress;
use crate::{Access, Action, Alu, Builder, Cell, Index, Match, Operand, Output, Register, Test, Word};
use crate::{argument, low_bits};

/// Cells for four levels, whatever their number: an index is two bits of the role.
const LEVELS: u32 = 4;
const FIRST: Index = Index::Const(0);
const ANY: Match = Match::ANY;
/// The index before the first record: one more is 0.
const BEFORE_THE_FIRST: u32 = 255;

fn is(value: u32) -> Match {
    Match::is(value)
}

fn less_one() -> Alu {
    Alu::Sub(Operand::Const(1))
}

/// Registers of counters and pointers. The cell is the level, from 0; two levels share a pair of `queued`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pointers {
    pub(super) credit_seen: Register,
    pub(super) accepted: Register,
    pub(super) add: Register,
    pub(super) queued: [Register; 2],
    pub(super) retrieve: Register,
}

pub(super) fn declare(b: &mut Builder, f: &Fields, config: Config) -> Pointers {
    let credit_seen = kinds(b, f, config);
    let accepted = accept(b, f, config);
    let add = add(b, f, config);
    let queued = [0, 1].map(|pair| count(b, f, config, pair));
    Pointers { credit_seen, accepted, add, queued, retrieve: retrieve(b, f, config) }
}

/// Stage 0: the packet's role and level; the limit for a task to be queued.
fn kinds(b: &mut Builder, f: &Fields, config: Config) -> Register {
    let i = &f.inside;
    let seen = b.register(Ingress, 0, "credit_seen", Cell::W32, LEVELS);
    let fresh = |action: Action| {
        let action = action.set(f.bit, 1).set(f.taken, 0).set(f.refused, 0);
        action.set(f.why, 0).set(f.credit_of, 0).set(f.index, BEFORE_THE_FIRST)
    };
    let plays = Action::new("role").set(i.role, argument(0));
    let malformed = Action::new("malformed").drop("malformed");
    let table = b.table(Ingress, 0, "kind");
    table.ternary(f.op).ternary(f.tprio).ternary(f.level).ternary(f.credit_of).range(f.tasks);
    let (number, all) = (Match::Between(1, 32), Match::Between(0, 255));
    for level in 0..config.levels {
        let named = is(level + 1);
        let cell = seen.at(Index::Const(level));
        let read = Action::new(format!("read {}", level + 1)).set(i.role, argument(0)).access(cell.give_old(i.limit));
        let newer = cell.test(Test::Before, f.credit).then(Alu::set(f.credit)).give(Output::New(Word::Low), i.limit);
        let update = Action::new(format!("update {}", level + 1)).set(i.role, argument(0)).access(newer);
        let first = Action { name: format!("first {}", level + 1), ..fresh(read.clone()) };
        let of = |role| [at_level(role, level)];
        table.entry([is(Kind::Submit as u32), named, ANY, ANY, number], &first, &of(role::SUBMIT));
        table.entry([is(Kind::Rest as u32), named, ANY, named, all], &update, &of(role::REST));
        table.entry([is(Kind::Rest as u32), named, ANY, ANY, all], &read, &of(role::SUBMIT));
        table.entry([is(Kind::Retrieve as u32), ANY, named, ANY, all], &plays, &of(role::RETRIEVE));
        table.entry([is(Kind::Swap as u32), ANY, named, ANY, all], &plays, &of(role::SWAP));
    }
    let refuse = [at_level(role::REFUSE, 0)];
    let first = fresh(Action { name: "first of no level".into(), ..plays.clone() });
    table.entry([is(Kind::Submit as u32), ANY, ANY, ANY, number], &first, &refuse);
    table.entry([is(Kind::Rest as u32), ANY, ANY, ANY, all], &plays, &refuse);
    table.run(&malformed).note(
        "its role and level; the limit of `accepted`: for a SUBMIT the lagging copy, for a REST that knows better what is newer",
    );
    seen
}

/// Stage 1: counts one more task, within the limit.
fn accept(b: &mut Builder, f: &Fields, config: Config) -> Register {
    let i = &f.inside;
    let accepted = b.register(Ingress, 1, "accepted", Cell::W32, LEVELS);
    let cell = accepted.at(low_bits(i.role, 2));
    let access = cell.test(Test::NotEqual, i.limit).then(Alu::add(1)).give_old(i.number);
    let action = Action::new("accept").access(access);
    let table = b.table(Ingress, 1, "accepted").exact(i.role);
    for level in 0..config.levels {
        table.entry([is(at_level(role::SUBMIT, level))], &action, &[]);
        table.entry([is(at_level(role::REST, level))], &action, &[]);
    }
    table.note("a task that wants in: `if accepted ≠ limit then + 1`");
    accepted
}

/// Stage 2: the task's entry, or whether a search has reached the tail.
fn add(b: &mut Builder, f: &Fields, config: Config) -> Register {
    let i = &f.inside;
    let add = b.register(Ingress, 2, "add_ptr", Cell::W32, LEVELS);
    let cell = add.at(low_bits(i.role, 2));
    let more = Alu::add(config.step());
    let enter = Action::new("enter").access(cell.always(more).give_old(i.at)).set(i.role, argument(0));
    let table =
        b.table(Ingress, 2, "enter").when(plays_other(f, role::SWAP)).when(i.number.differs(i.limit)).exact(i.role);
    for level in 0..config.levels {
        let store = [at_level(role::STORE, level)];
        table.entry([is(at_level(role::SUBMIT, level))], &enter, &store);
        table.entry([is(at_level(role::REST, level))], &enter, &store);
    }
    table.note("a task that was accepted: `add_ptr` + 1");
    let tail = Action::new("tail").access(cell.test(Test::Equal, f.swap_idx).then(more).give_old(i.add));
    b.table(Ingress, 2, "tail").when(plays(f, role::SWAP)).run(&tail).note("SWAP: `if add_ptr = SWAP_IDX then + 1`");
    add
}

/// Stages 3 and 4: the entries of two levels each. A retrieve takes one off the first level that has one.
fn count(b: &mut Builder, f: &Fields, config: Config, pair: u32) -> Register {
    let (i, stage) = (&f.inside, 3 + pair as usize);
    let name = ["queued_1_2", "queued_3_4"][pair as usize];
    let queued = b.register(Ingress, stage, name, Cell::Pair, 1);
    let found = i.found[pair as usize];
    let (low, high) = (2 * pair, 2 * pair + 1);
    let more = |level: u32| {
        let cell = queued.at(FIRST);
        if level == low { cell.always(Alu::add(1)) } else { cell.always_high(Alu::add(1)) }
    };
    let take = |first: Access| {
        let second = first.otherwise_if(Word::High, Test::NotEqual, 0).otherwise_high(less_one());
        Action::new("take").access(second.give(Output::Predicate, found))
    };
    let either = take(queued.at(FIRST).test(Test::NotEqual, 0).then(less_one()));
    // Nothing is less than 0.
    let lower = take(queued.at(FIRST).test(Test::Less, 0));

    let table = b.table(Ingress, stage, name).when(plays_other(f, role::SWAP));
    if pair == 1 {
        table.when(i.found[0].is(0));
    }
    table.exact(i.role);
    for level in 0..config.levels {
        let store = Action::new(format!("store {}", level + 1)).access(more(level));
        if [low, high].contains(&level) {
            table.entry([is(at_level(role::STORE, level))], &store, &[]);
        }
        if level <= high {
            let action = if level <= low { &either } else { &lower };
            table.entry([is(at_level(role::RETRIEVE, level))], action, &[]);
        }
    }
    table.note(
        "a task that enters: + 1. RETRIEVE that has none yet: − 1 at the first of both levels that it looks at and that has one",
    );

    let table = b.table(Ingress, stage, format!("place {}", ["1, 2", "3, 4"][pair as usize]));
    table.when(plays(f, role::SWAP)).when(i.add.equals(f.swap_idx)).exact(i.role);
    for level in (0..config.levels).filter(|level| [low, high].contains(level)) {
        let place = Action::new(format!("place {}", level + 1)).access(more(level));
        let place = place.set(i.role, argument(0)).set(i.at, f.swap_idx);
        table.entry([is(at_level(role::SWAP, level))], &place, &[at_level(role::PLACE, level)]);
    }
    table.note("SWAP at the tail: + 1; its task is placed there");
    queued
}

/// Stage 5: the head, for a retrieve with a level; for a search, the later of the head and its own position.
fn retrieve(b: &mut Builder, f: &Fields, config: Config) -> Register {
    let i = &f.inside;
    let retrieve = b.register(Ingress, 5, "retrieve_ptr", Cell::Pair, LEVELS);
    let table = b.table(Ingress, 5, "retrieve").ternary(i.role).ternary(i.found[0]).ternary(i.found[1]);
    let found = [[is(1), ANY], [is(2), ANY], [is(0), is(1)], [is(0), is(2)]];
    for (level, [first, second]) in (0..config.levels).zip(found) {
        let head = retrieve.at(Index::Const(level)).always(Alu::add(config.step())).give_old(i.at);
        let take = Action::new(format!("take {}", level + 1)).access(head);
        let take = take.set(i.role, argument(0)).set(f.level, argument(1));
        table.entry([any_level(role::RETRIEVE), first, second], &take, &[at_level(role::TAKE, level), level + 1]);
    }
    let later = retrieve.at(low_bits(i.role, 2)).test(Test::Before, f.swap_idx);
    let later = later.then_high(Alu::set(f.swap_idx)).otherwise_high(Alu::Word(Word::Low));
    let search = Action::new("search").access(later.give(Output::New(Word::High), i.at));
    table.entry([any_level(role::SWAP), ANY, ANY], &search, &[]);
    table.note(
        "RETRIEVE: `retrieve_ptr` + 1 at the level that has a task. SWAP: the later of SWAP_IDX and `retrieve_ptr`",
    );
    retrieve
}
