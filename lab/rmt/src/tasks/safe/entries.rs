//! Stages 6 to the last: the entries, a register per word, or several if one has too few cells. Of Tofino 1's full 128 K entries a stage
//! has 32 + 8 bits: it has 48 map RAMs, of which a word of 32 bits takes 33 and a byte 9. With half as many entries the last stages have
//! room for one more. Stage 8 counts the index, so its register is in a later stage.

use super::Config;
use super::fields::{Fields, any_level, plays, plays_other, role};
use crate::Pipeline::Ingress;
use crate::tasks::room::{self, Bank, Room};
use crate::{Action, Alu, Builder, Field, Register, Target, low_bits};

/// Index of the TID among an entry's words.
pub(super) const TID: usize = 4;

/// A word of an entry: the field that a SUBMIT stores, and the field in which it travels otherwise.
struct Word {
    /// The first possible stage.
    from: usize,
    name: &'static str,
    submitted: Field,
    carried: Field,
}

#[derive(Clone, Debug)]
pub(super) struct Stored {
    /// In the order of the entries.
    banks: Vec<Register>,
    /// Bits of an entry's number that are its index in one bank.
    index_bits: u32,
}

impl Stored {
    /// The register and index of the entry with this number.
    pub(super) fn of(&self, entry: u32) -> (Register, u32) {
        (self.banks[(entry >> self.index_bits) as usize], entry & ((1 << self.index_bits) - 1))
    }
}

/// All words; the one of TIDs is [`TID`].
pub(super) fn declare(b: &mut Builder, f: &Fields, config: Config, target: &Target) -> Vec<Stored> {
    let mut room = Room::of(target);
    // `credit` is there too.
    room.spend(8, 2);
    let mut stored = Vec::new();
    for word in words(f) {
        let banks = room.banks(word.from, word.carried.width(), config.cell_bits());
        let index_bits = banks[0].index_bits;
        stored.push(Stored { banks: banks.into_iter().map(|bank| store(b, f, &word, bank)).collect(), index_bits });
    }
    let i = &f.inside;
    let again = Action::new("again").or(i.role, i.role, (role::AGAIN ^ role::SWAP) << 2);
    b.table(Ingress, 6, "ran empty").when(plays(f, role::SWAP)).when(i.at.equals(i.add)).run(&again).note(
        "SWAP whose place was overtaken by the head, and the head is the tail: it goes round and is placed there",
    );
    stored
}

/// The mask comes first: the decisions that depend on it need two more stages.
fn words(f: &Fields) -> Vec<Word> {
    let same = |from, name, field| Word { from, name, submitted: field, carried: field };
    let client = |from, name, submitted, carried| Word { from, name, submitted, carried };
    let mut words = vec![
        same(6, "entry_trsrc", f.trsrc),
        same(6, "entry_uid", f.uid),
        same(7, "entry_jid", f.jid),
        client(7, "entry_port_high", f.port[0], f.client_port[0]),
        same(8, "entry_tid", f.tid),
        client(8, "entry_port_low", f.port[1], f.client_port[1]),
        same(9, "entry_function", f.tdesc[0]),
        same(9, "entry_index", f.index),
        client(10, "entry_client_ip", f.address, f.client_ip),
        same(10, "entry_attempt", f.attempt),
        same(11, "entry_argument", f.tdesc[1]),
        same(11, "entry_argument_length", f.argument_length),
    ];
    let more = [(9, "entry_argument_2"), (10, "entry_argument_3"), (11, "entry_argument_4")];
    words.extend(more.into_iter().zip(&f.tdesc[2..]).map(|((from, name), &field)| same(from, name, field)));
    words
}

/// A register of a word, and the tables that access it.
fn store(b: &mut Builder, f: &Fields, word: &Word, bank: Bank) -> Register {
    let (i, stage, name) = (&f.inside, bank.stage, bank.name(word.name));
    let register = b.register(Ingress, stage, &name, room::cell(word.carried.width()), 1 << bank.index_bits);
    let cell = register.at(low_bits(i.at, bank.index_bits));
    let store = Action::new("store").access(cell.always(Alu::set(word.submitted)));
    let place = Action::new("place").access(cell.always(Alu::set(word.carried)));
    let load = Action::new("load").access(cell.give_old(word.carried));
    let exchange = Action::new("exchange").access(cell.always(Alu::set(word.carried)).give_old(word.carried));
    let table = b.table(Ingress, stage, &name).ternary(i.role);
    table.entry([any_level(role::STORE)], &store, &[]).entry([any_level(role::PLACE)], &place, &[]);
    table.entry([any_level(role::TAKE)], &load, &[]);
    if let Some(is_here) = bank.has(i.at) {
        table.when(is_here);
    }
    // From stage 7 on the role says whether the queue ran empty.
    if stage > 6 {
        table.entry([any_level(role::SWAP)], &exchange, &[]);
    } else {
        table.when(plays_other(f, role::SWAP));
        let search = b.table(Ingress, stage, format!("{name} of a search"));
        if let Some(is_here) = bank.has(i.at) {
            search.when(is_here);
        }
        search.when(plays(f, role::SWAP)).when(i.at.differs(i.add)).run(&exchange);
    }
    register
}
