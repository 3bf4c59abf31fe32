//! Parses messages from a stream. Checks every length before it reads what follows.

use super::layout::*;
use super::*;
use crate::Address;
use std::net::SocketAddr;
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

/// Why a stream is malformed; its reader closes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ControlReject {
    /// A message without the magic number.
    #[error("bad_magic")]
    BadMagic,
    /// Another version of the format, with its number.
    #[error("bad_version {0}")]
    BadVersion(u8),
    /// An undefined kind, order or reason.
    #[error("unknown")]
    Unknown,
    /// Longer than [`CONTROL_MAX`], or with more orders than [`ORDERS_MAX`].
    #[error("too_long")]
    TooLong,
    /// The message's length does not match its content.
    #[error("bad_length")]
    BadLength,
    /// A forbidden value: term 0 or beyond [`TERM_MAX`], incarnation 0, or an address with port 0.
    #[error("bad_value")]
    BadValue,
}

/// The first message and its length in bytes; `None` if it is incomplete.
///
/// # Errors
/// A [`ControlReject`] as soon as the bytes cannot become a message.
pub fn parse(stream: &[u8]) -> Result<Option<(ControlMessage, usize)>, ControlReject> {
    let Ok((head, rest)) = ControlHead::ref_from_prefix(stream) else { return Ok(None) };
    if head.magic != CONTROL_MAGIC {
        return Err(ControlReject::BadMagic);
    }
    if head.version != CONTROL_VERSION {
        return Err(ControlReject::BadVersion(head.version));
    }
    let kind = ControlKind::from_number(head.kind).ok_or(ControlReject::Unknown)?;
    if head.length.get() > CONTROL_MAX {
        return Err(ControlReject::TooLong);
    }
    let Some(body) = rest.get(..head.length.get() as usize) else { return Ok(None) };
    let mut body = Body(body);
    let message = match kind {
        ControlKind::Ask => ControlMessage::Ask(body.ask()?),
        ControlKind::Set => ControlMessage::Set(body.set()?),
        ControlKind::Report => ControlMessage::Report(body.report()?),
        ControlKind::Inventory => ControlMessage::Inventory(body.inventory()?),
        ControlKind::Done => ControlMessage::Done(body.done()?),
        ControlKind::Refused => ControlMessage::Refused(body.refused()?),
    };
    if !body.0.is_empty() {
        return Err(ControlReject::BadLength);
    }
    Ok(Some((message, size_of::<ControlHead>() + head.length.get() as usize)))
}

struct Body<'a>(&'a [u8]);

impl<'a> Body<'a> {
    fn take<T: FromBytes + KnownLayout + Immutable + Unaligned>(&mut self) -> Result<&'a T, ControlReject> {
        let (part, rest) = T::ref_from_prefix(self.0).map_err(|_| ControlReject::BadLength)?;
        self.0 = rest;
        Ok(part)
    }

    /// Borrows `count` elements, so a false count allocates nothing.
    fn list<T: FromBytes + KnownLayout + Immutable + Unaligned>(
        &mut self,
        count: u32,
    ) -> Result<&'a [T], ControlReject> {
        let (list, rest) =
            <[T]>::ref_from_prefix_with_elems(self.0, count as usize).map_err(|_| ControlReject::BadLength)?;
        self.0 = rest;
        Ok(list)
    }

    fn ask(&mut self) -> Result<Ask, ControlReject> {
        let ask: &ControlAsk = self.take()?;
        let term = term(ask.term)?;
        let inventory = ask.inventory.get();
        Ok(Ask {
            number: ask.number.get(),
            term: (term != Term::NONE).then_some(term),
            inventory: (inventory != 0).then_some(inventory),
        })
    }

    fn set(&mut self) -> Result<Set, ControlReject> {
        let set: &ControlSet = self.take()?;
        let count = set.count.get() as usize;
        if count > ORDERS_MAX {
            return Err(ControlReject::TooLong);
        }
        let orders = (0..count).map(|_| self.order()).collect::<Result<_, _>>()?;
        Ok(Set {
            term: somebody(set.term)?,
            number: set_number(set.number),
            incarnation: set.incarnation.get(),
            orders,
            complete: flag(set.complete)?,
        })
    }

    fn order(&mut self) -> Result<Order, ControlReject> {
        let order: &ControlOrder = self.take()?;
        if order.servers != 0 && order.what != WHAT_REPLICA_GROUP {
            return Err(ControlReject::BadLength);
        }
        match order.what {
            WHAT_REPLICA_GROUP => {
                let servers: &[Address] = self.list(order.servers.into())?;
                let servers = servers.iter().map(|&server| with_port(server)).collect::<Result<_, _>>()?;
                Ok(Order::ReplicaGroup { group: order.number.get(), servers })
            }
            WHAT_SELECTORS => Ok(Order::Selectors(order.number.get())),
            what if what < WHAT_REPLICA_GROUP => Ok(Order::Rule(RuleRecord {
                what,
                rack: order.rack.get(),
                group: order.group.get(),
                rsnode: order.rsnode.get(),
                marker: order.number.get(),
                address: order.address.into(),
            })),
            _ => Err(ControlReject::Unknown),
        }
    }

    fn report(&mut self) -> Result<Report, ControlReject> {
        let report: &ControlReport = self.take()?;
        let counts: &[ControlCount] = self.list(report.count.get())?;
        let heard = report.heard_ns.get();
        Ok(Report {
            number: report.number.get(),
            incarnation: nonzero(report.incarnation.get())?,
            term: term(report.term)?,
            last: set_number(report.last),
            heard_ns: (heard != u64::MAX).then_some(heard),
            at_ns: report.at_ns.get(),
            selector: selector(report.selector.get()),
            selected: report.selected.get(),
            copied: report.copied.get(),
            counts: counts.iter().map(|count| (count.group.get(), count.tiers.map(|tier| tier.get()))).collect(),
        })
    }

    fn inventory(&mut self) -> Result<Inventory, ControlReject> {
        let inventory: &ControlInventory = self.take()?;
        let rsnodes: &[ControlRsnode] = self.list(inventory.rsnodes.get())?;
        let labels: &[ControlLabel] = self.list(inventory.labels.get())?;
        let rsnode = |rsnode: &ControlRsnode| {
            let operator = if flag(rsnode.here)? { None } else { Some(with_port(rsnode.address)?) };
            Ok((rsnode.id.get(), operator))
        };
        Ok(Inventory {
            number: inventory.number.get(),
            incarnation: nonzero(inventory.incarnation.get())?,
            term: term(inventory.term)?,
            last: set_number(inventory.last),
            last_rsnode: inventory.last_rsnode.get(),
            rsnodes: rsnodes.iter().map(rsnode).collect::<Result<_, _>>()?,
            labels: labels.iter().map(|label| (label.group.get(), label.rsnode.get())).collect(),
        })
    }

    fn done(&mut self) -> Result<Done, ControlReject> {
        let done: &ControlDone = self.take()?;
        // A DONE answers a SET, whose orders are refused at most once each.
        if done.count.get() as usize > ORDERS_MAX {
            return Err(ControlReject::TooLong);
        }
        let refused: &[ControlNotDone] = self.list(done.count.get())?;
        Ok(Done {
            incarnation: nonzero(done.incarnation.get())?,
            term: term(done.term)?,
            number: set_number(done.number),
            selector: selector(done.selector.get()),
            refused: refused.iter().map(|order| (order.order.get(), order.outcome)).collect(),
        })
    }

    fn refused(&mut self) -> Result<Refused, ControlReject> {
        let refused: &ControlRefused = self.take()?;
        Ok(Refused {
            incarnation: nonzero(refused.incarnation.get())?,
            term: term(refused.term)?,
            last: set_number(refused.last),
            why: Refusal::from_number(refused.why).ok_or(ControlReject::Unknown)?,
        })
    }
}

fn term(term: ControlTerm) -> Result<Term, ControlReject> {
    let term = Term { number: term.number.get(), controller: term.controller.get() };
    Some(term).filter(|term| term.number <= TERM_MAX).ok_or(ControlReject::BadValue)
}

fn somebody(of: ControlTerm) -> Result<Term, ControlReject> {
    Some(term(of)?).filter(|&of| of != Term::NONE).ok_or(ControlReject::BadValue)
}

fn set_number(number: ControlSetNumber) -> SetNumber {
    SetNumber { loading: number.loading.get(), sequence: number.sequence.get() }
}

fn nonzero(number: u64) -> Result<u64, ControlReject> {
    Some(number).filter(|&number| number != 0).ok_or(ControlReject::BadValue)
}

fn selector(incarnation: u64) -> Option<u64> {
    (incarnation != 0).then_some(incarnation)
}

fn flag(byte: u8) -> Result<bool, ControlReject> {
    match byte {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(ControlReject::BadValue),
    }
}

fn with_port(address: Address) -> Result<SocketAddr, ControlReject> {
    Some(SocketAddr::from(address)).filter(|address| address.port() != 0).ok_or(ControlReject::BadValue)
}
