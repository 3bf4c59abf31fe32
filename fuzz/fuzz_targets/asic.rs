//! Any sequence of packets and ticks for the asic engine: after each its counters add up, and what it sends is well-formed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use midflight_spec::model::interpret_asic;

fuzz_target!(|input: &[u8]| {
    if let Err(what) = interpret_asic(input) {
        panic!("{what}");
    }
});
