//! The store program at its bounds; with the feature `sanitize` under ASan and UBSan.

use midflight_dataplane::program::Engine;
use midflight_dataplane::store::{
    NewSet, Policy, ReplyCheck, SETS_MAX, SetOrder, Store, StoreConfig, StoreProgram, Verdict,
};
use midflight_dataplane::{Cookies, Out};
use midflight_spec::transcript::{CheckedNative, EngineExt};
use midflight_wire::packet;
use midflight_wire::store::{Heartbeat, Hello, KGROUP_BITS_MAX, Operation, Replica, Request, State, Write};
use std::net::SocketAddr;
use zerocopy::{FromZeros, IntoBytes};

const SECRET: u128 = 1;
const INCARNATION: u64 = 7;
const NOW: u64 = 1;

fn leader() -> SocketAddr {
    ([10, 0, 0, 1], 7001).into()
}

fn new_set(number: u16, kgroup_bits: u8) -> SetOrder {
    SetOrder::add(&NewSet {
        number,
        incarnation: INCARNATION,
        lease_ns: 0,
        kgroup_bits,
        reply_check: ReplyCheck::Strict,
        policy: Policy::Random,
        replicas: vec![leader()],
    })
}

fn heartbeat(set: u16, kgroup_bits: u8) -> Vec<u8> {
    let beat = Heartbeat {
        incarnation: INCARNATION.into(),
        sid: 1.into(),
        echo: NOW.into(),
        set: set.into(),
        kgroup_bits,
        ..Heartbeat::new(0, 1)
    };
    packet(&beat, &[Replica { address: leader().into(), weight: 1, matched: 0.into(), reserved: [0; 3] }])
}

fn write(set: u16, hash: u32) -> (SocketAddr, Vec<u8>) {
    let client = SocketAddr::from(([10, 0, 1, 1], 7000));
    let mut request = Request { set: set.into(), hash: hash.into(), ..Request::new(Operation::Write) };
    let cookie = Cookies::new(SECRET, StoreConfig::default().cookie_ns).give(NOW, 0, client);
    request.client.ip[..8].copy_from_slice(&cookie.to_be_bytes());
    (client, [request.as_bytes(), Write::new_zeroed().as_bytes()].concat())
}

/// R7.
#[test]
fn r7_the_largest_set_has_all_its_key_groups() {
    let config = StoreConfig { sets: 1, kgroup_bits: KGROUP_BITS_MAX.into(), ..StoreConfig::default() };
    let mut core = CheckedNative::<StoreProgram>::new(&config, 1, SECRET).expect("within its bounds");
    core.ask_order(&mut new_set(9, KGROUP_BITS_MAX));
    assert_eq!(core.ask(NOW, leader(), &heartbeat(9, KGROUP_BITS_MAX)).0, Verdict::Ok);
    for (hash, unstable) in [(0, 1), (0xFFF, 1), (0x1000, 2), (0xFFFF_F000, 3), (u32::MAX, 3)] {
        let (client, write) = write(9, hash);
        assert_eq!(core.ask(NOW, client, &write).0, Verdict::Forwarded);
        assert_eq!(core.stats().sets[0].unstable, unstable, "{hash:x}");
    }
    assert_eq!(core.check(), Ok(()));
}

/// R7.
#[test]
fn r7_all_sets_serve_beside_each_other() {
    let config = StoreConfig { sets: SETS_MAX as u32, kgroup_bits: 0, ..StoreConfig::default() };
    let mut core = CheckedNative::<StoreProgram>::new(&config, 1, SECRET).expect("within its bounds");
    let numbers = || (0..SETS_MAX as u16).map(|i| i.wrapping_mul(1039).wrapping_sub(1));
    for number in numbers() {
        core.ask_order(&mut new_set(number, 0));
        assert_eq!(core.ask(NOW, leader(), &heartbeat(number, 0)).0, Verdict::Ok);
        let (client, write) = write(number, u32::MAX);
        assert_eq!(core.ask(NOW, client, &write).0, Verdict::Forwarded);
    }
    assert!(core.stats().present().all(|set| (set.writes, set.unstable) == (1, 1)));
    assert!(core.stats().present().map(|set| set.set).eq(numbers()));
}

/// XDP may give a datagram to the program only if the answer fits its frame.
#[test]
fn only_state_is_longer_than_its_question() {
    let mut store = Store::new(&StoreConfig::default(), 1, SECRET).expect("within its bounds");
    let mut order = new_set(9, 12);
    while !store.order(&mut order) {}
    let mut hello = Hello { set: 9.into(), ..Hello::new(0, 1) }.as_bytes().to_vec();
    let room = size_of::<State>() as u32;
    assert!(store.owes_more(leader(), &mut hello, room - 1) && !store.owes_more(leader(), &mut hello, room));
    let mut out = Out::new();
    assert_eq!(store.take(NOW, leader(), &mut hello, &mut out), Verdict::Ok);
    assert!(out.iter().map(|(_, bytes)| bytes.len()).eq([room as usize]));
    let (client, mut write) = write(8, 0);
    assert!(!store.owes_more(client, &mut write, 0), "its answer is not longer than itself");
}
