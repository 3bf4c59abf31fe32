//! Every constant that stands for the papers' hardware or software, each with its reason. Figures have none of their own.
//!
//! `docs/internals/calibration.md` says what was fitted to what, and what is prediction.
//!
//! Sources: *Falcon* is chapter 3 of the Falcon thesis, *Bolt* the Bolt thesis. Times are in nanoseconds.

use midflight_endpoint::Nanos;

/// How much later than asked a sleeping task ends: 50 µs of timer slack, Linux's default, and a wake-up.
pub const SLEEP_LATE_NS: Nanos = 55_000;

/// By how much longer than asked a client takes from one job to the next: it sleeps for the interval, and then makes the next job and
/// sends it. Falcon's median is the same at all utilisations (figure 8). With an interval of 10 ms to the nanosecond it could not
/// be: tasks of 10 ms and what comes between them would push each other on from job to job.
pub const CLIENT_LATE_NS: Nanos = SLEEP_LATE_NS + 145_000;

/// What Spark's driver takes for each task. Both papers: 3 s of delay at 50 % of SW1, which is 3,000 tasks a second, and no
/// bound above; so that is about its capacity.
pub const SPARK_TASK_NS: Nanos = 330_000;
/// What Spark adds to each job before its first task: stages, serialisation, offers by heartbeat (the same 3 s).
pub const SPARK_JOB_NS: Nanos = 3_000_000_000;

/// Tasks of a job in the trace, in the mean, for each executor that the load keeps busy. The thesis samples Google's trace
/// uniformly, at a rate that grows with the executors and, for figure 15, with the load (Bolt §5.1.3, §5.6): a job has as many
/// tasks as the sample has left it, so that bursts are as large as the cluster ("hundreds of tasks submitted at the same time"
/// with 176 executors, §5.4). Set so that Sparrow's median in figure 13a is about the thesis's 1.6 ms.
pub const SAMPLE_TASKS: f64 = 1.35;

/// From a program on a host to the switch, or the other way: what the kernel's stack, the card and the link take, but no
/// processor. With the costs below a request and its answer take 31.3 µs: Bolt's figure 11, 720 executors that do nothing else
/// ask 23 million times a second. Half of that, a client's way in and the wait for one of many polls are the median delay of
/// 0.04 ms in its figure 13a.
pub const WAY_NS: Nanos = 10_000;
/// What a C++ program's `sendto` takes on a Xeon Silver.
pub const SEND_NS: Nanos = 2_500;
/// The same for `recvfrom`, with being woken up.
pub const RECEIVE_NS: Nanos = 4_000;
/// By how much being woken up varies: the mean of an exponential distribution, for packets that bring or ask for work.
pub const RECEIVE_JITTER_NS: Nanos = 4_000;
/// One pass through a switch: below a microsecond for any such switch (Falcon §3.1, Bolt §3.3.2).
pub const PASS_NS: Nanos = 800;
/// A recirculation, as wherever the simulator has a pipeline.
pub const RECIRCULATION_NS: Nanos = midflight_sim::tasks::asic::RECIRCULATION;
/// Entries of the switch's queue (Bolt ch. 4: 128 K).
pub const QUEUE_TASKS: usize = 128 * 1024;
/// Tasks in a job_submission packet: what an Ethernet frame holds.
pub const PACKET_TASKS: usize = 32;

/// What a C++ server takes to receive a request, decide and answer. Bolt-Server decides 500,000 times a second (Bolt §5.2),
/// and each decision is a request, a completion that it forwards (Bolt §3.1.2), and a task's share of a submission.
pub const SERVER_REQUEST_NS: Nanos = 1_050;
/// What it takes to forward a completion.
pub const SERVER_FORWARD_NS: Nanos = 800;
/// What it takes to put one task into the queue; and a client, to write one into a packet.
pub const SERVER_TASK_NS: Nanos = 110;
/// Datagrams that wait in a socket's buffer: Linux's default of 212,992 bytes, at the 768 bytes that a small one occupies.
pub const SOCKET_DATAGRAMS: usize = 212_992 / 768;
/// When a polling executor asks a server again that did not answer: longer than a full buffer and the way take (340 µs). Not
/// published; between 300 and 500 µs it makes no difference to Bolt-Server's delay in figure 13b.
pub const POLL_AGAIN_NS: Nanos = 500_000;
/// When a client submits again what a server did not answer. Not published; as TCP's least on Linux.
pub const SUBMIT_AGAIN_NS: Nanos = 200_000_000;

/// What one core of a Linux machine takes for a packet to the switch in its kernel, beside its records, without the frame around it.
/// `midflight-lab bench xdp` on 22 November 2026, one core of an Intel Xeon (a virtual machine), Linux 6.18: a SUBMIT of one task takes 33 ns and
/// one of 32 544 ns, a RETRIEVE of one slot 45 and one of 13 416. So a record takes 17 ns or 31, and the rest 17 or 14; of both the dearer.
pub const XDP_PACKET_NS: Nanos = 17;
/// What it takes for each record: a task of a SUBMIT, a slot of a RETRIEVE. See [`XDP_PACKET_NS`].
pub const XDP_RECORD_NS: Nanos = 31;
/// What it takes for a frame beside the program's decision: to parse it, to read the clock, to find the next hop, to rewrite it.
/// `midflight-lab bench xdp --program reads`, part by part (docs/internals/reads-switch.md): 140 ns of which the program takes 33, on a
/// virtual machine that was busy, with an AMD EPYC. Counted for the packet and for each of its records, as each may be answered by a frame of its own. Not
/// measured: what the driver takes before XDP and the copies of TC, as nothing measures them alone.
pub const XDP_FRAME_NS: Nanos = 107;

/// From program to program through the switch and back a task takes 23 µs in the median and 58 in 99 of 100 cases, with programs that poll
/// their sockets: `midflight-lab bench lab --engine kernel` on 21 November 2026, two cores of an AMD EPYC, Linux 6.18. Two ways, each late by an
/// exponential distribution with a mean of 7 µs, have these two quantiles if a way without that takes 5.6 µs; of it the links take a tenth. How
/// the rest is divided between the two ends is an estimate, as for [`SEND_NS`].
pub const LINUX_SEND_NS: Nanos = 1_900;
/// See [`LINUX_SEND_NS`].
pub const LINUX_RECEIVE_NS: Nanos = 3_100;
/// See [`LINUX_SEND_NS`].
pub const LINUX_JITTER_NS: Nanos = 7_000;
/// A link between a host and the switch, each way: veth, which is no cable. See [`LINUX_SEND_NS`].
pub const LINUX_WAY_NS: Nanos = 300;
/// What it takes to wake a program up that does not poll its socket, as packets come in intervals of more than 100 µs: 5 to 20 µs on a
/// virtual machine (docs/internals/endpoints.md); `midflight-lab bench loop` takes 60 µs without polling instead of 30, with three such.
pub const LINUX_WAKE_NS: Nanos = 10_000;

/// Hardware threads of a node: an Intel Xeon Silver with 10 cores (Falcon §3.5, Bolt §5.1.1). As many packets are in its network
/// stack at once.
pub const NODE_THREADS: u32 = 20;
/// The links' rate (both: 100 Gbit/s).
pub const LINK_BITS_PER_SECOND: u64 = 100_000_000_000;
/// Packets a second that the switch passes (Bolt §5.2, from its data sheet).
pub const SWITCH_PACKETS_PER_SECOND: u64 = 4_700_000_000;

/// What Sparrow's programs take, in nanoseconds, beyond the network stack. All that one program does, its one thread does, one
/// thing after the other; a hand-over from the thread that receives to the one that works is latency, as several are under way at
/// once (both from Bolt §5.5: separate threads, queues under a global lock).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SparrowCosts {
    /// Scheduler: a packet of tasks comes.
    pub submit: Nanos,
    /// Scheduler: sends a reservation.
    pub reserve: Nanos,
    /// Scheduler: answers get_task.
    pub get_task: Nanos,
    /// Scheduler: takes back the reservations at a worker.
    pub cancel: Nanos,
    /// Scheduler: hears of the end of a task and reports it to its client.
    pub done: Nanos,
    /// Scheduler: from its receiving thread to the one that schedules.
    pub scheduler_handover: Nanos,
    /// Worker: each packet that comes, each that it sends.
    pub worker: Nanos,
    /// Worker: from its receiving thread to an executor's.
    pub worker_handover: Nanos,
}

/// The Bolt thesis's rewrite. `get_task`, `done` and `submit` make 500,000 decisions a second without probing, and the hand-overs
/// make that need 150 executors (Bolt §5.2, figure 11). `reserve` is what is then left of the 1.6 ms of figure 13a, and no more
/// than lets one scheduler keep up with figure 13b, where it does (§5.4).
pub const SPARROW_CPP: SparrowCosts = SparrowCosts {
    submit: 2_000,
    reserve: 7_800,
    get_task: 1_100,
    cancel: 1_500,
    done: 800,
    scheduler_handover: 120_000,
    worker: 1_500,
    worker_handover: 120_000,
};

/// The Java original: 25 times slower in throughput (Bolt §5.1.2), which sets `get_task` and `done`. `submit`, a job's way through
/// RPC and its objects, makes the median of Falcon's figure 8 (22 × 0.09 ms at 50 % of SW1); the others are as small as they can be,
/// as that median hardly grows with the load (2.22 ms at 95 %).
pub const SPARROW_JAVA: SparrowCosts = SparrowCosts {
    submit: 1_250_000,
    reserve: 10_000,
    get_task: 27_500,
    cancel: 10_000,
    done: 20_000,
    scheduler_handover: 40_000,
    worker: 5_000,
    worker_handover: 50_000,
};
