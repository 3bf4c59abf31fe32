//! A lean model of the published polling protocol (Bolt ch. 3): no bytes, one event per place. It runs in the switch or (`bolt-server`) in
//! a process on a host.
//!
//! A free executor asks; the answer is a task or a no-op, after which it waits and asks again. In the switch, a retrieve takes a pass for
//! each level it examines and for each task it may not run (the swap search; it locks the model's queue, so searches do not meet). A
//! packet's tasks enter at one per pass.
//!
//! **Idle polls are elided exactly.** While the queue is empty, a poll changes nothing. So idle executors are on a wheel, ordered by the
//! phase of their polls. When a task arrives, the wheel is read from then on until the queue is empty. Polls load a server, so there none
//! is elided.
//!
//! Within a nanosecond, tasks precede polls, which are ordered by executor, so eliding does not change the order. Only packets that carry
//! work have jitter.

mod queue;
mod state;
mod wheel;

use crate::calibration::*;
use crate::cell::{Cell, CellError, CellResult, Jobs, Load, Meter, Polling, Sample};
use midflight_endpoint::Nanos;
use queue::{Queue, Queued};
use state::{Event, Events, Executor, Kind, Packet, Server};
use wheel::Wheel;

pub(crate) fn run(cell: &Cell, polling: &Polling, server: bool) -> Result<CellResult, CellError> {
    Ok(Bolt::new(cell, polling, server)?.run())
}

/// Start and number of each task; for tests.
pub(crate) type Starts = Vec<(Nanos, u32)>;

struct Bolt<'a> {
    cell: &'a Cell,
    meter: Meter,
    jobs: Jobs,
    events: Events,
    executors: Vec<Executor>,
    wheel: Wheel,
    queue: Queue,
    packets: Vec<Packet>,
    free_packets: Vec<u32>,
    server: Option<Server>,
    times: Times,
    packet_tasks: usize,
    elide: bool,
    /// By client: when its processor has sent everything so far.
    clients: Vec<Nanos>,
    closed: Option<Closed>,
    jitter: state::Jitter,
    end: Nanos,
    submitted_tasks: u64,
    starts: Option<Starts>,
}

struct Times {
    /// Includes `sendto`.
    send: Nanos,
    /// From the executor's request.
    up: Nanos,
    /// To the program.
    down: Nanos,
    interval: Nanos,
    poll_again: Nanos,
    submit_again: Nanos,
}

impl Times {
    fn new(polling: &Polling) -> Self {
        let program = polling.program_us * 1_000;
        let send = program + SEND_NS;
        Self {
            send,
            up: send + WAY_NS,
            down: WAY_NS + RECEIVE_NS + program,
            interval: polling.interval_us * 1_000,
            poll_again: polling.poll_again_us * 1_000,
            submit_again: polling.submit_again_us * 1_000,
        }
    }
}

/// Ended tasks are resubmitted, a packet at a time.
struct Closed {
    owed: usize,
    until: Nanos,
    client: u32,
}

impl<'a> Bolt<'a> {
    fn new(cell: &'a Cell, polling: &Polling, server: bool) -> Result<Self, CellError> {
        let mut executors = Vec::new();
        for (group, g) in cell.cluster.groups.iter().enumerate() {
            for _ in 0..u64::from(g.nodes) * u64::from(g.executors) {
                executors.push(Executor::new(group as u32, g.resources));
            }
        }
        if cell.cluster.shards != 1 {
            return Err(CellError::Bad("cluster.shards: the published protocol has one switch; give 1".into()));
        }
        let server = server.then(Server::default);
        let times = Times::new(polling);
        let passes = PASS_NS + Nanos::from(polling.levels - 1) * RECIRCULATION_NS;
        let period = times.interval + times.up + times.down + passes;
        let elide = polling.elide && server.is_none();
        let mut bolt = Self {
            cell,
            meter: Meter::new(cell),
            jobs: Jobs::new(cell)?,
            events: Events::default(),
            wheel: Wheel::new(period, executors.len()),
            executors,
            queue: Queue::new(usize::from(polling.levels), if server.is_some() { usize::MAX } else { QUEUE_TASKS }),
            packets: Vec::new(),
            free_packets: Vec::new(),
            server,
            times,
            packet_tasks: polling.packet_tasks as usize,
            elide,
            clients: vec![0; cell.load.clients() as usize],
            closed: None,
            jitter: state::Jitter::new(cell.seed),
            end: (cell.duration_ms + cell.drain_ms) * 1_000_000,
            submitted_tasks: 0,
            starts: None,
        };
        bolt.begin(period);
        Ok(bolt)
    }

    fn begin(&mut self, period: Nanos) {
        for executor in 0..self.executors.len() as u32 {
            let phase = self.jitter.below(period);
            if self.elide {
                self.wheel.insert(executor, phase + self.times.up);
            } else {
                self.ask(phase, executor);
            }
        }
        if let Load::Noop { clients, backlog } = self.cell.load {
            self.closed = Some(Closed { owed: 0, until: self.cell.duration_ms * 1_000_000, client: 0 });
            let tasks = u64::from(backlog) * self.executors.len() as u64;
            let most = self.packet_tasks as u64;
            for packet in 0..tasks.div_ceil(most) {
                let left = (tasks - packet * most).min(most);
                self.submit_noops(0, (packet % u64::from(clients)) as u32, left as usize);
            }
        }
        self.next_job();
    }

    fn next_job(&mut self) {
        if let Some(job) = self.jobs.next() {
            let at = job.at;
            let index = self.keep(Packet { client: job.client, submitted: at, tasks: job.tasks });
            self.events.push(at, Kind::Job, index);
        }
    }

    fn keep(&mut self, packet: Packet) -> u32 {
        if let Some(index) = self.free_packets.pop() {
            self.packets[index as usize] = packet;
            return index;
        }
        self.packets.push(packet);
        (self.packets.len() - 1) as u32
    }

    fn run(mut self) -> CellResult {
        while self.step() {}
        self.finish().0
    }

    fn step(&mut self) -> bool {
        let Some(event) = self.events.pop() else { return false };
        // Idle executors poll forever.
        if event.at > self.end || (self.meter.open() == 0 && event.at >= self.cell.duration_ms * 1_000_000) {
            return false;
        }
        self.happen(event);
        true
    }

    fn finish(mut self) -> (CellResult, Starts) {
        let (events, starts) = (self.events.pushed(), self.starts.take().unwrap_or_default());
        if let Some(server) = &self.server {
            self.meter.count("server_dropped", server.dropped);
            self.meter.count("server_served", server.served);
        }
        self.meter.count("polls", self.queue.polls);
        self.meter.count("noops", self.queue.noops);
        self.meter.count("queue_full", self.queue.full);
        (self.meter.result(events), starts)
    }

    fn happen(&mut self, event: Event) {
        let (now, index) = (event.at, event.index);
        match event.kind {
            Kind::Job => self.job(now, index),
            Kind::Packet => self.packet_arrives(now, index),
            Kind::Enter => self.enter(now, index),
            Kind::Poll => self.poll_arrives(now, index),
            Kind::Cursor => self.cursor(now, index),
            Kind::Served => self.served(now, index),
            Kind::Task => self.task_arrives(now, index),
            Kind::End => self.task_ends(now, index),
            Kind::Refill => self.refill(now, index),
        }
    }

    fn job(&mut self, now: Nanos, index: u32) {
        let job = std::mem::take(&mut self.packets[index as usize]);
        self.free_packets.push(index);
        self.meter.submitted(job.tasks.len() as u64);
        for tasks in job.tasks.chunks(self.packet_tasks) {
            self.send(now, Packet { tasks: tasks.to_vec(), ..job.header() });
        }
        self.next_job();
    }

    fn send(&mut self, now: Nanos, mut packet: Packet) {
        let sent = &mut self.clients[packet.client as usize];
        *sent = (*sent).max(now) + packet.tasks.len() as Nanos * SERVER_TASK_NS + self.times.send;
        let at = *sent + WAY_NS;
        // A switch needs no wake-up.
        let server_way = if self.server.is_some() { PASS_NS + WAY_NS + self.jitter.draw() } else { 0 };
        packet.tasks.reverse(); // taken from the end
        let index = self.keep(packet);
        self.events.push(at + server_way, Kind::Packet, index);
    }

    fn submit_noops(&mut self, now: Nanos, client: u32, tasks: usize) {
        let task = crate::cell::DrawnTask { duration_ns: 0, level: 1, resources: 0 };
        self.meter.submitted(tasks as u64);
        self.send(now, Packet { client, submitted: now, tasks: vec![task; tasks] });
    }

    fn packet_arrives(&mut self, now: Nanos, index: u32) {
        let tasks = self.packets[index as usize].tasks.len() as Nanos;
        let Some(server) = &mut self.server else {
            return self.events.push(now + PASS_NS, Kind::Enter, index);
        };
        match server.take(now, SERVER_REQUEST_NS + tasks * SERVER_TASK_NS) {
            Some(done) => self.events.push(done, Kind::Enter, index),
            None => self.events.push(now + self.times.submit_again, Kind::Packet, index),
        }
    }

    /// In the switch one task enters per pass; the rest recirculates.
    fn enter(&mut self, now: Nanos, index: u32) {
        if self.server.is_some() {
            let packet = std::mem::take(&mut self.packets[index as usize]);
            self.free_packets.push(index);
            if let Some(server) = &mut self.server {
                server.leave();
            }
            for task in packet.tasks.iter().rev() {
                self.put(now, &packet, task);
            }
            return;
        }
        let Some(task) = self.packets[index as usize].tasks.pop() else {
            self.free_packets.push(index);
            return;
        };
        let packet = self.packets[index as usize].header();
        let room = self.put(now, &packet, &task);
        if !room {
            // The client gets an answer and resubmits the rest after a while.
            self.packets[index as usize].tasks.push(task);
            return self.events.push(now + self.times.poll_again, Kind::Packet, index);
        }
        self.events.push(now + RECIRCULATION_NS, Kind::Enter, index);
    }

    fn put(&mut self, now: Nanos, packet: &Packet, task: &crate::cell::DrawnTask) -> bool {
        let number = self.submitted_tasks as u32;
        let queued = Queued {
            submitted: packet.submitted,
            stored: now,
            duration_ns: task.duration_ns,
            number,
            level: task.level,
            resources: task.resources,
        };
        let was_empty = self.queue.is_empty();
        if !self.queue.put(queued) {
            return false;
        }
        self.submitted_tasks += 1;
        if was_empty && self.elide {
            self.turn_wheel(now);
        }
        true
    }

    fn turn_wheel(&mut self, from: Nanos) {
        if let Some((at, executor)) = self.wheel.next(from)
            && self.wheel.cursor.is_none_or(|pending| (at, executor) < pending)
        {
            self.wheel.cursor = Some((at, executor));
            self.events.push(at, Kind::Cursor, executor);
        }
    }

    fn cursor(&mut self, now: Nanos, executor: u32) {
        if self.wheel.cursor != Some((now, executor)) {
            return; // superseded
        }
        self.wheel.cursor = None;
        if self.queue.is_empty() {
            return;
        }
        if self.wheel.due(executor, now) {
            self.wheel.remove(executor);
            self.executors[executor as usize].asked = now - self.times.up;
            self.poll(now, executor);
        }
        if !self.queue.is_empty() {
            self.wheel_after(now, executor);
        }
    }

    fn wheel_after(&mut self, now: Nanos, executor: u32) {
        if let Some((at, next)) = self.wheel.after(now, executor) {
            self.wheel.cursor = Some((at, next));
            self.events.push(at, Kind::Cursor, next);
        }
    }

    /// `at` may be later; until then nothing happens to the executor.
    fn ask(&mut self, at: Nanos, executor: u32) {
        self.executors[executor as usize].asked = at;
        let way = self.times.up + if self.server.is_some() { PASS_NS + WAY_NS } else { 0 };
        self.events.push(at + way, Kind::Poll, executor);
    }

    fn poll_arrives(&mut self, now: Nanos, executor: u32) {
        let Some(server) = &mut self.server else {
            self.poll(now, executor);
            if self.elide && !self.queue.is_empty() {
                self.turn_wheel(now + 1);
            }
            return;
        };
        let forward = std::mem::take(&mut self.executors[executor as usize].completed);
        let cost = SERVER_REQUEST_NS + if forward { SERVER_FORWARD_NS } else { 0 };
        match server.take(now, cost) {
            Some(done) => self.events.push(done, Kind::Served, executor),
            None => self.ask(now + self.times.poll_again, executor),
        }
    }

    fn served(&mut self, now: Nanos, executor: u32) {
        if let Some(server) = &mut self.server {
            server.leave();
        }
        self.poll(now, executor);
    }

    fn poll(&mut self, now: Nanos, executor: u32) {
        let e = &mut self.executors[executor as usize];
        let (found, passes) = self.queue.take(e.resources);
        let down = match self.server {
            Some(_) => SEND_NS + WAY_NS + PASS_NS + self.times.down,
            None => PASS_NS + passes * RECIRCULATION_NS + self.times.down,
        };
        match found {
            Some(task) => {
                (e.task, e.taken) = (task, now);
                let at = now + down + self.jitter.draw();
                self.events.push(at, Kind::Task, executor);
            }
            None if self.elide => self.wheel.insert(executor, now + down + self.times.interval + self.times.up),
            None => self.ask(now + down + self.times.interval, executor),
        }
    }

    fn task_arrives(&mut self, now: Nanos, executor: u32) {
        let e = &self.executors[executor as usize];
        let task = e.task;
        let steps = [Some(task.stored - task.submitted), None, Some(e.taken - task.stored), Some(now - e.asked)];
        self.meter.started(&Sample { submitted: task.submitted, started: now, level: task.level, steps });
        if let Some(starts) = &mut self.starts {
            starts.push((now, task.number));
        }
        if task.duration_ns == 0 {
            return self.task_ends(now, executor);
        }
        self.events.push(now + task.duration_ns, Kind::End, executor);
    }

    fn task_ends(&mut self, now: Nanos, executor: u32) {
        let e = &mut self.executors[executor as usize];
        e.completed = true;
        self.meter.ended(now, e.group as usize);
        if let Some(closed) = &mut self.closed {
            closed.owed += 1;
            if closed.owed == self.packet_tasks && now < closed.until {
                closed.owed = 0;
                closed.client = (closed.client + 1) % self.clients.len() as u32;
                self.events.push(now + self.times.up + self.times.down + PASS_NS, Kind::Refill, closed.client);
            }
        }
        self.ask(now, executor);
    }

    fn refill(&mut self, now: Nanos, client: u32) {
        self.submit_noops(now, client, self.packet_tasks);
    }
}

#[cfg(test)]
mod tests;
