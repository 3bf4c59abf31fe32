//! Checks states without packets in the switch, and whether the work can end.

use super::Subject;
use super::world::{Broken, Client, Fate, World};
use crate::{Sent, To};

/// The rule that work can end from any state.
const PROGRESS: &str = "progress";

/// Passes after which packets of so small a queue will not come to rest.
const MANY: u32 = 1000;

/// Lines that show a livelock.
const TOLD: usize = 8;

impl<S: Subject> World<'_, S> {
    /// At rest no client waits in vain, and the registers have no trace of a finished packet. The work must be able to end: the packets
    /// inside come to rest, by steps that the search takes too. So it is enough to check states at rest: resubmitting clients and polling
    /// executors must end the work in a few rounds. The search finds other broken rules.
    pub(super) fn finish(&mut self) -> Result<(), Broken> {
        let (halves, progress) = (self.setting.instance.halves, self.setting.holds(PROGRESS));
        match () {
            () if !self.between.is_empty() => return Ok(()),
            () if self.flight.is_empty() => self.nobody_waits()?,
            () if progress && !halves => return self.rest(),
            () => {}
        }
        if halves || !progress {
            return Ok(());
        }
        self.rounds().or_else(|broken| if broken.rule == PROGRESS { Err(broken) } else { Ok(()) })
    }

    /// The same as a text: shows the livelock of work that cannot end.
    pub(super) fn ends(mut self) -> (String, Option<Broken>) {
        self.log = Some(String::new());
        let broken = self.finish().err();
        let log = self.log.take().unwrap_or_default();
        if broken.as_ref().is_none_or(|broken| broken.rule != PROGRESS) {
            return (String::new(), broken);
        }
        let more = log.lines().nth(TOLD).map_or("", |_| "   …  and so on\n");
        let told = log.lines().take(TOLD).fold(String::new(), |text, line| format!("{text}   …  {line}\n"));
        (told + more, broken)
    }

    /// T7: a client has an answer for each task that is not in the switch, and an executor for each request.
    fn nobody_waits(&self) -> Result<(), Broken> {
        for (number, client) in self.clients.iter().enumerate() {
            if let Some(tid) = self.unheard(client) {
                self.ask("T7", format!("task {tid} was not taken, and client {number} never hears of it"))?;
            }
        }
        let waits = |number: usize| match &self.net {
            None => self.executors[number].waits,
            Some(net) => net.is_unanswered(number),
        };
        if let Some(number) = (0..self.executors.len()).find(|&number| waits(number)) {
            self.ask("T7", format!("executor {number} polled, and gets no answer"))?;
        }
        self.setting.subject.at_rest(&self.machine).or_else(|what| self.ask("registers", what))
    }

    fn rest(&mut self) -> Result<(), Broken> {
        for _ in 0..MANY {
            let Some(packet) = self.flight.pop() else { return Ok(()) };
            self.log_anew();
            self.say(|world| format!("{} → …\n", world.setting.subject.describe(&packet)));
            let round = |sent: &Sent| matches!(sent.to, To::Recirculated | To::Copied);
            let again = self.machine.pass(packet).into_iter().filter(round).map(|sent| sent.packet);
            self.flight.splice(0..0, again);
        }
        self.ask(PROGRESS, "packets go round for ever")
    }

    /// Only the last round is logged: the others are like it.
    fn log_anew(&mut self) {
        self.log.iter_mut().for_each(String::clear);
    }

    fn rounds(&mut self) -> Result<(), Broken> {
        // A round assigns a queued task, or else submits one; a wrong head pointer may first have to pass all entries.
        for _ in 0..=2 * (self.fates.len() + self.setting.subject.size()) {
            let done = match &self.net {
                None => self.fates.iter().all(|fate| *fate == Fate::Assigned),
                Some(_) => self.all_done(),
            };
            if done {
                return Ok(());
            }
            self.log_anew();
            for executor in 0..self.executors.len() {
                let packet = if self.net.is_some() { self.asks_anew(executor) } else { self.poll(executor as u8) };
                self.pass(packet)?;
                self.drain()?;
            }
            if self.net.is_some() {
                (0..self.setting.instance.jobs.len()).try_for_each(|owner| self.owner_sends_again(owner))?;
            } else {
                (0..self.clients.len()).try_for_each(|client| self.send_again(client))?;
            }
        }
        self.ask(PROGRESS, "executors poll and tasks stay")
    }

    fn send_again(&mut self, number: usize) -> Result<(), Broken> {
        let jobs = &self.setting.instance.jobs;
        let first = 1 + jobs[..number].iter().map(Vec::len).sum::<usize>() as u32;
        let own = first..first + jobs[number].len() as u32;
        let todo: Vec<u32> = own.filter(|&tid| self.fates[tid as usize - 1] == Fate::Outside).collect();
        if todo.is_empty() {
            return Ok(());
        }
        self.clients[number] = Client { todo, ..Client::default() };
        let packet = self.submit(number as u8);
        self.pass(packet)?;
        self.drain()
    }

    fn owner_sends_again(&mut self, owner: usize) -> Result<(), Broken> {
        let Some(packet) = self.submits_spare(owner) else { return Ok(()) };
        self.pass(packet)?;
        self.drain()
    }

    fn drain(&mut self) -> Result<(), Broken> {
        for _ in 0..MANY {
            if self.flight.is_empty() {
                return Ok(());
            }
            let packet = self.flight.remove(0);
            self.say(|world| world.setting.subject.describe(&packet));
            self.pass(packet)?;
        }
        self.ask(PROGRESS, "packets go round for ever")
    }
}
