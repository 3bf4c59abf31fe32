//! Random datagrams to a client and an executor: neither panics, and both send only well-formed packets. The target writes valid
//! headers, and takes sequences, counters and proofs, which a fuzzer cannot guess, from what the endpoint sent last.
#![no_main]

use libfuzzer_sys::fuzz_target;
use midflight_endpoint::{Endpoint, Nanos};
use midflight_tasks::client::{Argument, Client, ClientConfig, Task};
use midflight_tasks::executor::{self, End, Executor, ExecutorConfig, Output};
use midflight_tasks::proof::Token;
use midflight_wire::Header;
use midflight_wire::tasks::{BlobRef, Complete, Completion, Operation, Packet, Released, Reset, Status, parse};
use std::net::SocketAddr;
use zerocopy::{FromBytes, IntoBytes};

const SWITCH: ([u8; 4], u16) = ([10, 0, 0, 1], 7700);
const OTHER: ([u8; 4], u16) = ([10, 0, 0, 2], 9000);
/// Zero, as in the datagrams that a fuzzer begins with.
const IDENTITY: u64 = 0;
const SEED: u64 = 1;
/// A turn that sends more datagrams than this is a bug.
const TURN_MAX: usize = 10_000;

/// An endpoint, the time, and the last values it sent that a response repeats.
struct Side<E> {
    endpoint: E,
    now: Nanos,
    sequence: u32,
    submission: (u32, u64),
    counter: u64,
}

impl<E: Endpoint> Side<E> {
    fn turn(&mut self, mut event: impl FnMut(&mut E, Nanos, E::Event)) {
        if self.endpoint.poll_timeout().is_some_and(|due| due <= self.now) {
            self.endpoint.handle_timeout(self.now);
        }
        while let Some(happened) = self.endpoint.poll_event() {
            event(&mut self.endpoint, self.now, happened);
        }
        let mut buffer = Vec::new();
        for sent in 0.. {
            assert!(sent < TURN_MAX, "an endpoint that never stops sending");
            if self.endpoint.poll_transmit(self.now, &mut buffer).is_none() {
                break;
            }
            self.note(&buffer);
        }
    }

    fn note(&mut self, sent: &[u8]) {
        if let Ok((header, _)) = Header::read_from_prefix(sent) {
            self.sequence = header.sequence.get();
        }
        match parse(sent).expect("what an endpoint sends is well-formed") {
            Packet::Submit(submit, ..) => self.submission = (self.sequence, submit.token.get()),
            Packet::Retrieve(retrieve, _) => self.counter = retrieve.counter.get(),
            Packet::Keepalive(keepalive, _) => self.counter = keepalive.counter.get(),
            Packet::Release(release, _) => self.counter = release.counter.get(),
            _ => {}
        }
    }

    /// Fills in the values that only a party to the exchange knows.
    fn make_true(&self, operation: Operation, datagram: &mut [u8]) {
        match operation {
            Operation::Complete => {
                let Ok((fixed, records)) = Complete::mut_from_prefix(datagram) else { return };
                let Ok((completion, rest)) = Completion::mut_from_prefix(records) else { return };
                let Some(result) = rest.get_mut(..usize::from(completion.result_length.get())) else { return };
                let (submission, token) = self.submission;
                completion.submission = submission.into();
                let proof = Token::new(token).completion_proof(fixed.executor.get(), completion, result);
                completion.proof = proof.into();
                if completion.by_reference == 1
                    && let Ok(blob) = BlobRef::mut_from_bytes(result)
                {
                    *blob = Token::new(token).hide(proof, blob);
                }
            }
            Operation::Reset => {
                let Ok((reset, _)) = Reset::mut_from_prefix(datagram) else { return };
                reset.counter = self.counter.into();
            }
            Operation::Released => {
                let Ok((released, _)) = Released::mut_from_prefix(datagram) else { return };
                released.counter = self.counter.into();
            }
            _ => {}
        }
    }

    fn deliver(&mut self, choices: [u8; 3], body: &[u8]) {
        let [kind, count, back] = choices;
        let operation = Operation::ALL[usize::from(kind) % Operation::ALL.len()];
        let sequence = self.sequence.wrapping_sub(u32::from(back & 7));
        let mut header = Header::new(operation, 1 + u32::from(back >> 3 & 1), sequence);
        header.count = count;
        let mut datagram = [header.as_bytes(), body].concat();
        if back & 16 == 0 {
            self.make_true(operation, &mut datagram);
        }
        let from: SocketAddr = if kind < 128 { SWITCH.into() } else { OTHER.into() };
        self.endpoint.handle(self.now, from, &datagram);
    }
}

fn play<E: Endpoint>(endpoint: E, mut story: &[u8], mut event: impl FnMut(&mut E, Nanos, E::Event)) {
    let mut side = Side { endpoint, now: 1, sequence: 0, submission: (0, 0), counter: 0 };
    side.turn(&mut event);
    while let Some((&[time, length, choices @ ..], rest)) = story.split_first_chunk::<5>() {
        // From 0 to two seconds, with fine steps near 0.
        side.now += u64::from(time).pow(4) / 2;
        let (body, rest) = rest.split_at(rest.len().min(usize::from(length)));
        side.deliver(choices, body);
        side.turn(&mut event);
        story = rest;
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((&which, story)) = input.split_first() else { return };
    let switches = vec![SWITCH.into()];
    if which % 2 == 0 {
        let mut client = Client::new(ClientConfig::new(IDENTITY, SEED, switches), 0).expect("defaults are valid");
        let tasks: Vec<_> = (0..40).map(|_| Task::new(1, Argument::NONE)).collect();
        client.submit(0, 1, &tasks).expect("there is room");
        play(client, story, |_, _, _| {});
    } else {
        let config = ExecutorConfig::new(IDENTITY, SEED, switches, 4, 255);
        let executor = Executor::new(config, 0).expect("defaults are valid");
        play(executor, story, |executor, now, event| {
            if let executor::Event::Run(run) = event {
                let result = Output::Inline(Vec::new());
                executor.finish(now, run.key, End { status: Status::Ok, result, started: now, ended: now });
            }
        });
    }
});
