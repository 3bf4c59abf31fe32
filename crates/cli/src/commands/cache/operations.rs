//! `midflight cache get|set|delete`: one operation.

use crate::one_key::{self, of_json};
use anyhow::Result;
use clap::Args as ClapArgs;
use midflight_host::cache::{SetOptions, VALUE_MAX};
use midflight_terminal::cache::WhichCache;
use midflight_terminal::usage;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;

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
        one_key::print(self.json, true, text, answer)
    }

    fn not_found(&self) -> Result<ExitCode> {
        one_key::not_found(self.json)
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
        let value = if self.value == "-" { one_key::stdin(VALUE_MAX as u64)? } else { self.value.clone().into_bytes() };
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
