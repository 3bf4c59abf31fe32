//! Names of participants, and of slots that an engine numbered at random.

use crate::tasks::stop_proof;
use midflight_wire::tasks::{DURABLE, Packet, RunName, SlotName, parse};
use std::net::SocketAddr;

#[derive(Clone, Debug)]
pub(super) struct Endpoint {
    pub(super) name: String,
    pub(super) is_client: bool,
    pub(super) identity: u64,
    pub(super) address: SocketAddr,
    pub(super) offers: u8,
    pub(super) counter: u64,
}

impl Endpoint {
    /// Token of a client's SUBMIT. Given the SUBMIT's sequence, each half alone identifies the client.
    pub(super) fn token(&self, submission: u32) -> u64 {
        let half = self.identity as u32 ^ submission;
        u64::from(!half) << 32 | u64::from(half)
    }
}

/// The part of a token in an ASSIGN: the asic engine stores only half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Whole,
    LowerHalf,
}

#[derive(Clone, Debug)]
struct Registration {
    executor: u64,
    local: u32,
    /// 1 for the first of this local number.
    ordinal: u32,
    slot: u32,
    generation: u32,
}

#[derive(Debug, Default)]
pub(super) struct Names {
    endpoints: Vec<Endpoint>,
    registrations: Vec<Registration>,
}

impl Names {
    pub(super) fn declare(
        &mut self,
        name: &str,
        is_client: bool,
        is_durable: bool,
        at: Option<SocketAddr>,
        offers: u8,
    ) {
        let number = self.endpoints.len() as u8 + 1;
        self.endpoints.push(Endpoint {
            name: name.to_owned(),
            is_client,
            identity: u64::from(number) << 1 | if is_durable { DURABLE } else { 0 },
            address: at.unwrap_or(SocketAddr::from(([10, 0, 0, number], 7000))),
            offers,
            counter: 0,
        });
    }

    pub(super) fn endpoint(&self, name: &str) -> Option<&Endpoint> {
        self.endpoints.iter().find(|endpoint| endpoint.name == name)
    }

    pub(super) fn endpoint_mut(&mut self, name: &str) -> Option<&mut Endpoint> {
        self.endpoints.iter_mut().find(|endpoint| endpoint.name == name)
    }

    pub(super) fn by_identity(&self, identity: u64) -> Option<&Endpoint> {
        self.endpoints.iter().find(|endpoint| endpoint.identity == identity)
    }

    pub(super) fn by_token(&self, token: u64, submission: u32) -> Option<(&Endpoint, Token)> {
        self.endpoints.iter().filter(|endpoint| endpoint.is_client).find_map(|client| match client.token(submission) {
            own if own == token => Some((client, Token::Whole)),
            own if own & u64::from(u32::MAX) == token => Some((client, Token::LowerHalf)),
            _ => None,
        })
    }

    pub(super) fn by_stop_proof(&self, run: &RunName) -> Option<&Endpoint> {
        let is_proof = |client: &&Endpoint| {
            stop_proof(client.token(run.submission.get()), run.submission.get(), run.index) == run.proof.get()
        };
        self.endpoints.iter().filter(|endpoint| endpoint.is_client).find(is_proof)
    }

    pub(super) fn at(&self, address: SocketAddr) -> String {
        let found = self.endpoints.iter().find(|endpoint| endpoint.address == address);
        found.map_or_else(|| address.to_string(), |endpoint| endpoint.name.clone())
    }

    pub(super) fn learn(&mut self, datagram: &[u8]) {
        let Ok(Packet::Registered(registered, names)) = parse(datagram) else { return };
        for (local, name) in (registered.first.get()..).zip(names) {
            self.learn_slot(registered.executor.get(), local, name);
        }
    }

    fn learn_slot(&mut self, executor: u64, local: u32, name: &SlotName) {
        let (slot, generation) = (name.slot.get(), name.generation.get());
        let of_local = |known: &&Registration| known.executor == executor && known.local == local;
        let last = self.registrations.iter().rev().find(of_local);
        if last.is_some_and(|last| last.slot == slot && last.generation == generation) {
            return;
        }
        let ordinal = last.map_or(1, |last| last.ordinal + 1);
        self.registrations.push(Registration { executor, local, ordinal, slot, generation });
    }

    /// The slot of a local number, at its last registration or at the given one.
    pub(super) fn slot(&self, executor: u64, local: u32, ordinal: Option<u32>) -> Option<SlotName> {
        let wanted = |known: &&Registration| {
            known.executor == executor && known.local == local && ordinal.is_none_or(|ordinal| known.ordinal == ordinal)
        };
        let found = self.registrations.iter().rev().find(wanted)?;
        Some(SlotName { slot: found.slot.into(), generation: found.generation.into() })
    }

    /// Name of a slot in a packet to `reader`: `0`; `eve/0` if another executor's; `0@1` if registered again since;
    /// `#7` if unknown.
    pub(super) fn call(&self, reader: SocketAddr, slot: u32, generation: u32) -> String {
        let is_it = |known: &&Registration| known.slot == slot && known.generation == generation;
        let Some(found) = self.registrations.iter().rev().find(is_it) else { return format!("#{slot}") };
        let owner = match self.by_identity(found.executor) {
            Some(owner) if owner.address == reader => String::new(),
            Some(owner) => format!("{}/", owner.name),
            None => "?/".to_owned(),
        };
        let later = |other: &&Registration| {
            other.executor == found.executor && other.local == found.local && other.ordinal > found.ordinal
        };
        match self.registrations.iter().find(later) {
            Some(_) => format!("{owner}{}@{}", found.local, found.ordinal),
            None => format!("{owner}{}", found.local),
        }
    }
}
