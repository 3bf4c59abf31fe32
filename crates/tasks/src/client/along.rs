//! The argument of a task that is alone is sent along to the executor that probably gets it: else that would fetch it, and the task
//! would wait for a round trip more. Which one gets it nobody knows before; the client guesses that it is the one whose completion came
//! last. After each wrong guess, more tasks go without. `docs/internals/arguments.md` ("Sent along") says when it is worth it, and why
//! it is encrypted: who has got the executor's port by now must not be able to read it.

use super::{Client, TaskKey};
use crate::blob::{argument_name, seal_argument};
use midflight_endpoint::{MS, Nanos};
use midflight_wire::{Argument, BlobRef, Builder, PACK_UNIT, PIECES_MAX, Piece};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// A task is alone while at most so many are open. Where there are more, an executor fetches the arguments of many at once.
const ALONE_MAX: usize = 4;
/// How many tasks go without at most before the next guess.
const REST_MAX: u32 = 63;
/// For how long after its completion an executor is taken to be where it was.
const LAST_FOR: Nanos = 100 * MS;
const PIECE: usize = PACK_UNIT as usize;

/// Whom to send arguments to, and whether that was right.
#[derive(Debug, Default)]
pub(super) struct SendAlong {
    /// Where the last completion came from, and when.
    last: Option<(SocketAddr, Nanos)>,
    /// Open tasks whose arguments went along, and where to: by their end it is known whether that was right.
    guesses: Vec<(TaskKey, SocketAddr)>,
    /// To be sent.
    packets: VecDeque<(SocketAddr, Vec<u8>)>,
    /// How many tasks go without after the last wrong guess, and how many of them are left.
    rest: u32,
    rest_left: u32,
}

impl SendAlong {
    /// Where the argument of the next task goes, if anywhere.
    fn next(&mut self, now: Nanos) -> Option<SocketAddr> {
        let (to, _) = self.last.filter(|(_, at)| now.saturating_sub(*at) <= LAST_FOR)?;
        if self.rest_left > 0 {
            self.rest_left -= 1;
            return None;
        }
        Some(to)
    }

    /// A task has ended at this executor.
    pub(super) fn ended(&mut self, now: Nanos, key: TaskKey, executor: SocketAddr) {
        self.last = Some((executor, now));
        let Some(place) = self.guesses.iter().position(|(guessed, _)| *guessed == key) else { return };
        let (_, to) = self.guesses.swap_remove(place);
        self.rest = if to == executor { 0 } else { (2 * self.rest + 1).min(REST_MAX) };
        self.rest_left = self.rest;
    }

    /// The switch has lost its state, or is another one: the executors may have gone with it.
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
    /// Sends the argument of a task that was just submitted to the executor that probably gets it, if it is alone and the argument
    /// fits a packet. `blob` is the task's; its argument is in a pack.
    pub fn send_along(&mut self, now: Nanos, key: TaskKey, blob: BlobRef, argument: &[u8]) {
        if self.open() > ALONE_MAX || argument.len() > PIECES_MAX * PIECE || blob.offset().is_none() {
            return;
        }
        let Some(to) = self.along.next(now) else { return };
        // Of those that ended without a completion: cancelled, timed out.
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
