//! Random bytes between a cache's client and an agent: they are rejected, or encoding a parsed request gives the same bytes, and
//! a parsed response the same response.
#![no_main]

use libfuzzer_sys::fuzz_target;
use midflight_wire::cache::backend::{parse_answer, parse_request, write_answer, write_request};

fuzz_target!(|stream: &[u8]| {
    let mut rest = stream;
    while let Ok(Some((request, length))) = parse_request(rest) {
        let mut again = Vec::new();
        write_request(&request, &mut again);
        assert_eq!(again, rest[..length]);
        rest = &rest[length..];
    }
    let mut rest = stream;
    while let Ok(Some((answer, length))) = parse_answer(rest) {
        let mut again = Vec::new();
        write_answer(&answer, &mut again);
        assert_eq!(parse_answer(&again), Ok(Some((answer, length))));
        rest = &rest[length..];
    }
});
