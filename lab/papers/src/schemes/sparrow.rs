//! Sparrow's parties as actors. Each is one thread that works sequentially, at a cost; input waits. Acknowledgements are free: they stand
//! for TCP's, which the kernel sends.

use crate::calibration::SparrowCosts;
use crate::cell::closed::Closed;
use crate::cell::{DrawnJob, Jobs, Meter, Sample};
use midflight_baselines::sparrow::{self, client, scheduler, worker};
use midflight_endpoint::{Endpoint, Nanos};
use midflight_sim::Context;
use midflight_sim::{Actor, Wake};
use midflight_wire::tasks::{Status, TaskInfo};
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::rc::Rc;

/// The thread has finished its work.
const DONE: u64 = 0;
/// Input has been handed over to the thread; its number follows.
const HANDED: u64 = 1 << 60;
/// A task begins on the slot that follows.
const BEGIN: u64 = 2 << 60;
/// A task ends on the slot that follows.
const END: u64 = 3 << 60;
/// Submit a job.
const SUBMIT: u64 = 4 << 60;
const KIND: u64 = 0xf << 60;

pub(crate) struct Books {
    pub(crate) meter: Meter,
    /// By client and job: when the scheduler received it, and how many of its tasks have not begun.
    placed: HashMap<(u64, u32), (Nanos, u32)>,
}

pub(crate) type Shared = Rc<RefCell<Books>>;

pub(crate) fn books(meter: Meter) -> Shared {
    Rc::new(RefCell::new(Books { meter, placed: HashMap::new() }))
}

pub(crate) trait Party: 'static {
    type Endpoint: Endpoint;

    fn endpoint(&mut self) -> &mut Self::Endpoint;
    fn start(&mut self, _context: &mut Context<'_>) {}
    fn event(&mut self, context: &mut Context<'_>, event: <Self::Endpoint as Endpoint>::Event);
    fn token(&mut self, _context: &mut Context<'_>, _token: u64) {}
    /// Thread time to receive this datagram.
    fn takes(&self, _operation: u8) -> Nanos {
        0
    }
    /// Thread time to send this datagram.
    fn sends(&self, _operation: u8) -> Nanos {
        0
    }
    /// Latency from reception to the thread.
    fn handover(&self, _operation: u8) -> Nanos {
        0
    }
}

enum Activity {
    Nothing,
    Taking(SocketAddr, Vec<u8>),
    Sending(SocketAddr, Vec<u8>),
}

pub(crate) struct Thread<P> {
    party: P,
    inbox: VecDeque<(SocketAddr, Vec<u8>)>,
    handed: VecDeque<(SocketAddr, Vec<u8>)>,
    doing: Activity,
    buffer: Vec<u8>,
}

impl<P: Party> Thread<P> {
    pub(crate) fn new(party: P) -> Self {
        Self { party, inbox: VecDeque::new(), handed: VecDeque::new(), doing: Activity::Nothing, buffer: Vec::new() }
    }

    fn operation(datagram: &[u8]) -> u8 {
        datagram.get(3).copied().unwrap_or(0)
    }

    fn work(&mut self, context: &mut Context<'_>) {
        while let Activity::Nothing = self.doing {
            while let Some(event) = self.party.endpoint().poll_event() {
                self.party.event(context, event);
            }
            if let Some(to) = self.party.endpoint().poll_transmit(context.now(), &mut self.buffer) {
                match self.party.sends(Self::operation(&self.buffer)) {
                    0 => context.send(to, &self.buffer),
                    cost => self.busy(context, cost, Activity::Sending(to, self.buffer.clone())),
                }
            } else if let Some((from, datagram)) = self.inbox.pop_front() {
                match self.party.takes(Self::operation(&datagram)) {
                    0 => self.party.endpoint().handle(context.now(), from, &datagram),
                    cost => self.busy(context, cost, Activity::Taking(from, datagram)),
                }
            } else {
                match self.party.endpoint().poll_timeout() {
                    Some(due) => context.wake_at(due),
                    None => context.sleep(),
                }
                return;
            }
        }
    }

    fn busy(&mut self, context: &mut Context<'_>, cost: Nanos, doing: Activity) {
        self.doing = doing;
        context.after(cost, DONE);
    }
}

impl<P: Party> Actor for Thread<P> {
    fn start(&mut self, context: &mut Context<'_>) {
        self.party.start(context);
        self.work(context);
    }

    fn datagram(&mut self, context: &mut Context<'_>, from: SocketAddr, datagram: &[u8]) {
        match self.party.handover(Self::operation(datagram)) {
            0 => {
                self.inbox.push_back((from, datagram.to_vec()));
                self.work(context);
            }
            // Hand-overs of a party take equally long, which keeps the order.
            handover => {
                self.handed.push_back((from, datagram.to_vec()));
                context.after(handover, HANDED);
            }
        }
    }

    fn wake(&mut self, context: &mut Context<'_>, wake: Wake) {
        match wake {
            Wake::Time => {
                let due = self.party.endpoint().poll_timeout();
                if due.is_some_and(|due| due <= context.now()) {
                    self.party.endpoint().handle_timeout(context.now());
                }
            }
            Wake::Token(DONE) => match std::mem::replace(&mut self.doing, Activity::Nothing) {
                Activity::Nothing => {}
                Activity::Taking(from, datagram) => self.party.endpoint().handle(context.now(), from, &datagram),
                Activity::Sending(to, datagram) => context.send(to, &datagram),
            },
            Wake::Token(HANDED) => self.inbox.extend(self.handed.pop_front()),
            Wake::Token(token) => self.party.token(context, token),
        }
        self.work(context);
    }
}

/// By their bytes in `sparrow::wire`.
mod operation {
    use midflight_baselines::sparrow::wire::Operation;
    pub(super) const SUBMIT: u8 = Operation::Submit as u8;
    pub(super) const RESERVE: u8 = Operation::Reserve as u8;
    pub(super) const GET_TASK: u8 = Operation::GetTask as u8;
    pub(super) const TASK: u8 = Operation::Task as u8;
    pub(super) const CANCEL: u8 = Operation::Cancel as u8;
    pub(super) const DONE: u8 = Operation::Done as u8;
}

pub(crate) struct Scheduler {
    pub(crate) endpoint: sparrow::Scheduler,
    pub(crate) costs: SparrowCosts,
    pub(crate) books: Shared,
}

impl Party for Scheduler {
    type Endpoint = sparrow::Scheduler;

    fn endpoint(&mut self) -> &mut Self::Endpoint {
        &mut self.endpoint
    }

    fn event(&mut self, context: &mut Context<'_>, event: scheduler::Event) {
        let scheduler::Event::Placed { client, job, tasks } = event;
        self.books.borrow_mut().placed.insert((client, job), (context.now(), tasks));
    }

    fn takes(&self, operation: u8) -> Nanos {
        match operation {
            operation::SUBMIT => self.costs.submit,
            operation::GET_TASK => self.costs.get_task,
            operation::DONE => self.costs.done,
            _ => 0,
        }
    }

    fn sends(&self, operation: u8) -> Nanos {
        match operation {
            operation::RESERVE => self.costs.reserve,
            operation::CANCEL => self.costs.cancel,
            _ => 0,
        }
    }

    fn handover(&self, operation: u8) -> Nanos {
        if self.takes(operation) > 0 { self.costs.scheduler_handover } else { 0 }
    }
}

pub(crate) struct Worker {
    pub(crate) endpoint: sparrow::Worker,
    pub(crate) costs: SparrowCosts,
    pub(crate) books: Shared,
    pub(crate) group: usize,
    /// By slot.
    pub(crate) runs: Vec<Option<worker::Run>>,
}

impl Worker {
    fn begin(&mut self, context: &mut Context<'_>, slot: usize) {
        let Some(run) = &self.runs[slot] else { return };
        let (now, (duration, submitted)) = (context.now(), times(&run.task));
        let mut books = self.books.borrow_mut();
        let placed = placed(&mut books.placed, run).unwrap_or(submitted);
        let steps = [
            Some(placed - submitted),
            Some(run.reserved.saturating_sub(placed)),
            Some(run.asked - run.reserved),
            Some(now - run.asked),
        ];
        books.meter.started(&Sample { submitted, started: now, level: run.task.priority, steps });
        context.after(duration, END | slot as u64);
    }

    fn end(&mut self, context: &mut Context<'_>, slot: usize) {
        let Some(run) = self.runs[slot].take() else { return };
        self.books.borrow_mut().meter.ended(context.now(), self.group);
        self.endpoint.finish(context.now(), run.key, Status::Ok);
    }
}

/// When the scheduler received the job of this task, which begins.
fn placed(jobs: &mut HashMap<(u64, u32), (Nanos, u32)>, run: &worker::Run) -> Option<Nanos> {
    let name = (run.client, run.job);
    let (at, left) = jobs.get_mut(&name)?;
    let at = *at;
    *left -= 1;
    if *left == 0 {
        jobs.remove(&name);
    }
    Some(at)
}

impl Party for Worker {
    type Endpoint = sparrow::Worker;

    fn endpoint(&mut self) -> &mut Self::Endpoint {
        &mut self.endpoint
    }

    fn event(&mut self, context: &mut Context<'_>, event: worker::Event) {
        let worker::Event::Run(run) = event;
        let slot = run.key.slot as usize;
        self.runs[slot] = Some(run);
        context.after(self.costs.worker_handover, BEGIN | slot as u64);
    }

    fn token(&mut self, context: &mut Context<'_>, token: u64) {
        let slot = (token & !KIND) as usize;
        match token & KIND {
            BEGIN => self.begin(context, slot),
            _ => self.end(context, slot),
        }
    }

    fn takes(&self, operation: u8) -> Nanos {
        match operation {
            operation::RESERVE | operation::TASK | operation::CANCEL => self.costs.worker,
            _ => 0,
        }
    }

    fn sends(&self, operation: u8) -> Nanos {
        match operation {
            operation::GET_TASK | operation::DONE => self.costs.worker,
            _ => 0,
        }
    }
}

/// In a closed loop it resubmits ended tasks, a packet at a time.
pub(crate) struct Client {
    pub(crate) endpoint: sparrow::Client,
    pub(crate) books: Shared,
    pub(crate) number: u32,
    pub(crate) jobs: Jobs,
    pub(crate) next: Option<DrawnJob>,
    pub(crate) closed: Option<Closed>,
}

impl Client {
    fn submit(&mut self, context: &mut Context<'_>, tasks: impl Iterator<Item = (Nanos, u8)>) {
        let now = context.now();
        let tasks: Vec<TaskInfo> = tasks.map(|(duration, level)| task(duration, now, level)).collect();
        self.books.borrow_mut().meter.submitted(tasks.len() as u64);
        if let Err(error) = self.endpoint.submit(&tasks) {
            panic!("a cell's jobs have tasks, and not too many: {error}");
        }
    }

    fn submit_due(&mut self, context: &mut Context<'_>) {
        while let Some(tasks) = self.closed.as_mut().and_then(|closed| closed.due(context.now())) {
            self.submit(context, (0..tasks).map(|_| (0, 1)));
        }
        loop {
            let number = self.number;
            let Some(job) = self.next.take().or_else(|| self.jobs.find(|job| job.client == number)) else { return };
            if job.at > context.now() {
                context.after(job.at - context.now(), SUBMIT);
                self.next = Some(job);
                return;
            }
            self.submit(context, job.tasks.iter().map(|task| (task.duration_ns, task.level)));
        }
    }
}

impl Party for Client {
    type Endpoint = sparrow::Client;

    fn endpoint(&mut self) -> &mut Self::Endpoint {
        &mut self.endpoint
    }

    fn start(&mut self, context: &mut Context<'_>) {
        self.submit_due(context);
    }

    fn event(&mut self, context: &mut Context<'_>, event: client::Event) {
        match event {
            client::Event::Ended { .. } => {
                if let Some(closed) = &mut self.closed {
                    closed.owed += 1;
                    self.submit_due(context);
                }
            }
            client::Event::Failed { open, .. } => {
                self.books.borrow_mut().meter.count("failed", u64::from(open));
            }
        }
    }

    fn token(&mut self, context: &mut Context<'_>, _token: u64) {
        self.submit_due(context);
    }
}

/// A task whose argument holds its duration and submission time.
fn task(duration: Nanos, submitted: Nanos, level: u8) -> TaskInfo {
    let mut argument = [0; 16];
    argument[..8].copy_from_slice(&duration.to_be_bytes());
    argument[8..].copy_from_slice(&submitted.to_be_bytes());
    let (tid, function) = (0.into(), 0.into());
    TaskInfo { tid, function, priority: level, resources: 0, argument_length: 16, attempt: 1, argument }
}

fn times(task: &TaskInfo) -> (Nanos, Nanos) {
    let [a, b, c, d, e, f, g, h, rest @ ..] = task.argument;
    (u64::from_be_bytes([a, b, c, d, e, f, g, h]), u64::from_be_bytes(rest))
}
