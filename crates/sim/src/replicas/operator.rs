//! An operator: the C core, as the controller has set its rules.

use super::ReplicasEvent;
use crate::{Actor, Context};
use midflight_dataplane::Out;
use midflight_dataplane::program::Engine;
use midflight_dataplane::replicas::{Outcome, Replicas, ReplicasConfig, Rule, Stats};
use midflight_wire::replicas::{NETRS_MAGIC, Netrs};
use std::any::Any;
use std::net::SocketAddr;
use zerocopy::FromBytes;

/// The engine is in this process.
const CALLED: &str = "an engine in this process can be called";

/// The engine on a node.
#[derive(Debug)]
pub struct OperatorActor {
    engine: Replicas,
    incarnation: u64,
    refused: u64,
    out: Out,
}

/// What a controller tells it: these rules, in this order.
#[derive(Clone, Debug)]
pub struct Rules(pub Vec<Rule>);

impl OperatorActor {
    /// An operator that has just started, without rules. `incarnation` is of this process only; `secret` makes its cookies.
    ///
    /// # Panics
    /// If the configuration is out of bounds.
    #[must_use]
    pub fn new(config: &ReplicasConfig, incarnation: u64, secret: u128) -> Self {
        let engine = Replicas::new(config, 1, secret).expect("a trial's bounds are those of an operator");
        Self { engine, incarnation, refused: 0, out: Out::new() }
    }

    /// The number of its process.
    #[must_use]
    pub fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// What it has counted.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.engine.stats()
    }

    /// The monitor's count of a traffic group's answers.
    #[must_use]
    pub fn answers(&self, group: u16) -> u64 {
        self.engine.counts(group).iter().sum()
    }

    /// Rules that it has not taken.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Whether its structures agree with each other.
    ///
    /// # Errors
    /// Says which do not.
    pub fn check(&self) -> Result<(), String> {
        Engine::check(&self.engine)
    }
}

impl Actor for OperatorActor {
    fn datagram(&mut self, context: &mut Context<'_>, from: SocketAddr, datagram: &[u8]) {
        let is_netrs = Netrs::ref_from_prefix(datagram).is_ok_and(|(start, _)| start.magic == NETRS_MAGIC);
        let mut datagram = datagram.to_vec();
        let verdict = self.engine.packet(context.now(), from, &mut datagram, &mut self.out).expect(CALLED);
        let mut sent = 0;
        for (to, bytes) in self.out.all(&datagram) {
            context.send(to, bytes);
            sent += 1;
        }
        super::record(context, ReplicasEvent::Verdict { verdict, sent, is_netrs });
    }

    fn command(&mut self, _context: &mut Context<'_>, command: Box<dyn Any>) {
        if let Ok(rules) = command.downcast::<Rules>() {
            for rule in rules.0 {
                self.refused += u64::from(self.engine.set(rule) != Outcome::Done);
            }
        }
    }
}
