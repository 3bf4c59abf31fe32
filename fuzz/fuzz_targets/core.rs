//! Any sequence of packets and ticks: the C core, under ASan and UBSan, must do what the model says and keep the T rules
//! after each of them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use midflight_spec::model::{EPOCH, interpret};
use midflight_spec::transcript::CheckedNative;

fuzz_target!(|input: &[u8]| {
    let secret = input.len() as u128;
    if let Err(difference) =
        interpret(input, secret, |config| CheckedNative::new(config, EPOCH, secret).expect("within its bounds"))
    {
        panic!("{difference}");
    }
});
