//! What a program provides to the campaign, and one run of it.

use super::fault::FaultKind;
use super::{Broken, Checked, Findings, Mutant, Rule, Trial, TrialRun};
use midflight_endpoint::{MS, Nanos};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

/// A program in its own world with a checker that sees everything: one run of a trial.
pub trait Subject: Sized {
    /// Name on the command line.
    const NAME: &'static str;
    /// Bugs that its campaign must find.
    const MUTANTS: &'static [Mutant];
    /// Rules of which each must be the first one that some mutant breaks.
    const FIRST: &'static [Rule] = &[];
    /// The trial's type.
    type Trial: Trial;
    /// The checker's type.
    type Findings: Findings;
    /// What a trial schedules besides faults.
    type ScheduledAction;

    /// The trial of a seed.
    fn draw(seed: u64) -> Self::Trial;

    /// A world from a valid trial; `traced`: record a line for each event.
    fn build(trial: &Self::Trial, traced: bool) -> Self;

    /// The running trial.
    fn trial_run(&self) -> &TrialRun<Self::Trial, Self::Findings>;

    /// The running trial, mutable.
    fn trial_run_mut(&mut self) -> &mut TrialRun<Self::Trial, Self::Findings>;

    /// Ends the run.
    fn into_trial_run(self) -> TrialRun<Self::Trial, Self::Findings>;

    /// Scheduled actions by time.
    fn scheduled_actions(_trial: &Self::Trial) -> Vec<(Nanos, Self::ScheduledAction)> {
        Vec::new()
    }

    /// Executes a scheduled action.
    fn execute(&mut self, _action: Self::ScheduledAction) {}

    /// Starts one of the program's own faults; `false`: it does not apply, so it does not end either.
    fn start_fault(&mut self, _what: &FaultKindOf<Self>) -> bool {
        true
    }

    /// Ends one of the program's own faults.
    fn end_fault(&mut self, _what: &FaultKindOf<Self>) {}

    /// Runs until this time.
    ///
    /// # Errors
    /// The first broken rule.
    fn run_until(&mut self, at: Nanos) -> Checked {
        self.trial_run_mut().run_until(at)
    }

    /// After the last fault: waits until the system has recovered, and checks totals.
    ///
    /// # Errors
    /// The first broken rule.
    fn await_recovery(&mut self) -> Checked;

    /// Plants a bug on this thread (feature `mutants`); 0: none.
    fn plant(mutant: u32) {
        midflight_endpoint::mutants::plant(mutant);
    }
}

/// The faults of a program.
pub type FaultKindOf<S> = <<S as Subject>::Trial as Trial>::FaultKind;

/// Result of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Virtual nanoseconds.
    pub simulated: Nanos,
    /// Number of faults.
    pub faults: u64,
    /// Events of the world.
    pub events: u64,
    /// Equal for equal runs.
    pub trace_hash: u64,
    /// The first violation, if any.
    pub violation: Option<Violation>,
}

/// A broken rule and its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Virtual time.
    pub at: Nanos,
    /// The rule, and how it broke.
    pub broken: Broken,
}

/// Runs a trial.
#[must_use]
pub fn run<S: Subject>(trial: &S::Trial) -> Outcome {
    catch_unwind(AssertUnwindSafe(|| run_to_end(&mut S::build(trial, false)))).unwrap_or_else(|_| panicked())
}

/// Runs a trial with a line for each event.
#[must_use]
pub fn run_traced<S: Subject>(trial: &S::Trial) -> (Outcome, Vec<String>) {
    let mut subject = S::build(trial, true);
    (run_to_end(&mut subject), subject.into_trial_run().into_lines())
}

/// The panic message is on stderr.
fn panicked() -> Outcome {
    let broken = Broken { rule: Rule("PANIC"), what: "the program has panicked: its message is above".into() };
    Outcome { simulated: 0, faults: 0, events: 0, trace_hash: 0, violation: Some(Violation { at: 0, broken }) }
}

fn run_to_end<S: Subject>(subject: &mut S) -> Outcome {
    let end = script(subject).and_then(|()| subject.await_recovery());
    let run = subject.trial_run();
    let world = &run.world;
    let at_the_end = end.err().map(|broken| Violation { at: world.now(), broken });
    Outcome {
        simulated: world.now(),
        faults: run.befell(),
        events: world.events(),
        trace_hash: world.trace_hash(),
        // The checker's violation came first.
        violation: run.violation().or(at_the_end),
    }
}

/// A scheduled step. At equal times, a fault ends after other steps.
enum Step<D> {
    Begin(usize),
    End(usize),
    Action(D),
}

fn script<S: Subject>(subject: &mut S) -> Checked {
    let trial = Rc::clone(&subject.trial_run().trial);
    let mut steps = Vec::new();
    for (number, fault) in trial.faults().iter().enumerate() {
        let (begin, end) = trial.times(fault);
        steps.push((begin, Step::Begin(number)));
        steps.push((end, Step::End(number)));
    }
    steps.extend(S::scheduled_actions(&trial).into_iter().map(|(at, action)| (at, Step::Action(action))));
    steps.sort_by_key(|(at, _)| *at);
    for (at, step) in steps {
        subject.run_until(at)?;
        match step {
            Step::Begin(number) => begin(subject, number, &trial.faults()[number].what),
            Step::End(number) => end(subject, number, &trial.faults()[number].what),
            Step::Action(action) => subject.execute(action),
        }
    }
    subject.run_until(trial.heal_ms() * MS)
}

fn begin<S: Subject>(subject: &mut S, number: usize, what: &FaultKindOf<S>) {
    subject.trial_run_mut().begin(number);
    match what.common() {
        Some(common) => subject.trial_run_mut().common_begins(common),
        None if subject.start_fault(what) => {}
        None => drop(subject.trial_run_mut().end(number)),
    }
}

fn end<S: Subject>(subject: &mut S, number: usize, what: &FaultKindOf<S>) {
    if what.has_no_end() || !subject.trial_run_mut().end(number) {
        return;
    }
    match what.common() {
        Some(common) => subject.trial_run_mut().common_ends(common),
        None => subject.end_fault(what),
    }
}
