//! Random bytes as an argument of a built-in function: it is rejected, or encoding what was read gives the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use midflight_tasks::functions::{ExecRequest, PythonHead};

/// Bytes of a head before its blobs; below, bytes of a blob.
const HEAD_BYTES: usize = 24;
const BLOB_BYTES: usize = 16;
const RESERVED_AT: usize = 14;

fuzz_target!(|argument: &[u8]| {
    if let Ok(request) = ExecRequest::decode(argument) {
        assert_eq!(request.encode().as_deref(), Ok(argument));
    }
    match PythonHead::parse(argument) {
        Ok(head) => {
            let (before, calls) = argument.split_at(PythonHead::bytes(head.shared.len()));
            assert!(calls == head.calls);
            let mut before = before.to_vec();
            // Reserved bytes are written as 0.
            before[HEAD_BYTES..].chunks_mut(BLOB_BYTES).for_each(|blob| blob[RESERVED_AT..].fill(0));
            let mut written = Vec::new();
            head.options.append_head(&mut written, &head.function, head.shared);
            assert!(written == before);
        }
        Err(refusal) => assert_eq!(refusal.encode(1)[..4], [b'E', refusal.code as u8, refusal.signal, 1]),
    }
});
