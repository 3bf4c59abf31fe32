//! Stages 6 to 11: the entries, a register for each of their words. 32 + 8 bits a stage, at the full 128 K entries: a stage has 48
//! map RAMs, of which a word of 32 bits takes 33 and a byte 9. With half as many entries the last stages have room for one more.
//! Stage 8 counts the index, so its register is in a later stage.

use super::Config;
use super::fields::{Fields, any_level, plays, plays_other, role};
use crate::Pipeline::Ingress;
use crate::{Action, Alu, Builder, Cell, Field, Register, Width, low_bits};

/// Which of an entry's words is the TID.
pub(super) const TID: usize = 4;

/// A word of an entry: what a SUBMIT stores, and the field in which it travels otherwise.
struct Stored {
    stage: usize,
    name: &'static str,
    submitted: Field,
    carried: Field,
}

/// The registers; the one of TIDs is [`TID`].
pub(super) fn declare(b: &mut Builder, f: &Fields, config: Config) -> Vec<Register> {
    let registers = words(f).iter().map(|word| store(b, f, config, word)).collect();
    let i = &f.inside;
    let again = Action::new("again").or(i.role, i.role, (role::AGAIN ^ role::SWAP) << 2);
    b.table(Ingress, 6, "ran empty").when(plays(f, role::SWAP)).when(i.at.equals(i.add)).run(&again).note(
        "SWAP whose place was overtaken by the head, and the head is the tail: it goes round and is placed there",
    );
    registers
}

/// The mask comes first: the decisions that depend on it need two more stages.
fn words(f: &Fields) -> Vec<Stored> {
    let same = |stage, name, field| Stored { stage, name, submitted: field, carried: field };
    let client = |stage, name, submitted, carried| Stored { stage, name, submitted, carried };
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
    words.extend(more.into_iter().zip(&f.tdesc[2..]).map(|((stage, name), &field)| same(stage, name, field)));
    words
}

/// One word's register, and the tables that reach it.
fn store(b: &mut Builder, f: &Fields, config: Config, word: &Stored) -> Register {
    let (i, stage) = (&f.inside, word.stage);
    let width = if word.carried.width() == Width::W8 { Cell::W8 } else { Cell::W32 };
    let register: Register = b.register(Ingress, stage, word.name, width, 1 << config.cell_bits());
    let cell = register.at(low_bits(i.at, config.cell_bits()));
    let store = Action::new("store").access(cell.always(Alu::set(word.submitted)));
    let place = Action::new("place").access(cell.always(Alu::set(word.carried)));
    let load = Action::new("load").access(cell.give_old(word.carried));
    let exchange = Action::new("exchange").access(cell.always(Alu::set(word.carried)).give_old(word.carried));
    let table = b.table(Ingress, stage, word.name).ternary(i.role);
    table.entry([any_level(role::STORE)], &store, &[]).entry([any_level(role::PLACE)], &place, &[]);
    table.entry([any_level(role::TAKE)], &load, &[]);
    // Whether the queue ran empty is known from stage 7 on: the role says so.
    if stage > 6 {
        table.entry([any_level(role::SWAP)], &exchange, &[]);
    } else {
        table.when(plays_other(f, role::SWAP));
        let search = b.table(Ingress, stage, format!("{} of a search", word.name));
        search.when(plays(f, role::SWAP)).when(i.at.differs(i.add)).run(&exchange);
    }
    register
}
