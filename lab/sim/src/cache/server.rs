//! The production server with an application that takes its time and answers with the question.

use super::CacheEvent;
use crate::{Actor, Context, Wake, exponential};
use midflight_cache::server::{Event, ServeKey, Server};
use midflight_endpoint::{Endpoint, Nanos};
use midflight_wire::cache::{NetrsResponse, Packet, ServerStatus, parse};
use rand::RngExt;
use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;

/// The endpoint and its application.
#[derive(Debug)]
pub struct ServerActor {
    server: Server,
    service: Service,
    condition: Condition,
    asked: HashMap<ServeKey, Vec<u8>>,
}

/// The application's service time.
#[derive(Clone)]
pub enum Service {
    /// Exponential, with this mean.
    Exponential(Nanos),
    /// From the start time and the token of the request.
    Computed(Rc<dyn Fn(Nanos, u64) -> Nanos>),
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exponential(mean) => f.debug_tuple("Exponential").field(mean).finish(),
            Self::Computed(_) => f.debug_struct("Computed").finish_non_exhaustive(),
        }
    }
}

/// Condition of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Healthy.
    Well,
    /// Factor on its service times.
    Slow(u32),
    /// It reports random status.
    Absurd,
    /// Its application does not answer.
    Silent,
}

impl ServerActor {
    /// A fresh server.
    #[must_use]
    pub fn new(server: Server, service: Service) -> Self {
        Self { server, service, condition: Condition::Well, asked: HashMap::new() }
    }

    /// The endpoint.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.server
    }

    fn drive(&mut self, context: &mut Context<'_>) {
        while let Some(event) = self.server.poll_event() {
            match event {
                Event::Serve { key, group, asked } => {
                    let token = asked.first_chunk().map_or(0, |token| u64::from_be_bytes(*token));
                    super::record(context, CacheEvent::Served { group, token });
                    self.asked.insert(key, asked);
                    let slow = if let Condition::Slow(by) = self.condition { u64::from(by) } else { 1 };
                    let takes = match &self.service {
                        Service::Exponential(mean) => exponential(context.random(), *mean),
                        Service::Computed(takes) => takes(context.now(), token),
                    };
                    let takes = takes.saturating_mul(slow);
                    context.after(takes, key.0);
                }
                Event::TooLong { key } => drop(self.asked.remove(&key)),
            }
        }
        let mut buffer = Vec::new();
        while let Some(to) = self.server.poll_transmit(context.now(), &mut buffer) {
            if self.condition == Condition::Absurd {
                say_anything(context, &mut buffer);
            }
            context.send(to, &buffer);
        }
        match self.server.poll_timeout() {
            Some(due) => context.wake_at(due),
            None => context.sleep(),
        }
    }
}

fn say_anything(context: &mut Context<'_>, answer: &mut [u8]) {
    let Ok(Packet::Response(_, _, status, ..)) = parse(answer) else { return };
    if status.len() != size_of::<ServerStatus>() {
        return;
    }
    let random = context.random();
    let status = &mut answer[size_of::<NetrsResponse>()..][..size_of::<ServerStatus>()];
    match random.random_range(0..3) {
        0 => status.fill(0xff),
        1 => status.fill(0),
        _ => random.fill(status),
    }
}

impl Actor for ServerActor {
    fn start(&mut self, context: &mut Context<'_>) {
        self.drive(context);
    }

    fn datagram(&mut self, context: &mut Context<'_>, from: SocketAddr, datagram: &[u8]) {
        self.server.handle(context.now(), from, datagram);
        self.drive(context);
    }

    fn wake(&mut self, context: &mut Context<'_>, wake: Wake) {
        match wake {
            Wake::Time => self.server.handle_timeout(context.now()),
            // A request of a silent application loses its slot after a time.
            Wake::Token(_) if self.condition == Condition::Silent => {}
            Wake::Token(token) => {
                let key = ServeKey(token);
                if let Some(asked) = self.asked.remove(&key) {
                    let answered = self.server.answer(context.now(), key, &asked);
                    debug_assert!(answered.is_ok(), "it was not told that it took too long");
                }
            }
        }
        self.drive(context);
    }

    fn command(&mut self, context: &mut Context<'_>, command: Box<dyn Any>) {
        if let Ok(condition) = command.downcast::<Condition>() {
            self.condition = *condition;
            self.drive(context);
        }
    }
}
