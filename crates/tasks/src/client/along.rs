//! The argument of a task that is alone is sent along to the executor that probably gets it: else that would fetch it, and the task
//! would wait for a round trip more. Which one gets it nobody knows before; the client guesses that it is the one whose completion came
//! last, and rests for ever longer while that is wrong. `docs/internals/arguments.md` ("Sent along") says when it is worth it.

use super::{Client, TaskKey};
use midflight_wire::{ALONG_MAX, Argument, BlobRef, Builder, PACK_UNIT, Piece};
use std::net::SocketAddr;

/// A task is alone while at most so many are open. Where there are more, an executor fetches the arguments of many at once.
const ALONE_MAX: usize = 4;
/// How many tasks go without at most before the next guess.
const REST_MAX: u32 = 63;
const PIECE: usize = PACK_UNIT as usize;

/// Whom to send arguments to, and whether that was right.
#[derive(Debug, Default)]
pub(super) struct Along {
    /// Where the last completion came from.
    last: Option<SocketAddr>,
    /// The last task whose argument went along, and where to.
    guess: Option<(TaskKey, SocketAddr)>,
    /// To be sent.
    packet: Option<(SocketAddr, Vec<u8>)>,
    /// How many tasks go without after a wrong guess, and how many of them are left.
    rest: u32,
    resting: u32,
}

impl Along {
    /// Where the argument of the next task goes, if anywhere.
    fn next(&mut self) -> Option<SocketAddr> {
        let to = self.last?;
        if self.resting > 0 {
            self.resting -= 1;
            return None;
        }
        Some(to)
    }

    /// A task has ended at this executor.
    pub(super) fn ended(&mut self, key: TaskKey, executor: SocketAddr) {
        self.last = Some(executor);
        if let Some((_, to)) = self.guess.take_if(|(guessed, _)| *guessed == key) {
            self.rest = if to == executor { 0 } else { (2 * self.rest + 1).min(REST_MAX) };
            self.resting = self.rest;
        }
    }

    pub(super) fn transmit(&mut self, buffer: &mut Vec<u8>) -> Option<SocketAddr> {
        let (to, packet) = self.packet.take()?;
        *buffer = packet;
        Some(to)
    }
}

impl Client {
    /// Sends the argument of a task that was just submitted to the executor that probably gets it, if it is alone and the argument
    /// fits a packet. `blob` is the task's; its argument is in a pack.
    pub fn send_along(&mut self, key: TaskKey, blob: BlobRef, argument: &[u8]) {
        if self.open() > ALONE_MAX || argument.len() > ALONG_MAX * PIECE || blob.offset().is_none() {
            return;
        }
        let Some(to) = self.along.next() else { return };
        let mut packet = Vec::new();
        let mut builder = Builder::new(&mut packet, &Argument { blob, ..Argument::new(0, 0) });
        for piece in argument.chunks(PIECE) {
            let mut bytes = [0; PIECE];
            bytes[..piece.len()].copy_from_slice(piece);
            builder.push(&Piece { bytes });
        }
        self.counters.arguments_along += 1;
        self.along.guess = Some((key, to));
        self.along.packet = Some((to, packet));
    }
}
