//! The transcripts of the cache program: clients ask, operators and servers pass on and answer, the controller sets
//! rules.

mod changes;
mod command;
mod names;
mod render;
mod rules;

use super::vocabulary::{Moment, Sending, Vocabulary};
use super::words::{number, parse_duration};
use midflight_dataplane::cache::{CacheConfig, CacheProgram, Outcome, RuleOrder, Stats};
use names::Names;
use std::net::SocketAddr;
use std::time::Duration;

/// The language of the transcripts in `transcripts/cache/`.
#[derive(Debug, Default)]
pub struct CacheVocabulary {
    names: Names,
}

impl Vocabulary for CacheVocabulary {
    type Program = CacheProgram;

    /// `switch places=64 racks=4 groups=4 rsnodes=8 cookie=5s`
    fn configure(&self, settings: &[(&str, &str)]) -> Result<CacheConfig, String> {
        let mut config = CacheConfig { places: 64, racks: 4, groups: 4, rsnodes: 8, ..CacheConfig::default() };
        for &(name, value) in settings {
            match name {
                "places" => config.places = number(value)?,
                "racks" => config.racks = number(value)?,
                "groups" => config.groups = number(value)?,
                "rsnodes" => config.rsnodes = number(value)?,
                "cookie" => config.cookie_ns = parse_duration(value)?.as_nanos() as u64,
                _ => return Err(format!("a switch has no {name:?}")),
            }
        }
        Ok(config)
    }

    /// No cleanup to do.
    fn ticks_every(_config: &CacheConfig) -> Duration {
        Duration::from_secs(1)
    }

    /// `client ann`, `server sue`, `operator bob`, `selector sel`.
    fn declare(&mut self, words: &[&str]) -> Result<Option<()>, String> {
        match words {
            [kind @ ("client" | "server" | "operator" | "selector"), name] => {
                self.names.declare(kind, name);
                Ok(Some(()))
            }
            ["client" | "server" | "operator" | "selector", ..] => {
                Err("say: client <name>, server <name>, operator <name>, selector <name>".to_owned())
            }
            _ => Ok(None),
        }
    }

    fn order(&self, words: &[&str]) -> Result<Option<RuleOrder>, String> {
        Ok(rules::parse(words, &self.names)?.map(RuleOrder::from))
    }

    fn done(order: &RuleOrder) -> String {
        let outcome = match order.outcome() {
            Outcome::Done => "done",
            Outcome::NoRoom => "no room for another place",
            Outcome::Bad => "beyond a bound",
        };
        outcome.to_owned()
    }

    fn parse_sending(&mut self, line: &str, moment: &Moment<'_, CacheConfig>) -> Result<Sending, String> {
        command::parse(line, &mut self.names, moment)
    }

    fn learn(&mut self, sent: &[u8]) {
        self.names.learn(sent);
    }

    fn read(&self, to: SocketAddr, sent: &[u8], _: Option<u64>, moment: &Moment<'_, CacheConfig>) -> Vec<String> {
        vec![render::datagram(to, sent, &self.names, moment)]
    }

    fn kind(sent: &[u8]) -> &'static str {
        render::kind(sent)
    }

    fn stats(stats: &Stats) -> Vec<String> {
        render::stats(stats)
    }

    /// Packets change nothing but counts.
    fn has_grown(_before: &Stats, _after: &Stats) -> bool {
        false
    }
}
