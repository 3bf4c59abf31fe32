//! Times and bounds of a controller.

use midflight_endpoint::{MS, Nanos, SECOND};

/// The plan in force before there are statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// All groups are degraded: the monitors count their answers, and these make the first plan.
    #[default]
    Degraded,
    /// Each group at the operator of its own rack (the paper's NetRS-ToR).
    OwnRack,
}

/// Times and bounds of a controller. All controllers of a network have the same, except for `place`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ControllerConfig {
    /// 0: the first one; the others are its standbys, in their order. Default 0.
    pub place: u32,
    /// Interval at which each operator is asked for a report. Default 100 ms.
    pub ask_every: Nanos,
    /// An operator that has not answered for this long is dead (N6). Default 500 ms.
    pub dead_after: Nanos,
    /// Orders without an answer are repeated after this time. Default 200 ms.
    pub repeat_after: Nanos,
    /// Time for which a returned operator must work before it may be in a plan. Default 60 s.
    pub barred_for: Nanos,
    /// A standby takes over when most operators have not heard of the active controller for this long, plus the same time for each
    /// controller before it. Default 1 s.
    pub takeover_after: Nanos,
    /// Longest time to an answer (N7): an old RSNode serves for this long, then its id is quarantined for as long. Default 5 s.
    pub longest_response: Nanos,
    /// An operator out of reach for this long is assumed to have no rules. Default 10 min.
    pub forget_after: Nanos,
    /// Window over which counts become rates. Default 1 s.
    pub window: Nanos,
    /// Interval of planning. Default 30 s.
    pub plan_every: Nanos,
    /// A later plan is not taken. Default 30 s.
    pub plan_timeout: Nanos,
    /// A plan that saves at most this many RSNodes is not worth its moves. Default 1.
    pub hysteresis: usize,
    /// E, as a share of all requests. Default 0.2.
    pub extra_hops: f64,
    /// Packets that an accelerator handles per request: 1, or 2 if copies of answers count. Default 1.
    pub packets_per_request: u64,
    /// A traffic group's higher rate per second is rejected as absurd. Default 10 million.
    pub rate_max_per_s: f64,
    /// Consecutive windows with too much load after which an accelerator is overloaded. Default 3.
    pub overload_windows: u32,
    /// RSNode ids are 1 to this, as in the configuration of operators. Default 4,096.
    pub rsnodes: u16,
    /// Orders in a message, at most 4,096. Default 512.
    pub batch: usize,
    /// The plan in force before there are statistics.
    pub start: Start,
}

impl Default for ControllerConfig {
    fn default() -> Self {
        Self {
            place: 0,
            ask_every: 100 * MS,
            dead_after: 500 * MS,
            repeat_after: 200 * MS,
            barred_for: 60 * SECOND,
            takeover_after: SECOND,
            longest_response: 5 * SECOND,
            forget_after: 600 * SECOND,
            window: SECOND,
            plan_every: 30 * SECOND,
            plan_timeout: 30 * SECOND,
            hysteresis: 1,
            extra_hops: 0.2,
            packets_per_request: 1,
            rate_max_per_s: 1e7,
            overload_windows: 3,
            rsnodes: 4_096,
            batch: 512,
            start: Start::default(),
        }
    }
}
