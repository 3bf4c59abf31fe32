//! Any bytes as an argument of a built-in function: read or refused; and what is read is written as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use midflight_tasks::functions::{ExecRequest, PythonHead};

/// Bytes of a head before its blobs, and of a blob.
const HEAD_BYTES: usize = 16;
const BLOB_BYTES: usize = 16;
const RESERVED_AT: usize = 14;

fuzz_target!(|argument: &[u8]| {
    if let Ok(request) = ExecRequest::decode(argument) {
        assert_eq!(request.encode().as_deref(), Ok(argument));
    }
    match PythonHead::parse(argument) {
        Ok(head) => {
            let (before, calls) = argument.split_at(HEAD_BYTES + BLOB_BYTES * (1 + head.shared.len()));
            assert!(calls == head.calls);
            let mut before = before.to_vec();
            // What is reserved is written as 0.
            before[HEAD_BYTES..].chunks_mut(BLOB_BYTES).for_each(|blob| blob[RESERVED_AT..].fill(0));
            assert!(written(&head) == before);
        }
        Err(refusal) => assert_eq!(refusal.encode(1)[..4], [b'E', refusal.code as u8, refusal.signal, 1]),
    }
});

/// As a client writes it.
fn written(head: &PythonHead<'_>) -> Vec<u8> {
    let mut bytes =
        vec![b'M', b'P', 1, head.python.0, head.python.1, head.retries, head.attempts, head.shared.len() as u8];
    bytes.extend(head.environment.to_le_bytes());
    for blob in std::iter::once(&head.function).chain(&head.shared) {
        bytes.extend(blob.id.get().to_le_bytes());
        bytes.extend(blob.length.get().to_le_bytes());
        bytes.extend(blob.port.get().to_le_bytes());
        bytes.extend([0, 0]);
    }
    bytes
}
