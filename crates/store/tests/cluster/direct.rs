//! R6: replies directly from replicas to the client.

use super::world::{World, member, switch};
use super::{done, modes, ready};
use midflight_dataplane::store::ReplyCheck;
use midflight_endpoint::MS;
use midflight_store::replica::{Counters, Mode};
use midflight_wire::store::{Command, FLAG_DIRECT, FLAG_OFFERS_DIRECT, Status};

fn all(world: &mut World, of: impl Fn(&Counters) -> u64) -> [u64; 3] {
    [1, 2, 3].map(|id| of(world.replica(id).counters()))
}

/// Number of direct answers to `reads` READs, all of which are answered.
fn direct_of(world: &mut World, reads: u32, key: &str, value: &str, check: ReplyCheck) -> usize {
    let answers = world.get_directly_often(1, key, reads);
    assert_eq!(answers.len(), reads as usize);
    for answer in &answers {
        assert_eq!(answer.value, value.as_bytes());
        let reply = &answer.reply;
        let secrets = [reply.header.epoch.get().into(), reply.sid.get(), reply.seq.get(), reply.index.get()];
        assert_eq!((secrets, reply.client.port.get()), ([0; 4], 0), "r7: what only switch and replicas may know");
        let is_direct = answer.from == member(u64::from(reply.slot) + 1).address;
        assert!(is_direct || answer.from == switch(1));
        let offers = if check == ReplyCheck::Direct { FLAG_OFFERS_DIRECT } else { 0 };
        assert_eq!(reply.flags, if is_direct { FLAG_DIRECT } else { offers });
    }
    answers.iter().filter(|answer| answer.from != switch(1)).count()
}

#[test]
fn r6_most_replies_go_to_the_client_directly_and_probes_show_the_leader_who_is_reached() {
    let (mut world, client) = ready(3);
    assert_eq!(world.write(1, client, 1, Command::Put, "a", b"one"), done(""));
    let strict = direct_of(&mut world, 100, "a", "one", ReplyCheck::Strict);
    assert_eq!(strict, 0, "the strict check needs them at the switch");
    world.change_reply_check(1, ReplyCheck::Direct);
    // A heartbeat comes every 20 ms, and makes four probes of each replica due: 12 of 100.
    let direct = direct_of(&mut world, 1_000, "a", "one", ReplyCheck::Direct);
    assert!((850..920).contains(&direct), "{direct}");
    let counted = all(&mut world, |counters| counters.reads_direct);
    assert_eq!(counted.iter().sum::<u64>(), direct as u64);
    assert!(counted.iter().all(|&reads| reads > 200), "all replicas answer so: {counted:?}");
    // For much longer than five heartbeats, no replica counted as not answering.
    assert_eq!(world.write(1, client, 2, Command::Put, "a", b"two"), done(""));
    let before = all(&mut world, |counters| counters.reads_served);
    direct_of(&mut world, 300, "a", "two", ReplyCheck::Direct);
    let after = all(&mut world, |counters| counters.reads_served);
    assert!(before.iter().zip(after).all(|(before, after)| after > before + 50), "{before:?}, {after:?}");
}

#[test]
fn r1_a_read_under_a_write_is_answered_through_the_switch() {
    let (mut world, client) = ready(3);
    world.change_reply_check(1, ReplyCheck::Direct);
    let leader = world.leader().unwrap();
    let followers: Vec<u64> = (1..=3).filter(|id| *id != leader).collect();
    assert_eq!(world.write(1, client, 1, Command::Put, "a", b"one"), done(""));
    // No write can be committed, so the key group stays unstable.
    followers.iter().for_each(|id| world.link(leader, *id, false));
    world.begin_write(1, client, 2, Command::Put, "a", b"two");
    world.run(MS);
    let before = all(&mut world, |counters| counters.reads_direct);
    let answer = world.get_directly(1, "a").expect("the leader has its lease");
    assert_eq!((answer.from, &answer.value[..]), (switch(1), &b"one"[..]));
    assert_eq!(all(&mut world, |counters| counters.reads_direct), before);
}

#[test]
fn r1_replicas_that_know_themselves_what_they_may_answer_answer_directly_too() {
    for mode in [Mode::FollowerLease, Mode::FollowerReadIndex] {
        let (mut world, client) = modes::ready(mode, 3);
        world.change_reply_check(1, ReplyCheck::Direct);
        for number in 1..=10 {
            let value = number.to_string();
            assert_eq!(world.write(1, client, number, Command::Put, "a", value.as_bytes()), done(""), "{mode:?}");
            direct_of(&mut world, 100, "a", &value, ReplyCheck::Direct);
        }
        let counted = all(&mut world, |counters| counters.reads_direct);
        assert!(counted.iter().sum::<u64>() > 500, "{mode:?}: {counted:?}");
    }
}

#[test]
fn r6_what_does_not_exist_is_answered_directly_too() {
    let (mut world, _) = ready(3);
    world.change_reply_check(1, ReplyCheck::Direct);
    let answers = world.get_directly_often(1, "none", 100);
    assert!(answers.iter().all(|answer| answer.reply.status == Status::NotFound as u8));
    assert!(answers.iter().any(|answer| answer.from != switch(1)));
}
