//! An attacker on the path: it sees what the client sends and what switches answer, and forges packets of all of them.

use super::*;
use midflight_wire::tasks::{Cancel, Known, Probe, Submit, TaskName};
use rand::RngExt;
use rand_pcg::Pcg32;
use std::collections::VecDeque;

pub(super) const RESULT: &[u8] = b"forged";

const REMEMBERED: usize = 32;

#[derive(Default)]
pub(super) struct Forger {
    seen: VecDeque<Vec<u8>>,
    epochs: VecDeque<u32>,
}

impl Forger {
    pub(super) fn has_seen(&mut self, answer: &[u8]) {
        self.seen.push_back(answer.to_vec());
        if self.seen.len() > REMEMBERED {
            self.seen.pop_front();
        }
    }

    /// A forged packet in the client's name, with its cookie, for the switch that gets `packet`.
    pub(super) fn query(&self, rng: &mut Pcg32, packet: &Sent) -> Vec<u8> {
        let &(Sent::Submit { sequence, cookie, .. }
        | Sent::Cancel { sequence, cookie, .. }
        | Sent::Probe { sequence, cookie, .. }) = packet
        else {
            unreachable!("for switches")
        };
        let (client, cookie) = (IDENTITY.into(), cookie.into());
        let ahead = rng.random::<u32>() >> rng.random_range(1..32);
        let sequence = sequence.wrapping_add(ahead);
        match packet {
            Sent::Submit { tasks, .. } => {
                let token = rng.random::<u64>().into();
                let fixed = Submit { client, cookie, token, ..Submit::new(0, sequence) };
                midflight_wire::packet(&fixed, &tasks[..rng.random_range(1..=tasks.len())])
            }
            Sent::Cancel { names, .. } => {
                let names: Vec<_> = names.iter().map(|&(submission, index)| TaskName::new(submission, index)).collect();
                midflight_wire::packet(&Cancel { client, cookie, ..Cancel::new(0, sequence) }, &names)
            }
            _ => counting(&Probe { client, cookie, ..Probe::new(0, sequence) }, 0),
        }
    }

    pub(super) fn answer(&mut self, rng: &mut Pcg32, present: [u32; 2], packet: &Sent) -> Vec<u8> {
        for epoch in present {
            if !self.epochs.contains(&epoch) {
                self.epochs.push_back(epoch);
            }
        }
        let epoch = match rng.random_range(0..4) {
            0 => rng.random_range(0..10),
            _ => self.epochs[rng.random_range(0..self.epochs.len())],
        };
        let &(Sent::Submit { sequence, .. } | Sent::Cancel { sequence, .. } | Sent::Probe { sequence, .. }) = packet
        else {
            unreachable!("for switches")
        };
        let sequence =
            if rng.random_range(0..4) > 0 { sequence } else { sequence.wrapping_sub(rng.random_range(0..3)) };
        if rng.random_range(0..4) == 0
            && let Some(late) = self.seen.get(rng.random_range(0..REMEMBERED))
        {
            return late.clone();
        }
        match rng.random_range(0..8) {
            0 | 1 => cookie_for(IDENTITY, epoch, sequence, rng.random()),
            2 => complete_with(
                Token::new(rng.random()),
                (sequence, rng.random_range(0..32)),
                1,
                Status::Ok,
                false,
                RESULT,
            ),
            3 => vec![0x4D, 0x46, rng.random(), 0, 0, 0, 0, 0],
            _ => self.of_its_kind(rng, epoch, sequence, packet),
        }
    }

    fn of_its_kind(&self, rng: &mut Pcg32, epoch: u32, sequence: u32, packet: &Sent) -> Vec<u8> {
        let bits = rng.random::<u32>() | if rng.random() { u32::MAX } else { 0 };
        match packet {
            Sent::Submit { tasks, .. } => {
                let reason = Reason::ALL[rng.random_range(0..Reason::ALL.len())];
                let all = u32::MAX >> (32 - tasks.len());
                submit_ack(epoch, sequence, tasks.len(), bits & all, reason)
            }
            Sent::Cancel { names, .. } => {
                let held: Vec<u8> = (0..names.len() as u8).filter(|_| rng.random()).collect();
                let mut answer = cancel_ack(epoch, sequence, bits & (u32::MAX >> (32 - names.len())), &held);
                answer[36] = rng.random_range(0..6);
                answer
            }
            Sent::Probe { names, .. } => {
                let known = Known::ALL[rng.random_range(0..Known::ALL.len())];
                probe_ack_of(known, epoch, sequence, names.len(), bits)
            }
            Sent::CompleteAck { .. } | Sent::Stop { .. } => unreachable!("for switches"),
        }
    }
}
