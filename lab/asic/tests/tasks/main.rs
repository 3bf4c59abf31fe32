//! The asic engine on the wire: parser, deparser and controller for each packet; no interleaving of recirculated packets loses or changes a
//! task.

mod interleavings;
mod packets;

use midflight_asic::{AsicConfig, AsicError, AsicTasks, Program};
use midflight_dataplane::Verdict;
use midflight_wire::tasks::*;
use packets::*;
use std::net::SocketAddr;

/// Both programs return a task as submitted, apart from fields that no entry has.
#[test]
fn an_assignment_says_what_the_submission_said() {
    for (program, bytes) in [(Program::Safe, 4), (Program::Safe, 12), (Program::Safe, 16), (Program::Published, 16)] {
        let mut switch = with_argument(bytes, program, 4, 8);
        let mut tasks = [task(100, 3, 1, &b"0123456789abcdef"[..bytes as usize]), task(101, 3, 0, b"xyz")];
        if bytes == 16 {
            tasks[1].argument_length = BY_REFERENCE;
        }
        assert_eq!(acked(&give(&mut switch, address(1), &submit(41, &tasks)).1[0].1), (0b11, 0, 0), "{program}");
        let name = slots(&mut switch, 1)[0];
        for (index, task) in (0..).zip(&tasks) {
            let (_, sent) = give(&mut switch, address(9), &retrieve(5 + u64::from(index), 1, &[name.wait(5 + index)]));
            let Ok(Packet::Assign(_, [a], _)) = parse(&sent[0].1) else { panic!("{program}: {sent:?}") };
            assert_eq!(a.task, TaskInfo { attempt: task.attempt + 1, ..*task }, "{program}");
            assert_eq!((a.slot, a.generation, a.sequence.get()), (name.slot, name.generation, 5 + index));
            assert_eq!((a.token.get(), SocketAddr::from(a.address)), (5, address(1)), "the lower half of the token");
            assert_eq!((a.submission.get(), u32::from(a.index)), (41, index));
            assert_eq!((a.uid.get(), a.jid.get()), (u32::MAX, 41), "no half of a token is shown");
        }
        let (_, sent) = give(&mut switch, address(9), &retrieve(9, 1, &[name.wait(9)]));
        assert!(matches!(parse(&sent[0].1), Ok(Packet::NoOp(_, [told])) if *told == name.wait(9)), "{program}");
        assert_eq!(
            (switch.stats().tasks.submitted, switch.stats().tasks.assigned, switch.counters().no_ops),
            (2, 2, 1)
        );
    }
}

/// T7: each of a SUBMIT's tasks is in one of the two bitmaps, though the published program does not report those that it took.
#[test]
fn t7_a_full_level_names_what_it_did_not_take() {
    for program in [Program::Safe, Program::Published] {
        let mut switch = switch(program, 2, 4);
        let tasks: Vec<_> = (0..6).map(|tid| task(tid, 1, 0, &[])).collect();
        assert_eq!(
            acked(&give(&mut switch, address(1), &submit(1, &tasks)).1[0].1),
            (0b1111, 0b11_0000, 1),
            "{program}"
        );
        assert_eq!(counted(&switch, Verdict::Full), 2);
        assert_eq!(
            acked(&give(&mut switch, address(1), &submit(2, &[task(9, 2, 0, &[])])).1[0].1),
            (1, 0, 0),
            "{program}"
        );
        assert_eq!(switch.queued()[1], 1);
    }
}

/// T11: a SUBMIT that does not fit a pipeline is refused completely, and changes nothing.
#[test]
fn t11_what_no_entry_holds_is_refused() {
    let mut switch = with_argument(4, Program::Safe, 2, 4);
    let refused = |switch: &mut AsicTasks, from, datagram: &[u8]| {
        let (verdict, sent) = give(switch, from, datagram);
        assert!(sent.is_empty(), "{sent:?}");
        verdict
    };
    let fine = task(1, 1, 0, b"1234");
    let long = submit(1, &[fine, task(1, 1, 0, b"12345")]);
    assert_eq!(refused(&mut switch, address(1), &long), Verdict::BadArgument);
    let by_reference = submit(1, &[TaskInfo { argument_length: BY_REFERENCE, ..fine }]);
    assert_eq!(refused(&mut switch, address(1), &by_reference), Verdict::BadArgument);
    let level = submit(1, &[fine, task(1, 3, 0, &[])]);
    assert_eq!(refused(&mut switch, address(1), &level), Verdict::BadPriority);
    let ipv6 = SocketAddr::from(([0, 1, 2, 3, 4, 5, 6, 7], 7000));
    for datagram in [submit(1, &[fine]), register(1, 0, 1), probe(), retrieve(1, 0, &[SOMEBODY])] {
        assert_eq!(refused(&mut switch, ipv6, &datagram), Verdict::NotForSwitch, "it would be heard, and get nothing");
    }
    let names = slots(&mut switch, 2);
    let two = retrieve(1, 0, &[names[0].wait(1), names[1].wait(1)]);
    assert_eq!(refused(&mut switch, address(9), &two), Verdict::BadCount);
    assert_eq!((switch.counters().passes, switch.counters().dropped), (0, 0));
}

/// The controller answers questions about records that the pipeline does not have.
#[test]
fn t10_the_switch_keeps_no_record_of_tasks() {
    let mut switch = switch(Program::Safe, 1, 4);
    let probe = with_cookie(0, &mut switch, address(1), probe());
    let (_, sent) = give(&mut switch, address(1), &probe);
    assert!(
        matches!(parse(&sent[0].1), Ok(Packet::ProbeAck(ack)) if ack.known == Known::NoRecord as u8 && ack.header.count == 1)
    );
    let (_, sent) = give(&mut switch, address(1), &cancel());
    assert!(matches!(parse(&sent[0].1), Ok(Packet::CancelAck(ack, [])) if ack.taken_out.get() == 0));
}

#[test]
fn t14_slots_are_bounded_and_forgotten_when_they_are_silent() {
    let mut switch = switch(Program::Safe, 1, 4);
    let names = slots(&mut switch, 3);
    let (further, reason) = registered(0, &mut switch, address(9), register(2, 3, 2));
    assert_eq!((further.len(), reason, counted(&switch, Verdict::SlotsFull)), (1, Reason::SlotsFull, 1));

    let heard = retrieve(1, 0, &[names[1].wait(1)]);
    assert_eq!(give_at(900, &mut switch, address(9), &heard).0, Verdict::Ok);
    assert_eq!((switch.tick(1_000), switch.stats().slots), (4, 1), "one of them has spoken");
    let (_, sent) = give_at(1_000, &mut switch, address(9), &retrieve(2, 0, &[names[1].wait(1)]));
    assert!(matches!(parse(&sent[0].1), Ok(Packet::NoOp(..))));
    let (_, sent) = give_at(1_000, &mut switch, address(9), &retrieve(3, 0, &[names[0].wait(1)]));
    assert!(matches!(parse(&sent[0].1), Ok(Packet::Reset(..))));
}

/// After a gap between ticks of more than a third of a lease, here of a millisecond, nothing expires before another lease has passed.
#[test]
fn t16_a_switch_that_stood_still_forgets_nobody_for_a_lease() {
    let mut switch = switch(Program::Safe, 1, 4);
    slots(&mut switch, 1);
    assert_eq!((switch.tick(0), switch.tick(333_334), switch.stats().gaps), (1, 0, 1));
    let steady = (1..=4).map(|tick| switch.tick(333_334 + tick * 250_000)).collect::<Vec<_>>();
    assert_eq!((steady, switch.stats().slots, switch.stats().gaps), (vec![0, 0, 0, 1], 0, 1));
}

#[test]
fn a_switch_that_cannot_be_is_refused() {
    let refused = |config: AsicConfig| AsicTasks::new(&config, EPOCH, 1).expect_err("impossible").to_string();
    let fine = AsicConfig::default();
    assert_eq!(refused(AsicConfig { poll_us: 0, ..fine }), "poll_us must be 1 to 65,535");
    assert_eq!(refused(AsicConfig { slots: 0, ..fine }), "slots must be 1 to 1,048,576");
    assert_eq!(refused(AsicConfig { argument: 5, ..fine }), "argument must be 4, 8, 12 or 16");
    let short = AsicConfig { slot_idle_ns: 2 * fine.cookie_ns - 1, ..fine };
    assert_eq!(refused(short), "slot_idle_ns must be at least twice cookie_ns");
    assert!(AsicTasks::new(&AsicConfig { queue: 32_768, argument: 4, ..fine }, EPOCH, 1).is_ok());
    let wide = refused(AsicConfig { queue: 32_768, ..fine });
    assert!(wide.contains("MAP") || wide.contains("map RAM"), "{wide}");
    let error = AsicTasks::new(&AsicConfig { queue: 65_536, ..fine }, EPOCH, 1).expect_err("4 x 65,536 entries");
    assert!(matches!(error, AsicError::Program(_)), "{error}");
}
