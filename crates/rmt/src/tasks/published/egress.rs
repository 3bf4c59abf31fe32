//! The entries: one register for each of their words, in whatever stages have room.

use super::Config;
use super::fields::{Fields, entry};
use crate::Pipeline::Egress;
use crate::{Action, Alu, Builder, Cell, Field, Match, Target, Width, low_bits};

/// A word of an entry: what a SUBMIT stores, and the field in which it travels otherwise.
struct Word {
    name: String,
    submitted: Field,
    carried: Field,
}

pub(super) fn declare(b: &mut Builder, f: &Fields, config: Config, target: &Target) {
    let mut room = Room::beside_ingress(config, target);
    for word in words(f) {
        let stage = room.take(blocks(config, word.carried.width()));
        store(b, f, config, stage, &word);
    }
    finish(b, f);
}

fn words(f: &Fields) -> Vec<Word> {
    let same = |name: &str, field: Field| Word { name: name.into(), submitted: field, carried: field };
    let mut words = vec![same("tid", f.tid), same("uid", f.uid), same("jid", f.jid)];
    words.extend(f.tdesc.iter().enumerate().map(|(n, &field)| same(&format!("tdesc{n}"), field)));
    words.push(Word { name: "client_ip".into(), submitted: f.address, carried: f.client_ip });
    words.push(Word { name: "client_port".into(), submitted: f.port, carried: f.client_port });
    words
}

/// One word's register, and the table that reaches it.
fn store(b: &mut Builder, f: &Fields, config: Config, stage: usize, word: &Word) {
    let i = &f.inside;
    let cell = if word.carried.width() == Width::W16 { Cell::W16 } else { Cell::W32 };
    let register = b.register(Egress, stage, &word.name, cell, 1 << config.cell_bits());
    let cell = register.at(low_bits(i.cell, config.cell_bits()));
    let store = Action::new("store").access(cell.always(Alu::set(word.submitted)));
    let load = Action::new("load").access(cell.give_old(word.carried));
    let exchange = cell.always(Alu::set(word.carried)).give_old(word.carried);
    let exchange = Action::new("exchange").access(exchange);
    let table = b.table(Egress, stage, &word.name).exact(i.entry);
    for (does, action) in
        [(entry::STORE, &store), (entry::STORE_LAST, &store), (entry::LOAD, &load), (entry::EXCHANGE, &exchange)]
    {
        table.entry([Match::is(does)], action, &[]);
    }
}

/// What happens to the packet itself, behind all entries.
fn finish(b: &mut Builder, f: &Fields) {
    let next = Action::new("next task").sub(f.tasks, f.tasks, 1).pop();
    let done = Action::new("done").drop("submitted");
    let resubmit = Action::new("resubmit").set(f.address, f.client_ip).set(f.port, f.client_port);
    let table = b.table(Egress, 11, "finish").exact(f.inside.entry);
    table.entry([Match::is(entry::STORE)], &next, &[]).entry([Match::is(entry::STORE_LAST)], &done, &[]);
    table.entry([Match::is(entry::RESUBMIT)], &resubmit, &[]);
    table.note("a SWAP at the tail speaks for its task's client now");
}

/// SRAM blocks of a register of one word an entry.
fn blocks(config: Config, width: Width) -> u32 {
    (width.bits() << config.cell_bits()).div_ceil(16 * 1024 * 8) + 1
}

/// What ingress leaves of each stage: stateful ALUs, map RAMs.
struct Room {
    stages: Vec<(u32, u32)>,
}

impl Room {
    fn beside_ingress(config: Config, target: &Target) -> Self {
        let mut stages = vec![(target.stateful_alus, target.map_rams); target.stages];
        let mut spend = |stage: usize, blocks: u32| {
            let (alus, rams) = &mut stages[stage];
            (*alus, *rams) = (alus.saturating_sub(1), rams.saturating_sub(blocks));
        };
        for (stage, blocks) in [(1, 2), (1, 2), (4, blocks(config, Width::W16)), (4, 2)] {
            spend(stage, blocks);
        }
        Self { stages }
    }

    /// The first stage with room. If none has, the last one: the check of the program then names what exceeds the budget.
    fn take(&mut self, blocks: u32) -> usize {
        let fits = |(alus, rams): &(u32, u32)| *alus > 0 && *rams >= blocks;
        let Some(stage) = self.stages.iter().position(fits) else { return self.stages.len() - 1 };
        let (alus, rams) = &mut self.stages[stage];
        (*alus, *rams) = (*alus - 1, *rams - blocks);
        stage
    }
}
