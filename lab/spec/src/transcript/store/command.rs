//! Turns a transcript's command into a datagram.

use super::super::vocabulary::{Moment, Sending};
use super::super::words::{number, parse_mask};
use super::changes::{self, Changes};
use super::names::Names;
use super::render::status_name;
use midflight_dataplane::store::StoreConfig;
use midflight_wire::packet;
use midflight_wire::store::{
    Command, EndSession, FLAG_DIRECT, FLAG_EXISTS, FLAG_UNSERVED, Heartbeat, Hello, Operation, Replica, Request,
    Status, Write, key_hash,
};
use std::net::SocketAddr;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

const SET: u16 = 1;
const WEIGHT: u8 = 10;

type Now<'a> = Moment<'a, StoreConfig>;

pub(super) fn parse(line: &str, names: &mut Names, moment: &Now<'_>) -> Result<Sending, String> {
    let (said, changes) = line.split_once('|').unwrap_or((line, ""));
    let changes = changes::parse(changes, names)?;
    let (who, rest) = said.trim().split_once(' ').unwrap_or((said.trim(), ""));
    let from = names.anybody(who)?;
    let mut datagram = match names.replica(who) {
        None => of_client(rest, names, from, &changes, moment)?,
        Some((slot, _)) => of_replica(rest, names, slot, &changes, moment)?,
    };
    for &(offset, value) in &changes.bytes {
        *datagram.get_mut(offset).ok_or("the datagram has no such byte")? = value;
    }
    datagram.resize(datagram.len().saturating_add_signed(changes.resize), 0);
    let from = changes.from.unwrap_or(from);
    Ok(Sending { from, datagram, counter: None, every: changes.every })
}

/// `get KEY`, `exists KEY`, `put KEY VALUE`.
fn of_client(
    said: &str,
    names: &mut Names,
    from: SocketAddr,
    changes: &Changes,
    moment: &Now<'_>,
) -> Result<Vec<u8>, String> {
    let words: Vec<&str> = said.split_whitespace().collect();
    let (operation, flags, key, value) = match words[..] {
        ["get", key] => (Operation::Read, 0, key, ""),
        ["exists", key] => (Operation::Read, FLAG_EXISTS, key, ""),
        ["put", key, value] => (Operation::Write, 0, key, value),
        _ => return Err("a client says: get <key>, exists <key>, put <key> <value>".to_owned()),
    };
    let mut request = Request {
        request: names.next_request().into(),
        hash: key_hash(key.as_bytes()).into(),
        set: changes.set.unwrap_or(SET).into(),
        key_length: (key.len() as u16).into(),
        flags,
        ..Request::new(operation)
    };
    mark_direct(&mut request, changes);
    request.flags |= if changes.is_unserved { FLAG_UNSERVED } else { 0 };
    request.client.ip[..8].copy_from_slice(&changes.cookie.value(from, moment.config.cookie_ns, moment).to_be_bytes());
    let write = Write { client: 1.into(), number: 1.into(), command: Command::Put as u8, ..Write::new_zeroed() };
    let write: &[u8] = if operation == Operation::Write { write.as_bytes() } else { b"" };
    Ok([request.as_bytes(), write, key.as_bytes(), value.as_bytes()].concat())
}

fn mark_direct(request: &mut Request, changes: &Changes) {
    match changes.is_direct {
        Some(true) => request.flags |= FLAG_DIRECT,
        Some(false) => request.flags &= !FLAG_DIRECT,
        None => {}
    }
}

fn of_replica(said: &str, names: &Names, slot: u8, changes: &Changes, moment: &Now<'_>) -> Result<Vec<u8>, String> {
    let (head, replicas) = said.split_once(':').unwrap_or((said, ""));
    let words: Vec<&str> = head.split_whitespace().collect();
    let set = changes.set.unwrap_or(SET);
    let (incarnation, last_echo) = names.state(set);
    let incarnation = changes.incarnation.unwrap_or(incarnation).into();
    match words[..] {
        ["hello"] => {
            let hello = Hello { incarnation, echo: last_echo.into(), set: set.into(), slot, ..Hello::new(0, 1) };
            Ok(hello.as_bytes().to_vec())
        }
        ["ends", session] => {
            let sid = sid(session)?.into();
            Ok(EndSession { incarnation, sid, set: set.into(), slot, ..EndSession::new(0, 1) }.as_bytes().to_vec())
        }
        ["leads", session, "from", start] => {
            let echo = match (changes.echo_age, changes.echo_ahead) {
                (_, true) => moment.now_ns + 1,
                (Some(age), _) => moment.now_ns.saturating_sub(age),
                _ => last_echo,
            };
            let beat = Heartbeat {
                incarnation,
                sid: sid(session)?.into(),
                start: number::<u64>(start)?.into(),
                echo: echo.into(),
                set: set.into(),
                leader: changes.leader.unwrap_or(slot),
                kgroup_bits: changes.kgroup_bits.unwrap_or(2),
                is_idle: changes.is_idle.into(),
                any_replica: changes.is_any.into(),
                ..Heartbeat::new(0, 1)
            };
            Ok(packet(&beat, &members(replicas, names)?))
        }
        ["answers", request, status, ref options @ ..] => {
            answer(names.asked(number(request)?)?, slot, status, options, changes)
        }
        ["refreshes", request, ref options @ ..] => {
            let mut refresh = answer(names.asked(number(request)?)?, slot, "done", options, changes)?;
            refresh.truncate(size_of::<Request>());
            let (reply, _) = Request::mut_from_prefix(&mut refresh).map_err(|_| "it is no request")?;
            reply.header.operation = Operation::WriteReply as u8;
            reply.key_length = 0.into();
            reply.client.zero();
            Ok(refresh)
        }
        _ => Err("a replica says: hello; leads <session> from <index>: <replicas>; ends <session>; \
                  answers <request> <status>; refreshes <request>"
            .to_owned()),
    }
}

/// `2.1`: term and number.
fn sid(text: &str) -> Result<u64, String> {
    let (term, count) = text.split_once('.').ok_or("a session is <term>.<number>")?;
    Ok(number::<u64>(term)? << 32 | number::<u64>(count)?)
}

/// `rob 10, sue 9 weight 0, -`: by slot, the replica and its matched index; `-` is none.
fn members(text: &str, names: &Names) -> Result<Vec<Replica>, String> {
    let member = |item: &str| {
        let words: Vec<&str> = item.split_whitespace().collect();
        let (name, matched, weight) = match words[..] {
            ["-"] => return Ok(Replica::new_zeroed()),
            [name, matched] => (name, matched, WEIGHT),
            [name, matched, "weight", weight] => (name, matched, number(weight)?),
            _ => return Err(format!("{item:?}: say <replica> <index>, or -")),
        };
        let address = names.anybody(name)?.into();
        Ok(Replica { address, weight, matched: number::<u64>(matched)?.into(), reserved: [0; 3] })
    };
    text.split(',').map(|item| member(item.trim())).collect()
}

/// `done [index 12] [has AB] [seq 2] [value x]`: the reply to a request as received.
fn answer(asked: &[u8], slot: u8, status: &str, options: &[&str], changes: &Changes) -> Result<Vec<u8>, String> {
    let (asked, rest) = Request::ref_from_prefix(asked).map_err(|_| "it was no request")?;
    let is_read = asked.header.operation == Operation::Read as u8;
    let mut reply = Request { slot: changes.slot.unwrap_or(slot), status: status_of(status)? as u8, ..*asked };
    reply.header.operation += 1;
    mark_direct(&mut reply, changes);
    let mut value = "";
    for pair in options.chunks(2) {
        match pair {
            ["index", index] => reply.index = number::<u64>(index)?.into(),
            ["seq", seq] => reply.seq = number::<u64>(seq)?.into(),
            ["has", mask] => reply.replicas = parse_mask(mask)?,
            ["value", given] => value = given,
            _ => return Err(format!("{pair:?}: say index <number>, has <replicas>, seq <number> or value <value>")),
        }
    }
    if let Some(epoch) = changes.epoch {
        reply.header.epoch = epoch.into();
    }
    if changes.is_without_client {
        reply.client.zero();
    }
    if !is_read {
        reply.key_length = 0.into();
    }
    let key: &[u8] = if is_read { rest } else { b"" };
    Ok([reply.as_bytes(), key, value.as_bytes()].concat())
}

fn status_of(name: &str) -> Result<Status, String> {
    let found = Status::ALL.iter().find(|&&status| status_name(status) == name);
    found.copied().ok_or_else(|| format!("{name:?} is no status"))
}
