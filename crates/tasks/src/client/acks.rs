//! The queue of COMPLETE_ACKs: one packet per executor and turn.

use crate::proof::Token;
use midflight_wire::Builder;
use midflight_wire::tasks::{AckState, COMPLETE_MAX, CompleteAck, Completed, Completion};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Identifies a completion for its acknowledgement. `token` is whole or halved, as its executor has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) executor: SocketAddr,
    token: Token,
    submission: u32,
    index: u8,
    pub(super) attempt: u8,
}

impl Report {
    pub(super) fn of(executor: SocketAddr, token: Token, completion: &Completion) -> Self {
        Self {
            executor,
            token,
            submission: completion.submission.get(),
            index: completion.index,
            attempt: completion.attempt,
        }
    }
}

struct Batch {
    to: SocketAddr,
    records: [Completed; COMPLETE_MAX],
    count: usize,
}

/// Packets to write. At most one packet per executor still has room.
#[derive(Default)]
pub(super) struct Acks {
    batches: VecDeque<Batch>,
}

impl Acks {
    pub(super) fn push(&mut self, report: Report, state: AckState) {
        let Report { executor: to, token, submission, index, attempt } = report;
        let (submission, state) = (submission.into(), state as u8);
        let mut record = Completed { proof: 0.into(), submission, index, attempt, state, reserved: 0 };
        record.proof = token.acknowledgement_proof(&record).into();
        // From the back, because completions of one packet are consecutive.
        if let Some(batch) = self.batches.iter_mut().rev().find(|b| b.to == to)
            && batch.count < COMPLETE_MAX
        {
            batch.records[batch.count] = record;
            batch.count += 1;
            return;
        }
        self.batches.push_back(Batch { to, records: [record; COMPLETE_MAX], count: 1 });
    }

    pub(super) fn transmit(&mut self, buffer: &mut Vec<u8>) -> Option<SocketAddr> {
        let batch = self.batches.pop_front()?;
        let mut packet = Builder::new(buffer, &CompleteAck::new(0, 0));
        batch.records[..batch.count].iter().for_each(|record| packet.push(record));
        Some(batch.to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use midflight_wire::tasks::{Packet, parse};

    #[test]
    fn acks_of_a_turn_leave_in_one_packet_per_executor() {
        let mut acks = Acks::default();
        let a = Report {
            executor: "10.0.0.1:1".parse().unwrap(),
            token: Token::new(7),
            submission: 0,
            index: 3,
            attempt: 1,
        };
        let b = Report { executor: "10.0.0.2:1".parse().unwrap(), ..a };
        for submission in 0..40 {
            acks.push(Report { submission, ..a }, AckState::Done);
            if submission < 5 {
                acks.push(Report { submission, ..b }, AckState::Fetching);
                acks.push(Report { submission, token: Token::new(8), ..b }, AckState::Done);
            }
        }
        let mut buffer = Vec::new();
        let mut sent = Vec::new();
        while let Some(to) = acks.transmit(&mut buffer) {
            let Ok(Packet::CompleteAck(_, records)) = parse(&buffer) else { panic!("not a COMPLETE_ACK") };
            let is_by = |token, one: &Completed| Token::new(token).acknowledgement_proof(one) == one.proof.get();
            let by = |token| records.iter().filter(|one| is_by(token, one)).count();
            sent.push((to, records.len(), by(7), by(8)));
        }
        assert_eq!(sent, [(a.executor, 32, 32, 0), (b.executor, 10, 5, 5), (a.executor, 8, 8, 0)]);
    }
}
