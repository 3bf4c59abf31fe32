//! The survey of a queue finds every element, also across several steps.

#![allow(clippy::unwrap_used, reason = "tests may")]

use midflight_dataplane::program::Engine;
use midflight_dataplane::{Cookies, Out, Survey, SurveyedState, Tasks, TasksConfig};
use midflight_wire::tasks::{Packet, REGISTER_MAX, Register, Retrieve, SUBMIT_MAX, SlotName, Submit, TaskInfo, parse};
use midflight_wire::{counting, packet};
use std::collections::BTreeMap;
use std::net::SocketAddr;

const EPOCH: u32 = 5;
const SECRET: u128 = 9;
const NOW: u64 = 1_000_000_000;
/// More than the 512 elements of one step.
const TASKS: usize = 1_200;

struct Switch {
    core: Tasks,
    cookies: Cookies,
}

impl Switch {
    fn new() -> Self {
        let config = TasksConfig { queue: 4096, slots: 4096, clients: 1024, ..TasksConfig::default() };
        let core = Tasks::new(&config, EPOCH, SECRET).unwrap();
        Self { core, cookies: Cookies::new(SECRET, config.cookie_ns) }
    }

    /// Returns the first answer.
    fn send(&mut self, from: SocketAddr, datagram: &[u8]) -> Option<Vec<u8>> {
        let mut out = Out::new();
        self.core.take(NOW, from, &mut datagram.to_vec(), &mut out);
        out.iter().next().map(|(_, bytes)| bytes.to_vec())
    }

    fn submit(&mut self, identity: u64, sequence: u32, tasks: &[TaskInfo]) {
        let from = client(identity);
        let cookie = self.cookies.give(NOW, identity, from).into();
        let fixed = Submit { client: identity.into(), cookie, jid: 77.into(), ..Submit::new(0, sequence) };
        let answer = self.send(from, &packet(&fixed, tasks)).unwrap();
        assert!(matches!(parse(&answer), Ok(Packet::SubmitAck(..))), "{answer:?}");
    }

    fn register(&mut self, identity: u64, slots: usize) -> Vec<SlotName> {
        let from = executor(identity);
        let cookie = self.cookies.give(NOW, identity, from).into();
        let fixed = Register { executor: identity.into(), cookie, ..Register::new(0, 1) };
        let answer = self.send(from, &counting(&fixed, slots as u8)).unwrap();
        let Ok(Packet::Registered(_, names)) = parse(&answer) else { panic!("{answer:?}") };
        names.to_vec()
    }

    fn retrieve(&mut self, identity: u64, names: &[SlotName]) {
        let waits: Vec<_> = names.iter().map(|name| name.wait(1)).collect();
        self.send(executor(identity), &packet(&Retrieve { counter: 1.into(), ..Retrieve::new(EPOCH, 0) }, &waits));
    }

    fn survey(&self) -> (Survey, usize) {
        let (mut survey, mut steps) = (Survey::default(), 1);
        while !self.core.survey(&mut survey) {
            steps += 1;
            assert!(steps < 100, "it ends");
        }
        (survey, steps)
    }
}

fn client(identity: u64) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 1_000 + identity as u16))
}

fn executor(identity: u64) -> SocketAddr {
    SocketAddr::from(([10, 0, 1, 1], identity as u16))
}

#[test]
fn an_empty_queue_has_nothing() {
    let (survey, _) = Switch::new().survey();
    assert!(survey.slots.is_empty() && survey.clients.is_empty() && survey.tasks.is_empty() && !survey.is_partial);
}

#[test]
fn slots_clients_and_tasks_are_found_with_what_they_do() {
    let mut switch = Switch::new();
    // Executor 1: two slots with a task, one parked, one idle; executor 2: all parked.
    switch.submit(1, 1, &[TaskInfo { tid: 1.into(), priority: 2, ..TaskInfo::PLAIN }, TaskInfo::PLAIN]);
    let names = switch.register(1, 4);
    switch.retrieve(1, &names[..2]);
    switch.retrieve(1, &names[2..3]);
    let names = switch.register(2, 3);
    switch.retrieve(2, &names);
    let (survey, _) = switch.survey();

    let mut slots: BTreeMap<(u64, SocketAddr), [usize; 3]> = BTreeMap::new();
    for slot in &survey.slots {
        let kind = match slot.state() {
            SurveyedState::Free => 0,
            SurveyedState::Parked => 1,
            SurveyedState::Busy(since) => {
                assert_eq!(since, NOW);
                2
            }
        };
        assert_eq!(slot.heard_ns, NOW);
        slots.entry((slot.executor(), slot.address())).or_default()[kind] += 1;
    }
    assert_eq!(slots, BTreeMap::from([((1, executor(1)), [1, 1, 2]), ((2, executor(2)), [0, 3, 0])]));

    let [of_client] = &survey.clients[..] else { panic!("{:?}", survey.clients) };
    assert_eq!((of_client.identity(), of_client.address(), of_client.open), (1, client(1), 2));
    let mut tasks: Vec<_> = survey.tasks.iter().map(|task| (task.level, task.is_held(), task.jid)).collect();
    tasks.sort_unstable();
    assert_eq!(tasks, [(1, true, 77), (2, true, 77)]);
    assert!(survey.tasks.iter().all(|task| task.client == of_client.number));
}

#[test]
fn what_is_more_than_a_step_visits_is_found_once() {
    let mut switch = Switch::new();
    for (sequence, first) in (1..).zip((0..TASKS).step_by(SUBMIT_MAX)) {
        let numbers = first..(first + SUBMIT_MAX).min(TASKS);
        let tasks: Vec<_> = numbers.map(|tid| TaskInfo { tid: (tid as u32).into(), ..TaskInfo::PLAIN }).collect();
        switch.submit(1, sequence, &tasks);
    }
    (2..700).for_each(|identity| switch.submit(identity, 1, &[TaskInfo::PLAIN]));
    for identity in 1..20 {
        switch.register(identity, REGISTER_MAX);
    }
    let (survey, steps) = switch.survey();
    assert_eq!((survey.tasks.len(), survey.clients.len()), (TASKS + 698, 699));
    assert_eq!(survey.slots.len(), 19 * REGISTER_MAX);
    assert!(survey.tasks.iter().all(|task| !task.is_held()) && !survey.is_partial);
    let mut open: Vec<_> = survey.clients.iter().map(|client| (client.identity(), client.open)).collect();
    open.sort_unstable();
    assert_eq!((open[0], open[1], open.len()), ((1, TASKS as u32), (2, 1), 699));
    open.dedup_by_key(|(identity, _)| *identity);
    assert_eq!(open.len(), 699, "each once");
    assert!(steps >= 2 + 2 + 4, "{steps}");
}
