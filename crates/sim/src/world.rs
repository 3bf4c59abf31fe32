//! The simulated world: a heap of events in virtual nanoseconds that drives the production endpoints and the
//! production switch. Everything that happens follows from the seed; [`World::trace_hash`] says whether two runs were
//! the same.

use crate::history::{Happening, History};
use crate::network::{Faults, Network, NetworkCounters};
use crate::node::{Blueprint, Machine, Node, NodeId};
use crate::random::{Purpose, stream};
use crate::watch::Watch;
use midflight_dataplane::{Stats, Tasks, TasksConfig};
use midflight_tasks::client::{self, Client, ClientConfig, Task, TaskKey};
use midflight_tasks::executor::{self, End, Executor, ExecutorConfig, Output, RunKey};
use midflight_tasks::{Endpoint, Nanos};
use midflight_wire::{Status, TaskInfo};
use rand_pcg::Pcg64;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::net::SocketAddr;

/// How often a switch's `tick` is called, as `midflight switch` does.
const TICK: Nanos = 10_000_000;

/// What may be made to happen at a time.
#[derive(Clone, Debug)]
pub enum Action {
    /// The process dies at once; what is on the way to it is lost.
    Crash(NodeId),
    /// A new process starts at the same address, with nothing of the old one's memory.
    Restart(NodeId),
    /// An executor is told to drain.
    Drain(NodeId),
    /// A client is given tasks of one job. Each argument begins with the run time: 8 bytes, nanoseconds, network order.
    /// The whole argument is the result.
    Submit {
        /// Who submits.
        client: NodeId,
        /// The job's number.
        jid: u32,
        /// What.
        tasks: Vec<Task>,
    },
}

#[derive(Debug)]
enum Event {
    Arrive { from: SocketAddr, to: SocketAddr, datagram: Vec<u8> },
    Wake { node: NodeId },
    Tick { node: NodeId, incarnation: u32 },
    Finish { node: NodeId, incarnation: u32, run: RunKey, task: Box<TaskInfo>, started: Nanos },
    Act(Action),
}

/// An event at its time; of those at one time the one that was scheduled first happens first.
struct Scheduled {
    at: Nanos,
    order: u64,
    event: Event,
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}

impl Eq for Scheduled {}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

/// Nodes, a network between them, and time.
pub struct World {
    now: Nanos,
    scheduled: BinaryHeap<Reverse<Scheduled>>,
    order: u64,
    network: Network,
    random: Pcg64,
    nodes: Vec<Node>,
    by_address: HashMap<SocketAddr, NodeId>,
    history: History,
    watch: Option<Watch>,
    trace: u64,
    buffer: Vec<u8>,
}

impl World {
    /// An empty world. All randomness comes from `seed`.
    #[must_use]
    pub fn new(seed: u64, faults: Faults) -> Self {
        Self {
            now: 0,
            scheduled: BinaryHeap::new(),
            order: 0,
            network: Network::new(seed, faults),
            random: stream(seed, Purpose::Nodes),
            nodes: Vec::new(),
            by_address: HashMap::new(),
            history: History::default(),
            watch: None,
            trace: 0xcbf2_9ce4_8422_2325,
            buffer: Vec::new(),
        }
    }

    /// Checks T1–T6 at every packet of the switch. Only for worlds without faults and with one switch.
    pub fn watch(&mut self) {
        self.watch = Some(Watch::default());
    }

    /// A switch that starts now.
    ///
    /// # Errors
    /// Where the configuration is out of bounds.
    pub fn add_switch(&mut self, config: TasksConfig) -> Result<NodeId, midflight_dataplane::ConfigError> {
        Tasks::new(&config, 1, 0)?;
        Ok(self.add(1, Blueprint::Switch(config)))
    }

    /// An executor that starts now. Its identity and seed are drawn by the world.
    ///
    /// # Errors
    /// Where the configuration is out of bounds.
    pub fn add_executor(&mut self, config: ExecutorConfig) -> Result<NodeId, executor::ConfigError> {
        config.check()?;
        Ok(self.add(2, Blueprint::Executor(config)))
    }

    /// A client that starts now. Its identity and seed are drawn by the world.
    ///
    /// # Errors
    /// Where the configuration is out of bounds.
    pub fn add_client(&mut self, config: ClientConfig) -> Result<NodeId, client::ConfigError> {
        Client::new(config.clone(), self.now)?;
        Ok(self.add(3, Blueprint::Client(config)))
    }

    fn add(&mut self, kind: u8, blueprint: Blueprint) -> NodeId {
        let id = NodeId(self.nodes.len());
        let [high, low] = (id.0 as u16).to_be_bytes();
        let address = SocketAddr::from(([10, kind, high, low], 7700));
        self.by_address.insert(address, id);
        self.nodes.push(Node { address, blueprint, machine: None, incarnation: 0, wake: None });
        self.start(id);
        id
    }

    /// Lets something happen at a time (now, if that has passed).
    pub fn at(&mut self, at: Nanos, action: Action) {
        self.schedule(at, Event::Act(action));
    }

    /// Runs until nothing is to be done any more, `done` says so after an event, or `deadline`; whether `done` said so.
    pub fn run(&mut self, deadline: Nanos, mut done: impl FnMut(&Self) -> bool) -> bool {
        while !done(self) {
            let Some(Reverse(next)) = self.scheduled.pop() else { return false };
            if next.at > deadline {
                self.scheduled.push(Reverse(next));
                self.now = self.now.max(deadline);
                return false;
            }
            self.now = next.at;
            self.happen(next.event);
        }
        true
    }

    /// Virtual nanoseconds since the world began.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Where a node is reached.
    #[must_use]
    pub fn address(&self, node: NodeId) -> SocketAddr {
        self.nodes[node.0].address
    }

    /// What happened so far.
    #[must_use]
    pub fn history(&self) -> &History {
        &self.history
    }

    /// What became of datagrams.
    #[must_use]
    pub fn network(&self) -> &NetworkCounters {
        &self.network.counters
    }

    /// A hash of every datagram that arrived, when, from where and where to.
    #[must_use]
    pub fn trace_hash(&self) -> u64 {
        self.trace
    }

    /// An executor that is up.
    #[must_use]
    pub fn executor(&self, node: NodeId) -> Option<&Executor> {
        if let Some(Machine::Executor(executor)) = &self.nodes[node.0].machine { Some(executor) } else { None }
    }

    /// A client that is up.
    #[must_use]
    pub fn client(&self, node: NodeId) -> Option<&Client> {
        if let Some(Machine::Client(client)) = &self.nodes[node.0].machine { Some(client) } else { None }
    }

    /// The counters of a switch that is up.
    #[must_use]
    pub fn switch(&self, node: NodeId) -> Option<Stats> {
        if let Some(Machine::Switch(switch)) = &self.nodes[node.0].machine { Some(switch.tasks.stats()) } else { None }
    }

    /// Whether the structures of a switch are sound; a switch that is down is.
    ///
    /// # Errors
    /// The line of the check in `tasks_check.c` that failed.
    pub fn check_switch(&self, node: NodeId) -> Result<(), i32> {
        match &self.nodes[node.0].machine {
            Some(Machine::Switch(switch)) => switch.tasks.check(),
            _ => Ok(()),
        }
    }

    fn schedule(&mut self, at: Nanos, event: Event) {
        self.order += 1;
        self.scheduled.push(Reverse(Scheduled { at: at.max(self.now), order: self.order, event }));
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrive { from, to, datagram } => self.arrive(from, to, &datagram),
            Event::Wake { node } => self.wake(node),
            Event::Tick { node, incarnation } => self.tick(node, incarnation),
            Event::Finish { node, incarnation, run, task, started } => {
                if self.nodes[node.0].incarnation == incarnation
                    && let Some(Machine::Executor(executor)) = &mut self.nodes[node.0].machine
                {
                    let result = Output::Inline(task.argument.to_vec());
                    executor.finish(self.now, run, End { status: Status::Ok, result, started, ended: self.now });
                    self.history.add(self.now, Happening::Ended { executor: node, run });
                    self.drive(node);
                }
            }
            Event::Act(action) => self.act(action),
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Crash(node) => {
                self.nodes[node.0].machine = None;
                self.history.add(self.now, Happening::Crashed { node });
            }
            Action::Restart(node) => {
                self.start(node);
                self.history.add(self.now, Happening::Restarted { node });
            }
            Action::Drain(node) => {
                if let Some(Machine::Executor(executor)) = &mut self.nodes[node.0].machine {
                    executor.drain(self.now);
                    self.drive(node);
                }
            }
            Action::Submit { client: node, jid, tasks } => {
                if let Some(Machine::Client(client)) = &mut self.nodes[node.0].machine {
                    match client.submit(self.now, jid, &tasks) {
                        Ok(keys) => {
                            self.history.add(self.now, Happening::Submitted { client: node, jid, keys });
                        }
                        Err(error) => panic!("a scenario submits what a client takes: {error}"),
                    }
                    self.drive(node);
                }
            }
        }
    }

    fn start(&mut self, id: NodeId) {
        let node = &mut self.nodes[id.0];
        node.incarnation += 1;
        node.wake = None;
        node.machine = Some(node.blueprint.start(self.now, &mut self.random));
        let incarnation = node.incarnation;
        if matches!(node.blueprint, Blueprint::Switch(_)) {
            self.schedule(self.now + TICK, Event::Tick { node: id, incarnation });
        }
        self.drive(id);
    }

    fn arrive(&mut self, from: SocketAddr, to: SocketAddr, datagram: &[u8]) {
        self.note_in_trace(from, to, datagram);
        let Some(&id) = self.by_address.get(&to) else {
            self.network.counters.unreachable += 1;
            return;
        };
        match &mut self.nodes[id.0].machine {
            None => self.network.counters.unreachable += 1,
            Some(Machine::Switch(switch)) => {
                switch.tasks.packet(self.now, from, datagram, &mut switch.out);
                if let Some(watch) = &mut self.watch {
                    watch.packet(datagram, &switch.out, &switch.tasks.stats());
                }
                self.send_out(id);
            }
            Some(Machine::Executor(executor)) => {
                executor.handle(self.now, from, datagram);
                self.drive(id);
            }
            Some(Machine::Client(client)) => {
                client.handle(self.now, from, datagram);
                self.drive(id);
            }
        }
    }

    fn wake(&mut self, id: NodeId) {
        let node = &mut self.nodes[id.0];
        if node.wake != Some(self.now) {
            return; // it was woken since, or restarted
        }
        node.wake = None;
        if let Some(machine) = &mut node.machine {
            if machine.poll_timeout().is_some_and(|due| due <= self.now) {
                machine.handle_timeout(self.now);
            }
            self.drive(id);
        }
    }

    fn tick(&mut self, id: NodeId, incarnation: u32) {
        let node = &mut self.nodes[id.0];
        if node.incarnation != incarnation {
            return;
        }
        if let Some(Machine::Switch(switch)) = &mut node.machine {
            switch.tasks.tick(self.now, &mut switch.out);
            self.send_out(id);
            self.schedule(self.now + TICK, Event::Tick { node: id, incarnation });
        }
    }

    /// A driver's turn: what the endpoint tells, what it sends, and when it wants to be woken.
    fn drive(&mut self, id: NodeId) {
        self.take_events(id);
        let mut buffer = std::mem::take(&mut self.buffer);
        while let Some(to) =
            self.nodes[id.0].machine.as_mut().and_then(|machine| machine.poll_transmit(self.now, &mut buffer))
        {
            self.send(self.nodes[id.0].address, to, &buffer);
        }
        self.buffer = buffer;
        let node = &mut self.nodes[id.0];
        let due = node.machine.as_ref().and_then(Machine::poll_timeout);
        if let Some(due) = due.map(|due| due.max(self.now))
            && node.wake.is_none_or(|wake| due < wake)
        {
            node.wake = Some(due);
            self.schedule(due, Event::Wake { node: id });
        }
    }

    fn take_events(&mut self, id: NodeId) {
        loop {
            match &mut self.nodes[id.0].machine {
                Some(Machine::Executor(executor)) => match executor.poll_event() {
                    Some(event) => self.on_executor(id, &event),
                    None => return,
                },
                Some(Machine::Client(client)) => match client.poll_event() {
                    Some(event) => self.on_client(id, event),
                    None => return,
                },
                Some(Machine::Switch(_)) | None => return,
            }
        }
    }

    fn on_executor(&mut self, id: NodeId, event: &executor::Event) {
        match event {
            executor::Event::Run(run) => {
                let happening = Happening::Started {
                    executor: id,
                    run: run.key,
                    client: self.by_address.get(&run.client).copied(),
                    jid: run.jid,
                    tid: run.task.tid.get(),
                    attempt: run.task.attempt,
                };
                self.history.add(self.now, happening);
                let incarnation = self.nodes[id.0].incarnation;
                let task = Box::new(run.task);
                let finish = Event::Finish { node: id, incarnation, run: run.key, task, started: self.now };
                self.schedule(self.now + run_time(&run.task), finish);
            }
            executor::Event::Drained => self.history.add(self.now, Happening::Drained { executor: id }),
            _ => {}
        }
    }

    fn on_client(&mut self, client: NodeId, event: client::Event) {
        let mut ended = |key: TaskKey, how| self.history.add(self.now, Happening::Told { client, key, how });
        match event {
            client::Event::Completed { key, result: client::Outcome::Inline(result), status, attempt, .. } => {
                ended(key, crate::Told::Completed { ok: status == Status::Ok, attempt, result });
            }
            client::Event::Completed { key, .. } | client::Event::Lost { key, .. } => ended(key, crate::Told::Lost),
            client::Event::Cancelled { key } => ended(key, crate::Told::Cancelled),
            _ => {}
        }
    }

    fn send_out(&mut self, id: NodeId) {
        let Some(Machine::Switch(switch)) = &self.nodes[id.0].machine else { return };
        let datagrams: Vec<_> = switch.out.iter().map(|(to, datagram)| (to, datagram.to_vec())).collect();
        for (to, datagram) in datagrams {
            self.send(self.nodes[id.0].address, to, &datagram);
        }
    }

    fn send(&mut self, from: SocketAddr, to: SocketAddr, datagram: &[u8]) {
        for at in self.network.arrivals(self.now) {
            self.schedule(at, Event::Arrive { from, to, datagram: datagram.to_vec() });
        }
    }

    /// The multiplication of FNV-1a, over words of eight bytes, as every datagram passes here.
    fn note_in_trace(&mut self, from: SocketAddr, to: SocketAddr, datagram: &[u8]) {
        let mut note = |word: u64| self.trace = (self.trace ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
        note(self.now);
        for address in [from, to] {
            let ip = u128::from_be_bytes(midflight_wire::Address::from(address).ip);
            note(ip as u64 ^ (ip >> 64) as u64);
        }
        note(datagram.len() as u64);
        for chunk in datagram.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            note(u64::from_be_bytes(word));
        }
    }
}

/// Nanoseconds that a task's argument asks for.
fn run_time(task: &TaskInfo) -> Nanos {
    let [a, b, c, d, e, f, g, h, ..] = task.argument;
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}
