//! The transcripts of the tasks program: clients submit, executors retrieve.

mod changes;
mod command;
mod context;
mod names;
mod polling;
mod render;

pub use polling::{Heard, PollingAsic};

use super::vocabulary::{Moment, Sending, Vocabulary};
use super::words::{number, parse_duration, parse_mask};
use context::Context;
use midflight_dataplane::{Cookies, Purge, Stats, TasksConfig, TasksProgram, Which};
use names::Names;
use std::net::SocketAddr;
use std::time::Duration;

/// The language of the transcripts in `transcripts/tasks/`.
#[derive(Debug, Default)]
pub struct TasksVocabulary {
    names: Names,
}

impl TasksVocabulary {
    fn context(&self, moment: &Moment<'_, TasksConfig>, counter: Option<u64>) -> Context<'_> {
        let Moment { epoch, secret, config, now_ns } = *moment;
        let cookies = Cookies::new(secret, config.cookie_ns);
        Context { names: &self.names, epoch, cookies, cookie_ns: config.cookie_ns, now_ns, counter }
    }

    /// `client ann [durable] [at 10.0.0.1:7000]`, `executor eve [offers AB] [at ...]`.
    fn declare_party(&mut self, kind: &str, rest: &[&str]) -> Result<(), String> {
        let [name, rest @ ..] = rest else { return Err("say: client <name>".to_owned()) };
        let (is_durable, rest) = match rest {
            ["durable", rest @ ..] => (true, rest),
            rest => (false, rest),
        };
        let (mut at, mut offers) = (None, 0);
        for pair in rest.chunks(2) {
            match pair {
                ["at", address] => at = Some(parse_address(address)?),
                ["offers", mask] => offers = parse_mask(mask)?,
                _ => return Err(format!("{pair:?}: say `at <address>` or `offers <mask>`")),
            }
        }
        self.names.declare(name, kind == "client", is_durable, at, offers);
        Ok(())
    }
}

fn parse_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| format!("{text:?} is no address"))
}

impl Vocabulary for TasksVocabulary {
    type Program = TasksProgram;

    /// `switch queue=4 slots=2 ...`
    fn configure(&self, settings: &[(&str, &str)]) -> Result<TasksConfig, String> {
        let mut config = TasksConfig { queue: 64, slots: 64, clients: 64, ..TasksConfig::default() };
        for &(name, value) in settings {
            let nanos = |value| parse_duration(value).map(|duration| duration.as_nanos() as u64);
            match name {
                "queue" => config.queue = number(value)?,
                "slots" => config.slots = number(value)?,
                "clients" => config.clients = number(value)?,
                "levels" => config.levels = number(value)?,
                "places" => config.places = number(value)?,
                "arguments" => config.arguments = number(value)?,
                "lease" => config.lease_ns = nanos(value)?,
                "slot_idle" => config.slot_idle_ns = nanos(value)?,
                "client_idle" => config.client_idle_ns = nanos(value)?,
                "cookie" => config.cookie_ns = nanos(value)?,
                _ => return Err(format!("a switch has no {name:?}")),
            }
        }
        Ok(config)
    }

    /// Each tenth of a lease.
    fn ticks_every(config: &TasksConfig) -> Duration {
        Duration::from_nanos(config.lease_ns / 10)
    }

    fn declare(&mut self, words: &[&str]) -> Result<Option<()>, String> {
        match words {
            [kind @ ("client" | "executor"), rest @ ..] => self.declare_party(kind, rest).map(Some),
            [who, "moves", "to", address] => {
                let address = parse_address(address)?;
                self.names.endpoint_mut(who).ok_or_else(|| format!("{who:?} is nobody"))?.address = address;
                Ok(Some(()))
            }
            _ => Ok(None),
        }
    }

    /// `purge client ann`, `purge needs AB`, `purge address 10.0.0.1`.
    fn order(&self, words: &[&str]) -> Result<Option<Purge>, String> {
        let ["purge", words @ ..] = words else { return Ok(None) };
        let which = match words {
            ["client", name] => {
                Which::Client(self.names.endpoint(name).ok_or_else(|| format!("{name:?} is nobody"))?.identity)
            }
            ["needs", mask] => Which::Resources(parse_mask(mask)?),
            ["address", ip] => Which::Address(ip.parse().map_err(|_| format!("{ip:?} is no IP address"))?),
            _ => return Err("say: purge client <name>, purge needs <mask> or purge address <ip>".to_owned()),
        };
        Ok(Some(Purge::new(which)))
    }

    fn done(order: &Purge) -> String {
        format!("purged {}", order.purged())
    }

    fn parse_sending(&mut self, line: &str, moment: &Moment<'_, TasksConfig>) -> Result<Sending, String> {
        let (who, sending) = command::parse(line, &self.context(moment, None))?;
        if let (Some(counter), Some(sender)) = (sending.counter, self.names.endpoint_mut(who)) {
            sender.counter = counter;
        }
        Ok(sending)
    }

    fn learn(&mut self, sent: &[u8]) {
        self.names.learn(sent);
    }

    fn read(&self, to: SocketAddr, sent: &[u8], answers: Option<u64>, moment: &Moment<'_, TasksConfig>) -> Vec<String> {
        render::datagram(to, sent, &self.context(moment, answers))
    }

    fn kind(sent: &[u8]) -> &'static str {
        render::kind(sent)
    }

    fn stats(stats: &Stats) -> Vec<String> {
        render::stats(stats)
    }

    fn has_grown(before: &Stats, after: &Stats) -> bool {
        let held = |stats: &Stats| (stats.tasks.submitted, stats.slots, stats.clients);
        held(before) != held(after)
    }
}
