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
