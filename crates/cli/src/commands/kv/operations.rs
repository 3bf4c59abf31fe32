//! `midflight kv get|put|del|cas|incr|exists`: one operation.

use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use midflight_host::kv::{self, KvClient, KvError};
use midflight_terminal::store::WhichStore;
use midflight_terminal::{stdout, usage};
use serde_json::{Value, json};
use std::io::Read;
use std::process::ExitCode;

/// More is read of stdin than any value may have, so that a value that is too long is refused and not cut.
const STDIN_MAX: u64 = 1 << 20;

/// The options of each.
#[derive(ClapArgs)]
struct Common {
    #[command(flatten)]
    store: WhichStore,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

impl Common {
    fn client(&self) -> Result<KvClient> {
        Ok(self.store.client()?.lanes(1).connect()?)
    }

    /// Prints an answer, for people as `text`. `is_yes`: the exit code is 0.
    fn print(&self, is_yes: bool, text: &[u8], answer: &Value) -> Result<ExitCode> {
        if self.json {
            stdout::print(&format!("{answer}\n"))?;
        } else if is_yes {
            stdout::print_bytes(text)?;
        } else {
            eprint!("{}", String::from_utf8_lossy(text));
        }
        Ok(ExitCode::from(if is_yes { 0 } else { usage::NO }))
    }

    fn not_found(&self) -> Result<ExitCode> {
        self.print(false, b"not found\n", &json!({ "found": false }))
    }
}

#[derive(ClapArgs)]
pub(super) struct Get {
    /// Which key
    key: String,
    #[command(flatten)]
    common: Common,
}

impl Get {
    pub(super) fn run(&self) -> Result<ExitCode> {
        match self.common.client()?.get(self.key.as_str())? {
            Some(value) => self.common.print(true, &line(&value), &json!({ "found": true, "value": of_json(&value) })),
            None => self.common.not_found(),
        }
    }
}

#[derive(ClapArgs)]
pub(super) struct Put {
    /// Which key
    key: String,
    /// The value; "-" reads it from stdin
    #[arg(allow_hyphen_values = true)]
    value: String,
    #[command(flatten)]
    common: Common,
}

impl Put {
    pub(super) fn run(&self) -> Result<ExitCode> {
        let value = value(&self.value)?;
        self.common.client()?.put(self.key.as_str(), value).map_err(of_write)?;
        self.common.print(true, b"", &json!({ "done": true }))
    }
}

#[derive(ClapArgs)]
pub(super) struct Del {
    /// Which key
    key: String,
    #[command(flatten)]
    common: Common,
}

impl Del {
    pub(super) fn run(&self) -> Result<ExitCode> {
        if self.common.client()?.delete(self.key.as_str()).map_err(of_write)? {
            return self.common.print(true, b"", &json!({ "found": true }));
        }
        self.common.not_found()
    }
}

#[derive(ClapArgs)]
pub(super) struct Cas {
    /// Which key
    key: String,
    /// The value that it must have
    #[arg(allow_hyphen_values = true)]
    expected: String,
    /// The value that it gets; "-" reads it from stdin
    #[arg(allow_hyphen_values = true)]
    new: String,
    #[command(flatten)]
    common: Common,
}

impl Cas {
    pub(super) fn run(&self) -> Result<ExitCode> {
        let new = value(&self.new)?;
        match self.common.client()?.cas(self.key.as_str(), self.expected.as_str(), new).map_err(of_write)? {
            kv::Cas::Done => self.common.print(true, b"", &json!({ "done": true })),
            kv::Cas::NotFound => self.common.not_found(),
            kv::Cas::Conflict { present } => {
                let text = [b"it has another value: ", &*line(&present)].concat();
                self.common.print(false, &text, &json!({ "done": false, "present": of_json(&present) }))
            }
        }
    }
}

#[derive(ClapArgs)]
pub(super) struct Incr {
    /// Which key
    key: String,
    /// What to add
    #[arg(default_value_t = 1, allow_negative_numbers = true)]
    by: i64,
    #[command(flatten)]
    common: Common,
}

impl Incr {
    pub(super) fn run(&self) -> Result<ExitCode> {
        let sum = self.common.client()?.incr(self.key.as_str(), self.by).map_err(of_write)?;
        self.common.print(true, format!("{sum}\n").as_bytes(), &json!({ "number": sum }))
    }
}

#[derive(ClapArgs)]
pub(super) struct Exists {
    /// Which key
    key: String,
    #[command(flatten)]
    common: Common,
}

impl Exists {
    pub(super) fn run(&self) -> Result<ExitCode> {
        if self.common.client()?.exists(self.key.as_str())? {
            return self.common.print(true, b"", &json!({ "found": true }));
        }
        self.common.not_found()
    }
}

/// Who wrote must know whether the write may have taken place all the same.
fn of_write(error: KvError) -> anyhow::Error {
    if error.is_unknown() {
        return anyhow::anyhow!("{error}; the write may have taken place, or may yet: read the key");
    }
    error.into()
}

fn value(argument: &str) -> Result<Vec<u8>> {
    if argument != "-" {
        return Ok(argument.as_bytes().to_vec());
    }
    let mut value = Vec::new();
    std::io::stdin().take(STDIN_MAX).read_to_end(&mut value).context("cannot read the value from stdin")?;
    Ok(value)
}

fn line(value: &[u8]) -> Vec<u8> {
    [value, b"\n"].concat()
}

/// Text, or an object with hexadecimal digits where it is no text.
fn of_json(value: &[u8]) -> Value {
    match std::str::from_utf8(value) {
        Ok(text) => text.into(),
        Err(_) => json!({ "hex": value.iter().map(|byte| format!("{byte:02x}")).collect::<String>() }),
    }
}
