//! Selectors: each chooses a replica for a read. A client may use one, or an operator on the path (NetRS IV-C). They do no I/O, read no
//! clock, draw no random numbers, and allocate nothing per choice.
//!
//! | file | content |
//! |---|---|
//! | `algorithm` | names and construction |
//! | `candidates` | servers, and the replicas of a key |
//! | `status` | a server's report, and its plausibility |
//! | `servers` | common state per server, and which reports are believed; each selector has its own estimates |
//! | `decay` | e^−x |
//! | `pick` | minimum or two at random; tie-breaks |
//! | `random`, `round_robin`, `least_outstanding`, `power_of_two`, `peak_ewma`, `c3` with `rate`, `tars`, `hot_cold`, `quadratic` | one selector each |
//! | `oracle` | for simulations; knows the true state |
//!
//! The C core has four of them for operators that select themselves: `dataplane/src/cache/select*.h`.
//!
//! `docs/internals/cache-selectors.md` compares their formulas and results.

mod algorithm;
mod c3;
mod candidates;
mod decay;
mod hot_cold;
mod least_outstanding;
mod oracle;
mod peak_ewma;
mod pick;
mod power_of_two;
mod quadratic;
mod random;
mod rate;
mod round_robin;
mod servers;
mod status;
mod tars;

use midflight_endpoint::Nanos;

pub use algorithm::{Algorithm, UnknownAlgorithm};
pub use c3::C3;
pub use candidates::{CANDIDATES_MAX, Candidates, CandidatesError, Server};
pub use hot_cold::HotCold;
pub use least_outstanding::LeastOutstanding;
pub use oracle::{Oracle, Truth};
pub use peak_ewma::PeakEwma;
pub use power_of_two::PowerOfTwo;
pub use quadratic::Quadratic;
pub use random::Random;
pub use round_robin::RoundRobin;
pub use servers::{Counts, ESTIMATE_LIFETIME};
pub use status::{SERVICE_MAX_US, Status};
pub use tars::Tars;

/// What to do with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Send it to this candidate. It counts as outstanding.
    Send(Server),
    /// Rate control: ask again at this later time. The request does not count as outstanding.
    Wait(Nanos),
}

/// What a selector knows of a server, for display. `None`: unused by this selector, or unreported.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Learned {
    /// Response time in nanoseconds.
    pub response: Option<f64>,
    /// Reported service time in nanoseconds.
    pub service: Option<f64>,
    /// Reported queue length.
    pub queue: Option<f64>,
    /// Rank; the lowest is chosen. The unit depends on the selector.
    pub score: Option<f64>,
}

/// Requests to a server so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Sent.
    pub asked: u64,
    /// Answered.
    pub answered: u64,
    /// Expired without a response in time.
    pub expired: u64,
    /// Expired since the last response; 0 for a server that answers.
    pub expired_since: u64,
}

/// Chooses servers for requests, and learns from responses.
pub trait Selector {
    /// Chooses a candidate for a request that leaves now. All bits of `random` must be random, for tie-breaks.
    fn choose(&mut self, now: Nanos, candidates: &Candidates, random: u64) -> Choice;

    /// Records a response. `took` is in nanoseconds since the request was sent; `status` is the server's report, if any. Implausible
    /// values are counted, and change no estimate.
    fn answered(&mut self, now: Nanos, server: Server, took: Nanos, status: Option<Status>);

    /// A request has expired and is no longer outstanding. Its late response must not be passed to `answered`.
    fn expired(&mut self, now: Nanos, server: Server);

    /// Requests to this server that are neither answered nor expired; 0 for an unknown server.
    fn outstanding(&self, server: Server) -> u32;

    /// Totals of the requests to this server; 0 for an unknown server.
    fn tally(&self, _server: Server) -> Tally {
        Tally::default()
    }

    /// What is known of this server; `None`: nothing recent.
    fn learned(&self, _now: Nanos, _server: Server) -> Option<Learned> {
        None
    }

    /// Counts of implausible input.
    fn counts(&self) -> Counts;

    /// Sets how many selectors share the servers. Ignored by selectors that do not scale by it.
    fn set_selectors(&mut self, _selectors: u32) {}
}
