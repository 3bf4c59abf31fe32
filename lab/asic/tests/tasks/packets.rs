//! Packets of clients and executors, and the answers.

use midflight_asic::{AsicConfig, AsicTasks, Program, Turn};
use midflight_dataplane::Verdict;
use midflight_wire::tasks::*;
use midflight_wire::*;
use std::net::SocketAddr;
use zerocopy::byteorder::network_endian::U32;

pub(crate) const EPOCH: u32 = 77;
pub(crate) const CLIENT: u64 = 0x5EED_0000_0000_0007;
pub(crate) const EXECUTOR: u64 = 9;
/// Of the client's submissions.
pub(crate) const TOKEN: u64 = 0x70CE_0000_0000_0005;
/// Position of the cookie in REGISTER and PROBE.
const COOKIE_AT: std::ops::Range<usize> = 32..40;

/// The outcome of a datagram, and the datagrams sent.
pub(crate) type Effect = (Verdict, Vec<(SocketAddr, Vec<u8>)>);

pub(crate) fn address(host: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host], 7000))
}

pub(crate) fn switch(program: Program, levels: u32, queue: u32) -> AsicTasks {
    with_argument(16, program, levels, queue)
}

pub(crate) fn with_argument(argument: u32, program: Program, levels: u32, queue: u32) -> AsicTasks {
    let small = AsicConfig { slots: 4, lease_ms: 1, slot_idle_ns: 1_000, cookie_ns: 500, ..AsicConfig::default() };
    let config = AsicConfig { program, levels, queue, argument, ..small };
    AsicTasks::new(&config, EPOCH, 1).expect("fits Tofino 1")
}

pub(crate) fn task(tid: u32, priority: u8, resources: u8, argument: &[u8]) -> TaskInfo {
    let mut bytes = [0; 16];
    bytes[..argument.len()].copy_from_slice(argument);
    TaskInfo {
        tid: tid.into(),
        function: (tid + 7).into(),
        priority,
        resources,
        argument_length: argument.len() as u8,
        attempt: (tid % 3) as u8,
        argument: bytes,
    }
}

pub(crate) fn submit(sequence: u32, tasks: &[TaskInfo]) -> Vec<u8> {
    let (client, token, uid, jid) = (CLIENT.into(), TOKEN.into(), 1.into(), 1.into());
    packet(&Submit { client, token, uid, jid, ..Submit::new(0, sequence) }, tasks)
}

/// Without a cookie.
pub(crate) fn register(sequence: u32, first: u32, count: u8) -> Vec<u8> {
    counting(&Register { executor: EXECUTOR.into(), first: first.into(), ..Register::new(0, sequence) }, count)
}

pub(crate) fn retrieve(counter: u64, resources: u8, waits: &[Wait]) -> Vec<u8> {
    packet(&Retrieve { counter: counter.into(), resources, ..Retrieve::new(EPOCH, 0) }, waits)
}

/// Of one task, without a cookie.
pub(crate) fn probe() -> Vec<u8> {
    packet(&Probe { client: CLIENT.into(), ..Probe::new(0, 3) }, &[TaskName::new(1, 0)])
}

pub(crate) fn cancel() -> Vec<u8> {
    packet(&Cancel { client: CLIENT.into(), ..Cancel::new(0, 4) }, &[TaskName::new(1, 0)])
}

/// A wait of an unregistered slot.
pub(crate) const SOMEBODY: Wait = Wait { slot: U32::new(0), generation: U32::new(0), sequence: U32::new(1) };

pub(crate) fn give(switch: &mut AsicTasks, from: SocketAddr, datagram: &[u8]) -> Effect {
    give_at(0, switch, from, datagram)
}

/// The same at a time, in nanoseconds.
pub(crate) fn give_at(now: u64, switch: &mut AsicTasks, from: SocketAddr, datagram: &[u8]) -> Effect {
    let mut turn = Turn::default();
    let verdict = switch.packet(now, from, datagram, &mut turn);
    switch.finish(&mut turn);
    (verdict, turn.sent)
}

/// The same packet with the cookie from its answer.
pub(crate) fn with_cookie(now: u64, switch: &mut AsicTasks, from: SocketAddr, mut datagram: Vec<u8>) -> Vec<u8> {
    let (verdict, sent) = give_at(now, switch, from, &datagram);
    let [(to, answer)] = &sent[..] else { panic!("one answer: {sent:?}") };
    let Ok(Packet::Cookie(cookie)) = parse(answer) else { panic!("no COOKIE: {answer:02x?}") };
    assert_eq!((verdict, *to), (Verdict::NoCookie, from));
    assert!(answer.len() <= datagram.len(), "an answer to a forged address is no longer than its question");
    datagram[COOKIE_AT].copy_from_slice(&cookie.cookie.to_bytes());
    datagram
}

/// REGISTERED of a REGISTER with its cookie: the slots, and the reason for missing ones.
pub(crate) fn registered(
    now: u64,
    switch: &mut AsicTasks,
    from: SocketAddr,
    register: Vec<u8>,
) -> (Vec<SlotName>, Reason) {
    let register = with_cookie(now, switch, from, register);
    let (verdict, sent) = give_at(now, switch, from, &register);
    assert_eq!(verdict, Verdict::Ok);
    let Ok(Packet::Registered(registered, names)) = parse(&sent[0].1) else { panic!("{sent:?}") };
    assert_eq!((registered.poll_us.get(), SocketAddr::from(registered.seen)), (50, from));
    (names.to_vec(), Reason::from_number(registered.reason).expect("one of them"))
}

/// Slots of the executor at host 9.
pub(crate) fn slots(switch: &mut AsicTasks, count: u8) -> Vec<SlotName> {
    let (names, reason) = registered(0, switch, address(9), register(1, 0, count));
    assert_eq!((names.len(), reason), (usize::from(count), Reason::None));
    names
}

/// Taken, not taken, why.
pub(crate) fn acked(bytes: &[u8]) -> (u32, u32, u8) {
    let Ok(Packet::SubmitAck(ack)) = parse(bytes) else { panic!("no SUBMIT_ACK: {bytes:02x?}") };
    assert_eq!((ack.client.get(), ack.header.epoch.get()), (CLIENT, EPOCH));
    (ack.taken.get(), ack.not_taken.get(), ack.reason)
}

/// The count of a drop reason.
pub(crate) fn counted(switch: &AsicTasks, verdict: Verdict) -> u64 {
    switch.stats().reasons[verdict as usize]
}
