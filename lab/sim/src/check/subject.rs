//! What a program gives to the campaign, and one run of it.

use super::fault::What;
use super::{Broken, Checked, Findings, Mutant, Rule, Stage, Trial};
use midflight_endpoint::{MS, Nanos};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

/// A program in a world of its own, with a checker that sees all: one run of a trial.
pub trait Subject: Sized {
    /// On the command line.
    const NAME: &'static str;
    /// Bugs that its campaign must find.
    const MUTANTS: &'static [Mutant];
    /// Rules of which each must be the first that some of these bugs break.
    const FIRST: &'static [Rule] = &[];
    /// What is tried.
    type Trial: Trial;
    /// Its checker.
    type Findings: Findings;
    /// What a trial wants done at a time, besides faults.
    type Deed;

    /// The trial of a seed.
    fn draw(seed: u64) -> Self::Trial;

    /// A world out of a valid trial; `traced` wants a line for everything that happens.
    fn build(trial: &Self::Trial, traced: bool) -> Self;

    /// Where it takes place.
    fn stage(&self) -> &Stage<Self::Trial, Self::Findings>;

    /// The same, to be changed.
    fn stage_mut(&mut self) -> &mut Stage<Self::Trial, Self::Findings>;

    /// The end.
    fn into_stage(self) -> Stage<Self::Trial, Self::Findings>;

    /// What is to be done, and when.
    fn deeds(_trial: &Self::Trial) -> Vec<(Nanos, Self::Deed)> {
        Vec::new()
    }

    /// Does it.
    fn does(&mut self, _deed: Self::Deed) {}

    /// A fault of the program's own begins; `false`: it does not befall the world, so it does not end either.
    fn begins(&mut self, _what: &WhatOf<Self>) -> bool {
        true
    }

    /// It ends.
    fn ends(&mut self, _what: &WhatOf<Self>) {}

    /// Runs until this time.
    ///
    /// # Errors
    /// The first rule that was broken.
    fn run_until(&mut self, at: Nanos) -> Checked {
        self.stage_mut().run_until(at)
    }

    /// After the last fault all must heal, and what was counted must add up.
    ///
    /// # Errors
    /// The first rule that was broken.
    fn heal(&mut self) -> Checked;

    /// Plants a bug on this thread, in a build with the feature `mutants`; 0: none.
    fn plant(mutant: u32) {
        midflight_endpoint::mutants::plant(mutant);
    }
}

/// The faults of a program.
pub type WhatOf<S> = <<S as Subject>::Trial as Trial>::What;

/// What a run came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Virtual nanoseconds.
    pub simulated: Nanos,
    /// Faults that befell it.
    pub faults: u64,
    /// Events of the world.
    pub events: u64,
    /// Says whether two runs were the same.
    pub trace_hash: u64,
    /// The first rule that was broken, if one was.
    pub violation: Option<Violation>,
}

/// A rule was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// When.
    pub at: Nanos,
    /// Which rule, and how.
    pub broken: Broken,
}

/// Runs a trial.
#[must_use]
pub fn run<S: Subject>(trial: &S::Trial) -> Outcome {
    catch_unwind(AssertUnwindSafe(|| finish(&mut S::build(trial, false)))).unwrap_or_else(|_| panicked())
}

/// The same, with a line for everything that happened.
#[must_use]
pub fn run_traced<S: Subject>(trial: &S::Trial) -> (Outcome, Vec<String>) {
    let mut subject = S::build(trial, true);
    (finish(&mut subject), subject.into_stage().into_lines())
}

/// What the program said as it ended stands in the error output.
fn panicked() -> Outcome {
    let broken = Broken { rule: Rule("PANIC"), what: "the program has panicked: its message is above".into() };
    Outcome { simulated: 0, faults: 0, events: 0, trace_hash: 0, violation: Some(Violation { at: 0, broken }) }
}

fn finish<S: Subject>(subject: &mut S) -> Outcome {
    let end = script(subject).and_then(|()| subject.heal());
    let stage = subject.stage();
    let world = &stage.world;
    let at_the_end = end.err().map(|broken| Violation { at: world.now(), broken });
    Outcome {
        simulated: world.now(),
        faults: stage.befell(),
        events: world.events(),
        trace_hash: world.trace_hash(),
        // What the checker saw came first.
        violation: stage.violation().or(at_the_end),
    }
}

/// A scheduled step. The end of a fault stands behind steps that begin at the same time.
enum Step<D> {
    Begin(usize),
    End(usize),
    Deed(D),
}

/// All that the trial wants, up to the end of its last fault.
fn script<S: Subject>(subject: &mut S) -> Checked {
    let trial = Rc::clone(&subject.stage().trial);
    let mut steps = Vec::new();
    for (number, fault) in trial.faults().iter().enumerate() {
        let (begin, end) = trial.times(fault);
        steps.push((begin, Step::Begin(number)));
        steps.push((end, Step::End(number)));
    }
    steps.extend(S::deeds(&trial).into_iter().map(|(at, deed)| (at, Step::Deed(deed))));
    steps.sort_by_key(|(at, _)| *at);
    for (at, step) in steps {
        subject.run_until(at)?;
        match step {
            Step::Begin(number) => begin(subject, number, &trial.faults()[number].what),
            Step::End(number) => end(subject, number, &trial.faults()[number].what),
            Step::Deed(deed) => subject.does(deed),
        }
    }
    subject.run_until(trial.heal_ms() * MS)
}

fn begin<S: Subject>(subject: &mut S, number: usize, what: &WhatOf<S>) {
    subject.stage_mut().begin(number);
    match what.common() {
        Some(common) => subject.stage_mut().common_begins(common),
        None if subject.begins(what) => {}
        None => drop(subject.stage_mut().end(number)),
    }
}

fn end<S: Subject>(subject: &mut S, number: usize, what: &WhatOf<S>) {
    if what.has_no_end() || !subject.stage_mut().end(number) {
        return;
    }
    match what.common() {
        Some(common) => subject.stage_mut().common_ends(common),
        None => subject.ends(what),
    }
}
