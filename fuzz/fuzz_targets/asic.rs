//! Any story of packets and ticks before the asic engine: its books balance after each, and what it sends are packets.
#![no_main]

use libfuzzer_sys::fuzz_target;
use midflight_spec::model::interpret_asic;

fuzz_target!(|story: &[u8]| {
    if let Err(what) = interpret_asic(story) {
        panic!("{what}");
    }
});
