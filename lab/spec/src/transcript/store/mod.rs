//! The transcripts of the store program: clients read and write, replicas answer, leaders hold sessions.

mod changes;
mod command;
mod names;
mod render;

use super::vocabulary::{Moment, Sending, Vocabulary};
use super::words::{number, parse_duration};
use midflight_dataplane::store::{NewSet, Outcome, Policy, ReplyCheck, SetOrder, Stats, StoreConfig, StoreProgram};
use names::Names;
use std::net::SocketAddr;
use std::time::Duration;

/// The language of the transcripts in `transcripts/store/`.
#[derive(Debug, Default)]
pub struct StoreVocabulary {
    names: Names,
}

impl StoreVocabulary {
    /// `add set 1 incarnation 7 [relaxed or direct] [random or another policy] [bits 4] [lease 100ms]`: all replicas
    /// may send HELLO to it.
    fn new_set(&self, set: &str, options: &[&str]) -> Result<NewSet, String> {
        let mut new = NewSet {
            number: number(set)?,
            incarnation: 0,
            lease_ns: 0,
            kgroup_bits: 2,
            reply_check: ReplyCheck::Strict,
            policy: Policy::LeaderAvoidance,
            replicas: self.names.replicas().collect(),
        };
        let mut options = options.iter();
        while let Some(&option) = options.next() {
            let mut value = || options.next().copied().ok_or(format!("{option:?} needs a value"));
            match option {
                "incarnation" => new.incarnation = number(value()?)?,
                "bits" => new.kgroup_bits = number(value()?)?,
                "lease" => new.lease_ns = parse_duration(value()?)?.as_nanos() as u64,
                "relaxed" => new.reply_check = ReplyCheck::Relaxed,
                "direct" => new.reply_check = ReplyCheck::Direct,
                policy => new.policy = policy.parse().map_err(|_| format!("a set has no {option:?}"))?,
            }
        }
        Ok(new)
    }
}

impl Vocabulary for StoreVocabulary {
    type Program = StoreProgram;

    /// `switch sets=4 bits=2 lease=150ms cookie=5s`
    fn configure(&self, settings: &[(&str, &str)]) -> Result<StoreConfig, String> {
        let mut config = StoreConfig { sets: 4, kgroup_bits: 2, ..StoreConfig::default() };
        for &(name, value) in settings {
            let nanos = |value| parse_duration(value).map(|duration| duration.as_nanos() as u64);
            match name {
                "sets" => config.sets = number(value)?,
                "bits" => config.kgroup_bits = number(value)?,
                "lease" => config.lease_ns = nanos(value)?,
                "cookie" => config.cookie_ns = nanos(value)?,
                _ => return Err(format!("a switch has no {name:?}")),
            }
        }
        Ok(config)
    }

    /// Each tenth of a lease.
    fn ticks_every(config: &StoreConfig) -> Duration {
        Duration::from_nanos(config.lease_ns / 10)
    }

    /// `client ann`, `replica rob`: the first replica has slot 0.
    fn declare(&mut self, words: &[&str]) -> Result<Option<()>, String> {
        match words {
            ["client", name] => self.names.declare_client(name),
            ["replica", name] => self.names.declare_replica(name),
            ["client" | "replica", ..] => return Err("say: client <name>, replica <name>".to_owned()),
            _ => return Ok(None),
        }
        Ok(Some(()))
    }

    fn order(&self, words: &[&str]) -> Result<Option<SetOrder>, String> {
        match words {
            ["add", "set", set, options @ ..] => Ok(Some(SetOrder::add(&self.new_set(set, options)?))),
            ["change", "set", set, options @ ..] => Ok(Some(SetOrder::change(&self.new_set(set, options)?))),
            ["remove", "set", set] => Ok(Some(SetOrder::remove(number(set)?))),
            ["add" | "change" | "remove", ..] => {
                Err("say: add set <number> incarnation <number>, change set <number>, remove set <number>".to_owned())
            }
            _ => Ok(None),
        }
    }

    fn done(order: &SetOrder) -> String {
        let outcome = match order.outcome() {
            Outcome::Done => "done",
            Outcome::Exists => "there is a set of this number",
            Outcome::NoRoom => "no room for another set",
            Outcome::Bad => "beyond a bound",
            Outcome::Unknown => "there is no such set",
            Outcome::Frozen => "it has another lease or number of key groups",
        };
        outcome.to_owned()
    }

    fn parse_sending(&mut self, line: &str, moment: &Moment<'_, StoreConfig>) -> Result<Sending, String> {
        command::parse(line, &mut self.names, moment)
    }

    fn learn(&mut self, sent: &[u8]) {
        self.names.learn(sent);
    }

    fn read(&self, to: SocketAddr, sent: &[u8], _: Option<u64>, moment: &Moment<'_, StoreConfig>) -> Vec<String> {
        vec![render::datagram(to, sent, &self.names, moment)]
    }

    fn kind(sent: &[u8]) -> &'static str {
        render::kind(sent)
    }

    fn stats(stats: &Stats) -> Vec<String> {
        render::stats(stats)
    }

    fn has_grown(before: &Stats, after: &Stats) -> bool {
        before.sets != after.sets
    }
}
