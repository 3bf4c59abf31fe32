//! Prometheus's own check of metrics, for tests: `promtool check metrics`, of Debian's package `prometheus`.

use crate::http::exposition::Exposition;
use crate::metrics::AnySnapshot;
use std::io::{ErrorKind, Write};
use std::process::{Command, Stdio};

/// Asserts that promtool accepts the metrics and their names; without promtool, prints SKIPPED.
#[track_caller]
pub(crate) fn assert_promtool_takes(snapshot: &impl AnySnapshot) {
    let mut promtool = Command::new("promtool");
    promtool.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match promtool.spawn() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            // Bypasses the test harness, which would capture it.
            let line = b"SKIPPED: promtool check metrics: promtool is missing (package prometheus)\n";
            return std::io::stderr().write_all(line).unwrap();
        }
        child => child.unwrap(),
    };
    let text = Exposition::Classic.convert(snapshot.to_prometheus());
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success() && said.is_empty(), "{said}\n{text}");
}
