//! What a program gives to the campaign, and one run of it.

use super::{Broken, Checked, Mutant, Rule, Trial};
use crate::World;
use midflight_endpoint::Nanos;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A program in a world of its own, with a checker that sees all: one run of a trial.
pub trait Subject: Sized {
    /// On the command line.
    const NAME: &'static str;
    /// Bugs that its campaign must find.
    const MUTANTS: &'static [Mutant];
    /// What is tried.
    type Trial: Trial;

    /// The trial of a seed.
    fn draw(seed: u64) -> Self::Trial;

    /// A world out of a valid trial; `traced` wants a line for everything that happens.
    fn build(trial: &Self::Trial, traced: bool) -> Self;

    /// Lets all happen that the trial wants, up to its last fault, and holds it to the rules.
    ///
    /// # Errors
    /// The first rule that was broken.
    fn judge(&mut self) -> Checked;

    /// After the last fault all must heal, and what was counted must add up.
    ///
    /// # Errors
    /// The first rule that was broken.
    fn heal(&mut self) -> Checked;

    /// Its world.
    fn world(&self) -> &World;

    /// Faults that befell it so far.
    fn faults(&self) -> u64;

    /// What the checker saw first while the world ran, if a rule was broken.
    fn violation(&self) -> Option<Violation>;

    /// The lines of a traced run.
    fn into_lines(self) -> Vec<String>;

    /// Plants a bug on this thread, in a build with the feature `mutants`; 0: none.
    fn plant(mutant: u32) {
        midflight_endpoint::mutants::plant(mutant);
    }
}

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
    (finish(&mut subject), subject.into_lines())
}

/// What the program said as it ended stands in the error output.
fn panicked() -> Outcome {
    let broken = Broken { rule: Rule("PANIC"), what: "the program has panicked: its message is above".into() };
    Outcome { simulated: 0, faults: 0, events: 0, trace_hash: 0, violation: Some(Violation { at: 0, broken }) }
}

fn finish<S: Subject>(subject: &mut S) -> Outcome {
    let end = subject.judge().and_then(|()| subject.heal());
    let world = subject.world();
    let at_the_end = end.err().map(|broken| Violation { at: world.now(), broken });
    Outcome {
        simulated: world.now(),
        faults: subject.faults(),
        events: world.events(),
        trace_hash: world.trace_hash(),
        // What the checker saw came first.
        violation: subject.violation().or(at_the_end),
    }
}
