//! A campaign of attacks: in a lab, an off-path attacker sends everything that it can forge while a cluster runs tasks. Every task must end
//! once, with its result; new clients and executors must be served; and everything must work afterwards.

mod attacker;
pub(crate) mod command;
mod connections;
mod datagram;
mod forge;
mod kinds;
mod listener;
mod outcome;
mod places;
mod victims;

pub(crate) use kinds::{Attack, KINDS, named};
pub(crate) use outcome::Report;
pub(crate) use places::Family;

use crate::engines::{LabEngine, own_port};
use crate::soak::findings::Findings;
use anyhow::{Context, Result, anyhow};
use attacker::Sent;
use forge::{Forge, Known};
use kinds::{LINK, Means};
use listener::Heard;
use midflight_net::{Lab, Options};
use outcome::Outcome;
use places::{ATTACKER, BYSTANDER, HOSTS};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use victims::Victims;

/// Undisturbed runs before the attack, and again after it, to compare with.
const QUIET_RUNS: usize = 2;
/// How long the attack runs before the tasks begin.
const HEAD_START: Duration = Duration::from_millis(200);

/// Bytes of neighbour discovery between a host and the router.
const NEIGHBOURS: u64 = 512;

#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) kinds: Vec<&'static Attack>,
    pub(crate) engines: Vec<LabEngine>,
    pub(crate) family: Family,
    /// Packets a second.
    pub(crate) rate: u64,
    /// Shortest duration of an attack; it continues until the started tasks have ended.
    pub(crate) time: Duration,
    pub(crate) tasks: usize,
}

/// Sets a lab up and runs the attacks in it.
///
/// # Errors
/// If it cannot run; [`midflight_net::LabError::Interrupted`] once the flag is set.
pub(crate) fn run(plan: &Plan, interrupted: &AtomicBool) -> Result<Report> {
    let lab = Lab::up_unless(&Options::new(format!("attack{}", std::process::id()), HOSTS), interrupted)?;
    places::allow_forgery(&lab)?;
    places::check_forgery(&lab, plan.family, own_port())?;
    let campaign = Campaign { lab: &lab, plan, interrupted };
    let outcomes = campaign.hold();
    lab.down()?;
    Ok(Report { outcomes: outcomes? })
}

struct Campaign<'a> {
    lab: &'a Lab,
    plan: &'a Plan,
    interrupted: &'a AtomicBool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Deeds {
    sent: Sent,
    /// Cookies for others that reached the attacker.
    strayed: u64,
    connections: u64,
}

impl Campaign<'_> {
    fn hold(&self) -> Result<Vec<Outcome>> {
        let mut outcomes = Vec::new();
        for &engine in &self.plan.engines {
            for kind in [&LINK].into_iter().chain(self.plan.kinds.iter().copied()) {
                let outcome = self.try_one(kind, engine)?;
                eprintln!("{outcome}");
                outcomes.push(outcome);
            }
        }
        Ok(outcomes)
    }

    /// Runs one attack against a new cluster.
    fn try_one(&self, kind: &'static Attack, engine: LabEngine) -> Result<Outcome> {
        let findings = Arc::new(Findings::default());
        let (lab, family) = (self.lab, self.plan.family);
        let victims = Victims::start(lab, engine, family, own_port(), Arc::clone(&findings), self.interrupted);
        let mut victims = victims.context("cannot start the cluster that is to be attacked")?;
        let mut quiet = Vec::new();
        // The first run only warms caches.
        victims.run(self.plan.tasks)?;
        for _ in 0..QUIET_RUNS {
            quiet.extend(victims.run(self.plan.tasks)?);
        }
        let before = self.carried()?;
        let (attacked, deeds) = self.attack(kind, &victims)?;
        judge(&findings, &deeds, before, self.carried()?);
        victims.look_for_the_dead()?;
        for _ in 0..QUIET_RUNS {
            quiet.extend(victims.run(self.plan.tasks)?);
        }
        victims.receive_newcomers()?;
        victims.look_for_the_dead()?;
        Ok(Outcome { kind, engine, quiet, attacked, sent: deeds.sent, connections: deeds.connections, findings })
    }

    /// Returns the duration of each run.
    fn attack(&self, kind: &Attack, victims: &Victims<'_>) -> Result<(Vec<Duration>, Deeds)> {
        let (known, servers, heard) = (victims.known()?, victims.servers()?, Heard::default());
        let ended = AtomicBool::new(false);
        let (times, sent, connections) = std::thread::scope(|scope| {
            let listener = scope.spawn(|| match kind.means {
                Means::SendAndHear(_) => self.there(|| heard.listen(known.own, known.switch, &ended)),
                Means::Send(_) | Means::Connect => Ok(()),
            });
            let sender = scope.spawn(|| match kind.means {
                Means::Send(make) | Means::SendAndHear(make) => {
                    self.there(|| self.send(&known, &heard, make, &ended)).map(|sent| (sent, 0))
                }
                Means::Connect => {
                    self.there(|| connections::hold(&servers, &ended)).map(|opened| (Sent::default(), opened))
                }
            });
            let times = self.run_tasks(victims);
            ended.store(true, Relaxed);
            let panicked = |_| anyhow!("the attacker panicked");
            listener.join().map_err(panicked)??;
            let (sent, connections) = sender.join().map_err(panicked)??;
            Ok::<_, anyhow::Error>((times?, sent, connections))
        })?;
        Ok((times, Deeds { sent, strayed: heard.strayed(), connections }))
    }

    fn there<T: Send>(&self, act: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        self.lab.within(ATTACKER, act)?
    }

    fn send(&self, known: &Known, heard: &Heard, make: fn(&mut Forge), ended: &AtomicBool) -> Result<Sent> {
        let mut forge = Forge::new(known.clone(), heard.clone(), rand::random());
        attacker::attack(&mut forge, make, self.plan.rate, ended)
    }

    /// The client's tasks repeatedly, and those of new clients once.
    fn run_tasks(&self, victims: &Victims<'_>) -> Result<Vec<Duration>> {
        std::thread::sleep(HEAD_START);
        let (started, mut times) = (Instant::now(), Vec::new());
        times.extend(victims.run(self.plan.tasks)?);
        victims.receive_newcomers()?;
        while started.elapsed() < self.plan.time && !times.is_empty() {
            times.extend(victims.run(self.plan.tasks)?);
        }
        Ok(times)
    }

    /// Bytes that the attacker sent, and that the bystander received.
    fn carried(&self) -> Result<(u64, u64)> {
        Ok((places::carried(self.lab, ATTACKER)?.1, places::carried(self.lab, BYSTANDER)?.0))
    }
}

/// What must hold for every attack, besides its tasks.
fn judge(findings: &Findings, deeds: &Deeds, before: (u64, u64), after: (u64, u64)) {
    let (left, got) = (after.0 - before.0, after.1 - before.1);
    if got > left + NEIGHBOURS {
        findings.add(format!("a bystander got {got} bytes of an attacker who sent {left}"));
    }
    if deeds.strayed > 0 {
        findings.add(format!("the switch sent {} cookies for others to the attacker", deeds.strayed));
    }
}
