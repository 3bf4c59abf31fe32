//! Differential test of the store program: compares the C core with the reference model on random input (every
//! datagram, verdict and counter), and walks all structures after each datagram.

mod common;

use common::add;
use midflight_dataplane::store::{Stats, StoreProgram, Verdict};
use midflight_spec::store::interpret;
use midflight_spec::transcript::CheckedNative;

const SECRET: u128 = 1;

fn compare(input: &[u8], secret: u128) -> Result<Stats, String> {
    interpret(input, secret, |config| CheckedNative::<StoreProgram>::new(config, 1, secret).expect("within its bounds"))
}

/// R1, R4, R7, as far as the switch keeps them.
/// Every verdict, and every event of a request.
#[test]
fn core_does_what_the_model_says_and_inputs_reach_everything() {
    let mut reasons = [0; Verdict::COUNT];
    let mut events = [0; 9];
    for (secret, bytes) in (1..).zip(common::random_inputs(4000)) {
        let stats = compare(&bytes, secret).unwrap_or_else(|difference| panic!("{difference}"));
        add(&mut reasons, stats.reasons);
        for set in stats.sets {
            add(&mut events, [set.to_followers, set.to_leader, set.leader_only, set.turned_back, set.outdated]);
            add(&mut events[5..], [set.writes, set.closed, set.sessions, set.direct]);
        }
    }
    for verdict in Verdict::ALL {
        assert!(reasons[*verdict as usize] >= 10, "{verdict:?}: {}", reasons[*verdict as usize]);
    }
    let (direct, others) = events.split_last().expect("nine");
    assert!(others.iter().all(|&times| times >= 100), "{events:?}");
    // Each needs four earlier READs to one replica within a heartbeat.
    assert!(*direct >= 20, "{events:?}");
}

#[test]
fn the_fuzzers_corpus_still_agrees() {
    common::corpus_agrees("store", |input| compare(input, SECRET));
}
