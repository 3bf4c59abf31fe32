//! Every constant that stands for the papers' hardware or software, each with its reason. Figures define none.
//!
//! `docs/internals/calibration.md` says which results are predictions.
//!
//! Sources: *Falcon* is chapter 3 of the Falcon thesis, *Bolt* the Bolt thesis. Times are in nanoseconds.

use midflight_endpoint::Nanos;

/// Delay of a sleeping task's end: 50 µs of timer slack, Linux's default, plus a wake-up.
pub const SLEEP_LATE_NS: Nanos = 55_000;

/// Delay of a client between jobs beyond the interval: it sleeps for the interval, then builds and sends the next job. Falcon's median is
/// the same at all utilisations (figure 8). With an interval of exactly 10 ms it could not be: each job's 10 ms tasks, plus the time
/// between tasks, would delay the next job's.
pub const CLIENT_LATE_NS: Nanos = SLEEP_LATE_NS + 145_000;

/// Time of Spark's driver per task. Both papers: 3 s of delay at 50 % of SW1 (3,000 tasks a second), and no bound above, so that is about
/// its capacity.
pub const SPARK_TASK_NS: Nanos = 330_000;
/// What Spark adds to each job before its first task: stages, serialisation, offers by heartbeat (the same 3 s).
pub const SPARK_JOB_NS: Nanos = 3_000_000_000;

/// Mean tasks per job in the trace, for each executor the load keeps busy. The thesis samples Google's trace uniformly, at a rate that
/// grows with the executors and, for figure 15, with the load (Bolt §5.1.3, §5.6). A job keeps as many tasks as the sample contains, so
/// bursts grow with the cluster ("hundreds of tasks submitted at the same time" with 176 executors, §5.4). Set so that Sparrow's median in
/// figure 13a is about the thesis's 1.6 ms.
pub const SAMPLE_TASKS: f64 = 1.35;

/// One way between a program on a host and the switch: the latency of kernel stack, card and link, without processor time. With the costs
/// below, a request and its answer take 31.3 µs: in Bolt's figure 11, 720 executors without other work ask 23 million times a second. Half
/// of that, a client's way to the switch and the wait for one of many polls make the median delay of 0.04 ms in its figure 13a.
pub const WAY_NS: Nanos = 10_000;
/// `sendto` in a C++ program on a Xeon Silver.
pub const SEND_NS: Nanos = 2_500;
/// `recvfrom` in the same program, including its wake-up.
pub const RECEIVE_NS: Nanos = 4_000;
/// Wake-up jitter: mean of an exponential distribution, for packets that carry or request work.
pub const RECEIVE_JITTER_NS: Nanos = 4_000;
/// One pass through a switch: below a microsecond for any such switch (Falcon §3.1, Bolt §3.3.2).
pub const PASS_NS: Nanos = 800;
/// A recirculation, as everywhere in the simulator.
pub const RECIRCULATION_NS: Nanos = midflight_sim::tasks::asic::RECIRCULATION;
/// Capacity of the switch's queue, in tasks (Bolt ch. 4: 128 K).
pub const QUEUE_TASKS: usize = 128 * 1024;
/// Tasks in a job_submission packet: as many as fit in an Ethernet frame.
pub const PACKET_TASKS: usize = 32;

/// Time of a C++ server to receive a request, decide and answer. Bolt-Server makes 500,000 decisions a second (Bolt §5.2); each consists of
/// a request, a forwarded completion (Bolt §3.1.2), and a task's share of a submission.
pub const SERVER_REQUEST_NS: Nanos = 1_050;
/// Time to forward a completion.
pub const SERVER_FORWARD_NS: Nanos = 800;
/// Time of the server to enqueue a task, and of a client to write one into a packet.
pub const SERVER_TASK_NS: Nanos = 110;
/// Datagrams that fit in a socket's buffer: Linux's default of 212,992 bytes, at 768 bytes per small datagram.
pub const SOCKET_DATAGRAMS: usize = 212_992 / 768;
/// Retry timeout of a polling executor: longer than a full buffer plus the way (340 µs). Not published; between 300 and 500 µs it does not
/// affect Bolt-Server's delay in figure 13b.
pub const POLL_AGAIN_NS: Nanos = 500_000;
/// Retry timeout of a client's submission. Not published; equals Linux's minimum TCP timeout.
pub const SUBMIT_AGAIN_NS: Nanos = 200_000_000;

/// Time of a Linux core for a packet to the switch in its kernel, without its records and its frame. `midflight-lab bench xdp` on 22
/// November 2026, one core of an Intel Xeon (a virtual machine), Linux 6.18: a SUBMIT takes 33 ns with one task and 544 ns with 32; a
/// RETRIEVE takes 45 ns with one slot and 416 ns with 13. So a record takes 17 or 31 ns, and the rest 17 or 14 ns; both constants take the
/// higher value.
pub const XDP_PACKET_NS: Nanos = 17;
/// Time for each record: a task of a SUBMIT, a slot of a RETRIEVE. See [`XDP_PACKET_NS`].
pub const XDP_RECORD_NS: Nanos = 31;
/// Time for a frame besides the program's decision: parse, read the clock, find the next hop, rewrite. `midflight-lab bench xdp --program
/// store`, part by part (docs/internals/store-switch.md): 140 ns, of which the program takes 33, on a busy virtual machine with an AMD
/// EPYC. Charged for the packet and for each record, as each record may be answered by its own frame. Not included, because nothing
/// measures them alone: the driver before XDP, and TC's copies.
pub const XDP_FRAME_NS: Nanos = 107;

/// A task's round trip between two programs through the switch takes 23 µs (median) and 58 µs (99th percentile) when programs poll their
/// sockets: `midflight-lab bench lab --engine kernel` on 21 November 2026, two cores of an AMD EPYC, Linux 6.18. Two one-way trips of 5.6
/// µs, each delayed by an exponential distribution with a mean of 7 µs, have these quantiles. The links take a tenth of a trip. The split
/// of the rest between the two ends is an estimate, as for [`SEND_NS`].
pub const LINUX_SEND_NS: Nanos = 1_900;
/// See [`LINUX_SEND_NS`].
pub const LINUX_RECEIVE_NS: Nanos = 3_100;
/// See [`LINUX_SEND_NS`].
pub const LINUX_JITTER_NS: Nanos = 7_000;
/// One way of a link between a host and the switch: veth, without a cable. See [`LINUX_SEND_NS`].
pub const LINUX_WAY_NS: Nanos = 300;
/// Wake-up of a program that does not poll its socket, when packets are more than 100 µs apart: 5 to 20 µs on a virtual machine
/// (docs/internals/endpoints.md). `midflight-lab bench loop`, with three wake-ups, takes 60 µs without polling instead of 30.
pub const LINUX_WAKE_NS: Nanos = 10_000;

/// Hardware threads of a node: an Intel Xeon Silver with 10 cores (Falcon §3.5, Bolt §5.1.1). Its network stack processes as many packets
/// at once.
pub const NODE_THREADS: u32 = 20;
/// Link rate (both papers: 100 Gbit/s).
pub const LINK_BITS_PER_SECOND: u64 = 100_000_000_000;
/// The switch's capacity in packets a second (Bolt §5.2, from its data sheet).
pub const SWITCH_PACKETS_PER_SECOND: u64 = 4_700_000_000;

/// Times of Sparrow's programs, in nanoseconds, beyond the network stack. Each program works in one thread, sequentially. A hand-over from
/// the receiving thread to the working one is latency only, as several overlap (both from Bolt §5.5: separate threads, queues under a
/// global lock).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SparrowCosts {
    /// Scheduler: receives a packet of tasks.
    pub submit: Nanos,
    /// Scheduler: sends a reservation.
    pub reserve: Nanos,
    /// Scheduler: answers get_task.
    pub get_task: Nanos,
    /// Scheduler: cancels a worker's reservations.
    pub cancel: Nanos,
    /// Scheduler: receives the end of a task and reports it to its client.
    pub done: Nanos,
    /// Scheduler: from the receiving thread to the scheduling one.
    pub scheduler_handover: Nanos,
    /// Worker: each packet received or sent.
    pub worker: Nanos,
    /// Worker: from the receiving thread to an executor's.
    pub worker_handover: Nanos,
}

/// The Bolt thesis's rewrite. `get_task`, `done` and `submit` add up to 500,000 decisions a second without probing; with the hand-overs,
/// reaching that needs 150 executors (Bolt §5.2, figure 11). `reserve` is what remains of figure 13a's 1.6 ms, limited so that one
/// scheduler keeps up with figure 13b, as it does (§5.4).
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

/// The Java original: throughput 25 times lower (Bolt §5.1.2), which sets `get_task` and `done`. `submit`, a job's RPC and objects, makes
/// the median of Falcon's figure 8 (22 × 0.09 ms at 50 % of SW1). The others are minimal, as that median hardly grows with load (2.22 ms at
/// 95 %).
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
