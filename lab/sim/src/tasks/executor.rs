//! The production executor, whose tasks only take time.

use super::{Command, TaskEvent, is_deaf, result_of, run_time};
use crate::{Actor, Context, Wake};
use midflight_endpoint::{Endpoint, Nanos};
use midflight_tasks::executor::{End, Event, Executor, Output, Run, RunKey};
use midflight_tasks::mutants::planted;
use midflight_wire::tasks::{SLOT_PLACES, Status};
use std::any::Any;
use std::net::SocketAddr;

/// Marks a token: the run continues instead of ending.
const GOES_ON: u64 = 1 << 63;

/// The endpoint and its slots' runs.
#[derive(Debug)]
pub struct ExecutorActor {
    executor: Executor,
    late: Nanos,
    places: [u32; SLOT_PLACES],
    far: Nanos,
    running: Vec<Running>,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    run: u32,
    started: Nanos,
    argument: [u8; 16],
}

impl ExecutorActor {
    /// An executor with this endpoint; tasks end `late` nanoseconds later than requested.
    #[must_use]
    pub fn new(executor: Executor, late: Nanos) -> Self {
        Self { executor, late, places: [0; SLOT_PLACES], far: 0, running: Vec::new() }
    }

    /// Sets its places. If a task's function, a number above 1, names another place for its data, the task ends `far`
    /// nanoseconds later.
    #[must_use]
    pub fn at(mut self, places: [u32; SLOT_PLACES], far: Nanos) -> Self {
        (self.places, self.far) = (places, far);
        self
    }

    /// The endpoint.
    #[must_use]
    pub fn executor(&self) -> &Executor {
        &self.executor
    }

    /// A driver's turn: handles the endpoint's events, sends its datagrams, and requests its next wake-up.
    fn drive(&mut self, context: &mut Context<'_>) {
        while let Some(event) = self.executor.poll_event() {
            match event {
                Event::Run(run) => self.run(context, &run),
                Event::Stop(run) => self.stop(context, run),
                Event::Drained => context.record(&TaskEvent::Drained { executor: context.node() }),
                _ => {}
            }
        }
        context.drive(&mut self.executor);
    }

    fn run(&mut self, context: &mut Context<'_>, run: &Run) {
        let data = run.task.function.get();
        let far = data > 1 && !self.places.contains(&data);
        context.record(&TaskEvent::Started {
            executor: context.node(),
            run: run.key,
            client: context.node_at(run.client),
            jid: run.jid,
            tid: run.task.tid.get(),
            attempt: run.task.attempt,
            priority: run.task.priority,
            resources: run.task.resources,
            bundles: run.bundles,
            argument: argument_of(run),
            asked_for: run.arrived.saturating_sub(run.asked),
            held_for: context.now().saturating_sub(run.arrived),
            far,
            waited_us: run.waited_us,
        });
        let slot = run.key.slot as usize;
        if slot >= self.running.len() {
            self.running.resize(slot + 1, Running { run: 0, started: 0, argument: [0; 16] });
        }
        self.running[slot] = Running { run: run.key.run, started: context.now(), argument: argument_of(run) };
        let longer = if far { self.far } else { 0 };
        let takes = run_time(&argument_of(run)) + self.late + longer;
        context.after(takes, u64::from(run.key.slot) << 32 | u64::from(run.key.run));
        self.begin(context, run.key, takes);
    }

    /// Some runs wait for other tasks in their first half; some report a part that their clients do not need.
    fn begin(&mut self, context: &mut Context<'_>, run: RunKey, takes: Nanos) {
        if run.run % 3 == 1 && self.executor.wait_for_others(context.now(), run) {
            context.record(&TaskEvent::Waits { executor: context.node(), run, waits: true });
            context.after(takes / 2, GOES_ON | u64::from(run.slot) << 32 | u64::from(run.run));
        }
        if run.run % 5 == 2 && self.executor.may_wait() {
            self.executor.give_back_part(context.now(), run, Output::Inline(vec![1]));
        }
    }

    fn go_on(&mut self, context: &mut Context<'_>, run: RunKey) {
        if self.running[run.slot as usize].run == run.run {
            context.record(&TaskEvent::Waits { executor: context.node(), run, waits: false });
            self.executor.go_on(context.now(), run);
        }
    }

    /// The argument determines the result.
    fn finish(&mut self, context: &mut Context<'_>, run: RunKey) {
        let running = self.running[if planted(44) { run.slot as usize % 8 } else { run.slot as usize }];
        if self.running[run.slot as usize].run != run.run {
            return; // it was stopped, and the slot runs another task
        }
        let result = Output::Inline(result_of(&running.argument));
        self.end(context, run, Status::Ok, result, running.started);
    }

    /// Ends the run at once, unless the function ignores the stop.
    fn stop(&mut self, context: &mut Context<'_>, mut run: RunKey) {
        if planted(48) {
            run.slot %= 8;
            run.run = self.running[run.slot as usize].run;
        }
        let Running { started, argument, .. } = self.running[run.slot as usize];
        if !is_deaf(&argument) {
            self.end(context, run, Status::Cancelled, Output::Inline(Vec::new()), started);
        }
    }

    fn end(&mut self, context: &mut Context<'_>, run: RunKey, status: Status, result: Output, started: Nanos) {
        let (now, stopped) = (context.now(), status == Status::Cancelled);
        self.executor.finish(now, run, End { status, result, started, ended: now });
        self.running[run.slot as usize].run = run.run.wrapping_add(1);
        context.record(&TaskEvent::Ended { executor: context.node(), run, stopped });
    }
}

impl Actor for ExecutorActor {
    fn start(&mut self, context: &mut Context<'_>) {
        self.drive(context);
    }

    fn datagram(&mut self, context: &mut Context<'_>, from: SocketAddr, datagram: &[u8]) {
        self.executor.handle(context.now(), from, datagram);
        self.drive(context);
    }

    fn wake(&mut self, context: &mut Context<'_>, wake: Wake) {
        match wake {
            Wake::Time => self.executor.handle_timeout(context.now()),
            Wake::Token(token) if token & GOES_ON != 0 => {
                self.go_on(context, RunKey { slot: ((token & !GOES_ON) >> 32) as u32, run: token as u32 });
            }
            Wake::Token(token) => self.finish(context, RunKey { slot: (token >> 32) as u32, run: token as u32 }),
        }
        self.drive(context);
    }

    fn command(&mut self, context: &mut Context<'_>, command: Box<dyn Any>) {
        if let Some(Command::Drain) = command.downcast_ref() {
            self.executor.drain(context.now());
            self.drive(context);
        }
    }
}

/// The first 16 bytes of the argument. An appended one repeats them; if it does not, the result is wrong.
fn argument_of(run: &Run) -> [u8; 16] {
    let Some(appended) = &run.appended else { return run.task.argument };
    let first: [u8; 16] = appended[..16].try_into().unwrap_or_default();
    let repeats = appended.iter().zip(first.iter().cycle()).all(|(byte, other)| byte == other);
    if repeats { first } else { [0xFF; 16] }
}
