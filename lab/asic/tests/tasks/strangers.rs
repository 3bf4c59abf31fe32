//! Forged, repeated and late packets (T11, T13), and the share of an address (T14).

use crate::packets::*;
use midflight_asic::{AsicConfig, AsicTasks, Program};
use midflight_dataplane::Verdict;
use midflight_wire::*;
use std::net::SocketAddr;

/// T13: a sender without its cookie changes nothing, and gets no more bytes than it sent.
#[test]
fn t13_a_slot_is_made_for_a_cookie() {
    let mut switch = switch(Program::Safe, 1, 4);
    let asked = with_cookie(0, &mut switch, address(9), register(1, 0, 1));
    assert_eq!((switch.stats().slots, counted(&switch, Verdict::NoCookie)), (0, 1));
    let (verdict, _) = give(&mut switch, address(8), &asked);
    assert_eq!((verdict, switch.stats().slots), (Verdict::NoCookie, 0), "another's cookie");
    let (verdict, _) = give_at(999, &mut switch, address(9), &asked);
    assert_eq!((verdict, switch.stats().slots), (Verdict::Ok, 1), "in its window and the next");
    let later = with_cookie(999, &mut switch, address(9), register(2, 0, 1));
    assert_eq!(give_at(1_499, &mut switch, address(9), &later).0, Verdict::Ok);
    assert_eq!(give_at(1_500, &mut switch, address(9), &later).0, Verdict::NoCookie, "its time is up");
}

/// Clients are not remembered, so a PROBE always needs a cookie.
#[test]
fn t13_a_probe_is_answered_for_a_cookie() {
    let mut switch = switch(Program::Safe, 1, 4);
    let asked = with_cookie(0, &mut switch, address(1), probe());
    assert!(matches!(parse(&give(&mut switch, address(1), &asked).1[0].1), Ok(Packet::ProbeAck(_))));
    assert_eq!(give(&mut switch, address(2), &asked).0, Verdict::NoCookie);
}

/// The pipeline and its CANCEL take no cookie: the answer to a forged address is shorter than the request.
#[test]
fn t13_answers_without_a_cookie_are_shorter_than_their_questions() {
    let mut switch = switch(Program::Safe, 1, 4);
    for datagram in [submit(1, &[task(1, 1, 0, &[])]), cancel(), retrieve(1, 0, &[SOMEBODY]), release(1, &[SOMEBODY])] {
        let (verdict, sent) = give(&mut switch, address(1), &datagram);
        let [(_, answer)] = &sent[..] else { panic!("one answer: {sent:?}") };
        assert!(verdict == Verdict::Ok && answer.len() < datagram.len());
    }
    let lively = keepalive(1, &[SOMEBODY]);
    assert_eq!(give(&mut switch, address(1), &lively).1[0].1.len(), lively.len());
}

/// T13: a repeated REGISTER names the slots again and renews nothing; one of an earlier registration learns nothing.
#[test]
fn t13_an_old_registration_reveals_no_names() {
    let mut switch = switch(Program::Safe, 1, 4);
    let first = with_cookie(0, &mut switch, address(9), register(5, 0, 2));
    let names_of = |switch: &mut AsicTasks, now, datagram: &[u8]| {
        let (_, sent) = give_at(now, switch, address(9), datagram);
        let Ok(Packet::Registered(registered, names)) = parse(&sent[0].1) else { panic!("{sent:?}") };
        (names.to_vec(), registered.reason)
    };
    let (names, _) = names_of(&mut switch, 0, &first);
    assert_eq!(names_of(&mut switch, 900, &first), (names.clone(), Reason::None as u8), "the same again");
    let (renewed, _) = registered(900, &mut switch, address(9), register(6, 0, 1));
    assert!(renewed[0].slot == names[0].slot && renewed[0].generation != names[0].generation);
    assert_eq!(names_of(&mut switch, 900, &first), (vec![], Reason::TooOld as u8));
    assert_eq!(counted(&switch, Verdict::StaleRegister), 2, "this one, and the one behind it");
    switch.tick(1_000);
    assert_eq!(switch.stats().slots, 1, "the second slot was not heard since its registration");
}

/// T13: a copy of a packet that named a slot changes nothing, and renews nothing.
#[test]
fn t13_what_comes_twice_is_replayed() {
    let mut switch = switch(Program::Safe, 1, 4);
    let name = slots(&mut switch, 1)[0];
    give(&mut switch, address(1), &submit(1, &[task(1, 1, 0, &[]), task(2, 1, 0, &[])]));
    let asks = retrieve(7, 0, &[name.wait(1)]);
    assert!(matches!(parse(&give(&mut switch, address(9), &asks).1[0].1), Ok(Packet::Assign(..))));
    let copies = [asks, retrieve(6, 0, &[name.wait(2)]), keepalive(7, &[name.wait(1)]), release(7, &[name.wait(1)])];
    for (times, copy) in (1..).zip(&copies) {
        let told = give_at(900, &mut switch, address(9), copy);
        assert_eq!((told, counted(&switch, Verdict::Replayed)), ((Verdict::Ok, vec![]), times));
    }
    assert_eq!((switch.queued()[0], switch.stats().slots), (1, 1));
    assert_eq!((switch.tick(1_000), switch.stats().slots), (1, 0), "it was not heard");
}

/// T11, T13: RESET and RELEASED repeat the counter; RESET names waits as in the request.
#[test]
fn t11_nobody_speaks_for_anothers_slot() {
    let mut switch = switch(Program::Safe, 1, 4);
    let name = slots(&mut switch, 1)[0];
    let asked = name.wait(3);
    let foreign = Wait { generation: (name.generation.get() ^ 1).into(), ..asked };
    let reset = |told: (Verdict, Vec<(SocketAddr, Vec<u8>)>), from| {
        let [(to, answer)] = &told.1[..] else { panic!("one answer: {told:?}") };
        let Ok(Packet::Reset(reset, waits)) = parse(answer) else { panic!("no RESET: {told:?}") };
        assert_eq!(*to, from);
        (told.0, reset.counter.get(), waits.to_vec())
    };
    for (from, wait, verdict) in
        [(address(8), asked, Verdict::SpoofedSlot), (address(9), foreign, Verdict::ForeignSlot)]
    {
        let told = give(&mut switch, from, &retrieve(21, 0, &[wait]));
        assert_eq!(reset(told, from), (Verdict::Ok, 21, vec![wait]));
        let told = give(&mut switch, from, &keepalive(22, &[wait]));
        assert_eq!(reset(told, from), (Verdict::Ok, 22, vec![wait]));
        assert_eq!(counted(&switch, verdict), 2);
    }
    assert_eq!(give(&mut switch, address(8), &release(23, &[asked])), (Verdict::Ok, vec![]), "no RESET of a RELEASE");
    for (counter, datagram) in
        [(24, retrieve(24, 0, &[asked])), (25, keepalive(25, &[asked])), (26, release(26, &[asked]))]
    {
        let told = give(&mut switch, address(9), &in_epoch(EPOCH + 1, datagram));
        assert_eq!(reset(told, address(9)), (Verdict::ForeignEpoch, counter, vec![]));
    }
    assert_eq!((switch.counters().passes, switch.stats().slots), (0, 1));

    let (_, sent) = give(&mut switch, address(9), &release(27, &[asked, foreign]));
    let Ok(Packet::Released(released, gone)) = parse(&sent[0].1) else { panic!("{sent:?}") };
    assert_eq!((released.counter.get(), gone[0], gone.len(), switch.stats().slots), (27, name, 2, 0));
}

/// T14: an address has no more than its share of the slots, and keeps what it has.
#[test]
fn t14_a_second_executor_finds_slots() {
    let config = AsicConfig { slots: 18, ..AsicConfig::default() };
    let mut switch = AsicTasks::new(&config, EPOCH, 1).expect("fits Tofino 1");
    let mut register = |host, sequence, first, count| {
        let (names, reason) = registered(0, &mut switch, address(host), register(sequence, first, count));
        (names.len(), reason)
    };
    assert_eq!(register(9, 1, 0, 18), (16, Reason::Share));
    assert_eq!(register(9, 2, 0, 16), (16, Reason::None), "the same slots again");
    assert_eq!(register(8, 3, 100, 1), (1, Reason::None), "a second address finds room");
    assert_eq!(register(8, 4, 0, 14), (14, Reason::None), "slots that move are no further ones");
    assert_eq!(register(9, 5, 200, 1), (1, Reason::None), "they count no more where they were");
    assert_eq!(register(7, 6, 300, 1), (0, Reason::SlotsFull));
    assert_eq!((counted(&switch, Verdict::SlotsShare), counted(&switch, Verdict::SlotsFull)), (2, 1));
}

/// An address may reuse slots that it has returned or lost by silence.
#[test]
fn t14_slots_that_are_gone_count_no_more() {
    let config = AsicConfig { slots: 18, lease_ms: 30_000, ..AsicConfig::default() };
    let mut switch = AsicTasks::new(&config, EPOCH, 1).expect("fits Tofino 1");
    let (names, _) = registered(0, &mut switch, address(9), register(1, 0, 16));
    let waits: Vec<_> = names.iter().take(13).map(|name| name.wait(1)).collect();
    give(&mut switch, address(9), &release(1, &waits));
    let again = registered(0, &mut switch, address(9), register(2, 100, 14));
    assert_eq!((again.0.len(), again.1, counted(&switch, Verdict::SlotsShare)), (13, Reason::Share, 1));
    switch.tick(config.slot_idle_ns);
    let now = config.slot_idle_ns;
    let (names, _) = registered(now, &mut switch, address(9), register(3, 200, 18));
    assert_eq!((names.len(), switch.stats().slots), (16, 16));
}

/// A packet of another version is answered by ours, in eight bytes; VERSION itself is not answered.
#[test]
fn t11_versions_are_told() {
    let mut switch = switch(Program::Safe, 1, 4);
    let mut old = submit(1, &[task(1, 1, 0, &[])]);
    old[2] = 1;
    let (verdict, sent) = give(&mut switch, address(1), &old);
    let [(to, answer)] = &sent[..] else { panic!("one answer: {sent:?}") };
    assert!(matches!(parse(answer), Ok(Packet::Version(version)) if *version == Version::OURS));
    assert_eq!((verdict, *to, answer.len()), (Verdict::BadVersion, address(1), 8));
    assert_eq!(give(&mut switch, address(1), answer), (Verdict::NotForSwitch, vec![]));
    let mut signed = submit(1, &[task(1, 1, 0, &[])]);
    signed[5] = 1;
    assert_eq!(give(&mut switch, address(1), &signed), (Verdict::UnknownKey, vec![]));
}
