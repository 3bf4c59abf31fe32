//! Turns a transcript's command into a datagram: `<who> <operation> [sequence][: records] [| changes]`.

use super::super::words::{items, number, parse_mask, parse_range};
use super::changes::{self, Changes};
use super::context::Context;
use super::names::{Endpoint, Names};
use crate::transcript::Sending;
use midflight_wire::tasks::{
    APPENDED, BY_REFERENCE, BlobRef, Cancel, Complete, Keepalive, Leave, LeaveHow, Preference, Probe, Register,
    Release, Retrieve, SlotKind, SlotName, Submit, TaskInfo, TaskName, Wait,
};
use midflight_wire::{counting, packet};
use zerocopy::{Immutable, IntoBytes};

pub(super) fn parse<'a>(line: &'a str, context: &Context<'_>) -> Result<(&'a str, Sending), String> {
    let names = context.names;
    let (said, changes) = line.split_once('|').unwrap_or((line, ""));
    let (head, records) = said.split_once(':').unwrap_or((said, ""));
    let mut words = head.split_whitespace();
    let who = words.next().unwrap_or_default();
    let sender = names.endpoint(who).ok_or_else(|| format!("{who:?} is nobody: declare a client or an executor"))?;
    let verb = words.next().unwrap_or_default();
    let sequence = words.next().map_or(Ok(0), number)?;
    let changes = &changes::parse(changes, sender, context)?;
    let mut datagram = Command { sender, verb, sequence, records, changes, names }.datagram()?;
    for &(offset, value) in &changes.bytes {
        *datagram.get_mut(offset).ok_or("the datagram has no such byte")? = value;
    }
    datagram.resize(datagram.len().saturating_add_signed(changes.resize), 0);
    let counter = matches!(verb, "retrieve" | "ahead" | "keepalive" | "release").then_some(changes.counter);
    let from = changes.from.unwrap_or(sender.address);
    Ok((who, Sending { from, datagram, counter, every: changes.every }))
}

struct Command<'a> {
    sender: &'a Endpoint,
    verb: &'a str,
    sequence: u32,
    records: &'a str,
    changes: &'a Changes,
    names: &'a Names,
}

impl Command<'_> {
    fn datagram(&self) -> Result<Vec<u8>, String> {
        let is_of_client = matches!(self.verb, "submit" | "cancel" | "probe");
        if is_of_client != self.sender.is_client {
            return Err(format!(
                "{} does not {}: clients submit, cancel and probe, executors do the rest",
                self.sender.name, self.verb
            ));
        }
        if is_of_client { self.of_client() } else { self.of_executor() }
    }

    fn of_client(&self) -> Result<Vec<u8>, String> {
        let Self { sender, sequence, records, changes, .. } = *self;
        let (epoch, client, cookie) = (changes.epoch, sender.identity.into(), changes.cookie.into());
        match self.verb {
            "submit" => {
                let token = changes.token.unwrap_or_else(|| sender.token(sequence)).into();
                let (uid, jid) = ((sender.identity as u32).into(), changes.jid.into());
                let new = Submit::new(epoch, sequence);
                let tasks = tasks(records)?;
                let mut datagram = written(&Submit { client, cookie, token, uid, jid, ..new }, &tasks)?;
                tasks.iter().for_each(|task| datagram.extend(appended(task)));
                if let Some((place, patience_ms)) = changes.prefers {
                    let preference = Preference { place: place.into(), patience_ms: patience_ms.into() };
                    datagram.extend_from_slice(preference.as_bytes());
                }
                Ok(datagram)
            }
            "cancel" => written(&Cancel { client, cookie, ..Cancel::new(epoch, sequence) }, &task_names(records)?),
            _ => written(&Probe { client, cookie, ..Probe::new(epoch, sequence) }, &task_names(records)?),
        }
    }

    fn of_executor(&self) -> Result<Vec<u8>, String> {
        let Self { sender, sequence, records, changes, names, .. } = *self;
        let (epoch, executor, counter) = (changes.epoch, sender.identity.into(), changes.counter.into());
        let resources = changes.offers.unwrap_or(sender.offers);
        let waits = || waits(records, sender, names);
        match self.verb {
            "register" => {
                let (locals, kind) = match records.trim().strip_suffix(" ahead") {
                    Some(locals) => (parse_range(locals)?, SlotKind::Ahead as u8),
                    None => (parse_range(records.trim())?, SlotKind::Ordinary as u8),
                };
                let (cookie, first) = (changes.cookie.into(), (*locals.start()).into());
                let places = changes.places.map(Into::into);
                let new = Register::new(epoch, sequence);
                let fixed = Register { executor, cookie, first, resources, kind, places, ..new };
                Ok(counting(&fixed, locals.count() as u8))
            }
            "retrieve" => written(&Retrieve { counter, resources, ..Retrieve::new(epoch, sequence) }, &waits()?),
            "ahead" => {
                let fixed = Retrieve { counter, resources, ahead: 1, ..Retrieve::new(epoch, sequence) };
                written(&fixed, &waits()?)
            }
            "keepalive" => written(&Keepalive { counter, ..Keepalive::new(epoch, sequence) }, &waits()?),
            "release" => {
                written(&Release { counter, ..Release::new(epoch, sequence) }, &leaves(records, sender, names)?)
            }
            "complete" => Ok(counting(&Complete { executor, ..Complete::new(epoch, sequence) }, 0)),
            verb => Err(format!("{verb:?} is no operation of a transcript")),
        }
    }
}

fn written<H, R>(fixed: &H, records: &[R]) -> Result<Vec<u8>, String>
where
    H: IntoBytes + Immutable,
    R: IntoBytes + Immutable,
{
    if records.len() > 255 { Err("more than 255 records".into()) } else { Ok(packet(fixed, records)) }
}

/// `100`, `100-103 level 2 needs AB attempt 1 function 7 argument 5` (bytes) `or argument reference or appended 200`.
fn tasks(records: &str) -> Result<Vec<TaskInfo>, String> {
    let mut all = Vec::new();
    for item in items(records) {
        let mut words = item.split_whitespace();
        let tids = parse_range(words.next().unwrap_or_default())?;
        let mut info = TaskInfo::PLAIN;
        while let Some(what) = words.next() {
            let value = words.next().ok_or_else(|| format!("{what:?} lacks a value"))?;
            match what {
                "level" => info.priority = number(value)?,
                "needs" => info.resources = parse_mask(value)?,
                "attempt" => info.attempt = number(value)?,
                "function" => info.function = number::<u32>(value)?.into(),
                "argument" => set_argument(&mut info, value)?,
                "appended" => {
                    info.argument_length = APPENDED;
                    info.argument[..2].copy_from_slice(&number::<u16>(value)?.to_be_bytes());
                }
                _ => return Err(format!("a task has no {what:?}")),
            }
        }
        all.extend(tids.map(|tid| TaskInfo { tid: tid.into(), ..info }));
    }
    Ok(all)
}

fn set_argument(info: &mut TaskInfo, value: &str) -> Result<(), String> {
    if value == "reference" {
        let blob = BlobRef { id: 1.into(), length: 5000.into(), port: 7001.into(), reserved: 0.into() };
        info.argument_length = BY_REFERENCE;
        info.argument.copy_from_slice(blob.as_bytes());
        return Ok(());
    }
    info.argument_length = number(value)?;
    if info.argument_length != APPENDED {
        let used = usize::from(info.argument_length).min(info.argument.len());
        info.argument[..used].fill(0xAA);
    }
    Ok(())
}

/// The appended argument of a task, padded with zeros: bytes that count from its tid.
pub(super) fn appended(task: &TaskInfo) -> Vec<u8> {
    let first = task.tid.get() as u8;
    let mut bytes: Vec<u8> = (0..task.appended_length()).map(|at| first.wrapping_add(at as u8)).collect();
    bytes.resize(task.appended_bytes(), 0);
    bytes
}

/// `1.0`, `1.0-3`: submission and index.
fn task_names(records: &str) -> Result<Vec<TaskName>, String> {
    let mut all = Vec::new();
    for item in items(records) {
        let (submission, indices) = item.split_once('.').ok_or("a task is named by submission.index")?;
        let submission = number(submission)?;
        for index in parse_range(indices)? {
            let index = u8::try_from(index).map_err(|_| "an index is below 256")?;
            all.push(TaskName::new(submission, index));
        }
    }
    Ok(all)
}

/// `0 wait 1`, `0-15 wait 2`.
fn waits(records: &str, sender: &Endpoint, names: &Names) -> Result<Vec<Wait>, String> {
    let mut all = Vec::new();
    for item in items(records) {
        let (slot, sequence) = item.split_once(" wait ").ok_or("say: <slot> wait <sequence>")?;
        let sequence = number(sequence)?;
        all.extend(slots(slot, sender, names)?.iter().map(|name| name.wait(sequence)));
    }
    Ok(all)
}

/// `0 wait 1 done`, `0 wait 1 withdrawn`, `0 wait 1 stays`.
fn leaves(records: &str, sender: &Endpoint, names: &Names) -> Result<Vec<Leave>, String> {
    let mut all = Vec::new();
    for item in items(records) {
        let (wait, how) = item.rsplit_once(' ').ok_or("say: <slot> wait <sequence> done")?;
        let done = match how {
            "done" => LeaveHow::Done,
            "withdrawn" => LeaveHow::Withdrawn,
            "stays" => LeaveHow::Stays,
            _ => return Err(format!("a slot leaves done or withdrawn, or stays, not {how:?}")),
        };
        for wait in waits(wait, sender, names)? {
            let (slot, generation, sequence) = (wait.slot, wait.generation, wait.sequence);
            all.push(Leave { slot, generation, sequence, done: done as u8, reserved: [0; 3] });
        }
    }
    Ok(all)
}

/// `0`, `0-15`, `eve/0`, `0@1` (an earlier registration), `#7` (an unused number).
fn slots(text: &str, sender: &Endpoint, names: &Names) -> Result<Vec<SlotName>, String> {
    let text = text.trim();
    if let Some(unknown) = text.strip_prefix('#') {
        return Ok(vec![SlotName { slot: number::<u32>(unknown)?.into(), generation: 1.into() }]);
    }
    let (owner, locals) = match text.split_once('/') {
        Some((owner, locals)) => (names.endpoint(owner).ok_or_else(|| format!("{owner:?} is nobody"))?, locals),
        None => (sender, text),
    };
    let (locals, ordinal) = match locals.split_once('@') {
        Some((locals, ordinal)) => (locals, Some(number(ordinal)?)),
        None => (locals, None),
    };
    parse_range(locals)?
        .map(|local| {
            names
                .slot(owner.identity, local, ordinal)
                .ok_or_else(|| format!("{} never registered slot {local}", owner.name))
        })
        .collect()
}
