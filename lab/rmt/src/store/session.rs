//! The sessions' registers, a cell per set; the packet's kind and its handling.

use super::Config;
use super::fields::{Fields, Kind, REPLICAS, kind, role};
use crate::Pipeline::Ingress;
use crate::{Action, Alu, Builder, Cell, Field, Index, Match, Output, Register, Test, low_bits};

const ANY: Match = Match::ANY;
const YES: Match = Match::is(1);
const NO: Match = Match::is(0);
/// The last SEQ.
const LAST: Match = Match::is(u32::MAX);
const NOT_LEADER: u32 = 7;
const REORDERED: u32 = 8;
const BEHIND: u32 = 16;
const LEADER_ONLY: u32 = 1;
/// What reaches the replica of a client's `flags`.
const KEPT: u32 = 2 | 64 | 128;

#[derive(Clone, Debug)]
pub(super) struct Sessions {
    pub(super) lease: Register,
    pub(super) sid: [Register; 2],
    pub(super) start_high: Register,
    pub(super) start: Register,
    pub(super) seq: Register,
    pub(super) generation: Register,
    pub(super) answered: Register,
}

pub(super) fn declare(b: &mut Builder, f: &Fields, config: Config) -> Sessions {
    let lease = lease(b, f, config);
    let i = &f.inside;
    let sid = [("sid_term", 0), ("sid_number", 1)].map(|(name, n)| word(b, f, config, (0, name), (f.sid[n], i.sid[n])));
    let start_high = word(b, f, config, (0, "start_high"), (f.index_high, i.start_high));
    kinds(b, f);
    let seq = seq(b, f, config);
    let generation = word(b, f, config, (1, "generation"), (f.generation, i.generation));
    word(b, f, config, (1, "leader"), (f.from, i.leader));
    let start = word(b, f, config, (1, "start"), (f.index, i.start));
    differences(b, f);
    word(b, f, config, (2, "eligible"), (f.replicas, i.eligible));
    roles(b, f);
    let answered = answered(b, f, config);
    (0..REPLICAS).for_each(|slot| matched(b, f, config, slot));
    Sessions { lease, sid, start_high, start, seq, generation, answered }
}

fn place(f: &Fields, config: Config) -> Index {
    low_bits(f.place, config.set_bits())
}

/// Stage 0: a serial number, so a past end must not wrap into the future: the controller advances it.
fn lease(b: &mut Builder, f: &Fields, config: Config) -> Register {
    let register = b.register(Ingress, 0, "lease", Cell::W32, config.sets);
    let cell = register.at(place(f, config));
    let runs = Action::new("runs").access(cell.test(Test::After, f.now).give(Output::Predicate, f.inside.active));
    let set = Action::new("set").access(cell.always(Alu::set(f.now)));
    let table = b.table(Ingress, 0, "lease").exact(f.op);
    for ours in [Kind::Session, Kind::End] {
        table.entry([Match::is(ours as u32)], &set, &[]);
    }
    table.run(&runs).note("does the lease run? SESSION and END set its end");
    register
}

/// A word of the session: SESSION writes it, all others read it.
fn word(
    b: &mut Builder,
    f: &Fields,
    config: Config,
    (stage, name): (usize, &str),
    (given, read): (Field, Field),
) -> Register {
    let width = if read.width().bits() == 8 { Cell::W8 } else { Cell::W32 };
    let register = b.register(Ingress, stage, name, width, config.sets);
    let cell = register.at(place(f, config));
    let set = Action::new("set").access(cell.always(Alu::set(given)));
    let read = Action::new("read").access(cell.give_old(read));
    b.table(Ingress, stage, name).exact(f.op).entry([Match::is(Kind::Session as u32)], &set, &[]).run(&read);
    register
}

/// Stage 0: the packet's kind, from the packet alone.
fn kinds(b: &mut Builder, f: &Fields) {
    let is = |kind| Action::new(name_of(kind, kind::NAMES)).set(f.inside.kind, kind);
    let op = |kind: Kind| Match::is(kind as u32);
    let leader_only = Match::Masked { mask: LEADER_ONLY, value: LEADER_ONLY };
    let table = b.table(Ingress, 0, "kind").ternary(f.op).ternary(f.flags).ternary(f.status);
    for (op_is, flags, status, kind) in [
        (op(Kind::Read), ANY, ANY, kind::READ),
        (op(Kind::Write), ANY, ANY, kind::WRITE),
        (op(Kind::WriteReply), ANY, Match::is(NOT_LEADER), kind::NOTE),
        (op(Kind::WriteReply), ANY, Match::is(REORDERED), kind::NOTE),
        (op(Kind::WriteReply), ANY, ANY, kind::CLOSE),
        (op(Kind::ReadReply), leader_only, Match::is(BEHIND), kind::LATE),
        (op(Kind::ReadReply), leader_only, ANY, kind::LEADERS),
        (op(Kind::ReadReply), ANY, Match::is(BEHIND), kind::BEHIND),
        (op(Kind::ReadReply), ANY, ANY, kind::REPLY),
        (op(Kind::Session), ANY, ANY, kind::SESSION),
        (op(Kind::End), ANY, ANY, kind::END),
    ] {
        table.entry([op_is, flags, status], &is(kind), &[]);
    }
}

fn name_of(value: u32, names: &[(u32, &'static str)]) -> String {
    names.iter().find(|(known, _)| *known == value).map_or_else(String::new, |(_, name)| name.to_lowercase())
}

/// Stage 1: the last SEQ. A WRITE takes the next one, unless there is none.
fn seq(b: &mut Builder, f: &Fields, config: Config) -> Register {
    let i = &f.inside;
    let register = b.register(Ingress, 1, "seq", Cell::W32, config.sets);
    let cell = register.at(place(f, config));
    let next = cell.test(Test::NotEqual, u32::MAX).then(Alu::add(1)).give_old(i.last);
    let next = Action::new("next").access(next);
    let read = Action::new("read").access(cell.give_old(i.last));
    let given = Action::new("given").access(cell.test(Test::Less, f.seq).give(Output::Predicate, i.beyond));
    let begin = Action::new("begin").access(cell.always(Alu::set(0)));
    let table = b.table(Ingress, 1, "seq").ternary(i.kind).ternary(i.active).ternary(f.begins);
    table.entry([Match::is(kind::WRITE), YES, ANY], &next, &[]);
    table.entry([Match::is(kind::READ), ANY, ANY], &read, &[]);
    table.entry([Match::is(kind::CLOSE), ANY, ANY], &given, &[]);
    table.entry([Match::is(kind::NOTE), ANY, ANY], &given, &[]);
    table.entry([Match::is(kind::SESSION), ANY, YES], &begin, &[]);
    table.entry([Match::is(kind::SESSION), ANY, ANY], &read, &[]);
    table.note("WRITE: + 1, but never beyond the last. WRITE_REPLY: was its SEQ given?");
    register
}

/// Stages 1 and 2: whether the packet belongs to this session; the SEQ of a WRITE.
fn differences(b: &mut Builder, f: &Fields) {
    let i = &f.inside;
    let compare = Action::new("compare")
        .xor(i.differs[0], f.sid[0], i.sid[0])
        .xor(i.differs[1], f.sid[1], i.sid[1])
        .xor(i.differs[2], f.index_high, i.start_high)
        .and(f.flags, f.flags, KEPT);
    b.table(Ingress, 1, "compare")
        .run(&compare)
        .note("0 where the packet's SID, and the upper half of its index, are the session's");
    let next = Action::new("next").add(f.seq, i.last, 1);
    b.table(Ingress, 2, "next").when(i.kind.is(kind::WRITE)).run(&next).note("the SEQ of a WRITE");
}

/// Stage 2: the handling of the packet.
fn roles(b: &mut Builder, f: &Fields) {
    let i = &f.inside;
    let table = b.table(Ingress, 2, "role").ternary(i.kind).ternary(i.active).ternary(i.last);
    table.ternary(i.differs[0]).ternary(i.differs[1]).ternary(i.differs[2]).ternary(f.seq_high).ternary(f.relaxed);
    let ours = [NO, NO, ANY, NO];
    let rows: [(u32, Match, Match, [Match; 4], Match, u32); 21] = [
        (kind::READ, YES, LAST, [ANY; 4], ANY, role::REFUSE),
        (kind::READ, YES, ANY, [ANY; 4], ANY, role::READ),
        (kind::READ, ANY, ANY, [ANY; 4], ANY, role::REFUSE),
        (kind::WRITE, YES, LAST, [ANY; 4], ANY, role::REFUSE),
        (kind::WRITE, YES, ANY, [ANY; 4], ANY, role::WRITE),
        (kind::WRITE, ANY, ANY, [ANY; 4], ANY, role::REFUSE),
        (kind::CLOSE, YES, ANY, [NO; 4], ANY, role::CLOSE),
        (kind::CLOSE, YES, ANY, ours, ANY, role::NOTE),
        (kind::CLOSE, ANY, ANY, [ANY; 4], ANY, role::PASS),
        (kind::NOTE, YES, ANY, ours, ANY, role::NOTE),
        (kind::NOTE, ANY, ANY, [ANY; 4], ANY, role::PASS),
        (kind::LEADERS, YES, ANY, [NO, NO, ANY, ANY], ANY, role::PASS),
        (kind::LEADERS, ANY, ANY, [ANY; 4], ANY, role::LATE),
        (kind::LATE, ANY, ANY, [ANY; 4], ANY, role::LATE),
        (kind::REPLY, ANY, ANY, [ANY; 4], YES, role::PASS),
        (kind::REPLY, ANY, ANY, ours, ANY, role::CHECK),
        (kind::REPLY, ANY, ANY, [NO, NO, ANY, ANY], ANY, role::ODD),
        (kind::REPLY, ANY, ANY, [ANY; 4], ANY, role::TURN),
        (kind::BEHIND, ANY, ANY, [ANY; 4], ANY, role::TURN),
        (kind::SESSION, ANY, ANY, [ANY; 4], ANY, role::SESSION),
        (kind::END, ANY, ANY, [ANY; 4], ANY, role::END),
    ];
    for (kind, active, last, [term, number, high, seq_high], relaxed, role) in rows {
        let is = Action::new(name_of(role, role::NAMES)).set(i.role, role);
        table.entry([Match::is(kind), active, last, term, number, high, seq_high, relaxed], &is, &[]);
    }
    table.note("is the session active, is the packet of it, and has it a SEQ left?");
}

/// Stage 3: the largest SEQ in a WRITE_REPLY.
fn answered(b: &mut Builder, f: &Fields, config: Config) -> Register {
    let i = &f.inside;
    let register = b.register(Ingress, 3, "answered", Cell::W32, config.sets);
    let cell = register.at(place(f, config));
    let raise = Action::new("raise").access(cell.test(Test::Less, f.seq).then(Alu::set(f.seq)));
    let read = Action::new("read").access(cell.give_old(i.answered));
    let set = Action::new("set").access(cell.always(Alu::set(i.last)));
    let table = b.table(Ingress, 3, "answered").ternary(i.role).ternary(i.beyond).ternary(f.begins).ternary(f.idle);
    table.entry([Match::is(role::CLOSE), NO, ANY, ANY], &raise, &[]);
    table.entry([Match::is(role::NOTE), NO, ANY, ANY], &raise, &[]);
    table.entry([Match::is(role::READ), ANY, ANY, ANY], &read, &[]);
    // When a session begins, `last` is 0.
    table.entry([Match::is(role::SESSION), ANY, YES, ANY], &set, &[]);
    table.entry([Match::is(role::SESSION), ANY, ANY, YES], &set, &[]);
    table.note("below the last SEQ, writes are under way");
    register
}

/// Stages 5 to 7: whether this replica has the key group's index.
fn matched(b: &mut Builder, f: &Fields, config: Config, slot: usize) {
    let i = &f.inside;
    let (stage, name) = ([5, 5, 6, 6, 6, 6, 7, 7][slot], format!("matched_{slot}"));
    let register = b.register(Ingress, stage, name.clone(), Cell::W32, config.sets);
    let cell = register.at(place(f, config));
    let set = Action::new("set").access(cell.always(Alu::set(f.matched[slot])));
    let compare = cell.test(Test::Greater, i.at).give(Output::Predicate, i.caught[slot]);
    let compare = Action::new("compare").access(compare);
    let table = b.table(Ingress, stage, name).exact(i.role);
    table.entry([Match::is(role::READ)], &compare, &[]).entry([Match::is(role::SESSION)], &set, &[]);
}
