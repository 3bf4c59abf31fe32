//! Limits how many answers to unproven, possibly forged addresses may wait in the send buffer.
//!
//! While the kernel resolves a neighbour that does not exist, it keeps packets to it in the send buffer for three seconds. An attacker
//! could fill the buffer and silence the process (T13). So once some bytes wait, answers to absent neighbours are dropped; packets to
//! present ones leave at once. The last quarter of the buffer is never used.

use crate::socket::Socket;
use crate::socket::neighbours::{Neighbour, Neighbours};
use midflight_endpoint::Nanos;
use midflight_endpoint::mutants::planted;
use std::net::IpAddr;

/// Below this many waiting bytes, everyone is answered.
const ALL_ANSWERED_BELOW: usize = 64 << 10;
/// Below this, unknown neighbours are answered too: some 300 at 800 bytes per answer. From 512 on, the kernel would forget others
/// (`gc_thresh2`).
const UNKNOWN_ANSWERED_BELOW: usize = 256 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The neighbour is absent, or too many bytes wait and it may be.
    Absent,
    /// Too many bytes wait, for any receiver.
    Full,
}

#[derive(Debug)]
pub(crate) struct ReplyLimit {
    neighbours: Neighbours,
}

impl ReplyLimit {
    pub(crate) fn new() -> Self {
        Self { neighbours: Neighbours::new() }
    }

    /// Whether to send an answer to the unproven address `to`; counts it if not.
    pub(crate) fn may_answer(&mut self, now: Nanos, to: IpAddr, socket: &Socket) -> bool {
        let verdict = judge(socket.unsent(), socket.send_buffer(), || self.neighbours.toward(now, to));
        if let Err(refused) = verdict {
            socket.count_unanswered(refused);
        }
        verdict.is_ok()
    }
}

/// Judges an answer while `unsent` bytes wait in a send buffer of `buffer` bytes.
fn judge(unsent: usize, buffer: usize, neighbour: impl FnOnce() -> Neighbour) -> Result<(), Refused> {
    let all = if planted(89) { buffer } else { buffer / 4 * 3 };
    let [few, some] = [ALL_ANSWERED_BELOW.min(buffer / 8), UNKNOWN_ANSWERED_BELOW.min(buffer / 2)];
    match unsent {
        _ if unsent < few => Ok(()),
        _ if unsent >= all => Err(Refused::Full),
        _ => match neighbour() {
            Neighbour::Present => Ok(()),
            Neighbour::Unknown if unsent < some => Ok(()),
            Neighbour::Unknown | Neighbour::Absent => Err(Refused::Absent),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUFFER: usize = 8 << 20;

    #[test]
    fn an_empty_buffer_answers_everybody_and_a_full_one_nobody() {
        let unasked = || unreachable!("the kernel is asked");
        for buffer in [131_072, 425_984, BUFFER] {
            assert_eq!(judge(0, buffer, unasked), Ok(()));
            assert_eq!(judge(buffer / 8 * 6, buffer, unasked), Err(Refused::Full));
            assert_eq!(judge(buffer, buffer, unasked), Err(Refused::Full));
        }
    }

    #[test]
    fn t13_what_waits_for_absent_neighbours_keeps_out_no_present_one() {
        for buffer in [131_072, 425_984, BUFFER] {
            for unsent in (0..buffer / 8 * 6).step_by(buffer / 64) {
                assert_eq!(judge(unsent, buffer, || Neighbour::Present), Ok(()), "{unsent} of {buffer}");
                let [of_absent, of_unknown] =
                    [Neighbour::Absent, Neighbour::Unknown].map(|neighbour| judge(unsent, buffer, || neighbour));
                assert_eq!(of_absent.is_ok(), unsent < ALL_ANSWERED_BELOW.min(buffer / 8), "{unsent} of {buffer}");
                assert_eq!(of_unknown.is_ok(), unsent < UNKNOWN_ANSWERED_BELOW.min(buffer / 2), "{unsent} of {buffer}");
            }
        }
    }
}
