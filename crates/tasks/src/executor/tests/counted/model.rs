//! An executor with counted resources, a switch that restarts, and a faulty network: no two runs have the same bundle, and after
//! the faults every task runs.

use super::*;
use midflight_wire::{Leave, Register as Request};
use proptest::prelude::*;
use rand::RngExt;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Datagrams in flight in one direction.
type Way = Vec<(Nanos, Vec<u8>)>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Has {
    Nothing,
    Wait,
    Task(Assignment),
}

#[derive(Debug)]
struct Slot {
    generation: u32,
    sequence: u32,
    counter: u64,
    resources: u8,
    has: Has,
}

/// The specified switch for one live executor: without leases, and with a single queue.
#[derive(Debug)]
struct Switch {
    epoch: u32,
    generations: u32,
    registered: HashMap<u32, Vec<u8>>,
    slots: BTreeMap<u32, Slot>,
    queue: Vec<(u32, u8)>,
}

impl Switch {
    fn handle(&mut self, datagram: &[u8], out: &mut Vec<Vec<u8>>) {
        match parse(datagram) {
            Ok(Packet::Register(request)) => out.push(self.register(request)),
            Ok(Packet::Retrieve(fixed, waits)) => {
                let (counter, mask) = (fixed.counter.get(), fixed.resources);
                if fixed.header.epoch.get() != self.epoch {
                    return out.push(reset(self.epoch, counter, &[]));
                }
                waits.iter().for_each(|wait| self.wait(wait, counter, mask, out));
            }
            Ok(Packet::Release(fixed, leaves)) if fixed.header.epoch.get() == self.epoch => {
                let done = leaves.iter().filter(|leave| self.give_back(leave, fixed.counter.get()));
                let names: Vec<_> = done.map(|leave| (leave.slot.get(), leave.generation.get())).collect();
                out.push(released(self.epoch, fixed.counter.get(), &names));
            }
            Ok(Packet::Keepalive(fixed, _)) if fixed.header.epoch.get() != self.epoch => {
                out.push(reset(self.epoch, fixed.counter.get(), &[]));
            }
            _ => {}
        }
        self.serve(out);
    }

    fn register(&mut self, request: &Request) -> Vec<u8> {
        let answer = self.registered.get(&request.header.sequence.get()).cloned();
        answer.unwrap_or_else(|| {
            self.generations += 1;
            let first = request.first.get();
            for local in first..first + u32::from(request.header.count) {
                let fresh =
                    Slot { generation: self.generations, sequence: 0, counter: 0, resources: 0, has: Has::Nothing };
                let before = self.slots.insert(100 + local, fresh);
                if let Some(Slot { has: Has::Task(given), .. }) = before {
                    self.queue_again(&given);
                }
            }
            let answer = registered(self.epoch, request, u32::from(request.header.count), self.generations);
            self.registered.insert(request.header.sequence.get(), answer.clone());
            answer
        })
    }

    fn queue_again(&mut self, given: &Assignment) {
        self.queue.insert(0, (given.task.tid.get(), given.task.resources));
    }

    /// The slot with this name, if the packet is newer than all earlier ones.
    fn slot(&mut self, number: u32, generation: u32, counter: u64) -> Option<&mut Slot> {
        let slot =
            self.slots.get_mut(&number).filter(|slot| slot.generation == generation && slot.counter < counter)?;
        slot.counter = counter;
        Some(slot)
    }

    fn wait(&mut self, wait: &Wait, counter: u64, mask: u8, out: &mut Vec<Vec<u8>>) {
        let epoch = self.epoch;
        let Some(slot) = self.slot(wait.slot.get(), wait.generation.get(), counter) else { return };
        let sequence = wait.sequence.get();
        match (sequence.cmp(&slot.sequence), slot.has) {
            (std::cmp::Ordering::Greater, _) => {
                (slot.sequence, slot.resources, slot.has) = (sequence, mask, Has::Wait);
            }
            (std::cmp::Ordering::Equal, Has::Task(given)) => out.push(assign(epoch, &[given])),
            (std::cmp::Ordering::Equal, Has::Nothing) => {
                out.push(reset(epoch, counter, &[(wait.slot.get(), wait.generation.get(), sequence)]));
            }
            _ => {}
        }
    }

    fn give_back(&mut self, leave: &Leave, counter: u64) -> bool {
        let Some(slot) = self.slot(leave.slot.get(), leave.generation.get(), counter) else { return true };
        let (sequence, has) = (leave.sequence.get(), slot.has);
        if sequence < slot.sequence {
            return false;
        }
        let is_present = sequence == slot.sequence;
        (slot.sequence, slot.has) = (sequence, Has::Nothing);
        if let (true, Has::Task(given)) = (is_present, has) {
            self.queue_again(&given);
        }
        true
    }

    /// Assigns each task to the suitable slot with the fewest resources.
    fn serve(&mut self, out: &mut Vec<Vec<u8>>) {
        let mut left = Vec::new();
        for (task, required) in std::mem::take(&mut self.queue) {
            let may = |slot: &Slot| slot.has == Has::Wait && required & !slot.resources == 0;
            let least =
                self.slots.iter_mut().filter(|(_, slot)| may(slot)).min_by_key(|(_, s)| s.resources.count_ones());
            let Some((&number, slot)) = least else {
                left.push((task, required));
                continue;
            };
            let mut given = given(number - 100, slot.sequence, task as u8, required);
            given.generation = slot.generation.into();
            given.task.tid = task.into();
            slot.has = Has::Task(given);
            out.push(assign(self.epoch, &[given]));
        }
        self.queue = left;
    }
}

#[derive(Clone, Debug)]
struct Plan {
    seed: u64,
    slots: u32,
    bundles: [u16; 3],
    tasks: u32,
    ahead: u32,
    loss: f64,
}

fn plan() -> impl Strategy<Value = Plan> {
    let bundles = [0u16..4, 0u16..3, 0u16..2];
    (
        any::<u64>(),
        1u32..7,
        bundles,
        1u32..60,
        prop::sample::select(vec![0, 8]),
        prop::sample::select(vec![0.0, 0.1, 0.4]),
    )
        .prop_map(|(seed, slots, bundles, tasks, ahead, loss)| Plan { seed, slots, bundles, tasks, ahead, loss })
}

/// The executor, the switch, and the reference state: which run has which bundle.
struct Trial {
    plan: Plan,
    random: Pcg64Mcg,
    world: World,
    switch: Switch,
    to_executor: Way,
    to_switch: Way,
    running: BTreeMap<RunKey, (Nanos, Run)>,
    held: BTreeSet<(u8, u16)>,
    ran: BTreeSet<u32>,
    is_faulty: bool,
}

impl Trial {
    fn new(plan: Plan) -> Self {
        let mut random = Pcg64Mcg::seed_from_u64(plan.seed);
        let config = ExecutorConfig { ahead: plan.ahead, ..config(plan.slots, &plan.bundles) };
        let queue = (0..plan.tasks).map(|task| (task, random.random_range(0..8u8))).collect();
        let switch = Switch { epoch: EPOCH, generations: 6, registered: HashMap::new(), slots: BTreeMap::new(), queue };
        let world = World::with(config);
        let (to_executor, to_switch, running) = (Vec::new(), Vec::new(), BTreeMap::new());
        let (held, ran) = (BTreeSet::new(), BTreeSet::new());
        Self { plan, random, world, switch, to_executor, to_switch, running, held, ran, is_faulty: true }
    }

    /// Arrival times of a datagram sent now: none, one or two.
    fn arrivals(&mut self) -> Vec<Nanos> {
        let (loss, now) = (if self.is_faulty { self.plan.loss } else { 0.0 }, self.world.now);
        let late = if loss > 0.0 && self.random.random_bool(0.1) { 3_000_000 } else { 0 };
        let copies =
            if self.random.random_bool(loss) { 0 } else { 1 + usize::from(self.random.random_bool(loss / 2.0)) };
        (0..copies).map(|_| now + self.random.random_range(20_000..60_000) + late).collect()
    }

    /// Checks the runs of the last turn.
    fn take(&mut self) {
        for event in std::mem::take(&mut self.world.events) {
            let Event::Run(run) = event else { continue };
            let counts = |bit: &u8| self.plan.bundles[usize::from(*bit)] > 0;
            let counted: u8 = (0..3).filter(counts).map(|bit| 1 << bit).sum();
            assert_eq!(run.bundles.mask(), run.task.resources & counted, "one of each that it requires");
            for (bit, number) in run.bundles.iter() {
                assert!(number < self.plan.bundles[usize::from(bit)]);
                assert!(self.held.insert((bit, number)), "bundle {number} of r{bit} is with two runs");
            }
            let end = self.world.now + self.random.random_range(0..400_000);
            self.running.insert(run.key, (end, run));
        }
        for (to, datagram) in std::mem::take(&mut self.world.sent) {
            if to == super::switch(1) {
                let arrivals = self.arrivals();
                self.to_switch.extend(arrivals.into_iter().map(|at| (at, datagram.clone())));
            }
        }
    }

    fn answers(&mut self, out: Vec<Vec<u8>>) {
        for datagram in out {
            let arrivals = self.arrivals();
            self.to_executor.extend(arrivals.into_iter().map(|at| (at, datagram.clone())));
        }
    }

    /// Advances to the next event.
    fn step(&mut self) {
        let first = |way: &Way| way.iter().map(|(at, _)| *at).min();
        let ends = self.running.iter().map(|(key, (end, _))| (*end, *key)).min();
        let times =
            [first(&self.to_switch), first(&self.to_executor), self.world.executor.poll_timeout(), ends.map(|e| e.0)];
        let next = times.into_iter().flatten().min().unwrap();
        self.world.now = self.world.now.max(next);
        let take = |way: &mut Way| way.iter().position(|(at, _)| *at == next).map(|place| way.swap_remove(place).1);
        if let Some((end, key)) = ends.filter(|(end, _)| *end == next) {
            let (_, run) = self.running.remove(&key).unwrap();
            run.bundles.iter().for_each(|bundle| assert!(self.held.remove(&bundle)));
            self.ran.insert(run.task.tid.get());
            let end = End { status: Status::Ok, result: Output::Inline(Vec::new()), started: run.arrived, ended: end };
            self.world.executor.finish(self.world.now, key, end);
            self.world.turn();
        } else if let Some(datagram) = take(&mut self.to_switch) {
            let mut out = Vec::new();
            self.switch.handle(&datagram, &mut out);
            self.answers(out);
        } else if let Some(datagram) = take(&mut self.to_executor) {
            self.world.deliver(super::switch(1), &datagram);
        } else {
            self.world.executor.handle_timeout(self.world.now);
            self.world.turn();
        }
        self.take();
    }

    /// Clients submit the unfinished tasks again.
    fn restart(&mut self) {
        let left = (0..self.plan.tasks).filter(|task| !self.ran.contains(task)).collect::<Vec<_>>();
        let queue = left.into_iter().map(|task| (task, self.random.random_range(0..8u8))).collect();
        let (epoch, generations) = (self.switch.epoch + 1, self.switch.generations);
        self.switch = Switch { epoch, generations, registered: HashMap::new(), slots: BTreeMap::new(), queue };
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn t18_no_bundle_is_with_two_runs_and_every_task_runs(plan in plan()) {
        let mut run = Trial::new(plan);
        run.take();
        let restart = run.random.random_range(0..400);
        for step in 0..400 {
            if step == restart && run.plan.loss > 0.0 {
                run.restart();
            }
            run.step();
        }
        run.is_faulty = false;
        let until = run.world.now + 20_000 * MS;
        let tasks = run.plan.tasks as usize;
        while run.ran.len() < tasks || !run.running.is_empty() {
            prop_assert!(run.world.now < until, "{} of {tasks} tasks ran: {:?}", run.ran.len(), run.switch);
            run.step();
        }
        // After heavy loss the executor may try the other switch, which does not exist, before it returns.
        let until = run.world.now + 8_000 * MS;
        while run.world.now < until {
            run.step();
        }
        for (bit, &count) in (0..).zip(&run.plan.bundles) {
            let offered = u32::from(count).min(run.plan.slots);
            let total = u32::from(count);
            prop_assert_eq!(run.world.executor.bundles(bit), BundleCounts { total, held: 0, offered }, "of r{}", bit);
        }
    }
}
