//! Every constant that stands for the papers' hardware or software, each with its reason. Figures have none of their own.
//!
//! Sources: *Falcon* is chapter 3 of the Falcon thesis, *Bolt* the Bolt thesis. Times are in nanoseconds.

use midflight_tasks::Nanos;

/// How much later than asked a sleeping task ends: 50 µs of timer slack, Linux's default, and a wake-up.
pub const SLEEP_LATE_NS: Nanos = 55_000;

/// What Spark's driver takes for each task. Both papers: 3 s of delay at 50 % of SW1, which is 3,000 tasks a second, and no
/// bound above; so that is about its capacity.
pub const SPARK_TASK_NS: Nanos = 330_000;
/// What Spark adds to each job before its first task: stages, serialisation, offers by heartbeat (the same 3 s).
pub const SPARK_JOB_NS: Nanos = 3_000_000_000;

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
/// A recirculation: "less than a microsecond" (Bolt §3.3.2); get_task takes 2 µs more at level 4, which is three of them (§5.6).
pub const RECIRCULATION_NS: Nanos = 650;
/// Entries of the switch's queue (Bolt ch. 4: 128 K).
pub const QUEUE_TASKS: usize = 128 * 1024;
/// Tasks in a job_submission packet: what an Ethernet frame holds.
pub const PACKET_TASKS: usize = 32;

/// What a C++ server takes to receive a request, decide and answer. Bolt-Server decides 500,000 times a second (Bolt §5.2),
/// and each decision is a request, a completion that it forwards (Bolt §3.1.2), and a task's share of a submission.
pub const SERVER_REQUEST_NS: Nanos = 1_050;
/// What it takes to forward a completion.
pub const SERVER_FORWARD_NS: Nanos = 800;
/// What it takes to put one task into the queue.
pub const SERVER_TASK_NS: Nanos = 110;
/// Datagrams that wait in a socket's buffer: Linux's default of 212,992 bytes, at the 768 bytes that a small one occupies.
pub const SOCKET_DATAGRAMS: usize = 212_992 / 768;
/// When a polling executor asks a server again that did not answer: longer than a full buffer takes.
pub const POLL_AGAIN_NS: Nanos = 1_000_000;
/// When a client submits again what a server did not answer. Not published; as TCP's least on Linux.
pub const SUBMIT_AGAIN_NS: Nanos = 200_000_000;
