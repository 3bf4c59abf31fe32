//! Random bytes on the stream between a cache controller and an operator: they are rejected, or encoding a message and parsing it
//! again gives the same message.
#![no_main]

use libfuzzer_sys::fuzz_target;
use midflight_wire::cache::control::{parse, write};

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
