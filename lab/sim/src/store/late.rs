//! A fault: a node delays datagrams of one kind, or repeats them much later.

use crate::Context;
use midflight_endpoint::Nanos;
use midflight_wire::Header;
use midflight_wire::store::Operation;
use rand::RngExt;
use std::collections::HashMap;
use std::net::SocketAddr;
use zerocopy::FromBytes;

/// Tokens of [`Context::after`] from here on stand for late datagrams.
pub(super) const TOKENS: u64 = 1 << 32;

/// Datagrams of one kind that are delayed or repeated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Late {
    /// Their kind.
    pub operation: Operation,
    /// Maximum delay.
    pub by: Nanos,
    /// Sent on time too: the late ones are copies.
    pub copies: bool,
    /// Their share.
    pub share: f64,
}

#[derive(Debug, Default)]
pub(super) struct Lateness {
    pub(super) present: Option<Late>,
    held: HashMap<u64, (SocketAddr, Vec<u8>)>,
    next: u64,
}

impl Lateness {
    pub(super) fn send(&mut self, context: &mut Context<'_>, to: SocketAddr, datagram: &[u8]) {
        let late = self.present.filter(|late| is_of(late.operation, datagram));
        let Some(late) = late.filter(|late| context.random().random_bool(late.share)) else {
            return context.send(to, datagram);
        };
        if late.copies {
            context.send(to, datagram);
        }
        let token = TOKENS + self.next;
        self.next += 1;
        self.held.insert(token, (to, datagram.to_vec()));
        let by = context.random().random_range(0..=late.by);
        context.after(by, token);
    }

    pub(super) fn due(&mut self, context: &mut Context<'_>, token: u64) {
        if let Some((to, datagram)) = self.held.remove(&token) {
            context.send(to, &datagram);
        }
    }
}

fn is_of(operation: Operation, datagram: &[u8]) -> bool {
    Header::ref_from_prefix(datagram).is_ok_and(|(header, _)| header.operation == u8::from(operation))
}
