//! Random packets and ticks: the C core, under ASan and UBSan, matches the model and keeps the T rules after each.
#![no_main]

use libfuzzer_sys::fuzz_target;
use midflight_spec::tasks::{EPOCH, interpret};
use midflight_spec::transcript::CheckedNative;

fuzz_target!(|input: &[u8]| {
    let secret = input.len() as u128;
    if let Err(difference) =
        interpret(input, secret, |config| CheckedNative::new(config, EPOCH, secret).expect("within its bounds"))
    {
        panic!("{difference}");
    }
});
