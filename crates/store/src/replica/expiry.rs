//! Keys that have expired. Data may change only by a WRITE that has passed the switch, or a follower could read an old value. So the leader
//! sends one for each, as a client would. Until it is applied the key exists, for all replicas alike.
//!
//! Such a WRITE needs no client id: it removes a key if it is due, which may run twice, and late.

use super::Replica;
use super::session::Sessions;
use crate::update::{Change, Condition, Update};
use midflight_endpoint::mutants::planted;
use midflight_endpoint::{MS, Nanos};
use midflight_wire::store::{Command, NO_SLOT, Operation, Request, Write, key_hash};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use zerocopy::{FromZeros, IntoBytes};

/// Keys that are removed at a time.
const AT_ONCE: usize = 64;
/// A WRITE counts as lost after this.
const LOST_AFTER: Nanos = 50 * MS;

/// The leader as a client of its switch.
pub(super) struct Expiry {
    secrets: StdRng,
    /// Secret, so that only who saw a WRITE can answer it.
    request: u64,
    cookie: [u8; 8],
    /// Keys that are being removed, and when the WRITE was sent.
    sent: BTreeMap<Box<[u8]>, Nanos>,
}

impl Expiry {
    pub(super) fn new(seed: u64) -> Self {
        Self { secrets: StdRng::seed_from_u64(seed), request: 0, cookie: [0; 8], sent: BTreeMap::new() }
    }

    pub(super) fn begin_leading(&mut self) {
        self.request = self.secrets.next_u64();
        self.sent.clear();
    }

    /// The switch requires a cookie. Returns whether it answers a WRITE of this leader.
    pub(super) fn take_cookie(&mut self, answer: &Request) -> bool {
        let is_own = answer.request.get() == self.request;
        let cookie = answer.client.ip.first_chunk().copied().unwrap_or_default();
        if is_own && cookie != self.cookie {
            self.cookie = cookie;
            self.sent.clear();
        }
        is_own
    }

    /// A WRITE for this key was applied.
    pub(super) fn applied(&mut self, key: &[u8]) {
        self.sent.remove(key);
    }

    /// When the next WRITE for a key may be sent.
    fn next(&self, key: &[u8], due: Nanos) -> Nanos {
        self.sent.get(key).map_or(due, |at| at + LOST_AFTER)
    }

    fn remove(&mut self, now: Nanos, set: u16, key: Box<[u8]>) -> Vec<u8> {
        let mut request = Request::new(Operation::Write);
        (request.request, request.hash, request.set) = (self.request.into(), key_hash(&key).into(), set.into());
        (request.key_length, request.slot) = ((key.len() as u16).into(), NO_SLOT);
        request.client.ip[..8].copy_from_slice(&self.cookie);
        let write = Write { command: Command::Update.into(), ..Write::new_zeroed() };
        let condition = if planted(197) { Condition::Present } else { Condition::Due };
        let update = Update::<&[u8]> { condition, change: Change::Remove, ..Update::default() };
        let mut packet = [request.as_bytes(), write.as_bytes(), &key].concat();
        update.encode(&mut packet);
        self.sent.insert(key, now);
        packet
    }
}

impl Replica {
    /// Sends WRITEs for keys that are due.
    pub(super) fn expire(&mut self, now: Nanos) {
        let present = self.sessions.as_ref().filter(|sessions| sessions.is_active());
        let Some(switch) = present.and_then(|sessions| sessions.present.as_ref()).map(|present| present.name.switch)
        else {
            return;
        };
        let ready = self.expiring().filter(|(_, next)| *next <= now).map(|(key, _)| key.into());
        for key in ready.collect::<Vec<Box<[u8]>>>() {
            if planted(199) {
                self.state.store.remove(&key);
            }
            let packet = self.expiry.remove(now, self.config.set, key);
            self.out.push_back((switch, packet));
        }
        if self.expiry.sent.len() > 4 * AT_ONCE {
            self.expiry.sent.retain(|_, at| now < *at + LOST_AFTER);
        }
    }

    /// The next keys that expire, and when to send a WRITE for them.
    fn expiring(&self) -> impl Iterator<Item = (&[u8], Nanos)> {
        self.state.store.expiring().take(AT_ONCE).map(|(at, key)| {
            let left = at.saturating_sub(self.state.time).saturating_mul(MS);
            (key, self.expiry.next(key, self.time_since.saturating_add(left)))
        })
    }

    pub(super) fn expiry_timeout(&self) -> Option<Nanos> {
        self.sessions.as_ref().filter(|sessions| Sessions::is_active(sessions))?;
        self.expiring().map(|(_, next)| next).min()
    }
}
