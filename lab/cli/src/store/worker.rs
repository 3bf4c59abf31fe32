//! A client with one operation at a time, each on a random key.

use hdrhistogram::Histogram;
use midflight_host::Error;
use midflight_host::clock;
use midflight_host::store::{Answer, Operation, StoreClient, StoreError};
use midflight_spec::store::history::{Call, Outcome, Record};
use rand::RngExt;
use rand::rngs::StdRng;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// The largest recorded latency, one minute. Longer ones count as this.
const LATENCY_MAX_NS: u64 = 60_000_000_000;
/// Each value is a number with this many digits.
const DIGITS: usize = 19;
/// A CAS has two values and a key in one packet.
const CAS_VALUE_MAX: usize = 500;

pub(super) struct Plan {
    pub(super) keys: u32,
    /// Prefix of keys.
    pub(super) prefix: String,
    /// Share of reads, 0 to 1.
    pub(super) reads: f64,
    pub(super) value_bytes: usize,
    pub(super) keeps_history: bool,
}

#[derive(Default)]
pub(super) struct Shared {
    pub(super) stop: AtomicBool,
    /// Time of the last response; 0 before the first.
    last: AtomicU64,
    /// Longest time without a response.
    gap: AtomicU64,
}

impl Shared {
    fn note_response(&self, now: u64) {
        let last = self.last.swap(now, Relaxed);
        if last != 0 {
            self.gap.fetch_max(now.saturating_sub(last), Relaxed);
        }
    }

    /// Including the time until `now`.
    pub(super) fn longest_gap_ns(&self, now: u64) -> u64 {
        self.note_response(now);
        self.gap.load(Relaxed)
    }
}

pub(super) struct Done {
    pub(super) reads_ns: Histogram<u64>,
    pub(super) writes_ns: Histogram<u64>,
    pub(super) failed: u64,
    pub(super) unknown: u64,
    pub(super) first_error: Option<Error>,
    pub(super) history: Vec<Record>,
}

pub(super) struct Worker<'a> {
    process: u64,
    client: &'a StoreClient,
    plan: &'a Plan,
    rng: StdRng,
    /// For each key, the last value that this client knows, which a CAS expects.
    known: Vec<String>,
    written: u64,
    done: Done,
}

impl<'a> Worker<'a> {
    pub(super) fn new(process: u64, client: &'a StoreClient, plan: &'a Plan) -> anyhow::Result<Self> {
        let latencies = || Histogram::new_with_max(LATENCY_MAX_NS, 3);
        let (reads_ns, writes_ns) = (latencies()?, latencies()?);
        let done = Done { reads_ns, writes_ns, failed: 0, unknown: 0, first_error: None, history: Vec::new() };
        let known = vec![String::new(); plan.keys as usize];
        Ok(Self { process, client, plan, rng: rand::make_rng(), known, written: 0, done })
    }

    pub(super) fn run(mut self, shared: &Shared) -> Done {
        while !shared.stop.load(Relaxed) {
            let key = self.rng.random_range(0..self.plan.keys);
            let call = self.choose(key);
            self.call(key, call, shared);
        }
        self.done
    }

    fn choose(&mut self, key: u32) -> Call {
        if self.rng.random_bool(self.plan.reads) {
            return if self.rng.random_ratio(1, 10) { Call::Exists } else { Call::Get };
        }
        match self.rng.random_range(0..10) {
            7 if self.plan.value_bytes <= CAS_VALUE_MAX => {
                Call::Cas(self.known[key as usize].clone(), self.new_value())
            }
            6 => Call::Create(self.new_value()),
            8 => Call::Incr(1),
            9 => Call::Delete,
            _ => Call::Put(self.new_value()),
        }
    }

    /// Unique, with leading zeros.
    fn new_value(&mut self) -> String {
        self.written += 1;
        let number = self.process * 1_000_000_000_000 + self.written;
        format!("{number:0width$}", width = self.plan.value_bytes.max(DIGITS))
    }

    fn call(&mut self, key: u32, call: Call, shared: &Shared) {
        let name = format!("{}{key}", self.plan.prefix);
        let operation = operation(&name, &call);
        let is_write = operation.is_write();
        let start_ns = clock::now();
        let outcome = self.client.submit(operation).and_then(|handle| handle.wait());
        let end_ns = clock::now();
        if outcome.is_ok() {
            shared.note_response(end_ns);
            let latencies = if is_write { &mut self.done.writes_ns } else { &mut self.done.reads_ns };
            latencies.saturating_record(end_ns - start_ns);
        }
        self.learn(key, &call, &outcome);
        let result = self.judge(outcome);
        if self.plan.keeps_history {
            let end_ns = result.is_some().then_some(end_ns);
            self.done.history.push(Record { process: self.process, call, key: name, result, start_ns, end_ns });
        }
    }

    fn learn(&mut self, key: u32, call: &Call, outcome: &Result<Answer, Error>) {
        let known = match (call, outcome) {
            (Call::Put(value) | Call::Cas(_, value) | Call::Create(value), Ok(Answer::Done)) => value.clone(),
            (_, Ok(Answer::Value(value) | Answer::Conflict { present: value })) => text(value),
            (_, Ok(Answer::Number(sum))) => sum.to_string(),
            _ => return,
        };
        self.known[key as usize] = known;
    }

    /// `None` if the operation may or may not have taken place.
    fn judge(&mut self, outcome: Result<Answer, Error>) -> Option<Outcome> {
        let error = match outcome {
            Ok(answer) => return Some(seen(answer)),
            Err(Error::Store(StoreError::NotANumber)) => return Some(Outcome::NotANumber),
            Err(error) => error,
        };
        let is_unknown = error.is_unknown();
        self.done.first_error.get_or_insert(error);
        *(if is_unknown { &mut self.done.unknown } else { &mut self.done.failed }) += 1;
        (!is_unknown).then_some(Outcome::Failed)
    }
}

fn operation(name: &str, call: &Call) -> Operation {
    let key = name.as_bytes().to_vec();
    let bytes = |text: &String| text.as_bytes().to_vec();
    match call {
        Call::Get => Operation::Get { key },
        Call::Exists => Operation::Exists { key },
        Call::Put(value) => Operation::Put { key, value: bytes(value) },
        Call::Delete => Operation::Delete { key },
        Call::Cas(expected, new) => Operation::Cas { key, expected: bytes(expected), new: bytes(new) },
        Call::Create(value) => Operation::Create { key, value: bytes(value) },
        Call::Incr(by) => Operation::Incr { key, by: *by },
        Call::Expire(_) => unreachable!("the load lets nothing expire"),
    }
}

fn seen(answer: Answer) -> Outcome {
    match answer {
        Answer::Value(value) => Outcome::Value(text(&value)),
        Answer::NotFound => Outcome::NotFound,
        Answer::Done => Outcome::Done,
        Answer::Existed(existed) => Outcome::Existed(existed),
        Answer::Conflict { present } => Outcome::Conflict(text(&present)),
        Answer::Number(sum) => Outcome::Number(sum),
        Answer::Updated(_) | Answer::Page(_) | Answer::Piece(_) | Answer::Transacted(_) => {
            unreachable!("the load draws none of these")
        }
    }
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_cas_fits_into_a_packet() {
        let name = format!("load-{:016x}-{}", u64::MAX, 10_000_000);
        assert!(name.len() + 2 * CAS_VALUE_MAX <= midflight_wire::store::DATA_MAX);
    }
}
