//! An operator: the C core, and its `RuleKeeper`, which serves controllers.

use super::streams::Streams;
use super::{CacheEvent, Slot};
use crate::{Actor, Context, LinkEvent, TICK, Wake};
use midflight_cache::control::keeper::Load;
use midflight_cache::control::{Parts, RuleKeeper};
use midflight_dataplane::Out;
use midflight_dataplane::cache::{Cache, CacheConfig, Outcome, Rule, Stats, TIERS_MAX};
use midflight_dataplane::program::Engine;
use midflight_endpoint::{Link, Linked, Nanos};
use midflight_wire::cache::control;
use midflight_wire::cache::{NETRS_MAGIC, Netrs};
use rand::RngExt;
use std::any::Any;
use std::net::SocketAddr;
use zerocopy::FromBytes;

const IN_PROCESS_CALLS_SUCCEED: &str = "calls of an engine in this process cannot fail";

/// The engine on a node.
#[derive(Debug)]
pub struct OperatorActor {
    engine: Cache,
    incarnation: u64,
    refused: u64,
    out: Out,
    controlled: Controlled,
    /// `Some` once it runs, if controllers use streams.
    streams: Option<Streams>,
    next_look: Nanos,
    keeper: RuleKeeper,
    slot: Slot,
    lies: bool,
}

/// Which party sets an operator's rules.
#[derive(Clone, Debug, Default)]
pub struct Controlled {
    /// The controllers' addresses; none: a script sets the rules.
    pub by: Vec<SocketAddr>,
    /// Controllers use streams instead of datagrams.
    pub has_streams: bool,
}

/// Whether it reports invented counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lies(pub bool);

/// The keeper's interface to operator and selector.
struct KeeperParts<'a> {
    engine: &'a mut Cache,
    slot: &'a Slot,
    /// Reported instead of counts.
    lie: Option<u64>,
}

impl Parts for KeeperParts<'_> {
    fn set(&mut self, rule: Rule) -> Outcome {
        self.engine.set(rule)
    }

    fn request_counts(&self, group: u16) -> [u64; TIERS_MAX] {
        self.lie.map_or_else(|| self.engine.counts(group), |lie| [0, 7, 29, 53].map(|turn| lie.rotate_left(turn)))
    }

    fn load(&self) -> Load {
        let stats = self.engine.stats();
        let said = |count| self.lie.unwrap_or(count);
        Load { selected: said(stats.selected), copied: said(stats.copied) }
    }

    /// `Done` also if no selector runs: the controller sends all replica groups again when one does.
    fn set_replica_group(&mut self, group: u32, servers: &[SocketAddr]) -> Outcome {
        let set = self.slot.with(|rsnode| rsnode.set_group(group, servers));
        if set.is_none_or(|set| set.is_ok()) { Outcome::Done } else { Outcome::Bad }
    }

    fn set_selectors(&mut self, selectors: u32) {
        self.slot.with(|rsnode| rsnode.set_selectors(selectors));
    }
}

/// Rules from a controller, in order.
#[derive(Clone, Debug)]
pub struct Rules(pub Vec<Rule>);

impl OperatorActor {
    /// A fresh operator without rules. `incarnation` is of this process only; `secret` makes its cookies.
    ///
    /// # Panics
    /// If the configuration is out of bounds.
    #[must_use]
    pub fn new(config: &CacheConfig, incarnation: u64, secret: u128, controlled: Controlled, slot: Slot) -> Self {
        let engine = Cache::new(config, 1, secret).expect("a trial's bounds are those of an operator");
        let keeper = RuleKeeper::new(incarnation, slot.incarnation());
        Self {
            engine,
            incarnation,
            refused: 0,
            out: Out::new(),
            controlled,
            streams: None,
            next_look: 0,
            keeper,
            slot,
            lies: false,
        }
    }

    /// The keeper of its rules.
    #[must_use]
    pub fn keeper(&self) -> &RuleKeeper {
        &self.keeper
    }

    fn control(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Option<Vec<u8>> {
        let Ok(Some((message, _))) = control::parse(bytes) else { return None };
        let lie = self.lies.then(|| context.random().random());
        let mut parts = KeeperParts { engine: &mut self.engine, slot: &self.slot, lie };
        let answer = self.keeper.handle(context.now(), &message, &mut parts)?;
        let mut bytes = Vec::new();
        control::write(&answer, &mut bytes);
        Some(bytes)
    }

    /// Its selector may have died or restarted.
    fn look_beside(&mut self) {
        let mut parts = KeeperParts { engine: &mut self.engine, slot: &self.slot, lie: None };
        self.keeper.set_selector(self.slot.incarnation(), &mut parts);
    }

    /// Number of its process.
    #[must_use]
    pub fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// The engine's counters.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.engine.stats()
    }

    /// The monitor's count of a traffic group's answers.
    #[must_use]
    pub fn answers(&self, group: u16) -> u64 {
        self.engine.counts(group).iter().sum()
    }

    /// Number of refused rules.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Checks the consistency of its structures.
    ///
    /// # Errors
    /// Says which are inconsistent.
    pub fn check(&self) -> Result<(), String> {
        Engine::check(&self.engine)
    }
}

impl Actor for OperatorActor {
    fn start(&mut self, context: &mut Context<'_>) {
        if self.controlled.by.is_empty() {
            return;
        }
        self.next_look = context.now() + TICK;
        context.wake_at(self.next_look);
        if self.controlled.has_streams {
            // Controllers connect to it.
            let mut streams = Streams::new(context, []);
            streams.drive(context, self.next_look);
            self.streams = Some(streams);
        }
    }

    fn wake(&mut self, context: &mut Context<'_>, _wake: Wake) {
        self.look_beside();
        self.next_look = context.now() + TICK;
        context.wake_at(self.next_look);
    }

    fn link(&mut self, context: &mut Context<'_>, link: Link, event: LinkEvent<'_>) {
        let answer = if let LinkEvent::Message(message) = event { self.control(context, message) } else { None };
        let Some(streams) = &mut self.streams else { return };
        match event {
            LinkEvent::Up => streams.link_up(context.now(), link),
            LinkEvent::Broken => streams.link_broken(context.now(), link),
            LinkEvent::Message(_) | LinkEvent::Room => {}
        }
        if let Some(answer) = answer {
            streams.answer(link, answer);
        }
        streams.drive(context, self.next_look);
    }

    fn datagram(&mut self, context: &mut Context<'_>, from: SocketAddr, datagram: &[u8]) {
        if !self.controlled.has_streams && self.controlled.by.contains(&from) {
            if let Some(answer) = self.control(context, datagram) {
                context.send(from, &answer);
            }
            return;
        }
        let is_netrs = Netrs::ref_from_prefix(datagram).is_ok_and(|(start, _)| start.magic == NETRS_MAGIC);
        let mut datagram = datagram.to_vec();
        let verdict =
            self.engine.packet(context.now(), from, &mut datagram, &mut self.out).expect(IN_PROCESS_CALLS_SUCCEED);
        let mut sent = 0;
        for (to, bytes) in self.out.all(&datagram) {
            context.send(to, bytes);
            sent += 1;
        }
        super::record(context, CacheEvent::Verdict { verdict, sent, is_netrs });
    }

    fn command(&mut self, _context: &mut Context<'_>, command: Box<dyn Any>) {
        match command.downcast::<Rules>() {
            Ok(rules) => {
                for rule in rules.0 {
                    self.refused += u64::from(self.engine.set(rule) != Outcome::Done);
                }
            }
            Err(other) => {
                if let Ok(lies) = other.downcast::<Lies>() {
                    self.lies = lies.0;
                }
            }
        }
    }
}
