//! COMPLETE_ACKs that wait to be sent: what came in one turn from one executor leaves in one packet.

use midflight_wire::{AckState, Builder, COMPLETE_MAX, CompleteAck, Completed, Header, Operation};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// An executor that reported, and the identity of ours under which it did: the acknowledgement repeats it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reporter {
    pub(super) address: SocketAddr,
    pub(super) client: u64,
}

struct Batch {
    to: Reporter,
    records: [Completed; COMPLETE_MAX],
    count: usize,
}

/// A queue of packets to be, at most one of them open for each executor.
#[derive(Default)]
pub(super) struct Acks {
    batches: VecDeque<Batch>,
}

impl Acks {
    pub(super) fn push(&mut self, to: Reporter, submission: u32, index: u8, attempt: u8, state: AckState) {
        let record = Completed { submission: submission.into(), index, attempt, state: state as u8, reserved: 0 };
        // Backwards: the completions of one packet come one after the other.
        if let Some(batch) = self.batches.iter_mut().rev().find(|b| b.to == to)
            && batch.count < COMPLETE_MAX
        {
            batch.records[batch.count] = record;
            batch.count += 1;
            return;
        }
        self.batches.push_back(Batch { to, records: [record; COMPLETE_MAX], count: 1 });
    }

    /// Writes the next packet.
    pub(super) fn transmit(&mut self, buffer: &mut Vec<u8>) -> Option<SocketAddr> {
        let batch = self.batches.pop_front()?;
        let header = Header::new(Operation::CompleteAck, 0, 0);
        let mut packet = Builder::new(buffer, &CompleteAck { header, client: batch.to.client.into() });
        batch.records[..batch.count].iter().for_each(|record| packet.push(record));
        Some(batch.to.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use midflight_wire::{Packet, parse};

    #[test]
    fn acks_of_a_turn_leave_in_one_packet_per_executor() {
        let mut acks = Acks::default();
        let a = Reporter { address: "10.0.0.1:1".parse().unwrap(), client: 9 };
        let b = Reporter { address: "10.0.0.2:1".parse().unwrap(), client: 9 };
        let short = Reporter { client: 8, ..b };
        for i in 0..40 {
            acks.push(a, i, 0, 1, AckState::Done);
            if i < 5 {
                acks.push(b, i, 0, 1, AckState::Fetching);
                acks.push(short, i, 0, 1, AckState::Done);
            }
        }
        let mut buffer = Vec::new();
        let mut sent = Vec::new();
        while let Some(to) = acks.transmit(&mut buffer) {
            let Ok(Packet::CompleteAck(fixed, records)) = parse(&buffer) else { panic!("not a COMPLETE_ACK") };
            sent.push((to, fixed.client.get(), records.len()));
        }
        let [a, b] = [a.address, b.address];
        assert_eq!(sent, [(a, 9, 32), (b, 9, 5), (b, 8, 5), (a, 9, 8)]);
    }
}
