//! The production controller. In production streams carry its messages; here they are datagrams, which may be lost, repeated and late.

use crate::{Actor, Context, Wake};
use midflight_control::replicas::{Controller, Event, Network};
use midflight_endpoint::{MS, Nanos};
use midflight_placement::{Options, Plan, Use};
use midflight_wire::replicas::control;
use rand::RngExt;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

/// The longest time until a plan is made: sometimes longer than the controller waits.
const PLANNING_MAX: Nanos = 300 * MS;

/// The state machine on a node, and its planner.
#[derive(Debug)]
pub struct ControllerActor {
    controller: Controller,
    network: Arc<Network>,
    /// Plans that are being made.
    plans: HashMap<u64, Plan>,
}

impl ControllerActor {
    /// A controller that has just started.
    #[must_use]
    pub fn new(controller: Controller, network: Arc<Network>) -> Self {
        Self { controller, network, plans: HashMap::new() }
    }

    /// The state machine.
    #[must_use]
    pub fn controller(&self) -> &Controller {
        &self.controller
    }

    fn drive(&mut self, context: &mut Context<'_>) {
        while let Some(event) = self.controller.poll_event() {
            if let Event::PlanWanted(wanted) = event {
                // First fit takes no time limit, so a trial is repeated exactly.
                let options = Options { methods: Use::FirstFit, ..Options::default() };
                self.plans.insert(wanted.number, wanted.solve(&options));
                let takes = context.random().random_range(MS..=PLANNING_MAX);
                context.after(takes, wanted.number);
            }
        }
        while let Some((operator, message)) = self.controller.poll_transmit() {
            let mut bytes = Vec::new();
            control::write(&message, &mut bytes);
            context.send(self.network.address(operator), &bytes);
        }
        context.wake_at(self.controller.poll_timeout());
    }
}

impl Actor for ControllerActor {
    fn start(&mut self, context: &mut Context<'_>) {
        self.drive(context);
    }

    fn datagram(&mut self, context: &mut Context<'_>, from: SocketAddr, datagram: &[u8]) {
        if let Some(operator) = self.network.operator_at(from)
            && let Ok(Some((message, _))) = control::parse(datagram)
        {
            self.controller.handle(context.now(), operator, &message);
        }
        self.drive(context);
    }

    fn wake(&mut self, context: &mut Context<'_>, wake: Wake) {
        match wake {
            Wake::Time => self.controller.handle_timeout(context.now()),
            Wake::Token(number) => {
                if let Some(plan) = self.plans.remove(&number) {
                    // One that comes too late is refused, and another is asked for.
                    let _ = self.controller.planned(context.now(), number, &plan);
                }
            }
        }
        self.drive(context);
    }
}
