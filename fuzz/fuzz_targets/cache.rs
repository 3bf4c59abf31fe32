//! The cache program, under ASan and UBSan: it accepts exactly the datagrams that the parser accepts, and matches the model for
//! any sequence of packets, rules and times.
#![no_main]

use libfuzzer_sys::fuzz_target;
use midflight_dataplane::cache::{CacheConfig, CacheProgram, Outcome, Rule, RuleOrder, Verdict};
use midflight_dataplane::program::{Class, Engine, Verdict as _};
use midflight_spec::cache::interpret;
use midflight_spec::transcript::{CheckedNative, EngineExt};
use midflight_wire::cache::{Reject, parse};
use std::net::SocketAddr;

const NOW: u64 = 5_000_000_000;

fuzz_target!(|input: &[u8]| {
    let senders = [client(), server(), operator(), SocketAddr::from(([192, 0, 2, 1], 7000))];
    senders.into_iter().for_each(|from| give(&mut core(), from, input));
    let secret = input.len() as u128;
    let start =
        |config: &CacheConfig| CheckedNative::<CacheProgram>::new(config, 1, secret).expect("within its bounds");
    if let Err(difference) = interpret(input, secret, start, |engine, group| engine.native().counts(group)) {
        panic!("{difference}");
    }
});

/// From the golden packets, which seed the corpus.
fn client() -> SocketAddr {
    ([10, 0, 1, 5], 7000).into()
}

fn server() -> SocketAddr {
    ([10, 0, 2, 7], 7800).into()
}

fn operator() -> SocketAddr {
    ([10, 9, 0, 1], 7900).into()
}

/// The operator of the client's rack, which serves RSNode 300.
fn core() -> CheckedNative<CacheProgram> {
    let config = CacheConfig { places: 8, racks: 2, groups: 1, rsnodes: 300, ..CacheConfig::default() };
    let mut core = CheckedNative::new(&config, 1, 1).expect("within its bounds");
    for rule in [
        Rule::Own { rack: Some(0), selector: Some(([10, 9, 0, 2], 7901).into()) },
        Rule::Rack { rack: 0, operator: Some(([10, 9, 0, 0], 7900).into()), marker: 1 },
        Rule::Rack { rack: 1, operator: Some(operator()), marker: 2 },
        Rule::Host { ip: client().ip(), rack: 0, group: Some(0) },
        Rule::Server { address: server(), rack: 1 },
        Rule::Operator(operator()),
        Rule::Serve(300),
        Rule::Group { group: 0, rsnode: Some(300) },
    ] {
        let mut order = RuleOrder::from(rule);
        core.ask_order(&mut order);
        assert_eq!(order.outcome(), Outcome::Done);
    }
    core
}

fn give(core: &mut CheckedNative<CacheProgram>, from: SocketAddr, datagram: &[u8]) {
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
