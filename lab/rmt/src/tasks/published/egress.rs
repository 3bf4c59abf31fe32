//! The entries: a register per word, in any stages with room.

use super::Config;
use super::fields::{Fields, entry};
use super::ingress::valid;
use crate::Pipeline::Egress;
use crate::tasks::room::{self, Bank, Room};
use crate::{Action, Alu, Builder, Field, Match, Target, Width, low_bits};

/// A word of an entry: the field that a SUBMIT stores, and the field in which it travels otherwise.
struct Word {
    name: String,
    submitted: Field,
    carried: Field,
}

pub(super) fn declare(b: &mut Builder, f: &Fields, config: Config, target: &Target) {
    let mut room = beside_ingress(config, target);
    for word in words(f) {
        for bank in room.banks(0, word.carried.width(), config.cell_bits()) {
            store(b, f, &word, bank);
        }
    }
    finish(b, f, target.stages - 1);
}

/// The word read in the last stage stays in the packet, so the client's words come before TDESC's.
fn words(f: &Fields) -> Vec<Word> {
    let same = |name: &str, field: Field| Word { name: name.into(), submitted: field, carried: field };
    let mut words = vec![
        same("tid", f.tid),
        same("uid", f.uid),
        same("jid", f.jid),
        Word { name: "client_ip".into(), submitted: f.address, carried: f.client_ip },
        Word { name: "client_port".into(), submitted: f.port, carried: f.client_port },
    ];
    words.extend(f.tdesc.iter().enumerate().map(|(n, &field)| same(&format!("tdesc{n}"), field)));
    words
}

/// A register of a word, and the table that accesses it.
fn store(b: &mut Builder, f: &Fields, word: &Word, bank: Bank) {
    let (i, stage, name) = (&f.inside, bank.stage, bank.name(&word.name));
    let register = b.register(Egress, stage, &name, room::cell(word.carried.width()), 1 << bank.index_bits);
    let cell = register.at(low_bits(i.cell, bank.index_bits));
    let store = Action::new("store").access(cell.always(Alu::set(word.submitted)));
    let load = Action::new("load").access(cell.give_old(word.carried));
    let exchange = cell.always(Alu::set(word.carried)).give_old(word.carried);
    let exchange = Action::new("exchange").access(exchange);
    let table = b.table(Egress, stage, &name).exact(i.entry);
    if let Some(is_here) = bank.has(i.cell) {
        table.when(is_here);
    }
    for (does, action) in
        [(entry::STORE, &store), (entry::STORE_LAST, &store), (entry::LOAD, &load), (entry::EXCHANGE, &exchange)]
    {
        table.entry([Match::is(does)], action, &[]);
    }
}

/// The packet's own fate, after all entries.
fn finish(b: &mut Builder, f: &Fields, stage: usize) {
    let next = Action::new("next task").sub(f.tasks, f.tasks, 1).pop();
    let done = Action::new("done").drop("submitted");
    let resubmit = Action::new("resubmit").set(f.address, f.client_ip).set(f.port, f.client_port);
    let table = b.table(Egress, stage, "finish").exact(f.inside.entry);
    table.entry([Match::is(entry::STORE)], &next, &[]).entry([Match::is(entry::STORE_LAST)], &done, &[]);
    table.entry([Match::is(entry::RESUBMIT)], &resubmit, &[]);
    table.note("a SWAP at the tail speaks for its task's client now");
}

/// The room that ingress leaves.
fn beside_ingress(config: Config, target: &Target) -> Room<'_> {
    let mut room = Room::of(target);
    let valid = valid(config, target).map(|bank| (bank.stage, room::blocks(Width::W16, bank.index_bits)));
    [(1, 2), (1, 2), (4, 2)].into_iter().chain(valid).for_each(|(stage, blocks)| _ = room.spend(stage, blocks));
    room
}
