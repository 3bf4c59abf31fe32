//! Bytes from a client of the gateway: whole and in pieces, they are the same requests, within the bound.
#![no_main]

use libfuzzer_sys::fuzz_target;
use midflight_resp::{Parser, ProtocolError};

const BYTES_MAX: usize = 4_096;

fn requests<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<Vec<bytes::Bytes>>, Option<ProtocolError>) {
    let (mut parser, mut all) = (Parser::new(BYTES_MAX), Vec::new());
    for piece in pieces {
        parser.buffer().extend_from_slice(piece);
        loop {
            match parser.next_request() {
                Ok(Some(request)) => all.push(request),
                Ok(None) => break,
                Err(error) => return (all, Some(error)),
            }
        }
    }
    (all, None)
}

fuzz_target!(|input: &[u8]| {
    let whole = requests(std::iter::once(input));
    let piece = input.first().map_or(1, |first| usize::from(first % 16) + 1);
    assert_eq!(requests(input.chunks(piece)), whole);
    assert!(whole.0.iter().all(|request| !request.is_empty()));
});
