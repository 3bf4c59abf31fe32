//! A cell of Midflight: the production switch and endpoints. The switch is a switch program, a process on a host, the kernel of a Linux
//! machine, or a pipeline.

use super::closed::Closed;
use super::dealer::{Hand, deal};
use super::machine::process;
use super::site::{Site, Ways};
use super::sparrow::run_out;
use super::{Cell, CellError, CellResult, DrawnJob, Jobs, Linux, Meter, Pipelined, Sample};
use crate::calibration::*;
use midflight_asic::AsicConfig;
use midflight_dataplane::{Tasks, TasksConfig};
use midflight_endpoint::{Endpoint, Nanos};
use midflight_sim::Place;
use midflight_sim::tasks::asic::{Pipeline, Tally};
use midflight_sim::tasks::executor::ExecutorActor;
use midflight_sim::tasks::switch::{Origin, Switch};
use midflight_sim::tasks::{TaskEvent, nodes};
use midflight_sim::{Actor, Birth, Wake};
use midflight_sim::{Context, Happening, Hardware, HostConfig, NodeId, Sink, Topology, World};
use midflight_tasks::client::{Argument, Client, ClientConfig, Event, Task};
use midflight_tasks::executor::{Executor, ExecutorConfig};
use midflight_wire::tasks::TaskInfo;
use rand::RngExt;
use std::net::SocketAddr;

/// The client's bound of open tasks.
const OPEN_TASKS_MAX: usize = 16 << 20;

const RECIRCULATING: u32 = 4_096;

#[derive(Clone, Copy, Debug)]
pub(super) enum CellEngine {
    /// The C core, in the switch.
    Soft,
    /// The C core, as a process on a host.
    Server,
    /// The C core in the kernel of a Linux machine.
    Kernel(Linux),
    Asic(Pipelined),
}

pub(super) fn run(cell: &Cell, engine: CellEngine) -> Result<CellResult, CellError> {
    let (tally, polled) = (Tally::default(), matches!(engine, CellEngine::Asic(_)));
    let mut site = match engine {
        CellEngine::Kernel(linux) => Site::linux(linux, &cell.load),
        CellEngine::Soft | CellEngine::Server | CellEngine::Asic(_) => Site::papers(),
    };
    let hardware = Hardware { topology: Topology::racks(cell.cluster.shards), ..site.hardware() };
    let mut world = World::with_hardware(cell.seed, site.faults(), &hardware);
    let switches = switches(cell, engine, &site, &tally, &mut world)?;
    let addresses: Vec<_> = switches.iter().map(|&switch| world.address(switch)).collect();
    let mut groups = vec![0; switches.len()];
    executors(cell, &addresses, &mut site, &mut world, &mut groups)?;
    // A client may submit its first job as soon as it starts.
    world.set_sink(Box::new(Measurements { meter: Meter::new(cell), groups, polled, ways: site.ways() }));
    clients(cell, &addresses, &mut site, &mut world)?;

    run_out(cell, &mut world, |world| world.sink::<Measurements>().is_some_and(|kept| kept.meter.open() > 0));
    let (events, network) = (world.events(), *world.network_counters());
    let Some(measured) = world.sink::<Measurements>() else {
        return Err(CellError::Bad("the world lost its sink".into()));
    };
    let mut result = measured.meter.result(events);
    result.counters.insert("datagrams".into(), network.sent);
    result.counters.insert("dropped".into(), network.receive_buffer_full + network.switch_queue_full);
    if polled {
        count_passes(&tally, &mut result);
    }
    count_at_switches(&world, &switches, &mut result);
    Ok(result)
}

fn count_at_switches(world: &World, switches: &[NodeId], result: &mut CellResult) {
    let process = |node| world.actor::<Costed>(node).map(|costed| &costed.switch);
    let switches = switches.iter().filter_map(|&node| world.actor::<Switch>(node).or_else(|| process(node)));
    for stats in switches.map(|switch| switch.tasks().stats()) {
        let mut count = |name: &str, number: u64| *result.counters.entry(name.into()).or_default() += number;
        count("switch.packets", stats.packets.iter().sum());
        count("switch.requeued", stats.tasks.expired + stats.tasks.returned);
    }
}

fn count_passes(tally: &Tally, result: &mut CellResult) {
    let passes = tally.passes();
    for (name, number) in [
        ("asic.passes", passes.passes),
        ("asic.rounds", passes.rounds),
        ("asic.no_ops", passes.no_ops),
        ("asic.assigned", passes.assigned),
        ("asic.assigned_passes", passes.retrieve),
        ("asic.dropped.recirculating", passes.dropped_recirculating),
        ("asic.dropped.pass_limit", passes.dropped_passes),
        ("asic.dropped.queue", passes.dropped_queue),
        ("asic.dropped.program", passes.dropped_program),
    ] {
        result.counters.insert(name.into(), number);
    }
}

/// With the parameters of Bolt's switch.
fn pipelines(
    cell: &Cell,
    Pipelined { program, interval_us }: Pipelined,
    tally: &Tally,
    world: &mut World,
) -> Result<Vec<NodeId>, CellError> {
    let pipeline = Pipeline {
        recirculation: RECIRCULATION_NS,
        passes_per_s: SWITCH_PACKETS_PER_SECOND,
        queue: RECIRCULATING,
        recirculating: RECIRCULATING,
        passes: 0,
    };
    let slots = cell.cluster.executors().div_ceil(u64::from(cell.cluster.shards)) as u32;
    let default = AsicConfig::default();
    let slots = slots.saturating_mul(2).clamp(default.slots, 1 << 20);
    let config = AsicConfig { program, poll_us: interval_us, slots, ..default };
    let add = |shard| {
        let added = nodes::add_asic_at(world, Place::Switch(shard), config, pipeline, tally);
        added.map_err(|error| CellError::Bad(format!("cluster: {error}")))
    };
    (0..cell.cluster.shards).map(add).collect()
}

fn switches(
    cell: &Cell,
    engine: CellEngine,
    site: &Site,
    tally: &Tally,
    world: &mut World,
) -> Result<Vec<NodeId>, CellError> {
    let cost: Option<fn(u8) -> Nanos> = match engine {
        CellEngine::Asic(pipelined) => return pipelines(cell, pipelined, tally, world),
        CellEngine::Server => Some(in_a_process),
        CellEngine::Kernel(_) => Some(in_the_kernel),
        CellEngine::Soft => None,
    };
    let server = matches!(engine, CellEngine::Server);
    let machine = site.machine().filter(|_| site.measured().is_some_and(|measured| measured.is_process));
    let jitter = site.measured().map(|measured| Nanos::from(measured.jitter_ns));
    let slots = cell.cluster.executors().div_ceil(u64::from(cell.cluster.shards)) as u32;
    let room = |least: u32, wanted: u32| wanted.saturating_mul(2).clamp(least, 1 << 20);
    let default = TasksConfig::default();
    let queue = if server { 4 << 20 } else { default.queue };
    let config = TasksConfig { slots: room(default.slots, slots), queue, ..default };
    Tasks::new(&config, 1, 0).map_err(|error| CellError::Bad(format!("cluster: {error}")))?;
    let mut nodes = Vec::new();
    for shard in 0..cell.cluster.shards {
        let place = if server || jitter.is_some() {
            let receive_jitter = jitter.unwrap_or(site.host().receive_jitter);
            Place::Host(world.add_host(HostConfig { rack: shard, receive_jitter, ..site.host() }))
        } else {
            Place::Switch(shard)
        };
        let machine = machine.clone();
        let node = world.add_actor(
            place,
            Box::new(move |birth: &mut Birth| {
                let (epoch, secret) = (birth.random.random_range(1..=u32::MAX), birth.random.random());
                let switch = Switch::new(Origin { config, epoch, secret }).expect("checked above");
                let switch = match cost {
                    Some(cost) => Box::new(Costed { switch, cost }) as Box<dyn Actor>,
                    None => Box::new(switch),
                };
                process(machine.as_ref(), switch)
            }),
        );
        nodes.push(node);
    }
    Ok(nodes)
}

/// Nodes go to the shards round robin.
fn executors(
    cell: &Cell,
    switches: &[SocketAddr],
    site: &mut Site,
    world: &mut World,
    groups: &mut Vec<usize>,
) -> Result<(), CellError> {
    let late = site.measured().map_or(0, |measured| measured.late_ns.into());
    let mut number = 0;
    for (group, g) in cell.cluster.groups.iter().enumerate() {
        for _ in 0..g.nodes {
            let shard = number % switches.len();
            number += 1;
            let host = site.add_host(world, HostConfig { rack: shard as u32, ..site.host() });
            // The papers' executors ask for a task only when free.
            let config = ExecutorConfig {
                ahead: 0,
                ..ExecutorConfig::new(0, 0, vec![switches[shard]], g.executors, g.resources)
            };
            config.check().map_err(|error| CellError::Bad(format!("cluster.groups: {error}")))?;
            let machine = site.machine();
            world.add_actor(
                Place::Host(host),
                Box::new(move |birth: &mut Birth| {
                    let (identity, seed) = (birth.random.random(), birth.random.random());
                    let config = ExecutorConfig { identity, seed, ..config.clone() };
                    let executor = Executor::new(config, birth.now).expect("checked above");
                    process(machine.as_ref(), Box::new(ExecutorActor::new(executor, late)))
                }),
            );
            groups.push(group);
        }
    }
    Ok(())
}

/// One actor per client and shard; a client's jobs go to the shards round robin. Writing a task costs as much as Bolt's; a packet's header
/// counts as one or two tasks.
fn clients(cell: &Cell, switches: &[SocketAddr], site: &mut Site, world: &mut World) -> Result<(), CellError> {
    let clients = cell.load.clients();
    let mut hands = deal(Jobs::new(cell)?, clients as usize, switches.len());
    for _ in 0..clients {
        for (shard, &switch) in switches.iter().enumerate() {
            let task = site.measured().map_or(SERVER_TASK_NS, |measured| measured.task_ns.into());
            let send_ps_per_byte = task * 1_000 / size_of::<TaskInfo>() as u64;
            let host = site.add_host(world, HostConfig { rack: shard as u32, send_ps_per_byte, ..site.host() });
            let (cell, mine, machine) = (cell.clone(), std::cell::Cell::new(hands.next()), site.machine());
            world.add_actor(
                Place::Host(host),
                Box::new(move |birth: &mut Birth| {
                    let (identity, seed) = (birth.random.random(), birth.random.random());
                    let config = ClientConfig::new(identity, seed, vec![switch]);
                    let config = ClientConfig { max_open: OPEN_TASKS_MAX, ..config };
                    let endpoint = Client::new(config, birth.now).expect("one switch, and default bounds");
                    let jobs = mine.take();
                    let closed = Closed::of(&cell, cell.cluster.shards);
                    process(machine.as_ref(), Box::new(Submitter { endpoint, jobs, next: None, closed, jid: 0 }))
                }),
            );
        }
    }
    Ok(())
}

/// The switch on one core, with a cost per packet.
struct Costed {
    switch: Switch,
    /// By number of records.
    cost: fn(u8) -> Nanos,
}

impl Actor for Costed {
    fn start(&mut self, context: &mut Context<'_>) {
        self.switch.start(context);
    }

    fn datagram(&mut self, context: &mut Context<'_>, from: SocketAddr, datagram: &[u8]) {
        self.switch.datagram(context, from, datagram);
    }

    fn wake(&mut self, context: &mut Context<'_>, wake: Wake) {
        self.switch.wake(context, wake);
    }

    fn cost(&self, _from: SocketAddr, datagram: &[u8]) -> Nanos {
        (self.cost)(datagram.get(RECORDS_AT).copied().unwrap_or(0))
    }
}

/// Offset in a packet's header.
const RECORDS_AT: usize = 4;

fn in_a_process(records: u8) -> Nanos {
    SERVER_REQUEST_NS + Nanos::from(records) * SERVER_TASK_NS
}

/// Cost on a kernel core. Each record pays for a frame, because its own frame may answer it.
fn in_the_kernel(records: u8) -> Nanos {
    XDP_PACKET_NS + XDP_FRAME_NS + Nanos::from(records) * (XDP_RECORD_NS + XDP_FRAME_NS)
}

struct Submitter {
    endpoint: Client,
    /// Lost when the actor restarts.
    jobs: Option<Hand>,
    next: Option<DrawnJob>,
    closed: Option<Closed>,
    jid: u32,
}

impl Submitter {
    fn submit(&mut self, context: &mut Context<'_>, tasks: impl Iterator<Item = (Nanos, u8, u8)>) {
        let now = context.now();
        let tasks: Vec<Task> =
            tasks.map(|(duration, level, resources)| task(duration, now, level, resources)).collect();
        self.jid = self.jid.wrapping_add(1);
        match self.endpoint.submit(now, self.jid, &tasks) {
            Ok(_) => {
                let value = tasks.len() as u64;
                context.record(&Submitted(value));
            }
            Err(error) => panic!("a cell's clients keep to their bounds: {error}"),
        }
    }

    fn submit_due(&mut self, context: &mut Context<'_>) {
        while let Some(tasks) = self.closed.as_mut().and_then(|closed| closed.due(context.now())) {
            self.submit(context, (0..tasks).map(|_| (0, 1, 0)));
        }
        loop {
            let Some(job) = self.next.take().or_else(|| self.jobs.as_mut()?.next()) else { return };
            if job.at > context.now() {
                context.after(job.at - context.now(), 0);
                self.next = Some(job);
                return;
            }
            self.submit(context, job.tasks.iter().map(|task| (task.duration_ns, task.level, task.resources)));
        }
    }

    fn drive(&mut self, context: &mut Context<'_>) {
        let mut ended = 0;
        while let Some(event) = self.endpoint.poll_event() {
            ended += u32::from(matches!(event, Event::Completed { .. } | Event::Lost { .. }));
        }
        if let (Some(closed), true) = (&mut self.closed, ended > 0) {
            closed.owed += ended;
            self.submit_due(context);
        }
        context.drive(&mut self.endpoint);
    }
}

impl Actor for Submitter {
    fn start(&mut self, context: &mut Context<'_>) {
        self.submit_due(context);
        self.drive(context);
    }

    fn datagram(&mut self, context: &mut Context<'_>, from: SocketAddr, datagram: &[u8]) {
        self.endpoint.handle(context.now(), from, datagram);
        self.drive(context);
    }

    fn wake(&mut self, context: &mut Context<'_>, wake: Wake) {
        match wake {
            Wake::Time => self.endpoint.handle_timeout(context.now()),
            Wake::Token(_) => self.submit_due(context),
        }
        self.drive(context);
    }
}

/// A task whose argument holds its duration and submission time.
fn task(duration: Nanos, submitted: Nanos, level: u8, resources: u8) -> Task {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&duration.to_be_bytes());
    bytes[8..].copy_from_slice(&submitted.to_be_bytes());
    Task { priority: level, resources, ..Task::new(0, Argument::Inline { bytes, length: 16 }) }
}

struct Submitted(u64);

struct Measurements {
    meter: Meter,
    /// By node.
    groups: Vec<usize>,
    polled: bool,
    ways: Ways,
}

impl Measurements {
    fn group(&self, node: NodeId) -> usize {
        self.groups.get(node.index()).copied().unwrap_or(0)
    }
}

/// Submit, queueing, get_task. A parked slot asked long before; for it, only the way down counts.
fn parked_steps(ways: Ways, delay: Nanos, asked_for: Nanos, queueing: Nanos) -> [Nanos; 3] {
    let get_task = if queueing == 0 { asked_for.min(ways.down) } else { asked_for };
    [delay.saturating_sub(queueing + get_task.min(ways.down)), queueing, get_task]
}

/// The same if entries have no time: queueing is the remainder after the way in and the request that got the task.
fn polled_steps(ways: Ways, delay: Nanos, asked_for: Nanos) -> [Nanos; 3] {
    let submit = ways.up.min(delay);
    [submit, delay.saturating_sub(submit + asked_for), asked_for]
}

impl Sink for Measurements {
    fn happened(&mut self, at: Nanos, happening: &Happening<'_>) {
        if let Some(Submitted(tasks)) = happening.of() {
            return self.meter.submitted(*tasks);
        }
        match happening.of() {
            Some(TaskEvent::Started { priority, argument, asked_for, waited_us, .. }) => {
                let [_, _, _, _, _, _, _, _, rest @ ..] = *argument;
                let submitted = Nanos::from_be_bytes(rest);
                let delay = at.saturating_sub(submitted);
                let [submit, queueing, get_task] = if self.polled {
                    polled_steps(self.ways, delay, *asked_for)
                } else {
                    parked_steps(self.ways, delay, *asked_for, Nanos::from(*waited_us) * 1_000)
                };
                let steps = [Some(submit), None, Some(queueing), Some(get_task)];
                self.meter.started(&Sample { submitted, started: at, level: *priority, steps });
            }
            Some(TaskEvent::Ended { executor, .. }) => {
                let group = self.group(*executor);
                self.meter.ended(at, group);
            }
            _ => {}
        }
    }
}
