//! Any bytes on the stream between a controller of replicas and an operator: they are messages, or are refused; what is read is written
//! as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use midflight_wire::replicas::control::{parse, write};

fuzz_target!(|stream: &[u8]| {
    let mut rest = stream;
    while let Ok(Some((message, length))) = parse(rest) {
        let mut again = Vec::new();
        write(&message, &mut again);
        assert_eq!(parse(&again), Ok(Some((message, again.len()))));
        assert_eq!(again.len(), length);
        rest = &rest[length..];
    }
});
