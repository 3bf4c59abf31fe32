//! The production controller. It uses streams, as in production, or datagrams, which may be lost, repeated and late.

use super::planner::{Planned, Planner};
use super::streams::Streams;
use super::{CacheEvent, ControlEvent};
use crate::{Actor, Context, LinkEvent, Wake};
use midflight_cache::control::{Controller, Event, Network};
use midflight_endpoint::{Link, Linked, MS, Nanos};
use midflight_placement::Instance;
use midflight_placement::failure::Decision;
use midflight_wire::cache::control;
use rand::RngExt;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

/// Longest planning time: sometimes longer than the controller waits.
const PLANNING_MAX: Nanos = 300 * MS;

/// The state machine on a node, and its planner.
#[derive(Debug)]
pub struct ControllerActor {
    controller: Controller,
    network: Arc<Network>,
    planner: Planner,
    /// Plans in progress, and their input.
    plans: HashMap<u64, (Planned, Instance)>,
    has_streams: bool,
    /// `Some` once it runs, if it uses streams.
    streams: Option<Streams>,
}

impl ControllerActor {
    /// A fresh controller, with streams or datagrams.
    #[must_use]
    pub fn new(controller: Controller, network: Arc<Network>, planner: Planner, has_streams: bool) -> Self {
        Self { controller, network, planner, plans: HashMap::new(), has_streams, streams: None }
    }

    /// The state machine.
    #[must_use]
    pub fn controller(&self) -> &Controller {
        &self.controller
    }

    fn drive(&mut self, context: &mut Context<'_>) {
        while let Some(event) = self.controller.poll_event() {
            if let Event::PlanWanted(wanted) = event {
                let planned = self.planner.plan(context.random(), &wanted);
                self.plans.insert(wanted.number, (planned, wanted.instance));
                let takes = context.random().random_range(MS..=PLANNING_MAX);
                context.after(takes, wanted.number);
            } else {
                let event = ControlEvent::Driver { event: Box::new(event), target: self.target() };
                super::record(context, CacheEvent::Control(event));
            }
        }
        while let Some((operator, message)) = self.controller.poll_transmit() {
            let mut bytes = Vec::new();
            control::write(&message, &mut bytes);
            let to = self.network.address(operator);
            match &mut self.streams {
                Some(streams) => streams.send(to, bytes),
                None if self.has_streams => {}
                None => context.send(to, &bytes),
            }
        }
        let due = self.controller.poll_timeout();
        match &mut self.streams {
            Some(streams) => streams.drive(context, due),
            None => context.wake_at(due),
        }
    }

    fn target(&self) -> Vec<Option<SocketAddr>> {
        let target = self.controller.status().target;
        target.into_iter().map(|operator| operator.map(|operator| self.network.address(operator))).collect()
    }

    fn take(&mut self, context: &mut Context<'_>, from: SocketAddr, bytes: &[u8]) {
        if let Some(operator) = self.network.operator_at(from)
            && let Ok(Some((message, _))) = control::parse(bytes)
        {
            self.controller.handle(context.now(), operator, &message);
        }
    }

    /// A plan is complete. The controller refuses one that is too late, and requests another.
    fn planned(&mut self, context: &mut Context<'_>, asked: u64) {
        let Some((Planned { number, plan, is_wrong }, instance)) = self.plans.remove(&asked) else { return };
        let before = self.controller.status().target;
        let decision = self.controller.planned(context.now(), number, &plan);
        let has_changed = before != self.controller.status().target;
        let event = match decision {
            Ok(Decision::Take) => ControlEvent::Took { instance: Rc::new(instance) },
            _ => ControlEvent::TookNot,
        };
        super::record(context, CacheEvent::Control(ControlEvent::Answered { is_wrong, has_changed }));
        super::record(context, CacheEvent::Control(event));
    }
}

impl Actor for ControllerActor {
    fn start(&mut self, context: &mut Context<'_>) {
        if self.has_streams {
            let operators = (0..self.network.operators()).map(|operator| self.network.address(operator));
            self.streams = Some(Streams::new(context, operators));
        }
        self.drive(context);
    }

    fn datagram(&mut self, context: &mut Context<'_>, from: SocketAddr, datagram: &[u8]) {
        // With streams, only attackers send it datagrams.
        if !self.has_streams {
            self.take(context, from, datagram);
        }
        self.drive(context);
    }

    fn wake(&mut self, context: &mut Context<'_>, wake: Wake) {
        match wake {
            Wake::Time => self.controller.handle_timeout(context.now()),
            Wake::Token(asked) => self.planned(context, asked),
        }
        self.drive(context);
    }

    fn link(&mut self, context: &mut Context<'_>, link: Link, event: LinkEvent<'_>) {
        let Some(streams) = &mut self.streams else { return };
        match event {
            LinkEvent::Up => streams.link_up(context.now(), link),
            LinkEvent::Broken => streams.link_broken(context.now(), link),
            LinkEvent::Message(message) => {
                if let Some(from) = streams.address(link) {
                    self.take(context, from, message);
                }
            }
            LinkEvent::Room => {}
        }
        self.drive(context);
    }
}
