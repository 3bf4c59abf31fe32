//! Stage 11: the packet's destination and header.

use super::fields::{Fields, Kind, role};
use super::packets::{Cut, Did};
use crate::Pipeline::Ingress;
use crate::{Action, Builder, Destination, Match};

const ANY: Match = Match::ANY;
const YES: Match = Match::is(1);
const NO: Match = Match::is(0);
const INACTIVE: u32 = 5;
const NOT_LEADER: u32 = 7;
const LEADER_ONLY: u32 = 1;

pub(super) fn declare(b: &mut Builder, f: &Fields) {
    let i = &f.inside;
    let table = b.table(Ingress, 11, "route").ternary(i.role).ternary(i.active).ternary(i.stable).ternary(f.to);
    table.ternary(i.below).ternary(f.client_port);
    let is = |role| Match::is(role);
    let alone = leader_only(f, "leader only", Did::LeaderOnly);
    let turned = leader_only(f, "turned back", Did::TurnedBack);
    let turned = turned.set(f.op, Kind::Read as u32).set(f.cut, Cut::BehindKey as u32);
    let sent = stamped(f, "sent", Did::Sent).set(f.seq, i.group_seq);
    let written = stamped(f, "written", Did::Written).set(f.to, i.leader);
    table.entry([is(role::READ), ANY, YES, NO, ANY, ANY], &alone, &[]);
    table.entry([is(role::READ), ANY, YES, ANY, ANY, ANY], &sent, &[]);
    table.entry([is(role::READ), ANY, ANY, ANY, ANY, ANY], &alone, &[]);
    table.entry([is(role::WRITE), ANY, ANY, ANY, ANY, ANY], &written, &[]);
    let refused = told(f, "refused", Did::Refused, INACTIVE).add(f.op, f.op, 1);
    table.entry([is(role::REFUSE), ANY, ANY, ANY, ANY, ANY], &refused, &[]);
    let ends = |name, did: Did| Action::new(name).set(f.did, did as u32).drop("refresh");
    let closed = to_client(f, "closed", Did::Closed);
    table.entry([is(role::CLOSE), ANY, ANY, ANY, NO, NO], &ends("closed, for nobody", Did::Closed), &[]);
    table.entry([is(role::CLOSE), ANY, ANY, ANY, NO, ANY], &closed, &[]);
    for passes in [role::CLOSE, role::NOTE, role::CHECK, role::PASS] {
        table.entry([is(passes), ANY, ANY, ANY, ANY, NO], &ends("for nobody", Did::Passed), &[]);
        table.entry([is(passes), ANY, ANY, ANY, ANY, ANY], &to_client(f, "passed", Did::Passed), &[]);
    }
    table.entry([is(role::TURN), YES, ANY, ANY, ANY, ANY], &turned, &[]);
    for late in [role::TURN, role::LATE] {
        table.entry([is(late), NO, ANY, ANY, ANY, ANY], &told(f, "outdated, inactive", Did::Outdated, INACTIVE), &[]);
    }
    table.entry([is(role::LATE), ANY, ANY, ANY, ANY, ANY], &told(f, "outdated", Did::Outdated, NOT_LEADER), &[]);
    let done = Action::new("done").drop("done");
    for ours in [role::SESSION, role::END] {
        table.entry([is(ours), ANY, ANY, ANY, ANY, ANY], &done, &[]);
    }
    table.note("where the packet goes, and what its header says");
}

/// To a replica, with the switch's values of session and key group.
fn stamped(f: &Fields, name: &str, did: Did) -> Action {
    let i = &f.inside;
    let stamped = Action::new(name).set(f.did, did as u32).forward(Destination::Requester);
    let stamped = stamped.set(f.sid[0], i.sid[0]).set(f.sid[1], i.sid[1]).set(f.seq_high, 0);
    stamped.set(f.index_high, i.start_high).set(f.index, i.at).set(f.replicas, 0).set(f.status, 0)
}

fn leader_only(f: &Fields, name: &str, did: Did) -> Action {
    let stamped = stamped(f, name, did).set(f.seq, f.inside.group_seq);
    stamped.set(f.to, f.inside.leader).or(f.flags, f.flags, LEADER_ONLY)
}

/// To the client, without values of the session.
fn to_client(f: &Fields, name: &str, did: Did) -> Action {
    let hidden = [f.sid[0], f.sid[1], f.seq_high, f.seq, f.index_high, f.index, f.replicas];
    let sent = Action::new(name).set(f.did, did as u32).forward(Destination::Requester);
    hidden.into_iter().fold(sent, |action, field| action.set(field, 0))
}

/// The same, without key and value.
fn told(f: &Fields, name: &str, did: Did, status: u32) -> Action {
    to_client(f, name, did).set(f.status, status).set(f.cut, Cut::BehindHeader as u32)
}
