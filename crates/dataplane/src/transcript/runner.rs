//! Runs a story: command by command, and writes down what the engine answers.

use super::command::{self, Every, Sending};
use super::engine::Engine;
use super::names::Names;
use super::render;
use super::story::{Aside, Step, steps, told_alike};
use super::words::{number, parse_duration, parse_mask, ranges};
use crate::{Datagram, Stats, TasksConfig, Verdict};
use std::time::Duration;

/// Starts an engine: configuration, epoch, secret.
pub type Start<'a> = dyn FnMut(&TasksConfig, u32, u64) -> Box<dyn Engine> + 'a;

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

struct Stage<'a, 'b> {
    start: &'a mut Start<'b>,
    engine: Option<Box<dyn Engine>>,
    names: Names,
    epoch: u32,
    now: Duration,
}

impl<'a, 'b> Stage<'a, 'b> {
    fn new(start: &'a mut Start<'b>) -> Self {
        Self { start, engine: None, names: Names::default(), epoch: 0, now: Duration::from_secs(1) }
    }
}

impl Stage<'_, '_> {
    fn step(&mut self, step: &Step<'_>) -> Result<Vec<String>, StoryError> {
        self.execute(step.line).map_err(|what| StoryError { line: step.number, what })
    }

    fn execute(&mut self, line: &str) -> Result<Vec<String>, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut lines = match words[..] {
            ["switch", ..] => self.switch(&words[1..])?,
            ["client" | "executor", ..] => self.declare(&words)?,
            ["wait", duration] => {
                self.now += parse_duration(duration)?;
                Vec::new()
            }
            ["tick"] => self.tick()?,
            ["stats"] => render::stats(&self.engine()?.stats()),
            [who, "moves", "to", address] => {
                let address = address.parse().map_err(|_| format!("{address:?} is no address"))?;
                self.names.endpoint_mut(who).ok_or_else(|| format!("{who:?} is nobody"))?.address = address;
                Vec::new()
            }
            _ => self.send(line)?,
        };
        if let Some(Err(what)) = self.engine.as_ref().map(|engine| engine.check()) {
            lines.push(format!("UNSOUND: {what}"));
        }
        Ok(lines)
    }

    fn engine(&mut self) -> Result<&mut Box<dyn Engine>, String> {
        self.engine.as_mut().ok_or_else(|| "there is no switch yet: begin with `switch`".to_owned())
    }

    /// `switch queue=4 slots=2 ...`: a new one; the one before it died with all that it knew.
    fn switch(&mut self, settings: &[&str]) -> Result<Vec<String>, String> {
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
                _ => return Err(format!("a switch has no {name:?}")),
            }
        }
        self.epoch += 1000;
        self.engine = Some((self.start)(&config, self.epoch, u64::from(self.epoch)));
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
        let now_ns = self.now.as_nanos() as u64;
        let (looked, sent) = self.engine()?.tick(now_ns);
        let mut lines = vec![format!("looked at {looked}")];
        lines.extend(self.render(&sent));
        Ok(lines)
    }

    fn send(&mut self, line: &str) -> Result<Vec<String>, String> {
        let sending = command::parse(line, &self.names, self.epoch)?;
        match sending.every {
            None => self.send_one(&sending),
            Some(every) => self.send_every(&sending, every),
        }
    }

    fn send_one(&mut self, sending: &Sending) -> Result<Vec<String>, String> {
        let now_ns = self.now.as_nanos() as u64;
        let engine = self.engine()?;
        let before = engine.stats();
        let (verdict, sent) = engine.packet(now_ns, sending.from, &sending.datagram);
        let after = engine.stats();
        let mut lines = vec![said(verdict, &before, &after)];
        lines.extend(self.render(&sent));
        Ok(lines)
    }

    /// Sends each variation, and groups them by what was said. None may be taken, answered or change a gauge.
    fn send_every(&mut self, sending: &Sending, every: Every) -> Result<Vec<String>, String> {
        let now_ns = self.now.as_nanos() as u64;
        let mut groups: Vec<(String, Vec<u32>)> = Vec::new();
        for (label, variation) in variations(&sending.datagram, every)? {
            let engine = self.engine()?;
            let before = engine.stats();
            let (verdict, sent) = engine.packet(now_ns, sending.from, &variation);
            let after = engine.stats();
            let mut what = said(verdict, &before, &after);
            if !sent.is_empty() {
                what += &format!(", {} ANSWERS", sent.len());
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

    fn render(&mut self, sent: &[Datagram]) -> Vec<String> {
        for (_, bytes) in sent {
            self.names.learn(bytes);
        }
        sent.iter().flat_map(|(to, bytes)| render::datagram(*to, bytes, &self.names, self.epoch)).collect()
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
