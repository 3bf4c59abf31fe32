//! Switches of another version of the format.

use super::*;
use midflight_wire::{VERSION, Version};
use zerocopy::IntoBytes;

fn version(version: u8) -> Vec<u8> {
    Version { version, ..Version::OURS }.as_bytes().to_vec()
}

/// A packet of another version, otherwise valid.
fn of_version(version: u8) -> Vec<u8> {
    let mut packet = reset(EPOCH, 0, &[]);
    packet[2] = version;
    packet
}

#[test]
fn t11_a_switch_of_another_version_is_reported_once() {
    let mut world = World::new(2);
    let events_after = |world: &mut World, datagram: &[u8]| {
        world.deliver(switch(1), datagram);
        std::mem::take(&mut world.events)
    };
    for number in [VERSION + 1, 1] {
        let event = Event::OtherVersion { switch: switch(1), version: number };
        assert_eq!(events_after(&mut world, &version(number)), [event]);
        for _ in 0..10 {
            assert_eq!(events_after(&mut world, &version(number)), []);
            assert_eq!(events_after(&mut world, &of_version(number)), []);
        }
    }
    let event = Event::OtherVersion { switch: switch(1), version: 9 };
    assert_eq!(events_after(&mut world, &of_version(9)), [event]);
    assert_eq!(world.counters().other_versions, 43);
    assert!(world.sent.is_empty(), "never answered");
}

#[test]
fn t11_what_others_say_of_versions_is_counted() {
    let mut world = World::new(2);
    world.deliver(switch(2), &version(VERSION + 1));
    world.deliver(client(1), &of_version(VERSION + 1));
    world.deliver(switch(1), &version(VERSION));
    assert_eq!((world.events, world.executor.counters().other_versions), (vec![], 3));
}

/// It accepts no packets. The next switch of the list may; its version is reported separately.
#[test]
fn t16_a_switch_of_another_version_is_left() {
    let mut world = World::new(2);
    let mut events = Vec::new();
    while world.now < 2_100 * MS {
        world.pass(world.now + 50 * MS);
        events.append(&mut world.events);
        world.deliver(world.executor.switch(), &version(VERSION + 1));
        events.append(&mut world.events);
    }
    let other = |n| Event::OtherVersion { switch: switch(n), version: VERSION + 1 };
    assert_eq!(events, [other(1), Event::SwitchChanged { switch: switch(2) }, other(2)]);
}
