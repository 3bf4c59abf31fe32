//! Every submitted task, and its results. A task must end exactly once, with the result of its function.

use super::findings::Findings;
use anyhow::Result;
use midflight_endpoint::Nanos;
use midflight_host::{Client, Error, Job, JobHandle, TaskError, TaskOutcome, TaskResult};
use midflight_tasks::functions::{Began, ExecResult};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};

#[derive(Clone, Debug)]
pub(crate) enum Expected {
    /// Of `noop`.
    Nothing,
    /// Of `sleep` and `spin`: their least duration.
    Took(Nanos),
    /// Of `exec`: the output of each task's command.
    Prints(Vec<Vec<u8>>),
}

impl Expected {
    fn is(&self, index: usize, result: &TaskResult) -> bool {
        match self {
            Self::Nothing => result.value.is_empty(),
            Self::Took(time) => Began::decode(&result.value).is_some() && result.timing.ran_ns >= *time,
            Self::Prints(texts) => ExecResult::decode(&result.value)
                .is_some_and(|said| said.code == 0 && Some(&said.stdout) == texts.get(index)),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Ledger {
    findings: Arc<Findings>,
    submitted: AtomicU64,
    ok: AtomicU64,
    cancelled: AtomicU64,
    /// Tasks with any other end; each is a finding.
    wrong: AtomicU64,
    /// Results of second and later attempts.
    again: AtomicU64,
}

#[derive(Debug)]
struct Page {
    number: u64,
    expected: Expected,
    /// How often each task has ended.
    ends: Vec<AtomicU8>,
    cancelling: AtomicBool,
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) handle: JobHandle,
    page: Arc<Page>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Totals {
    pub(crate) submitted: u64,
    pub(crate) ok: u64,
    pub(crate) cancelled: u64,
    pub(crate) again: u64,
    /// Tasks that have not ended.
    pub(crate) open: u64,
}

impl Ledger {
    pub(crate) fn new(findings: Arc<Findings>) -> Self {
        let zero = AtomicU64::default;
        Self { findings, submitted: zero(), ok: zero(), cancelled: zero(), wrong: zero(), again: zero() }
    }

    pub(crate) fn submit(self: &Arc<Self>, client: &Client, job: Job, expected: Expected) -> Result<Entry> {
        let tasks = job.tasks.len();
        let number = self.submitted.fetch_add(tasks as u64, Relaxed);
        let ends = std::iter::repeat_with(AtomicU8::default).take(tasks).collect();
        let page = Arc::new(Page { number, expected, ends, cancelling: AtomicBool::new(false) });
        let (ledger, of_sink) = (Arc::clone(self), Arc::clone(&page));
        let handle = client.submit_to(job, move |index, outcome| ledger.note(&of_sink, index, outcome))?;
        Ok(Entry { handle, page })
    }

    fn note(&self, page: &Page, index: usize, outcome: TaskOutcome) {
        let task = || format!("task {}", page.number + index as u64);
        if page.ends[index].fetch_add(1, Relaxed) > 0 {
            self.findings.add(format!("{} ended twice", task()));
            return;
        }
        let count = match outcome {
            Ok(result) if page.expected.is(index, &result) => {
                self.again.fetch_add(u64::from(result.attempt > 1), Relaxed);
                &self.ok
            }
            Err(Error::Task(TaskError::Cancelled)) if page.cancelling.load(Relaxed) => &self.cancelled,
            other => {
                self.findings.add(format!("{} was to give {:?} and ended as {other:?}", task(), page.expected));
                &self.wrong
            }
        };
        count.fetch_add(1, Relaxed);
    }

    pub(crate) fn totals(&self) -> Totals {
        // Read the ends first: a task that ends in between was already submitted.
        let (ok, cancelled) = (self.ok.load(Relaxed), self.cancelled.load(Relaxed));
        let ended = ok + cancelled + self.wrong.load(Relaxed);
        let submitted = self.submitted.load(Relaxed);
        let open = submitted.saturating_sub(ended);
        Totals { submitted, ok, cancelled, again: self.again.load(Relaxed), open }
    }
}

impl Entry {
    /// Cancels tasks that have not been assigned.
    pub(crate) fn cancel(&self) {
        self.page.cancelling.store(true, Relaxed);
        self.handle.cancel();
    }

    pub(crate) fn open(&self) -> usize {
        self.page.ends.iter().filter(|ends| ends.load(Relaxed) == 0).count()
    }

    pub(crate) fn is_done(&self) -> bool {
        self.page.ends.iter().all(|ends| ends.load(Relaxed) > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use midflight_host::TaskTiming;

    fn page(ledger: &Ledger, expected: Expected, tasks: usize) -> Page {
        let number = ledger.submitted.fetch_add(tasks as u64, Relaxed);
        let ends = std::iter::repeat_with(AtomicU8::default).take(tasks).collect();
        Page { number, expected, ends, cancelling: AtomicBool::new(false) }
    }

    fn result(value: Vec<u8>, ran_ns: u64) -> TaskOutcome {
        let timing = TaskTiming { submitted: 0, sent: 0, completed: 0, waited_us: 0, held_us: 0, ran_ns };
        Ok(TaskResult { value, file: None, attempt: 1, timing })
    }

    #[test]
    fn what_ends_twice_otherwise_or_not_at_all_is_seen() {
        let findings = Arc::new(Findings::default());
        let ledger = Ledger::new(Arc::clone(&findings));
        let noop = page(&ledger, Expected::Nothing, 3);
        ledger.note(&noop, 0, result(Vec::new(), 0));
        assert_eq!((findings.count(), ledger.totals().open), (0, 2));
        ledger.note(&noop, 0, result(Vec::new(), 0));
        ledger.note(&noop, 1, Err(TaskError::Cancelled.into()));
        assert_eq!(findings.first().len(), 2);
        assert!(findings.first()[0].contains("task 0 ended twice"), "{:?}", findings.first());
        assert!(findings.first()[1].contains("task 1 was to give Nothing and ended as Err(Task(Cancelled))"));
        let Totals { submitted, ok, cancelled, open, .. } = ledger.totals();
        assert_eq!((submitted, ok, cancelled, open), (3, 1, 0, 1));
    }

    #[test]
    fn results_are_those_of_the_function() {
        let began = Began { asked: 1, started: 2 }.encode();
        let says = |text: &str| ExecResult { stdout: text.into(), ..ExecResult::default() }.encode();
        let prints = Expected::Prints(vec![b"0".to_vec(), b"1".to_vec()]);
        let took = Expected::Took(5);
        for (expected, index, value, ran_ns, right) in [
            (&Expected::Nothing, 0, vec![0], 0, false),
            (&took, 0, began.clone(), 5, true),
            (&took, 0, began, 4, false),
            (&took, 0, Vec::new(), 5, false),
            (&prints, 1, says("1"), 0, true),
            (&prints, 1, says("0"), 0, false),
            (&prints, 2, says("2"), 0, false),
        ] {
            let outcome = result(value, ran_ns).unwrap();
            assert_eq!(expected.is(index, &outcome), right, "{expected:?} {index} {outcome:?}");
        }
    }
}
