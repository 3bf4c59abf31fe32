//! The store program, under ASan and UBSan: it accepts exactly the datagrams that the parser accepts, and matches the model for
//! any sequence of packets, orders and times.
#![no_main]

use libfuzzer_sys::fuzz_target;
use midflight_dataplane::program::{Class, Engine, Verdict as _};
use midflight_dataplane::store::{NewSet, Policy, ReplyCheck, SetOrder, StoreConfig, StoreProgram, Verdict};
use midflight_spec::store::interpret;
use midflight_spec::transcript::{CheckedNative, EngineExt};
use midflight_wire::store::{Heartbeat, Replica, parse};
use midflight_wire::{Reject, packet};
use std::net::SocketAddr;

/// Set and incarnation of the golden packets, which seed the corpus.
const SET: u16 = 5;
const INCARNATION: u64 = 0x14CA_0000_1E90_0001;
const NOW: u64 = 5_000_000_000;

fuzz_target!(|input: &[u8]| {
    let replica = SocketAddr::from(([10, 0, 0, 1], 7001));
    for from in [replica, SocketAddr::from(([192, 0, 2, 1], 7000))] {
        give(&mut core(replica), from, input);
    }
    let secret = input.len() as u128;
    let start =
        |config: &StoreConfig| CheckedNative::<StoreProgram>::new(config, 1, secret).expect("within its bounds");
    if let Err(difference) = interpret(input, secret, start) {
        panic!("{difference}");
    }
});

fn core(replica: SocketAddr) -> CheckedNative<StoreProgram> {
    let config = StoreConfig { sets: 1, ..StoreConfig::default() };
    let mut core = CheckedNative::new(&config, 1, 1).expect("within its bounds");
    core.ask_order(&mut SetOrder::add(&NewSet {
        number: SET,
        incarnation: INCARNATION,
        lease_ns: 0,
        kgroup_bits: 12,
        reply_check: ReplyCheck::Strict,
        policy: Policy::Random,
        replicas: vec![replica],
    }));
    let beat = Heartbeat {
        incarnation: INCARNATION.into(),
        sid: 1.into(),
        echo: NOW.into(),
        set: SET.into(),
        kgroup_bits: 12,
        ..Heartbeat::new(0, 1)
    };
    let member = Replica { address: replica.into(), weight: 1, matched: 0.into(), reserved: [0; 3] };
    assert_eq!(core.ask(NOW, replica, &packet(&beat, &[member])).0, Verdict::Ok);
    core
}

fn give(core: &mut CheckedNative<StoreProgram>, from: SocketAddr, datagram: &[u8]) {
    let (verdict, sent) = core.ask(NOW, from, datagram);
    match parse(datagram) {
        Ok(_) => {}
        // A packet outside the program may be malformed in any way.
        Err(_) if verdict == Verdict::NotForSwitch => assert!(sent.is_empty()),
        Err(Reject::BadVersion(_)) => assert_eq!((verdict, sent.len()), (Verdict::BadVersion, 1)),
        Err(reject) => assert!(verdict.name() == reject.to_string() && sent.is_empty(), "{verdict:?}, {reject}"),
    }
    assert!(sent.iter().all(|(to, _)| verdict.class() == Class::Taken || *to == from));
    for (_, bytes) in &sent {
        assert!(parse(bytes).is_ok(), "{bytes:02x?}");
    }
    core.check().expect("sound");
}
