//! Selectors: which of a key's replicas gets a read. A client may hold one, or an operator on the path (NetRS IV-C); neither I/O, nor
//! clocks, nor sources of randomness are in here, and no choice allocates.
//!
//! | where | what |
//! |---|---|
//! | `algorithm` | their names, and how to make one |
//! | `candidates` | servers, and the replicas of a key |
//! | `status` | what a server says of itself, and what of it is believed |
//! | `servers` | what all selectors keep of each server |
//! | `decay` | e^−x |
//! | `pick` | the least of some, or two at random; ties |
//! | `random`, `round_robin`, `least_outstanding`, `power_of_two`, `peak_ewma`, `c3` with `rate`, `tars`, `hot_cold`, `quadratic` | one selector each |
//! | `oracle` | for simulations: it knows the truth |
//!
//! `docs/internals/replicas-selectors.md` has the formulas beside each other, and what each is worth.

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
    /// Send it to this server, one of the candidates. It counts as outstanding.
    Send(Server),
    /// Keep it, and ask again at this time, which is later than now: rate control lets it go to none of them earlier. It does not
    /// count as outstanding.
    Wait(Nanos),
}

/// What a selector has learned of a server, for people who look. `None`: this selector does not ask for it, or the server has not said it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Learned {
    /// How long its responses take, in nanoseconds.
    pub response: Option<f64>,
    /// How long it serves a request, as it says, in nanoseconds.
    pub service: Option<f64>,
    /// Requests that wait there, as it says.
    pub queue: Option<f64>,
    /// What it is ranked by: the least one is chosen. Its unit is the selector's own.
    pub score: Option<f64>,
}

/// Requests to a server so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// That were sent.
    pub asked: u64,
    /// Of these, those that were answered.
    pub answered: u64,
    /// Of these, those whose responses did not come in time.
    pub expired: u64,
    /// Of these, those since the last response: 0 of a server that answers.
    pub expired_since: u64,
}

/// Chooses servers for requests, and learns from their responses.
pub trait Selector {
    /// One of the candidates for a request that leaves now. All bits of `random` must be random: they break ties.
    fn choose(&mut self, now: Nanos, candidates: &Candidates, random: u64) -> Choice;

    /// A response came. `took`: nanoseconds since its request was sent; `status`: what the server said of itself, if anything.
    /// What cannot be believed changes no estimate, and is counted.
    fn answered(&mut self, now: Nanos, server: Server, took: Nanos, status: Option<Status>);

    /// A request will not be answered any more: it is not outstanding. Its response, if it comes after all, is not passed to `answered`.
    fn expired(&mut self, now: Nanos, server: Server);

    /// Requests to this server that were neither answered nor have expired; 0 of a server that this selector does not know.
    fn outstanding(&self, server: Server) -> u32;

    /// What became of the requests to this server so far; none of a server that this selector does not know.
    fn tally(&self, _server: Server) -> Tally {
        Tally::default()
    }

    /// What was learned of this server; `None`: nothing, or it is too old.
    fn learned(&self, _now: Nanos, _server: Server) -> Option<Learned> {
        None
    }

    /// What was not believed so far.
    fn counts(&self) -> Counts;

    /// How many selectors choose among the same servers, from now on. Only those care that weigh their own requests by it.
    fn set_selectors(&mut self, _selectors: u32) {}
}
