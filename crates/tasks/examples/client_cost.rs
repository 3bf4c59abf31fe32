//! What a task costs in the client: `cargo run --release -p midflight-tasks --example client_cost`.
//!
//! The answers of switch and executor are written into memory by a loop of their own between the client's turns, and
//! only the client's calls are timed: submit, poll_transmit, handle (SUBMIT_ACK, COMPLETE), poll_event, handle_timeout.

use midflight_endpoint::{Endpoint, Nanos};
use midflight_tasks::client::{Argument, Client, ClientConfig, Event, Task};
use midflight_wire::{Builder, Complete, Completion, Packet, SubmitAck, counting, parse};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use zerocopy::byteorder::network_endian::{U32, U64};

const SWITCH: ([u8; 4], u16) = ([10, 0, 0, 1], 1);
const EXECUTOR: ([u8; 4], u16) = ([10, 0, 0, 2], 2);

struct World {
    client: Client,
    now: Nanos,
    spent: Duration,
    packets: Vec<(SocketAddr, Vec<u8>)>,
    /// Tasks that the executor holds: token, submission, index.
    held: VecDeque<(U64, U32, u8)>,
    completed: u64,
}

impl World {
    fn new() -> Self {
        let config = ClientConfig::new(7, 7, vec![SWITCH.into()]);
        let client = Client::new(config, 0).expect("the defaults are valid");
        Self { client, now: 0, spent: Duration::ZERO, packets: Vec::new(), held: VecDeque::new(), completed: 0 }
    }

    /// One turn: a burst of tasks comes, what the others sent arrives, what is to be sent leaves.
    fn turn(&mut self, tasks: &[Task], buffers: &mut Vec<Vec<u8>>) {
        self.now += 100_000;
        let now = self.now;
        let begin = Instant::now();
        self.client.submit(now, 1, tasks).expect("fewer than max_open");
        for (from, packet) in &self.packets {
            self.client.handle(now, *from, packet);
        }
        if self.client.poll_timeout().is_some_and(|due| due <= now) {
            self.client.handle_timeout(now);
        }
        while let Some(event) = self.client.poll_event() {
            self.completed += u64::from(matches!(event, Event::Completed { .. }));
        }
        let mut sent = 0;
        loop {
            if sent == buffers.len() {
                buffers.push(Vec::with_capacity(2048));
            }
            if self.client.poll_transmit(now, &mut buffers[sent]).is_none() {
                break;
            }
            sent += 1;
        }
        self.spent += begin.elapsed();
        self.answer(&buffers[..sent]);
    }

    fn answer(&mut self, sent: &[Vec<u8>]) {
        self.packets.clear();
        for packet in sent {
            match parse(packet) {
                Ok(Packet::Submit(submit, tasks)) => {
                    let (token, sequence) = (submit.token, submit.header.sequence);
                    self.held.extend((0_u8..).zip(tasks).map(|(index, _)| (token, sequence, index)));
                    let taken = (u32::MAX >> (32 - tasks.len())).into();
                    let fixed = SubmitAck { client: submit.client, taken, ..SubmitAck::new(5, sequence.get()) };
                    self.packets.push((SWITCH.into(), counting(&fixed, tasks.len() as u8)));
                }
                Ok(_) => {}
                Err(reject) => panic!("the client sent a {reject} packet"),
            }
        }
    }

    /// The executor completes these many of its tasks, at most 32 a packet.
    fn complete(&mut self, mut count: usize) {
        count = count.min(self.held.len());
        while count > 0 {
            let mut buffer = Vec::new();
            let mut packet = Builder::new(&mut buffer, &Complete::new(5, 0));
            for (token, submission, index) in self.held.drain(..count.min(32)) {
                count -= 1;
                let completion = Completion {
                    token,
                    submission,
                    index,
                    attempt: 1,
                    status: 0,
                    by_reference: 0,
                    waited_us: 1.into(),
                    held_us: 1.into(),
                    ran_ns: 1.into(),
                    result_length: 0.into(),
                    reserved: 0.into(),
                };
                assert!(packet.push_completion(&completion, &[]), "32 empty completions fit");
            }
            self.packets.push((EXECUTOR.into(), buffer));
        }
    }
}

fn measure(name: &str, burst: usize, open: usize, turns: usize, timeout: Option<Nanos>) {
    let mut world = World::new();
    let mut task = Task::new(1, Argument::NONE);
    task.timeout = timeout;
    let tasks = vec![task; burst];
    let mut buffers = Vec::new();
    while world.client.open() < open {
        world.turn(&tasks, &mut buffers);
    }
    world.spent = Duration::ZERO;
    world.completed = 0;
    for _ in 0..turns {
        world.complete(burst);
        world.turn(&tasks, &mut buffers);
    }
    assert!(world.completed as usize >= (turns - 1) * burst, "every task completes");
    println!("{name}: {} ns a task", world.spent.as_nanos() as u64 / world.completed);
}

fn main() {
    measure("bursts of 32, 2,000 open", 32, 2_000, 50_000, None);
    measure("bursts of 256, 10,000 open", 256, 10_000, 10_000, None);
    measure("bursts of 256, 10,000 open, with timeouts", 256, 10_000, 10_000, Some(10_000_000_000));
    measure("bursts of 256, 500,000 open", 256, 500_000, 10_000, None);
    measure("one by one, 64 open", 1, 64, 200_000, None);
}
