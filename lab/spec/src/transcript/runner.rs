//! Runs a transcript and records the engine's answers.

use super::engines::EngineExt;
use super::steps::{AsicAnswer, Step, is_same, steps};
use super::vocabulary::{ConfigOf, Every, Moment, Sending, Vocabulary};
use super::words::{number, parse_duration, ranges};
use midflight_dataplane::Datagram;
use midflight_dataplane::program::{Engine, Program, Verdict};
use std::net::SocketAddr;
use std::time::Duration;

/// An engine of a vocabulary's program.
pub type AnyEngine<V> = Box<dyn Engine<Program = <V as Vocabulary>::Program>>;

/// Starts an engine from a configuration, an epoch and a secret.
pub type Start<'a, V> = dyn FnMut(&ConfigOf<V>, u32, u128) -> AnyEngine<V> + 'a;

/// An invalid command and its line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct TranscriptError {
    /// From 1.
    pub line: usize,
    /// What is wrong, and what to write instead.
    pub what: String,
}

/// Gives a transcript's commands to an engine, and returns the transcript with that engine's answers.
///
/// # Errors
/// If a command is invalid.
pub fn run<V: Vocabulary>(transcript: &str, start: &mut Start<'_, V>) -> Result<String, TranscriptError> {
    let (mut stage, mut written) = (Stage::<V>::new(start), String::new());
    for mut step in steps(transcript) {
        if step.is_command() {
            step.answers = stage.step(&step)?;
        }
        step.write(&mut written);
    }
    Ok(written)
}

/// Gives a transcript's commands to the asic engine, and returns the transcript with its answers added where they
/// differ. A new difference gets the reason `?`. Skips `stats`: the asic engine does not know the outcome of a task.
///
/// # Errors
/// If a command is invalid.
pub fn run_asic<V: Vocabulary>(transcript: &str, start: &mut Start<'_, V>) -> Result<String, TranscriptError> {
    let (mut stage, mut written) = (Stage::<V>::new(start), String::new());
    for mut step in steps(transcript) {
        if step.is_command() && step.line.trim() != "stats" {
            let answers = stage.step(&step)?;
            // A reason holds only for the answer that it was written for.
            let reason = step.asic.take().filter(|other| other.answers == answers).map_or("?", |other| other.reason);
            step.asic = (!is_same(&step.answers, &answers)).then_some(AsicAnswer { reason, answers });
        }
        step.write(&mut written);
    }
    Ok(written)
}

/// A switch of the transcript; may be dead or left.
struct Switch<V: Vocabulary> {
    engine: AnyEngine<V>,
    epoch: u32,
    secret: u128,
    config: ConfigOf<V>,
}

struct Stage<'a, 'b, V: Vocabulary> {
    start: &'a mut Start<'b, V>,
    switches: Vec<Switch<V>>,
    present: usize,
    vocabulary: V,
    now: Duration,
}

impl<'a, 'b, V: Vocabulary> Stage<'a, 'b, V> {
    fn new(start: &'a mut Start<'b, V>) -> Self {
        Self { start, switches: Vec::new(), present: 0, vocabulary: V::default(), now: Duration::from_secs(1) }
    }
}

impl<V: Vocabulary> Stage<'_, '_, V> {
    fn step(&mut self, step: &Step<'_>) -> Result<Vec<String>, TranscriptError> {
        self.execute(step.line).map_err(|what| TranscriptError { line: step.number, what })
    }

    fn execute(&mut self, line: &str) -> Result<Vec<String>, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut lines = match words[..] {
            ["switch", ..] => self.start_switch(&words[1..])?,
            ["return", "to", "switch", which] => self.return_to(which)?,
            ["wait", duration] => {
                self.now += parse_duration(duration)?;
                Vec::new()
            }
            ["run", duration] => self.run_for(parse_duration(duration)?)?,
            ["tick"] => self.tick()?,
            ["stats"] => V::stats(&self.switch()?.engine.stats()),
            _ => self.own(line, &words)?,
        };
        if let Some(Err(what)) = self.switches.get(self.present).map(|switch| switch.engine.check()) {
            lines.push(format!("UNSOUND: {what}"));
        }
        Ok(lines)
    }

    fn own(&mut self, line: &str, words: &[&str]) -> Result<Vec<String>, String> {
        if self.vocabulary.declare(words)?.is_some() {
            return Ok(Vec::new());
        }
        if let Some(mut order) = self.vocabulary.order(words)? {
            self.switch()?.engine.ask_order(&mut order);
            return Ok(vec![V::done(&order)]);
        }
        self.send(line)
    }

    fn switch(&mut self) -> Result<&mut Switch<V>, String> {
        self.switches.get_mut(self.present).ok_or_else(|| "there is no switch yet: begin with `switch`".to_owned())
    }

    fn now_ns(&self) -> u64 {
        self.now.as_nanos() as u64
    }

    /// `switch queue=4 slots=2 ...`: starts a switch, which gets all packets from now on.
    fn start_switch(&mut self, settings: &[&str]) -> Result<Vec<String>, String> {
        let pairs = settings.iter().map(|&text| text.split_once('=').ok_or(text));
        let pairs = pairs.collect::<Result<Vec<_>, _>>().map_err(|text| format!("{text:?}: say name=value"))?;
        let config = self.vocabulary.configure(&pairs)?;
        self.present = self.switches.len();
        let epoch = 1000 * (self.present as u32 + 1);
        let secret = u128::from(epoch);
        self.switches.push(Switch { engine: (self.start)(&config, epoch, secret), epoch, secret, config });
        Ok(Vec::new())
    }

    /// `return to switch 1`: packets go to an earlier switch again, which still has its state.
    fn return_to(&mut self, which: &str) -> Result<Vec<String>, String> {
        let index = number::<usize>(which)?.wrapping_sub(1);
        self.switches.get(index).ok_or_else(|| format!("there was no switch {which} yet"))?;
        self.present = index;
        Ok(Vec::new())
    }

    fn tick(&mut self) -> Result<Vec<String>, String> {
        let (visited, sent) = self.tick_now()?;
        let mut lines = vec![format!("looked at {visited}")];
        lines.extend(self.render(&sent, None)?);
        Ok(lines)
    }

    fn tick_now(&mut self) -> Result<(u32, Vec<Datagram>), String> {
        let now_ns = self.now_ns();
        Ok(self.switch()?.engine.ask_tick(now_ns))
    }

    /// `run 1s`: advances time with ticks, the last one at the end. Only ticks that send something are shown.
    fn run_for(&mut self, duration: Duration) -> Result<Vec<String>, String> {
        let step = V::ticks_every(&self.switch()?.config).max(Duration::from_nanos(1));
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

    fn send(&mut self, line: &str) -> Result<Vec<String>, String> {
        let Self { switches, present, vocabulary, now, .. } = self;
        let moment = moment(switches, *present, *now)?;
        let sending = vocabulary.parse_sending(line, &moment)?;
        match sending.every {
            None => self.send_one(&sending),
            Some(every) => self.send_every(&sending, every),
        }
    }

    fn send_one(&mut self, sending: &Sending) -> Result<Vec<String>, String> {
        let (verdict, sent, _) = self.ask(sending.from, &sending.datagram)?;
        let answers = self.render(&sent, sending.counter)?;
        Ok(std::iter::once(verdict).chain(answers).collect())
    }

    /// The verdict as a line, the sent datagrams, and whether the switch keeps more state than before.
    fn ask(&mut self, from: SocketAddr, datagram: &[u8]) -> Result<(String, Vec<Datagram>, bool), String> {
        let now_ns = self.now_ns();
        let engine = &mut self.switch()?.engine;
        let before = engine.stats();
        let (verdict, sent) = engine.ask(now_ns, from, datagram);
        let after = engine.stats();
        Ok((verdict_line::<V::Program>(verdict, &before, &after), sent, V::has_grown(&before, &after)))
    }

    /// Sends each variation and groups them by answer. Marks a variation that changes a gauge.
    fn send_every(&mut self, sending: &Sending, every: Every) -> Result<Vec<String>, String> {
        let mut groups: Vec<(String, Vec<u32>)> = Vec::new();
        for (label, variation) in variations(&sending.datagram, every)? {
            let (mut what, sent, has_grown) = self.ask(sending.from, &variation)?;
            for (_, answer) in &sent {
                what += &format!(", answered by {}", V::kind(answer));
            }
            if has_grown {
                what += ", WITH EFFECT";
            }
            match groups.iter_mut().find(|(other, _)| *other == what) {
                Some((_, labels)) => labels.push(label),
                None => groups.push((what, vec![label])),
            }
        }
        Ok(groups.into_iter().map(|(what, labels)| format!("{}: {what}", ranges(labels.into_iter()))).collect())
    }

    /// `answers`: the counter that an answer repeats.
    fn render(&mut self, sent: &[Datagram], answers: Option<u64>) -> Result<Vec<String>, String> {
        sent.iter().for_each(|(_, bytes)| self.vocabulary.learn(bytes));
        let moment = moment(&self.switches, self.present, self.now)?;
        Ok(sent.iter().flat_map(|(to, bytes)| self.vocabulary.read(*to, bytes, answers, &moment)).collect())
    }
}

fn moment<V: Vocabulary>(
    switches: &[Switch<V>],
    present: usize,
    now: Duration,
) -> Result<Moment<'_, ConfigOf<V>>, String> {
    let switch = switches.get(present).ok_or("there is no switch yet: begin with `switch`")?;
    Ok(Moment { epoch: switch.epoch, secret: switch.secret, config: &switch.config, now_ns: now.as_nanos() as u64 })
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

fn verdict_line<P: Program>(verdict: P::Verdict, before: &P::Stats, after: &P::Stats) -> String {
    let mut line = verdict.name().to_owned();
    let counts = P::verdicts(before).iter().zip(P::verdicts(after));
    for (&reason, (before, after)) in P::Verdict::ALL.iter().zip(counts) {
        let beside = after - before - u64::from(reason == verdict);
        if beside != 0 {
            line += &format!(", {} {beside}", reason.name());
        }
    }
    line
}
