//! Calls of Python functions, as in docs/internals/python.md. The Python package reads and writes the same files
//! (`python/tests/test_format.py`; `UPDATE_GOLDEN=1` regenerates its own).

#![allow(clippy::unwrap_used, reason = "tests may")]

use midflight_tasks::functions::{PythonCallOptions, PythonError, PythonFailure, PythonHead};
use midflight_wire::tasks::BlobRef;
use std::path::Path;
use std::time::Duration;

/// Bytes of a file: hexadecimal digits, and comment lines that begin with #.
fn golden(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/python").join(name).with_extension("hex");
    let text = std::fs::read_to_string(path).unwrap();
    let bytes = text.lines().filter(|line| !line.starts_with('#')).flat_map(str::split_whitespace);
    bytes.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

fn blob(id: u64, length: u32, port: u16) -> BlobRef {
    BlobRef { id: id.into(), length: length.into(), port: port.into(), reserved: 0.into() }
}

#[test]
fn golden_the_argument_of_a_call_alone() {
    let argument = golden("argument");
    let calls = [&[1, 0, 0, 0][..], &[0; 8], &[5, 0, 0, 0, 0, 0, 0, 0], b"alone"].concat();
    let expected = PythonHead {
        options: PythonCallOptions { python: (3, 11), retries: 0, attempts: 3, environment: 0, timeout: None },
        function: blob(0x0102_0304_0506_0708, 0x1122_3344, 0x5566),
        shared: Vec::new(),
        calls: &calls,
    };
    assert_eq!(PythonHead::parse(&argument), Ok(expected));
}

#[test]
fn golden_the_argument_of_several_calls_with_shared_arguments_and_buffers() {
    let argument = golden("argument_of_several");
    let head = PythonHead::parse(&argument).unwrap();
    let timeout = Some(Duration::from_millis(1_500));
    let environment = 0xE0E1_E2E3_E4E5_E6E7;
    assert_eq!(head.options, PythonCallOptions { python: (3, 14), retries: 2, attempts: 1, environment, timeout });
    assert_eq!(head.function, blob(0x0102_0304_0506_0708, 0x1122_3344, 0x5566));
    let shared = [(0x1112_1314_1516_1718, 0x2122_2324, 0x2526), (0x3132_3334_3536_3738, 0x4142_4344, 0x4546)];
    assert_eq!(head.shared, shared.map(|(id, length, port)| blob(id, length, port)));
    // The worker relies on buffers at multiples of 64 from the first byte of the calls.
    for (at, buffer) in [(128, &[0xA1; 3][..]), (192, &[0xA2; 65]), (320, &[0xA3; 1])] {
        assert_eq!(&head.calls[at..at + buffer.len()], buffer, "at {at}");
    }
    assert_eq!(head.calls.len(), 321);
}

#[test]
fn golden_the_executors_own_result() {
    let refusal = PythonFailure { code: PythonError::WorkerDied, signal: 11, text: "the worker died: é".into() };
    assert_eq!(refusal.encode(2), golden("refusal"));
}
