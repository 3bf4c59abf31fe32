//! The asic engine's model: a switch like the papers' Tofino (RMT: Bosshart et al., SIGCOMM 2013), and the programs that keep its laws.
//! `docs/internals/asic.md` has the laws, and how each is enforced.
//!
//! A program is data. A [`Builder`] declares fields, registers and tables. [`Builder::build`] checks them once, on all paths: it refuses what
//! the switch could not do, with the source lines ([`Refusal`]), or returns a [`Program`] with its [`Report`]. A [`Machine`] runs it, one
//! [`pass`](Machine::pass) per packet, or in two halves ([`ingress`](Machine::ingress), [`egress`](Machine::egress)), so that other packets can
//! come between.
//!
//! # A counter
//!
//! Each packet gets the number of packets before it.
//!
//! ```
//! use midflight_rmt::{Action, Alu, Builder, Cell, Destination, Index, Machine, Pipeline, Target, To, Width};
//!
//! let mut b = Builder::new("counter");
//! let number = b.header("number", Width::W32);
//! let counter = b.register(Pipeline::Ingress, 0, "counter", Cell::W32, 1);
//!
//! // Reads the counter and increments it: one access. Its old value goes into the header.
//! let count = counter.at(Index::Const(0)).always(Alu::add(1)).give_old(number);
//! b.table(Pipeline::Ingress, 0, "count").run(&Action::new("count").access(count));
//! b.table(Pipeline::Ingress, 0, "answer").run(&Action::new("answer").forward(Destination::Requester));
//!
//! let program = b.build(&Target::TOFINO_1)?;
//! assert_eq!(program.report().depth, [1, 0], "both tables fit one stage of ingress");
//!
//! let mut machine = Machine::load(&program);
//! for expected in 0..3 {
//!     let outputs = machine.pass(machine.packet());
//!     assert_eq!((outputs.packet.to, outputs.packet.packet.get(number)), (To::Requester, expected));
//! }
//! # Ok::<(), midflight_rmt::Refusal>(())
//! ```
//!
//! # A tiny queue
//!
//! A queue of four values. A GET is answered in its own pass; a packet that finds the queue empty or full is dropped with a reason. A packet
//! accesses each register once, so both pointers are compared *in* the access that moves them, with a lagging copy of the other that an
//! earlier stage read. (Every GET writes `shadow`, one pass late.)
//!
//! ```
//! use midflight_rmt::*;
//! use Pipeline::Ingress;
//!
//! const PUT: u32 = 1;
//! const GET: u32 = 2;
//! const CREDIT: u32 = 3;
//!
//! let mut b = Builder::new("tiny queue");
//! let kind = b.header("kind", Width::W8);
//! let value = b.header("value", Width::W32);
//! let [limit, added, got, next] = ["limit", "added", "got", "next"].map(|name| b.metadata(name, Width::W32));
//!
//! let shadow = b.register(Ingress, 0, "shadow", Cell::W32, 1).at(Index::Const(0));
//! let add_ptr = b.register(Ingress, 2, "add_ptr", Cell::W32, 1).at(Index::Const(0));
//! let get_ptr = b.register(Ingress, 3, "get_ptr", Cell::W32, 1).at(Index::Const(0));
//! let entries = b.register(Ingress, 5, "entries", Cell::W32, 4);
//!
//! // Stage 0: two tables access the same register. Their gateways exclude each other, or the program would be refused.
//! b.table(Ingress, 0, "read shadow").when(kind.is(PUT)).run(&Action::new("read").access(shadow.give_old(limit)));
//! let credit = shadow.test(Test::Before, value).then(Alu::set(value));
//! b.table(Ingress, 0, "credit").when(kind.is(CREDIT)).run(&Action::new("credit").access(credit).drop("credit"));
//! // Stage 1: the pointer at which the queue is full.
//! b.table(Ingress, 1, "limit").run(&Action::new("limit").add(limit, limit, 4));
//! // Stage 2: one step, unless full. Others read.
//! let put = add_ptr.test(Test::NotEqual, limit).then(Alu::add(1)).give_old(added);
//! b.table(Ingress, 2, "put").when(kind.is(PUT)).run(&Action::new("put").access(put));
//! b.table(Ingress, 2, "read added").when(kind.is(GET)).run(&Action::new("read").access(add_ptr.give_old(added)));
//! // Stage 3: one step, unless empty.
//! let get = get_ptr.test(Test::NotEqual, added).then(Alu::add(1)).give_old(got);
//! b.table(Ingress, 3, "get").when(kind.is(GET)).run(&Action::new("get").access(get));
//! b.table(Ingress, 3, "full").when(kind.is(PUT)).when(added.equals(limit)).run(&Action::new("full").drop("full"));
//! // Stage 4: the value of the credit. The mirrored copy recirculates as a packet of its own.
//! let copy = b.mirror("credit", (kind, CREDIT), &[(value, next)]);
//! b.table(Ingress, 4, "next").when(kind.is(GET)).run(&Action::new("next").add(next, got, 1));
//! // Stage 5: the entry itself.
//! let store = Action::new("store").access(entries.at(low_bits(added, 2)).always(Alu::set(value))).drop("stored");
//! b.table(Ingress, 5, "store").when(kind.is(PUT)).when(added.differs(limit)).run(&store);
//! let load = entries.at(low_bits(got, 2)).give_old(value);
//! let load = Action::new("load").access(load).mirror(copy).forward(Destination::Requester);
//! b.table(Ingress, 5, "load").when(kind.is(GET)).when(got.differs(added)).run(&load);
//! b.table(Ingress, 5, "empty").when(kind.is(GET)).when(got.equals(added)).run(&Action::new("empty").drop("empty"));
//!
//! let mut machine = Machine::load(&b.build(&Target::TOFINO_1)?);
//! let mut send = |kind_is, value_is| machine.pass(machine.packet().with(kind, kind_is).with(value, value_is));
//! assert_eq!(send(GET, 0).packet.to, To::Dropped("empty"));
//! for n in 1..=4 {
//!     assert_eq!(send(PUT, n).packet.to, To::Dropped("stored"));
//! }
//! assert_eq!(send(PUT, 5).packet.to, To::Dropped("full"));
//! let outputs = send(GET, 0);
//! assert_eq!((outputs.packet.to, outputs.packet.packet.get(value)), (To::Requester, 1));
//! assert_eq!(send(PUT, 5).packet.to, To::Dropped("full"), "the credit is still on its way");
//! let credit = outputs.copies[0].as_ref().expect("a get that finds something pays a credit");
//! assert_eq!(send(credit.get(kind), credit.get(value)).packet.to, To::Dropped("credit"));
//! assert_eq!(send(PUT, 5).packet.to, To::Dropped("stored"));
//! # Ok::<(), Refusal>(())
//! ```

#[macro_use]
mod declare;
mod action;
pub mod cache;
mod check;
mod field;
mod machine;
mod program;
mod refusal;
mod register;
mod report;
mod stages;
pub mod store;
mod table;
mod target;
pub mod tasks;
#[cfg(feature = "check")]
mod watch;

pub use action::{Action, Destination};
pub use field::{At, Field, Operand, Width, argument};
pub use machine::{Crossing, Machine, Outputs, Packet, Sent, To};
pub use program::{Bound, Builder, Mirror, Pipeline, Program};
pub use refusal::{Place, Refusal, Resource};
pub use register::{Access, Alu, Cell, Index, Output, Register, Test, Word, low_bits};
pub use report::{CarriedUse, RegisterUse, Report, StageUse};
pub use table::{Compare, Match, Table};
pub use target::Target;
#[cfg(feature = "check")]
pub use watch::Watch;
