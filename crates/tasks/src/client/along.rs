//! Speculative push: the client sends the argument of an isolated task to the executor that will probably run it, to save a round
//! trip. It guesses the one whose completion arrived last, and skips more tasks after each wrong guess. The argument is encrypted
//! because another process may have taken over the executor's port. `docs/internals/arguments.md` ("Sent along") explains when
//! this helps.

use super::{Client, TaskKey};
use crate::blob::{argument_name, seal_argument};
use midflight_endpoint::{MS, Nanos};
use midflight_wire::{Argument, BlobRef, Builder, PACK_UNIT, PIECES_MAX, Piece};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// With more open tasks there is no push, because executors fetch the arguments of many at once.
const ALONE_MAX: usize = 4;
/// Largest number of tasks to skip before the next guess.
const REST_MAX: u32 = 63;
/// Age of a completion after which the executor's address is no longer trusted.
const LAST_FOR: Nanos = 100 * MS;
const PIECE: usize = PACK_UNIT as usize;

#[derive(Debug, Default)]
pub(super) struct SendAlong {
    last: Option<(SocketAddr, Nanos)>,
    /// Open tasks with pushed arguments, and the destinations.
    guesses: Vec<(TaskKey, SocketAddr)>,
    packets: VecDeque<(SocketAddr, Vec<u8>)>,
    /// Tasks to skip after the last wrong guess; below, how many of them remain.
    rest: u32,
    rest_left: u32,
}

impl SendAlong {
    fn next(&mut self, now: Nanos) -> Option<SocketAddr> {
        let (to, _) = self.last.filter(|(_, at)| now.saturating_sub(*at) <= LAST_FOR)?;
        if self.rest_left > 0 {
            self.rest_left -= 1;
            return None;
        }
        Some(to)
    }

    pub(super) fn ended(&mut self, now: Nanos, key: TaskKey, executor: SocketAddr) {
        self.last = Some((executor, now));
        let Some(place) = self.guesses.iter().position(|(guessed, _)| *guessed == key) else { return };
        let (_, to) = self.guesses.swap_remove(place);
        self.rest = if to == executor { 0 } else { (2 * self.rest + 1).min(REST_MAX) };
        self.rest_left = self.rest;
    }

    pub(super) fn switch_changed(&mut self) {
        self.last = None;
    }

    pub(super) fn transmit(&mut self, buffer: &mut Vec<u8>) -> Option<SocketAddr> {
        let (to, packet) = self.packets.pop_front()?;
        *buffer = packet;
        Some(to)
    }
}

impl Client {
    /// Pushes the argument of the task just submitted, if few tasks are open and it fits a packet. `blob` is its reference into a
    /// pack.
    pub fn send_along(&mut self, now: Nanos, key: TaskKey, blob: BlobRef, argument: &[u8]) {
        if self.open() > ALONE_MAX || argument.len() > PIECES_MAX * PIECE || blob.offset().is_none() {
            return;
        }
        let Some(to) = self.along.next(now) else { return };
        // Removes those that were cancelled or timed out.
        self.along.guesses.retain(|(guessed, _)| self.table.by_key(guessed.0).is_some());
        self.along.guesses.push((key, to));
        self.along.packets.push_back((to, packet(&blob, argument)));
        self.counters.arguments_sent_along += 1;
    }
}

fn packet(blob: &BlobRef, argument: &[u8]) -> Vec<u8> {
    let (mut packet, mut sealed) = (Vec::new(), argument.to_vec());
    let tag = seal_argument(blob, &mut sealed);
    let fixed = Argument { name: argument_name(blob).into(), tag, length: blob.length, ..Argument::new(0, 0) };
    let mut builder = Builder::new(&mut packet, &fixed);
    for piece in sealed.chunks(PIECE) {
        let mut bytes = [0; PIECE];
        bytes[..piece.len()].copy_from_slice(piece);
        builder.push(&Piece { bytes });
    }
    packet
}
