//! Runs a story: command by command, and writes down what the engine answers.

use super::changes::Every;
use super::command::{self, Sending};
use super::engine::Engine;
use super::names::Names;
use super::render;
use super::scene::Scene;
use super::story::{Aside, Step, steps, told_alike};
use super::words::{number, parse_duration, parse_mask, ranges};
use midflight_dataplane::{Cookies, Datagram, Stats, TasksConfig, Verdict, Which};
use std::time::Duration;

/// Starts an engine: configuration, epoch, secret.
pub type Start<'a> = dyn FnMut(&TasksConfig, u32, u128) -> Box<dyn Engine> + 'a;

/// A command that makes no sense, and its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoryError {
    /// Counted from 1.
    pub line: usize,
    /// What is wrong, and what to write instead.
    pub what: String,
}

impl std::fmt::Display for StoryError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for StoryError {}

/// Tells a story to an engine and returns it with the answers that the engine gave.
///
/// # Errors
/// Where a command makes no sense.
pub fn run(story: &str, start: &mut Start<'_>) -> Result<String, StoryError> {
    let (mut stage, mut told) = (Stage::new(start), String::new());
    for mut step in steps(story) {
        if step.is_command() {
            step.answers = stage.step(&step)?;
        }
        step.write(&mut told);
    }
    Ok(told)
}

/// Tells a story to the asic engine, and returns it with that engine's answers beside the others', where it does not tell it
/// alike. A difference that is new has `?` for a reason. `stats` are not asked for: nobody knows what became of a task.
///
/// # Errors
/// Where a command makes no sense.
pub fn run_asic(story: &str, start: &mut Start<'_>) -> Result<String, StoryError> {
    let (mut stage, mut told) = (Stage::new(start), String::new());
    for mut step in steps(story) {
        if step.is_command() && step.line.trim() != "stats" {
            let answers = stage.step(&step)?;
            // The reason was given for the answer that stood there.
            let reason = step.asic.take().filter(|aside| aside.answers == answers).map_or("?", |aside| aside.reason);
            step.asic = (!told_alike(&step.answers, &answers)).then_some(Aside { reason, answers });
        }
        step.write(&mut told);
    }
    Ok(told)
}

/// A switch of the story, dead or alive.
struct Switch {
    engine: Box<dyn Engine>,
    epoch: u32,
    config: TasksConfig,
    cookies: Cookies,
}

struct Stage<'a, 'b> {
    start: &'a mut Start<'b>,
    switches: Vec<Switch>,
    /// Which of them packets go to.
    present: usize,
    names: Names,
    now: Duration,
}

impl<'a, 'b> Stage<'a, 'b> {
    fn new(start: &'a mut Start<'b>) -> Self {
        Self { start, switches: Vec::new(), present: 0, names: Names::default(), now: Duration::from_secs(1) }
    }
}

impl Stage<'_, '_> {
    fn step(&mut self, step: &Step<'_>) -> Result<Vec<String>, StoryError> {
        self.execute(step.line).map_err(|what| StoryError { line: step.number, what })
    }

    fn execute(&mut self, line: &str) -> Result<Vec<String>, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut lines = match words[..] {
            ["switch", ..] => self.start_switch(&words[1..])?,
            ["return", "to", "switch", which] => self.return_to(which)?,
            ["client" | "executor", ..] => self.declare(&words)?,
            ["wait", duration] => {
                self.now += parse_duration(duration)?;
                Vec::new()
            }
            ["run", duration] => self.run_for(parse_duration(duration)?)?,
            ["tick"] => self.tick()?,
            ["purge", ..] => self.purge(&words[1..])?,
            ["stats"] => render::stats(&self.switch()?.engine.stats()),
            [who, "moves", "to", address] => {
                let address = address.parse().map_err(|_| format!("{address:?} is no address"))?;
                self.names.endpoint_mut(who).ok_or_else(|| format!("{who:?} is nobody"))?.address = address;
                Vec::new()
            }
            _ => self.send(line)?,
        };
        if let Some(Err(what)) = self.switches.get(self.present).map(|switch| switch.engine.check()) {
            lines.push(format!("UNSOUND: {what}"));
        }
        Ok(lines)
    }

    fn switch(&mut self) -> Result<&mut Switch, String> {
        self.switches.get_mut(self.present).ok_or_else(|| "there is no switch yet: begin with `switch`".to_owned())
    }

    fn scene(&self, counter: Option<u64>) -> Result<Scene<'_>, String> {
        let switch = self.switches.get(self.present).ok_or("there is no switch yet: begin with `switch`")?;
        Ok(Scene {
            names: &self.names,
            epoch: switch.epoch,
            cookies: &switch.cookies,
            cookie_ns: switch.config.cookie_ns,
            now_ns: self.now.as_nanos() as u64,
            counter,
        })
    }

    /// `switch queue=4 slots=2 ...`: a new one, to which packets go from now on.
    fn start_switch(&mut self, settings: &[&str]) -> Result<Vec<String>, String> {
        let mut config = TasksConfig { queue: 64, slots: 64, clients: 64, ..TasksConfig::default() };
        for setting in settings {
            let (name, value) = setting.split_once('=').ok_or_else(|| format!("{setting:?}: say name=value"))?;
            let nanos = |value| parse_duration(value).map(|duration| duration.as_nanos() as u64);
            match name {
                "queue" => config.queue = number(value)?,
                "slots" => config.slots = number(value)?,
                "clients" => config.clients = number(value)?,
                "levels" => config.levels = number(value)?,
                "lease" => config.lease_ns = nanos(value)?,
                "slot_idle" => config.slot_idle_ns = nanos(value)?,
                "client_idle" => config.client_idle_ns = nanos(value)?,
                "cookie" => config.cookie_ns = nanos(value)?,
                _ => return Err(format!("a switch has no {name:?}")),
            }
        }
        self.present = self.switches.len();
        let epoch = 1000 * (self.present as u32 + 1);
        let secret = u128::from(epoch);
        let cookies = Cookies::new(secret, config.cookie_ns);
        self.switches.push(Switch { engine: (self.start)(&config, epoch, secret), epoch, config, cookies });
        Ok(Vec::new())
    }

    /// `return to switch 1`: it had not died, packets had only gone elsewhere.
    fn return_to(&mut self, which: &str) -> Result<Vec<String>, String> {
        let index = number::<usize>(which)?.wrapping_sub(1);
        self.switches.get(index).ok_or_else(|| format!("there was no switch {which} yet"))?;
        self.present = index;
        Ok(Vec::new())
    }

    /// `client ann [at 10.0.0.1:7000]`, `executor eve [offers AB] [at ...]`.
    fn declare(&mut self, words: &[&str]) -> Result<Vec<String>, String> {
        let [kind, name, rest @ ..] = words else { return Err("say: client <name>".to_owned()) };
        let (mut at, mut offers) = (None, 0);
        for pair in rest.chunks(2) {
            match pair {
                ["at", address] => at = Some(address.parse().map_err(|_| format!("{address:?} is no address"))?),
                ["offers", mask] => offers = parse_mask(mask)?,
                _ => return Err(format!("{pair:?}: say `at <address>` or `offers <mask>`")),
            }
        }
        self.names.declare(name, *kind == "client", at, offers);
        Ok(Vec::new())
    }

    fn tick(&mut self) -> Result<Vec<String>, String> {
        let (looked, sent) = self.tick_now()?;
        let mut lines = vec![format!("looked at {looked}")];
        lines.extend(self.render(&sent, None)?);
        Ok(lines)
    }

    fn tick_now(&mut self) -> Result<(u32, Vec<Datagram>), String> {
        let now_ns = self.now.as_nanos() as u64;
        Ok(self.switch()?.engine.tick(now_ns))
    }

    /// `run 1s`: time moves, and a tick comes each tenth of a lease and at the end. Those that owe something show.
    fn run_for(&mut self, duration: Duration) -> Result<Vec<String>, String> {
        let step = Duration::from_nanos((self.switch()?.config.lease_ns / 10).max(1));
        let (start, end) = (self.now, self.now + duration);
        let mut lines = Vec::new();
        while self.now < end {
            self.now = end.min(self.now + step);
            let (_, sent) = self.tick_now()?;
            if !sent.is_empty() {
                lines.push(format!("after {:?}", self.now - start));
                lines.extend(self.render(&sent, None)?);
            }
        }
        Ok(lines)
    }

    /// `purge client ann`, `purge needs AB`, `purge address 10.0.0.1`.
    fn purge(&mut self, words: &[&str]) -> Result<Vec<String>, String> {
        let which = match words {
            ["client", name] => {
                Which::Client(self.names.endpoint(name).ok_or_else(|| format!("{name:?} is nobody"))?.identity)
            }
            ["needs", mask] => Which::Resources(parse_mask(mask)?),
            ["address", ip] => Which::Address(ip.parse().map_err(|_| format!("{ip:?} is no IP address"))?),
            _ => return Err("say: purge client <name>, purge needs <mask> or purge address <ip>".to_owned()),
        };
        Ok(vec![format!("purged {}", self.switch()?.engine.purge(which))])
    }

    fn send(&mut self, line: &str) -> Result<Vec<String>, String> {
        let sending = command::parse(line, &self.scene(None)?)?;
        if let (Some(counter), Some(sender)) = (sending.counter, self.names.endpoint_mut(&sending.who)) {
            sender.counter = counter;
        }
        match sending.every {
            None => self.send_one(&sending),
            Some(every) => self.send_every(&sending, every),
        }
    }

    fn send_one(&mut self, sending: &Sending) -> Result<Vec<String>, String> {
        let now_ns = self.now.as_nanos() as u64;
        let engine = &mut self.switch()?.engine;
        let before = engine.stats();
        let (verdict, sent) = engine.packet(now_ns, sending.from, &sending.datagram);
        let after = engine.stats();
        let mut lines = vec![said(verdict, &before, &after)];
        lines.extend(self.render(&sent, sending.counter)?);
        Ok(lines)
    }

    /// Sends each variation, and groups them by what was said. None may be taken or change a gauge.
    fn send_every(&mut self, sending: &Sending, every: Every) -> Result<Vec<String>, String> {
        let now_ns = self.now.as_nanos() as u64;
        let mut groups: Vec<(String, Vec<u32>)> = Vec::new();
        for (label, variation) in variations(&sending.datagram, every)? {
            let engine = &mut self.switch()?.engine;
            let before = engine.stats();
            let (verdict, sent) = engine.packet(now_ns, sending.from, &variation);
            let after = engine.stats();
            let mut what = said(verdict, &before, &after);
            for (_, answer) in &sent {
                what += &format!(", answered by {}", render::kind(answer));
            }
            if (before.submitted, before.slots, before.clients) != (after.submitted, after.slots, after.clients) {
                what += ", WITH EFFECT";
            }
            match groups.iter_mut().find(|(other, _)| *other == what) {
                Some((_, labels)) => labels.push(label),
                None => groups.push((what, vec![label])),
            }
        }
        Ok(groups.into_iter().map(|(what, labels)| format!("{}: {what}", ranges(labels.into_iter()))).collect())
    }

    /// `counter`: of what is answered.
    fn render(&mut self, sent: &[Datagram], counter: Option<u64>) -> Result<Vec<String>, String> {
        for (_, bytes) in sent {
            self.names.learn(bytes);
        }
        let scene = self.scene(counter)?;
        Ok(sent.iter().flat_map(|(to, bytes)| render::datagram(*to, bytes, &scene)).collect())
    }
}

fn variations(datagram: &[u8], every: Every) -> Result<Vec<(u32, Vec<u8>)>, String> {
    match every {
        Every::Cut => Ok((0..datagram.len()).map(|length| (length as u32, datagram[..length].to_vec())).collect()),
        Every::Byte(offset) => {
            let right = *datagram.get(offset).ok_or("the datagram has no such byte")?;
            Ok((0..=u8::MAX)
                .filter(|value| *value != right)
                .map(|value| {
                    let mut variation = datagram.to_vec();
                    variation[offset] = value;
                    (value.into(), variation)
                })
                .collect())
        }
    }
}

/// The verdict, and what was counted beside it.
fn said(verdict: Verdict, before: &Stats, after: &Stats) -> String {
    let mut line = verdict.name().to_owned();
    for reason in Verdict::ALL {
        let times = after.reasons[*reason as usize] - before.reasons[*reason as usize];
        let beside = times - u64::from(*reason == verdict);
        if beside != 0 {
            line += &format!(", {} {beside}", reason.name());
        }
    }
    line
}
