//! A client and executor that follows the protocol, and requests all the room for clients, slots and tasks (T14). It
//! answers each COOKIE, so that its records count for its own address; it runs no task, and acknowledges none.

use crate::Context;
use crate::{Actor, Wake};
use midflight_endpoint::Nanos;
use midflight_wire::tasks::{Packet, REGISTER_MAX, Register, SUBMIT_MAX, Submit, TaskInfo, parse};
use midflight_wire::{counting, packet};
use rand::RngExt;
use std::collections::VecDeque;
use std::net::SocketAddr;
use zerocopy::byteorder::network_endian::U64;

/// The latest requests, which may need a cookie.
const REMEMBERED: usize = 64;

const TASK: TaskInfo = TaskInfo { resources: u8::MAX, ..TaskInfo::PLAIN };

#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) switches: Vec<SocketAddr>,
    pub(super) times: VecDeque<Nanos>,
    /// The number of its job, which no other party uses.
    pub(super) jid: u32,
}

/// A SUBMIT or a REGISTER of an identity.
#[derive(Clone, Copy, Debug)]
struct Wish {
    identity: u64,
    sequence: u32,
    slots: bool,
}

#[derive(Debug)]
pub(super) struct Greedy {
    plan: Plan,
    sequence: u32,
    wishes: VecDeque<Wish>,
}

impl Greedy {
    pub(super) fn new(plan: Plan) -> Self {
        Self { plan, sequence: 0, wishes: VecDeque::new() }
    }

    /// The next request: with a new identity, or a repeated one.
    fn wish(&mut self, context: &mut Context<'_>) -> Wish {
        let random = context.random();
        let before =
            if self.wishes.is_empty() { None } else { self.wishes.get(random.random_range(0..self.wishes.len())) };
        let identity = before.filter(|_| random.random_bool(0.5)).map_or_else(|| random.random(), |wish| wish.identity);
        self.sequence += 1;
        let wish = Wish { identity, sequence: self.sequence, slots: random.random_bool(0.4) };
        if self.wishes.len() == REMEMBERED {
            self.wishes.pop_front();
        }
        self.wishes.push_back(wish);
        wish
    }

    fn packet(&self, wish: Wish, cookie: u64) -> Vec<u8> {
        let Wish { identity, sequence, slots } = wish;
        let (identity, cookie) = (U64::new(identity), cookie.into());
        if slots {
            let first = (sequence * REGISTER_MAX as u32).into();
            let fixed = Register { executor: identity, cookie, first, ..Register::new(0, sequence) };
            return counting(&fixed, REGISTER_MAX as u8);
        }
        let (token, jid) = (identity.get().rotate_left(sequence).into(), self.plan.jid.into());
        let task = |n| TaskInfo { tid: (sequence * SUBMIT_MAX as u32 + n as u32).into(), ..TASK };
        let tasks: [_; SUBMIT_MAX] = std::array::from_fn(task);
        packet(&Submit { client: identity, cookie, token, jid, ..Submit::new(0, sequence) }, &tasks)
    }

    fn next(&self, context: &mut Context<'_>) {
        match self.plan.times.front() {
            Some(at) => context.wake_at(*at),
            None => context.sleep(),
        }
    }
}

impl Actor for Greedy {
    fn start(&mut self, context: &mut Context<'_>) {
        self.next(context);
    }

    /// Repeats a request with the cookie that it needs.
    fn datagram(&mut self, context: &mut Context<'_>, from: SocketAddr, datagram: &[u8]) {
        let Ok(Packet::Cookie(cookie)) = parse(datagram) else { return };
        let owner = (cookie.identity.get(), cookie.header.sequence.get());
        let wish = self.wishes.iter().find(|wish| (wish.identity, wish.sequence) == owner);
        if let Some(wish) = wish {
            context.send(from, &self.packet(*wish, cookie.cookie.get()));
        }
    }

    fn wake(&mut self, context: &mut Context<'_>, _wake: Wake) {
        while self.plan.times.pop_front_if(|at| *at <= context.now()).is_some() {
            let wish = self.wish(context);
            for switch in &self.plan.switches {
                context.send(*switch, &self.packet(wish, 0));
            }
        }
        self.next(context);
    }
}
