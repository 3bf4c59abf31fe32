//! Gives an engine and the model the same datagrams; every difference is an error.

use super::{Checker, Model};
use crate::transcript::EngineExt;
use midflight_dataplane::program::{Class, Engine, Verdict as _};
use midflight_dataplane::{Datagram, Stats, TasksConfig, TasksProgram, Verdict, Which};
use midflight_wire::PACKET_MAX;
use midflight_wire::tasks::parse;
use std::net::SocketAddr;

/// An engine and the model after the same input.
#[derive(Debug)]
pub struct Differential<E> {
    engine: E,
    model: Model,
}

impl<E: Engine<Program = TasksProgram>> Differential<E> {
    /// `engine` must be fresh, with this configuration, epoch and secret.
    pub fn new(engine: E, config: &TasksConfig, epoch: u32, secret: u128) -> Self {
        Self { engine, model: Model::new(config, epoch, secret) }
    }

    fn compare(&self, sent: &[Datagram], owed: &[Datagram]) -> Result<(), String> {
        if sent != owed {
            let list = |all: &[Datagram]| -> String {
                all.iter().map(|(to, bytes)| format!("\n  to {to}: {}", describe(bytes))).collect()
            };
            return Err(format!("sent:{}\ninstead of:{}", list(sent), list(owed)));
        }
        if let Some((to, bytes)) = sent.iter().find(|(_, bytes)| bytes.len() > PACKET_MAX) {
            return Err(format!("{} bytes to {to} do not fit a packet", bytes.len()));
        }
        let (counted, right) = (self.engine.stats(), self.model.stats());
        if counted != right {
            return Err(format!("counted {counted:?}\ninstead of {right:?}"));
        }
        self.engine.check().map_err(|what| format!("engine unsound: {what}"))?;
        self.model.check()
    }
}

impl<E: Engine<Program = TasksProgram>> Checker for Differential<E> {
    const IPV6: bool = true;
    const APPENDED: bool = true;

    fn packet(&mut self, now_ns: u64, from: SocketAddr, datagram: &[u8]) -> Result<Vec<Datagram>, String> {
        let (verdict, sent) = self.engine.ask(now_ns, from, datagram);
        let context = || format!("{} from {from} at {now_ns} ns", describe(datagram));
        let (right, owed) =
            self.model.follow(now_ns, from, datagram, &sent).map_err(|what| format!("{what}\nafter {}", context()))?;
        if verdict != right {
            return Err(format!("verdict {verdict:?} instead of {right:?} on {}", context()));
        }
        self.compare(&sent, &owed).map_err(|what| format!("{what}\nafter {}", context()))?;
        check_refusal(verdict, datagram, &sent).map_err(|what| format!("{what}, on {}", context()))?;
        Ok(sent)
    }

    fn tick(&mut self, now_ns: u64) -> Result<Vec<Datagram>, String> {
        let (visited, sent) = self.engine.ask_tick(now_ns);
        let (right, owed) = self.model.tick(now_ns);
        if visited != right {
            return Err(format!("tick at {now_ns} ns visited {visited} slots instead of {right}"));
        }
        self.compare(&sent, &owed).map_err(|what| format!("{what}\nafter tick at {now_ns} ns"))?;
        Ok(sent)
    }

    fn purge(&mut self, which: Which) -> Result<(), String> {
        let (purged, right) = (self.engine.ask_purge(which), self.model.purge(which));
        if purged != right {
            return Err(format!("purged {purged} tasks instead of {right} of {which:?}"));
        }
        self.compare(&[], &[]).map_err(|what| format!("{what}\nafter purge of {which:?}"))
    }

    fn stats(&self) -> Stats {
        self.model.stats()
    }
}

/// T11, T13: a datagram refused before the switch trusts its sender is answered by nothing but VERSION or COOKIE, and
/// by nothing longer than itself.
fn check_refusal(verdict: Verdict, datagram: &[u8], sent: &[Datagram]) -> Result<(), String> {
    let is_refused = verdict.class() == Class::Refused && verdict != Verdict::ForeignEpoch;
    let may_answer = matches!(verdict, Verdict::BadVersion | Verdict::NoCookie);
    if is_refused && sent.len() > usize::from(may_answer) {
        return Err(format!("T11: {verdict:?} was answered"));
    }
    if is_refused && sent.iter().any(|(_, answer)| answer.len() > datagram.len()) {
        return Err(format!("T13: the answer to {verdict:?} is longer than the question"));
    }
    Ok(())
}

fn describe(datagram: &[u8]) -> String {
    match parse(datagram) {
        Ok(packet) => format!("{packet:?}"),
        Err(reject) => format!("{} bytes ({reject})", datagram.len()),
    }
}
