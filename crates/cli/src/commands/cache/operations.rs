//! `midflight cache get|set|delete`: one operation.

use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use midflight_host::cache::{SetOptions, VALUE_MAX};
use midflight_terminal::cache::WhichCache;
use midflight_terminal::{stdout, usage};
use serde_json::{Value, json};
use std::io::Read;
use std::process::ExitCode;
use std::time::Duration;

/// Refuses a longer value instead of cutting it.
const STDIN_MAX: u64 = VALUE_MAX as u64 + 1;

/// The options of each.
#[derive(ClapArgs)]
struct Common {
    #[command(flatten)]
    cache: WhichCache,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

impl Common {
    fn print(&self, text: &[u8], answer: &Value) -> Result<ExitCode> {
        if self.json {
            stdout::print(&format!("{answer}\n"))?;
        } else {
            stdout::print_bytes(text)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn not_found(&self) -> Result<ExitCode> {
        if self.json {
            stdout::print(&format!("{}\n", json!({ "found": false })))?;
        } else {
            eprintln!("not found");
        }
        Ok(ExitCode::from(usage::NO))
    }
}

#[derive(ClapArgs)]
pub(super) struct Get {
    /// Which key
    key: String,
    /// The value's bytes as they are, without an end of line behind them
    #[arg(long, conflicts_with = "json")]
    raw: bool,
    #[command(flatten)]
    common: Common,
}

impl Get {
    pub(super) fn run(&self) -> Result<ExitCode> {
        let Some(mut value) = self.common.cache.connect()?.get(&self.key)? else { return self.common.not_found() };
        let answer = json!({ "found": true, "value": of_json(&value.bytes), "flags": value.flags });
        if !self.raw {
            value.bytes.push(b'\n');
        }
        self.common.print(&value.bytes, &answer)
    }
}

#[derive(ClapArgs)]
pub(super) struct Set {
    /// Which key
    key: String,
    /// The value; "-" reads it from stdin
    #[arg(allow_hyphen_values = true)]
    value: String,
    /// A number that is kept with the value
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    flags: u32,
    /// The cache forgets it after this time; default: never
    #[arg(long, value_name = "DURATION", value_parser = usage::duration)]
    expiry: Option<Duration>,
    #[command(flatten)]
    common: Common,
}

impl Set {
    pub(super) fn run(&self) -> Result<ExitCode> {
        let value = value(&self.value)?;
        let options = SetOptions::default().flags(self.flags);
        let options = self.expiry.map_or(options, |expiry| options.expiry(expiry));
        self.common.cache.connect()?.set_with(&self.key, value, options)?;
        self.common.print(b"", &json!({ "done": true }))
    }
}

#[derive(ClapArgs)]
pub(super) struct Delete {
    /// Which key
    key: String,
    #[command(flatten)]
    common: Common,
}

impl Delete {
    pub(super) fn run(&self) -> Result<ExitCode> {
        if self.common.cache.connect()?.delete(&self.key)? {
            return self.common.print(b"", &json!({ "found": true }));
        }
        self.common.not_found()
    }
}

fn value(argument: &str) -> Result<Vec<u8>> {
    if argument != "-" {
        return Ok(argument.as_bytes().to_vec());
    }
    let mut value = Vec::new();
    std::io::stdin().take(STDIN_MAX).read_to_end(&mut value).context("cannot read the value from stdin")?;
    Ok(value)
}

/// An object with hexadecimal digits if the value is not UTF-8.
fn of_json(value: &[u8]) -> Value {
    match std::str::from_utf8(value) {
        Ok(text) => text.into(),
        Err(_) => json!({ "hex": value.iter().map(|byte| format!("{byte:02x}")).collect::<String>() }),
    }
}
