//! An attacker: sends malformed datagrams to all parties, packets from another address than their sender's, and copies
//! and forgeries with other parties' addresses. It makes them from overheard datagrams; the program tells what a packet
//! is.

use super::fault::{Common, FaultKind};
use super::{PartyOf, Trial};
use crate::{Actor, Context, NodeId, Place, Wake, World};
use midflight_endpoint::{MS, Nanos};
use rand::RngExt;
use rand_pcg::Pcg64;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

const COPIES: u32 = 4;
/// Attempts to make a datagram malformed before it is truncated.
const TRIES: u32 = 8;

/// What an attacker knows of a program's packets.
#[derive(Clone, Copy, Debug)]
pub struct Craft {
    /// Number of datagrams that it remembers.
    pub remembered: usize,
    /// Whether a datagram is a packet.
    pub is_packet: fn(&[u8]) -> bool,
    /// Whether every receiver must refuse this packet from another address than its sender's.
    pub is_forgeable: fn(&[u8]) -> bool,
    /// Whether all secrets of a packet can be located.
    pub is_guessable: fn(&[u8]) -> bool,
    /// The packet with guesses in place of its secrets.
    pub guess: fn(&mut Pcg64, Vec<u8>) -> Vec<u8>,
}

#[derive(Clone, Debug)]
struct Overheard {
    from: NodeId,
    to: NodeId,
    datagram: Vec<u8>,
}

/// The latest datagrams, if the trial has an attacker.
#[derive(Clone, Debug, Default)]
pub struct Recent {
    /// Capacity; 0: no attacker.
    most: usize,
    heard: Rc<RefCell<VecDeque<Overheard>>>,
}

impl Recent {
    /// Adds a datagram.
    pub fn note(&self, from: NodeId, to: NodeId, datagram: &[u8]) {
        if self.most == 0 {
            return;
        }
        let mut heard = self.heard.borrow_mut();
        if heard.len() == self.most {
            heard.pop_front();
        }
        heard.push_back(Overheard { from, to, datagram: datagram.to_vec() });
    }

    fn pick(&self, random: &mut Pcg64, wanted: impl Fn(&[u8]) -> bool) -> Option<Overheard> {
        let heard = self.heard.borrow();
        let fit: Vec<_> = heard.iter().filter(|heard| wanted(&heard.datagram)).collect();
        if fit.is_empty() { None } else { Some(fit[random.random_range(0..fit.len())].clone()) }
    }
}

#[derive(Clone, Copy, Debug)]
enum Attack {
    Garbage,
    Forge,
    Replay,
    Guess,
}

#[derive(Debug)]
struct Attacker {
    craft: Craft,
    recent: Recent,
    attacks: VecDeque<(Nanos, Attack)>,
}

impl<P> Common<P> {
    const fn attacks(&self) -> Option<(u32, Attack)> {
        match self {
            Self::Garbage(count) => Some((*count, Attack::Garbage)),
            Self::Forged(count) => Some((*count, Attack::Forge)),
            Self::Replayed(count) => Some((*count, Attack::Replay)),
            Self::Guessed(count) => Some((*count, Attack::Guess)),
            _ => None,
        }
    }
}

/// Adds the attacker's node, if the trial has one. Returns the datagrams that it may overhear.
pub fn add_attacker<T: Trial>(trial: &T, world: &mut World, craft: Craft) -> Recent {
    let mut attacks = Vec::new();
    for fault in trial.faults() {
        let Some((count, attack)) = fault.what.common().and_then(Common::<PartyOf<T>>::attacks) else { continue };
        let every = fault.for_ms * MS / u64::from(count.max(1));
        attacks.extend((0..u64::from(count)).map(|n| (fault.at_ms * MS + n * every, attack)));
    }
    if attacks.is_empty() {
        return Recent::default();
    }
    attacks.sort_by_key(|(at, _)| *at);
    let recent = Recent { most: craft.remembered, heard: Rc::default() };
    let overheard = recent.clone();
    world.add_actor(
        Place::Apart,
        Box::new(move |_| Box::new(Attacker { craft, recent: overheard.clone(), attacks: attacks.clone().into() })),
    );
    recent
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
                    let bad = spoil(random, self.craft.is_packet, heard.datagram);
                    context.send(context.address_of(heard.to), &bad);
                }
                Attack::Forge => {
                    let Some(heard) = self.recent.pick(random, self.craft.is_forgeable) else { continue };
                    context.send(context.address_of(heard.to), &heard.datagram);
                }
                Attack::Replay => {
                    let Some(heard) = self.recent.pick(random, |_| true) else { continue };
                    for _ in 0..random.random_range(1..=COPIES) {
                        context.send_as(heard.from, context.address_of(heard.to), &heard.datagram);
                    }
                }
                Attack::Guess => {
                    let Some(heard) = self.recent.pick(random, self.craft.is_guessable) else { continue };
                    let guessed = (self.craft.guess)(random, heard.datagram);
                    context.send_as(heard.from, context.address_of(heard.to), &guessed);
                }
            }
        }
        self.next(context);
    }
}

fn spoil(random: &mut Pcg64, is_packet: fn(&[u8]) -> bool, good: Vec<u8>) -> Vec<u8> {
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
        if !is_packet(&bad) {
            return bad;
        }
    }
    good[..good.len() / 3].to_vec()
}
