//! Random packets and ticks for the asic engine: its counters add up, and it sends only well-formed packets.
#![no_main]

use libfuzzer_sys::fuzz_target;
use midflight_spec::tasks::interpret_asic;

fuzz_target!(|input: &[u8]| {
    if let Err(what) = interpret_asic(input) {
        panic!("{what}");
    }
});
