//! A second program needs no change of the simulator: an echo with a counter, its nodes, records and campaign, and a
//! bug to find.

#![allow(clippy::unwrap_used, reason = "a test ends where it cannot go on")]

use midflight_endpoint::MS;
use midflight_sim::check::{
    BadTrial, Broken, Campaign, Checked, Common, Fails, Fault, Findings, Judgement, Mutant, Net, Party, Pass, Places,
    Rule, Stage, Subject, Trace, Trial, drop_faults, drop_from, run, run_traced, shrink,
};
use midflight_sim::{Actor, Context, Happening, Place, Wake, World};
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::cell::Cell;
use std::convert::Infallible;
use std::net::SocketAddr;

const OWN: Rule = Rule("E1");
const ALL: Rule = Rule("E2");
const MUTANTS: [Mutant; 1] = [Mutant { number: 1, name: "wrong-echo", place: "here", budget: 100 }];
const AGAIN: u64 = 5 * MS;

thread_local! {
    static PLANTED: Cell<u32> = const { Cell::new(0) };
}

/// Echoes each question, and counts; a bug is planted in the third answer.
struct Server(u8);

impl Actor for Server {
    fn datagram(&mut self, context: &mut Context<'_>, from: SocketAddr, datagram: &[u8]) {
        self.0 = self.0.saturating_add(1);
        let is_wrong = PLANTED.get() == 1 && self.0 == 3;
        context.send(from, &[datagram[0] ^ u8::from(is_wrong), self.0]);
    }
}

/// Repeats each question until it is answered, then asks the next.
struct Client {
    server: SocketAddr,
    questions: Vec<u8>,
}

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

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Node {
    Server(usize),
    Client(usize),
}

impl Party for Node {
    fn kind(self) -> &'static str {
        if matches!(self, Self::Server(_)) { "server" } else { "client" }
    }

    fn place(&mut self) -> &mut usize {
        let (Self::Server(place) | Self::Client(place)) = self;
        place
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct EchoTrial {
    seed: u64,
    network: Net,
    questions: Vec<u8>,
    faults: Vec<Fault<Common<Node>>>,
}

impl Trial for EchoTrial {
    type What = Common<Node>;
    const PASSES: &'static [Pass<Self>] = &[drop_questions, drop_faults];

    fn seed(&self) -> u64 {
        self.seed
    }

    fn heal_ms(&self) -> u64 {
        100
    }

    fn network(&self) -> Net {
        self.network
    }

    fn faults(&self) -> &[Fault<Common<Node>>] {
        &self.faults
    }

    fn faults_mut(&mut self) -> &mut Vec<Fault<Common<Node>>> {
        &mut self.faults
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

#[derive(Default)]
struct Answers {
    answered: usize,
    judgement: Judgement,
}

impl Findings for Answers {
    fn judgement(&mut self) -> &mut Judgement {
        &mut self.judgement
    }

    fn describe(datagram: &[u8]) -> String {
        format!("{datagram:?}")
    }

    fn words(_trace: &Trace, what: &dyn Any) -> Option<String> {
        what.downcast_ref::<Answered>().map(|answered| format!("{} has an answer", answered.question))
    }

    fn happened(&mut self, _at: u64, happening: &Happening<'_>) -> Checked {
        let Some(Answered { question, answer }) = happening.of() else { return Ok(()) };
        self.answered += 1;
        if question == answer {
            return Ok(());
        }
        Err(Broken { rule: OWN, what: format!("{question} is answered by {answer}") })
    }
}

struct Echo(Stage<EchoTrial, Answers>);

impl Subject for Echo {
    const NAME: &'static str = "echo";
    const MUTANTS: &'static [Mutant] = &MUTANTS;
    type Trial = EchoTrial;
    type Findings = Answers;
    type Deed = Infallible;

    fn draw(seed: u64) -> EchoTrial {
        let network = Net { loss: (seed % 4) as f64 / 10.0, ..Net::KIND };
        let crash = |n| Fault { at_ms: 2 + 20 * n, for_ms: 10, what: Common::Crash(Node::Server(0)) };
        EchoTrial {
            seed,
            network,
            questions: (0..(seed % 20) as u8).collect(),
            faults: (0..seed % 3).map(crash).collect(),
        }
    }

    fn build(trial: &EchoTrial, traced: bool) -> Self {
        let mut world = World::new(trial.seed, trial.network.faults());
        let server = world.add_actor(Place::Apart, Box::new(|_| Box::new(Server(0))));
        let (questions, at) = (trial.questions.clone(), world.address(server));
        let client = move |_: &mut _| Box::new(Client { server: at, questions: questions.clone() }) as Box<dyn Actor>;
        let client = world.add_actor(Place::Apart, Box::new(client));
        let places = Places::default().with(Node::Server, &[server]).with(Node::Client, &[client]);
        let judgement = Judgement::new(traced.then(|| Trace::new(places.names())));
        Self(Stage::new(trial, world, places, Answers { judgement, answered: 0 }))
    }

    fn stage(&self) -> &Stage<EchoTrial, Answers> {
        &self.0
    }

    fn stage_mut(&mut self) -> &mut Stage<EchoTrial, Answers> {
        &mut self.0
    }

    fn into_stage(self) -> Stage<EchoTrial, Answers> {
        self.0
    }

    fn heal(&mut self) -> Checked {
        self.run_until(self.0.world.now() + 10_000 * MS)?;
        let (answered, asked) = (self.0.findings().answered, self.0.trial.questions.len());
        if answered == asked {
            return Ok(());
        }
        Err(Broken { rule: ALL, what: format!("{answered} of {asked} questions are answered") })
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
    assert_eq!((small.questions.len(), small.faults.len()), (3, 0));
    assert_eq!(run::<Echo>(&small).violation.unwrap().broken.rule, OWN);
    let (_, lines) = run_traced::<Echo>(&small);
    assert!(lines[0].contains("client 0 > server 0") && lines.last().unwrap().contains("BROKEN E1"), "{lines:?}");
}
