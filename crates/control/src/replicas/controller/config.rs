//! Times and bounds of a controller.

use midflight_endpoint::{MS, Nanos, SECOND};

/// What is in force before there are statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// All groups degraded: the monitors count their answers, and the first plan is made of these.
    #[default]
    Degraded,
    /// Each group at the operator of its own rack (the paper's NetRS-ToR).
    OwnRack,
}

/// Times and bounds of a controller. All controllers of a network have the same, but for `place`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ControllerConfig {
    /// 0: the first one; the others are its standbys, in their order. Default 0.
    pub place: u32,
    /// How often each operator is asked how it is. Default 100 ms.
    pub ask_every: Nanos,
    /// An operator that has not answered for so long is dead (N6). Default 500 ms.
    pub dead_after: Nanos,
    /// Orders without an answer are repeated after this time. Default 200 ms.
    pub repeat_after: Nanos,
    /// An operator that was dead is in no plan until it has been back for so long. Default 60 s.
    pub barred_for: Nanos,
    /// A standby takes over when most operators have not heard of the active controller for so long, and once more for each controller
    /// before it. Default 1 s.
    pub takeover_after: Nanos,
    /// No answer to a request comes later (N7): so long an old RSNode serves, and so long its id then rests. Default 5 s.
    pub longest_response: Nanos,
    /// An operator that cannot be reached for so long is taken to have none of its rules any more. Default 10 min.
    pub forget_after: Nanos,
    /// Rates are counts over so long. Default 1 s.
    pub window: Nanos,
    /// How often a plan is asked for. Default 30 s.
    pub plan_every: Nanos,
    /// A plan that comes later is not taken. Default 30 s.
    pub plan_timeout: Nanos,
    /// A plan that saves at most so many RSNodes is not worth its moves. Default 1.
    pub hysteresis: usize,
    /// E, as a share of all requests. Default 0.2.
    pub extra_hops: f64,
    /// Packets that an accelerator handles for each request: 1, or 2 if copies of answers count. Default 1.
    pub packets_per_request: u64,
    /// More requests a second of a traffic group are not believed. Default 10 million.
    pub rate_max_per_s: f64,
    /// An accelerator that gets too much in so many windows in succession is overloaded. Default 3.
    pub overload_windows: u32,
    /// RSNode ids are 1 to this, as in the configuration of operators. Default 4,096.
    pub rsnodes: u16,
    /// Orders in a message, at most 4,096. Default 512.
    pub batch: usize,
    /// What is in force before there are statistics.
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
