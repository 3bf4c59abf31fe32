//! An attacker that sees requests with their numbers, and answers them from its own address. The receiver must check an
//! answer's source (N8).

use super::trial::{FaultKind, Trial};
use crate::{Actor, Context, NodeId, Place, Wake, World};
use midflight_endpoint::{MS, Nanos};
use midflight_wire::cache::{Ends, Kind, Netrs, NetrsResponse, Packet, ServerStatus, parse};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use zerocopy::{FromZeros, IntoBytes};

/// The latest request and its client; `None` without a spy.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen(Option<Rc<RefCell<Option<Request>>>>);

#[derive(Clone, Debug)]
struct Request {
    client: NodeId,
    datagram: Vec<u8>,
}

impl Seen {
    pub(super) fn note(&self, client: NodeId, datagram: &[u8]) {
        if let Some(seen) = &self.0 {
            seen.replace(Some(Request { client, datagram: datagram.to_vec() }));
        }
    }
}

/// Answers the latest request at these times.
#[derive(Debug)]
struct Spy {
    seen: Seen,
    times: VecDeque<Nanos>,
}

pub(super) fn add_spy(trial: &Trial, world: &mut World) -> Seen {
    let mut times = Vec::new();
    for fault in &trial.faults {
        let FaultKind::Answered(count) = fault.what else { continue };
        let every = fault.for_ms * MS / u64::from(count.max(1));
        times.extend((0..u64::from(count)).map(|n| fault.at_ms * MS + n * every));
    }
    if times.is_empty() {
        return Seen::default();
    }
    times.sort_unstable();
    let seen = Seen(Some(Rc::default()));
    let its = seen.clone();
    world.add_actor(Place::Apart, Box::new(move |_| Box::new(Spy { seen: its.clone(), times: times.clone().into() })));
    seen
}

impl Spy {
    fn next(&self, context: &mut Context<'_>) {
        match self.times.front() {
            Some(at) => context.wake_at(*at),
            None => context.sleep(),
        }
    }
}

impl Actor for Spy {
    fn start(&mut self, context: &mut Context<'_>) {
        self.next(context);
    }

    fn wake(&mut self, context: &mut Context<'_>, _wake: Wake) {
        while self.times.pop_front_if(|at| *at <= context.now()).is_some() {
            let request = self.seen.0.as_ref().and_then(|seen| seen.take());
            if let Some(Request { client, datagram }) = request
                && let Some(answer) = answer(&datagram)
            {
                context.send(context.address_of(client), &answer);
            }
        }
        self.next(context);
    }
}

/// An answer that is right except for its source.
fn answer(datagram: &[u8]) -> Option<Vec<u8>> {
    let (kind, request, ends, asked): (_, _, &Ends, &[u8]) = match parse(datagram).ok()? {
        Packet::Request(request, ends, asked) => (Kind::Monitored, request, ends, asked),
        Packet::ForServer(Kind::Direct, request, ends, asked) => (Kind::Direct, request, ends, asked),
        _ => return None,
    };
    let start = Netrs { retained: request.start.retained, ..Netrs::new(kind) };
    let status = ServerStatus::new_zeroed();
    let response = NetrsResponse { start, marker: 0.into(), status_length: (size_of_val(&status) as u16).into() };
    Some([response.as_bytes(), status.as_bytes(), ends.as_bytes(), asked].concat())
}
