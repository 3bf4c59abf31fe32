//! The change of each planted defect.

use super::Planted;
use crate::action::{Action, Effect, Op, Verb};
use crate::register::{Access, Alu, Index, Output, Test, Word};
use crate::table::{Entry, Match, Table};
use crate::tasks::safe::Config;
use crate::tasks::safe::fields::{Fields, any_level, at_level, role};

struct Tables<'a>(&'a mut [Table]);

pub(super) fn plant(planted: Planted, config: Config, tables: &mut [Table], f: &Fields) {
    let mut t = Tables(tables);
    match planted {
        Planted::LimitNotCompared => t.access("accepted", "accept", always),
        Planted::EnterNotCompared => t.compare_role_only("enter", f),
        Planted::LateCredit => t.access("kind", "update", always),
        Planted::CreditUnsigned => t.access("kind", "update", unsigned),
        Planted::CreditOfAnotherLevel => {
            let update = t.actions_of("kind", "update");
            t.entries("kind", |entry| update.contains(&entry.action), |entry| entry.matches[3] = Match::ANY);
        }
        Planted::CreditNotRead => refuse_at_once(&mut t),
        Planted::PaidWhenFound => t.entries("credit", of(role::TAKE), |entry| entry.matches[1] = Match::ANY),
        Planted::PaidAtEachEntry => t.entries("credit", of(role::SWAP), |entry| entry.matches[1] = Match::ANY),
        Planted::SearchNeverPays => t.forget("credit", of(role::SWAP)),
        Planted::TailRaisedFirst => t.access("enter", "enter", gives_new),
        Planted::HeadRaisedFirst => t.access("retrieve", "take", gives_new),
        Planted::HeadNotRaised => t.access("retrieve", "take", |access| *access = access.always(Alu::Keep)),
        Planted::IndexTooShort => t.entry_accesses(|access| {
            if let Index::Slice { bits, .. } = &mut access.index {
                *bits -= 1;
            }
        }),
        Planted::CountBelowZero => t.access("queued_1_2", "take", |access| {
            access.second = None;
        }),
        Planted::CountOfOtherLevel => t.access("queued_1_2", "store 2", |access| {
            (access.then.low, access.then.high) = (access.then.high, access.then.low);
            access.otherwise = access.then;
        }),
        Planted::BothPairsTaken => t.compare_role_only("queued_3_4", f),
        Planted::LevelAboveTaken => {
            let either = t.table("queued_1_2").entries.iter().find(|entry| exactly(role::RETRIEVE, 0)(entry));
            let either = either.expect("a request for any level").action;
            t.entries("queued_1_2", exactly(role::RETRIEVE, 1), |entry| entry.action = either);
        }
        Planted::LevelNotSet => t.action("retrieve", "take", |action| action.ops.retain(|op| op.to != f.level)),
        Planted::TailNotCompared => t.access("tail", "tail", always),
        Planted::TailNotRaised => t.access("tail", "tail", |access| access.then.low = Alu::Keep),
        Planted::PlaceNotCounted => {
            for table in ["place 1, 2", "place 3, 4"].into_iter().take(config.levels.div_ceil(2) as usize) {
                t.action(table, "place", |action| action.access = None);
            }
        }
        Planted::PlaceForgetsLevel => t.forget("place 3, 4", exactly(role::SWAP, 3)),
        Planted::PlacedAndKept => {
            let search = t.actions_of("route", "search")[0];
            t.entries("route", of(role::PLACE), |entry| entry.action = search);
        }
        Planted::HeadNotCompared => t.access("retrieve", "search", always),
        Planted::HeadUnsigned => t.access("retrieve", "search", unsigned),
        Planted::SearchBeginsAnew => t.access("retrieve", "search", |access| access.then = access.otherwise),
        Planted::EntrySkipped => {
            t.op("next", "behind", Verb::Add, |op| op.b = (2 * config.step()).into());
        }
        Planted::TailTooSoon => {
            let tail = Action::new("tail").set(f.swap_idx, f.inside.add);
            let next = t.table("next");
            next.actions.push(tail);
            let tail = next.actions.len() - 1;
            t.entries("next", of(role::SWAP), |entry| entry.action = tail);
        }
        Planted::EmptyExchanged => t.compare_role_only("entry_trsrc of a search", f),
        Planted::AgainBehind => {
            let behind = t.actions_of("next", "behind")[0];
            t.entries("next", of(role::AGAIN), |entry| entry.action = behind);
        }
        Planted::WordNotExchanged => t.forget("entry_argument_length", of(role::SWAP)),
        Planted::PlacedWithExecutor => {
            t.access("entry_client_ip", "place", |access| *access = access.always(Alu::set(f.address)));
        }
        Planted::MaskReversed => t.op("compare", "compare", Verb::AndNot, |op| std::mem::swap(&mut op.a, &mut op.b)),
        Planted::ResourcesNotCompared => t.entries(
            "route",
            |entry| of(role::SWAP)(entry) && entry.matches[1] != Match::ANY,
            |entry| entry.matches[1] = Match::ANY,
        ),
        Planted::NextLevelForgotten => {
            t.entries("route", of(role::PLACE), |entry| entry.matches[2] = Match::ANY);
        }
        Planted::LastLevelGoesOn => {
            t.forget("route", |entry| of(role::PLACE)(entry) && entry.matches[2] != Match::ANY);
        }
        Planted::BitNotMoved => {
            t.action("route", "taken", |action| action.ops.retain(|op| op.verb != Verb::ShiftLeft));
        }
        Planted::RefusalForgotten => {
            t.action("route", "full, last", |action| action.ops.retain(|op| op.to != f.refused));
        }
        Planted::IndexOfTaken => t.action("route", "full", |action| action.ops.retain(|op| op.to != f.index)),
        Planted::FullInSilence => t.action("route", "full, last", |action| {
            action.effects.iter_mut().for_each(|(effect, _)| *effect = Effect::Drop("full"));
        }),
        Planted::SearchFromOwnEntry => {
            let there = t.actions_of("next", "there")[0];
            t.entries("next", of(role::TAKE), |entry| entry.action = there);
        }
        Planted::CreditReadLate => t.forget("credit", of(role::STORE)),
        Planted::CopyGoesOn => {
            let on = t.actions_of("front", "go on")[0];
            t.entries("front", |entry| entry.matches[3] == Match::is(0), |entry| entry.action = on);
        }
        Planted::CounterNotStored => t.access("counter", "later", |access| access.then.low = Alu::Keep),
        Planted::CounterOnlyDiffers => t.access("counter", "later", |access| {
            if let Some((_, test, _)) = &mut access.test {
                *test = Test::NotEqual;
            }
        }),
        Planted::CounterUnsigned => t.access("counter", "later", unsigned),
        Planted::CounterOfAllSlots => t.access("counter", "later", |access| access.index = Index::Const(0)),
        Planted::CheckedAgain => t.action("front", "go on", |action| action.ops.clear()),
        Planted::OldCopyUsed => {
            t.access("kind", "update", |access| *access = access.give_old(f.inside.limit));
        }
    }
}

/// Makes the test's arm unconditional.
fn always(access: &mut Access) {
    (access.test, access.otherwise) = (None, access.then);
}

/// Compares wrapping numbers as if they did not wrap.
fn unsigned(access: &mut Access) {
    if let Some((_, test, _)) = &mut access.test {
        *test = Test::Less;
    }
}

fn gives_new(access: &mut Access) {
    if let Some((output, _)) = &mut access.output {
        *output = Output::New(Word::Low);
    }
}

/// A SUBMIT that finds the limit reached is treated like a REST.
fn refuse_at_once(t: &mut Tables<'_>) {
    let rest: Vec<Entry> = t.table("route").entries.iter().filter(|entry| of(role::REST)(entry)).cloned().collect();
    let entries = &mut t.table("route").entries;
    let place = entries.iter().position(of(role::SUBMIT)).expect("it asks for credit");
    let refused = rest.into_iter().map(|mut entry| {
        entry.matches[0] = any_level(role::SUBMIT);
        entry
    });
    entries.splice(place..=place, refused);
}

fn of(role: u32) -> impl Fn(&Entry) -> bool {
    move |entry| entry.matches[0] == any_level(role)
}

/// Entries for this role at this level, from 0.
fn exactly(role: u32, level: u32) -> impl Fn(&Entry) -> bool {
    move |entry| entry.matches[0] == Match::is(at_level(role, level))
}

/// The action has this name, with or without the number of a level.
fn is_named(action: &Action, name: &str) -> bool {
    let rest = action.name.strip_prefix(name);
    rest.is_some_and(|rest| rest.is_empty() || rest.strip_prefix(' ').is_some_and(|rest| rest.parse::<u32>().is_ok()))
}

/// A change that finds nothing to change is a bug of this file, so these panic.
impl Tables<'_> {
    /// Keeps only the gateway on the role, which the law of shared registers requires.
    fn compare_role_only(&mut self, name: &str, f: &Fields) {
        self.table(name).gateway.retain(|compare| compare.field == f.inside.role);
    }

    fn table(&mut self, name: &str) -> &mut Table {
        self.0.iter_mut().find(|table| table.name == name).unwrap_or_else(|| panic!("no table {name}"))
    }

    fn actions_of(&mut self, table: &str, name: &str) -> Vec<usize> {
        let actions = self.table(table).actions.iter().enumerate();
        let found: Vec<usize> = actions.filter(|(_, action)| is_named(action, name)).map(|(n, _)| n).collect();
        assert!(!found.is_empty(), "no action {name} of {table}");
        found
    }

    fn action(&mut self, table: &str, name: &str, change: impl Fn(&mut Action)) {
        let found = self.actions_of(table, name);
        let table = self.table(table);
        found.into_iter().for_each(|number| change(&mut table.actions[number]));
    }

    fn access(&mut self, table: &str, name: &str, change: impl Fn(&mut Access)) {
        self.action(table, name, |action| change(action.access.as_mut().expect("it accesses a register")));
    }

    fn entry_accesses(&mut self, change: impl Fn(&mut Access)) {
        let tables = self.0.iter_mut().filter(|table| table.name.starts_with("entry_"));
        tables.flat_map(|table| &mut table.actions).filter_map(|action| action.access.as_mut()).for_each(change);
    }

    fn op(&mut self, table: &str, name: &str, verb: Verb, change: impl Fn(&mut Op)) {
        self.action(table, name, |action| {
            action.ops.iter_mut().filter(|op| op.verb == verb).for_each(&change);
        });
    }

    fn entries(&mut self, table: &str, which: impl Fn(&Entry) -> bool, change: impl Fn(&mut Entry)) {
        let found = self.table(table).entries.iter_mut().filter(|entry| which(entry));
        let number = found.map(change).count();
        assert!(number > 0, "no such entry of {table}");
    }

    fn forget(&mut self, table: &str, which: impl Fn(&Entry) -> bool) {
        let entries = &mut self.table(table).entries;
        let before = entries.len();
        entries.retain(|entry| !which(entry));
        assert!(entries.len() < before, "no such entry of {table}");
    }
}
