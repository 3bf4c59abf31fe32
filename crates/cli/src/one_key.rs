//! What the commands about one key share.

use anyhow::{Context, Result};
use midflight_terminal::{stdout, usage};
use serde_json::{Value, json};
use std::io::Read;
use std::process::ExitCode;

/// The exit code is 0 if `is_yes`.
pub(crate) fn print(json: bool, is_yes: bool, text: &[u8], answer: &Value) -> Result<ExitCode> {
    if json {
        stdout::print(&format!("{answer}\n"))?;
    } else if is_yes {
        stdout::print_bytes(text)?;
    } else {
        eprint!("{}", String::from_utf8_lossy(text));
    }
    Ok(ExitCode::from(if is_yes { 0 } else { usage::NO }))
}

pub(crate) fn not_found(json: bool) -> Result<ExitCode> {
    print(json, false, b"not found\n", &json!({ "found": false }))
}

/// Reads one byte more than `most`, so that a longer value is refused instead of cut.
pub(crate) fn stdin(most: u64) -> Result<Vec<u8>> {
    let mut value = Vec::new();
    std::io::stdin().take(most + 1).read_to_end(&mut value).context("cannot read the value from stdin")?;
    Ok(value)
}

/// An object with hexadecimal digits if the value is not UTF-8.
pub(crate) fn of_json(value: &[u8]) -> Value {
    match std::str::from_utf8(value) {
        Ok(text) => text.into(),
        Err(_) => json!({ "hex": value.iter().map(|byte| format!("{byte:02x}")).collect::<String>() }),
    }
}
