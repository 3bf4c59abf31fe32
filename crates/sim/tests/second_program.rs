//! A second program needs no change of the simulator: an echo with a counter, its nodes, what they record, and its campaign
//! with a bug to find.

#![allow(clippy::unwrap_used, reason = "a test ends where it cannot go on")]

use midflight_endpoint::MS;
use midflight_sim::check::{
    BadTrial, Broken, Campaign, Checked, Disturbed, Fails, Mutant, Net, Pass, Rule, Subject, Trial, Violation,
    drop_from, run, shrink,
};
use midflight_sim::{Actor, Context, Happening, NodeId, Observer, Place, Wake, World};
use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;

const OWN: Rule = Rule("E1");
const ALL: Rule = Rule("E2");
const MUTANTS: [Mutant; 1] = [Mutant { number: 1, name: "wrong-echo", place: "here", budget: 100 }];
const AGAIN: u64 = 5 * MS;

thread_local! {
    static PLANTED: Cell<u32> = const { Cell::new(0) };
}

/// Answers each question with itself, and counts; a bug is planted in the third answer.
struct Server(u8);

impl Actor for Server {
    fn datagram(&mut self, context: &mut Context<'_>, from: SocketAddr, datagram: &[u8]) {
        self.0 = self.0.saturating_add(1);
        let is_wrong = PLANTED.get() == 1 && self.0 == 3;
        context.send(from, &[datagram[0] ^ u8::from(is_wrong), self.0]);
    }
}

/// Asks one question after the other, each until it is answered.
struct Client {
    server: SocketAddr,
    questions: Vec<u8>,
}

/// A question was answered.
struct Answered {
    question: u8,
    answer: u8,
}

impl Actor for Client {
    fn start(&mut self, context: &mut Context<'_>) {
        self.wake(context, Wake::Time);
    }

    fn datagram(&mut self, context: &mut Context<'_>, _from: SocketAddr, datagram: &[u8]) {
        if let Some(question) = self.questions.pop() {
            context.record(&Answered { question, answer: datagram[0] });
            self.wake(context, Wake::Time);
        }
    }

    fn wake(&mut self, context: &mut Context<'_>, _wake: Wake) {
        let Some(question) = self.questions.last() else { return context.sleep() };
        context.send(self.server, &[*question]);
        context.wake_at(context.now() + AGAIN);
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct EchoTrial {
    seed: u64,
    network: Net,
    questions: Vec<u8>,
    /// When the server dies; it comes back 10 ms later.
    crashes_ms: Vec<u64>,
}

impl Trial for EchoTrial {
    const PASSES: &'static [Pass<Self>] = &[drop_questions, drop_crashes];

    fn seed(&self) -> u64 {
        self.seed
    }

    fn size(&self) -> String {
        format!("{} questions", self.questions.len())
    }

    fn validate(&self) -> Result<(), BadTrial> {
        self.network.validate("network")
    }
}

fn drop_questions(best: &mut EchoTrial, fails: Fails<'_, EchoTrial>) {
    drop_from(best, fails, |trial| &mut trial.questions);
}

fn drop_crashes(best: &mut EchoTrial, fails: Fails<'_, EchoTrial>) {
    drop_from(best, fails, |trial| &mut trial.crashes_ms);
}

#[derive(Default)]
struct Findings {
    answered: usize,
    violation: Option<Violation>,
}

struct Monitor(Rc<RefCell<Findings>>);

impl Observer for Monitor {
    fn happened(&mut self, at: u64, happening: &Happening<'_>) {
        let Some(Answered { question, answer }) = happening.of() else { return };
        let mut findings = self.0.borrow_mut();
        findings.answered += 1;
        if question != answer && findings.violation.is_none() {
            let broken = Broken { rule: OWN, what: format!("{question} is answered by {answer}") };
            findings.violation = Some(Violation { at, broken });
        }
    }
}

struct Echo {
    world: World,
    server: NodeId,
    trial: EchoTrial,
    findings: Rc<RefCell<Findings>>,
}

impl Subject for Echo {
    const NAME: &'static str = "echo";
    const MUTANTS: &'static [Mutant] = &MUTANTS;
    type Trial = EchoTrial;

    fn draw(seed: u64) -> EchoTrial {
        let network = Net { loss: (seed % 4) as f64 / 10.0, ..Net::KIND };
        let crashes_ms = (0..seed % 3).map(|n| 2 + 20 * n).collect();
        EchoTrial { seed, network, questions: (0..(seed % 20) as u8).collect(), crashes_ms }
    }

    fn build(trial: &EchoTrial, _traced: bool) -> Self {
        let mut world = World::new(trial.seed, trial.network.faults());
        let findings = Rc::<RefCell<Findings>>::default();
        world.set_observer(Box::new(Monitor(findings.clone())));
        let server = world.add_actor(Place::Apart, Box::new(|_| Box::new(Server(0))));
        let (questions, at) = (trial.questions.clone(), world.address(server));
        let client = move |_: &mut _| Box::new(Client { server: at, questions: questions.clone() }) as Box<dyn Actor>;
        world.add_actor(Place::Apart, Box::new(client));
        Self { world, server, trial: trial.clone(), findings }
    }

    fn judge(&mut self) -> Checked {
        let mut disturbed = Disturbed::default();
        for at in self.trial.crashes_ms.clone() {
            self.world.run(at * MS, |_| false);
            disturbed.crash(&mut self.world, self.server);
            self.world.run((at + 10) * MS, |_| false);
            disturbed.restart(&mut self.world, self.server);
        }
        Ok(())
    }

    fn heal(&mut self) -> Checked {
        self.world.run(self.world.now() + 10_000 * MS, |_| false);
        let (answered, asked) = (self.findings.borrow().answered, self.trial.questions.len());
        if answered == asked {
            return Ok(());
        }
        Err(Broken { rule: ALL, what: format!("{answered} of {asked} questions are answered") })
    }

    fn world(&self) -> &World {
        &self.world
    }

    fn faults(&self) -> u64 {
        self.trial.crashes_ms.len() as u64
    }

    fn violation(&self) -> Option<Violation> {
        self.findings.borrow().violation.clone()
    }

    fn into_lines(self) -> Vec<String> {
        Vec::new()
    }

    fn plant(mutant: u32) {
        PLANTED.set(mutant);
    }
}

#[test]
fn a_campaign_of_another_program_finds_its_bug_and_makes_the_trial_small() {
    let totals = Campaign { seeds: 0..100, threads: 2, mutant: 0 }.run::<Echo>(&|_| true);
    assert_eq!((totals.seeds, totals.faults, totals.first), (100, 99, None));
    let caught = MUTANTS[0].hunt::<Echo>(2, &|_| true).unwrap();
    assert_eq!((caught.rule, caught.seed), (OWN, 3));
    Echo::plant(1);
    let small = shrink::<Echo>(&Echo::draw(16), OWN, |_| true);
    assert_eq!((small.questions.len(), small.crashes_ms.len()), (3, 0));
    assert_eq!(run::<Echo>(&small).violation.unwrap().broken.rule, OWN);
}
