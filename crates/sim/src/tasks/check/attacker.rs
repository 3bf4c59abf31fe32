//! An attacker: sends malformed datagrams to all parties (T11), packets of executors from an address that is not theirs, and
//! copies and forgeries under the addresses of others (T13). It makes them from overheard datagrams.

mod guess;

use crate::{Actor, Wake};
use crate::{Context, NodeId};
use midflight_endpoint::Nanos;
use midflight_wire::{Operation, parse};
use rand::RngExt;
use rand_pcg::Pcg64;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Datagrams that are remembered.
const REMEMBERED: usize = 256;
/// Copies of a datagram, at most.
const COPIES: u32 = 4;
/// Attempts to make a datagram malformed, before one is cut short.
const TRIES: u32 = 8;

/// A datagram.
#[derive(Clone, Debug)]
struct Overheard {
    from: NodeId,
    to: NodeId,
    datagram: Vec<u8>,
}

/// The latest datagrams, if an attacker listens.
#[derive(Clone, Debug, Default)]
pub(super) struct Recent(Option<Rc<RefCell<VecDeque<Overheard>>>>);

impl Recent {
    /// A memory for an attacker that listens.
    pub(super) fn listening() -> Self {
        Self(Some(Rc::default()))
    }

    pub(super) fn note(&self, from: NodeId, to: NodeId, datagram: &[u8]) {
        let Some(recent) = &self.0 else { return };
        let mut recent = recent.borrow_mut();
        if recent.len() == REMEMBERED {
            recent.pop_front();
        }
        recent.push_back(Overheard { from, to, datagram: datagram.to_vec() });
    }

    /// A random one of those that `wanted` selects.
    fn pick(&self, random: &mut Pcg64, wanted: impl Fn(&[u8]) -> bool) -> Option<Overheard> {
        let recent = self.0.as_ref()?.borrow();
        let fit: Vec<_> = recent.iter().filter(|heard| wanted(&heard.datagram)).collect();
        if fit.is_empty() { None } else { Some(fit[random.random_range(0..fit.len())].clone()) }
    }
}

/// The datagrams that it sends at one time.
#[derive(Clone, Copy, Debug)]
pub(super) enum Attack {
    Garbage,
    Forge,
    Replay,
    Guess,
}

/// An actor that sends these.
#[derive(Debug)]
pub(super) struct Attacker {
    pub(super) recent: Recent,
    /// In the order of their times.
    pub(super) attacks: VecDeque<(Nanos, Attack)>,
}

impl Attacker {
    fn next(&self, context: &mut Context<'_>) {
        match self.attacks.front() {
            Some((at, _)) => context.wake_at(*at),
            None => context.sleep(),
        }
    }
}

impl Actor for Attacker {
    fn start(&mut self, context: &mut Context<'_>) {
        self.next(context);
    }

    fn wake(&mut self, context: &mut Context<'_>, _wake: Wake) {
        while let Some((_, attack)) = self.attacks.pop_front_if(|(at, _)| *at <= context.now()) {
            let random = context.random();
            match attack {
                Attack::Garbage => {
                    let Some(heard) = self.recent.pick(random, |_| true) else { continue };
                    let bad = spoil(random, heard.datagram);
                    context.send(context.address_of(heard.to), &bad);
                }
                Attack::Forge => {
                    let Some(heard) = self.recent.pick(random, is_forgeable) else { continue };
                    context.send(context.address_of(heard.to), &heard.datagram);
                }
                Attack::Replay => {
                    let Some(heard) = self.recent.pick(random, |_| true) else { continue };
                    for _ in 0..random.random_range(1..=COPIES) {
                        context.send_as(heard.from, context.address_of(heard.to), &heard.datagram);
                    }
                }
                Attack::Guess => {
                    let Some(heard) = self.recent.pick(random, guess::is_guessable) else { continue };
                    let guessed = guess::guess(random, heard.datagram);
                    context.send_as(heard.from, context.address_of(heard.to), &guessed);
                }
            }
        }
        self.next(context);
    }
}

/// Whether a packet only names slots, whose owners the switch knows. (A client is known by its identity at any address.)
fn is_forgeable(datagram: &[u8]) -> bool {
    let operation = datagram.get(3).and_then(|&number| Operation::from_number(number));
    matches!(operation, Some(Operation::Retrieve | Operation::Keepalive | Operation::Release))
}

/// Damages a datagram so that it is no valid packet.
fn spoil(random: &mut Pcg64, good: Vec<u8>) -> Vec<u8> {
    for _ in 0..TRIES {
        let mut bad = good.clone();
        match random.random_range(0..4) {
            0 => bad.truncate(random.random_range(0..bad.len().max(1))),
            1 => bad.extend(std::iter::repeat_n(random.random::<u8>(), random.random_range(1..64))),
            2 => {
                let first = bad.len().min(16);
                let place = random.random_range(0..first.max(1));
                if let Some(byte) = bad.get_mut(place) {
                    *byte ^= 1 << random.random_range(0..8);
                }
            }
            _ => bad = (0..random.random_range(0..200)).map(|_| random.random()).collect(),
        }
        if parse(&bad).is_err() {
            return bad;
        }
    }
    good[..good.len() / 3].to_vec()
}
