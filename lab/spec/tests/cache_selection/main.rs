//! An operator with a built-in selector, in lockstep with an external `RsNode` with the same selector and random bits.
//! Requests must go to the same servers, and all counters must match.

mod c3;
mod pair;

use c3::Lenient;
use midflight_cache::select::Algorithm;
#[cfg(feature = "kernel")]
use midflight_cache::select::Selector;
use midflight_dataplane::cache::{CacheProgram, Selection};
use midflight_spec::transcript::CheckedNative;
use pair::{Pair, SERVERS, SameBits, config, step};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const ALIKE: [(Selection, Algorithm); 3] = [
    (Selection::Random, Algorithm::Random),
    (Selection::LeastOutstanding, Algorithm::LeastOutstanding),
    (Selection::PowerOfTwo, Algorithm::PowerOfTwo),
];

/// Deterministic.
fn proptest_config() -> ProptestConfig {
    ProptestConfig {
        cases: 400,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(2026),
        ..ProptestConfig::default()
    }
}

fn native(selection: Selection, secret: u128) -> CheckedNative<CacheProgram> {
    CheckedNative::new(&config(selection), 1, secret).expect("within its bounds")
}

proptest! {
    #![proptest_config(proptest_config())]

    /// N1, N3, N7, N8, for selectors with integer arithmetic.
    #[test]
    fn the_core_chooses_as_the_selector_beside_it(steps in vec(step(), 1..120), secret: u128, which in 0..3_usize) {
        let (selection, algorithm) = ALIKE[which];
        let selector = Box::new(SameBits::new(algorithm.selector(SERVERS, 1), secret));
        let mut pair = Pair::new(native(selection, secret), selector);
        for step in steps {
            pair.step(&step);
        }
    }

    /// C3: the score of the chosen server exceeds the lowest by at most a millionth; `Lenient` compares.
    #[test]
    fn c3_in_integers_chooses_as_c3(steps in vec(step(), 1..200), secret: u128, selectors in 1..600_u32) {
        let lenient = Lenient::new(SERVERS, selectors);
        let forced = lenient.forced();
        let mut pair = Pair::new(native(Selection::C3, secret), Box::new(SameBits::new(Box::new(lenient), secret)));
        pair.set_selectors(selectors);
        pair.force(forced);
        for step in steps {
            pair.step(&step);
        }
    }
}

/// Fewer steps, because each is a system call.
#[cfg(feature = "kernel")]
#[test]
fn the_kernel_chooses_as_the_selector_beside_it() {
    use midflight_dataplane::kernel::{Kernel, KernelError};
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    let steps = vec(step(), 400).new_tree(&mut runner).expect("steps").current();
    for (selection, algorithm) in ALIKE.into_iter().chain([(Selection::C3, Algorithm::C3)]) {
        let kernel = match Kernel::<CacheProgram>::new(&config(selection), 1, 7, 0) {
            Ok(kernel) => kernel,
            Err(KernelError::Privileges) => return eprintln!("SKIPPED: it needs root"),
            Err(error) => panic!("{error}"),
        };
        let lenient = Lenient::new(SERVERS, 1);
        let forced = lenient.forced();
        let is_c3 = selection == Selection::C3;
        let selector: Box<dyn Selector + Send> = if is_c3 { Box::new(lenient) } else { algorithm.selector(SERVERS, 1) };
        let mut pair = Pair::new(kernel, Box::new(SameBits::new(selector, 7)));
        if is_c3 {
            pair.force(forced);
        }
        steps.iter().for_each(|step| pair.step(step));
        assert!(pair.answered() >= 20, "{selection}: {} answers", pair.answered());
    }
}

#[test]
fn steps_reach_everything() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    let mut sums = [0; 9];
    for secret in 0..60 {
        let selector = Box::new(SameBits::new(Algorithm::LeastOutstanding.selector(SERVERS, 1), secret));
        let mut pair = Pair::new(native(Selection::LeastOutstanding, secret), selector);
        let steps = vec(step(), 120).new_tree(&mut runner).expect("steps").current();
        steps.iter().for_each(|step| pair.step(step));
        sums.iter_mut().zip(pair.events()).for_each(|(sum, count)| *sum += count);
    }
    assert!(sums.iter().all(|&sum| sum >= 20), "{sums:?}");
}
