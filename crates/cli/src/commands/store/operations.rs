//! `midflight store get|put|del|cas|create|incr|exists|ttl|expire`: one operation.

use super::escape;
use crate::one_key::{self, of_json};
use anyhow::{Result, ensure};
use clap::Args as ClapArgs;
use midflight_host::Error;
use midflight_host::store::{self, Condition, Expiry, StoreClient, Update};
use midflight_terminal::store::WhichStore;
use midflight_terminal::{stdout, usage};
use midflight_wire::store::VALUE_MAX;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;
use std::time::Duration;

/// Keys are printed in pieces of this size.
const LINES_BYTES: usize = 64 << 10;

/// The options of each.
#[derive(ClapArgs)]
struct Common {
    #[command(flatten)]
    store: WhichStore,
    /// One JSON object
    #[arg(long)]
    json: bool,
    /// Keys and values in arguments and answers are written with \n, \r, \t, \\ and \xHH: any bytes
    #[arg(long)]
    escaped: bool,
}

impl Common {
    fn bytes(&self, argument: &OsStr) -> Result<Vec<u8>> {
        let bytes = argument.as_bytes();
        if self.escaped { escape::decode(bytes).map_err(usage::error) } else { Ok(bytes.to_vec()) }
    }

    /// "-" reads stdin.
    fn value(&self, argument: &OsStr) -> Result<Vec<u8>> {
        if argument != "-" {
            return self.bytes(argument);
        }
        let value = one_key::stdin(VALUE_MAX as u64)?;
        ensure!(value.len() <= VALUE_MAX, "the value on stdin has more than {} MiB: no value may", VALUE_MAX >> 20);
        Ok(value)
    }

    fn shown<'a>(&self, value: &'a [u8]) -> Cow<'a, [u8]> {
        if self.escaped { value.escape_ascii().to_string().into_bytes().into() } else { value.into() }
    }

    fn client(&self) -> Result<StoreClient> {
        Ok(self.store.client()?.lanes(1).connect_lazy()?)
    }

    fn print(&self, is_yes: bool, text: &[u8], answer: &Value) -> Result<ExitCode> {
        one_key::print(self.json, is_yes, text, answer)
    }

    fn not_found(&self) -> Result<ExitCode> {
        one_key::not_found(self.json)
    }

    fn conflict(&self, what: &str, present: &[u8]) -> Result<ExitCode> {
        let text = [what.as_bytes(), b": ", &*self.shown(present), b"\n"].concat();
        self.print(false, &text, &json!({ "done": false, "present": of_json(present) }))
    }
}

#[derive(ClapArgs)]
pub(super) struct Get {
    /// Which key
    key: OsString,
    /// The value as it is, without a line's end behind it
    #[arg(long, conflicts_with = "json")]
    raw: bool,
    #[command(flatten)]
    common: Common,
}

impl Get {
    pub(super) fn run(&self) -> Result<ExitCode> {
        let key = self.common.bytes(&self.key)?;
        match self.common.client()?.get(key)? {
            Some(value) => {
                let end: &[u8] = if self.raw { b"" } else { b"\n" };
                let text = [&self.common.shown(&value), end].concat();
                self.common.print(true, &text, &json!({ "found": true, "value": of_json(&value) }))
            }
            None => self.common.not_found(),
        }
    }
}

#[derive(ClapArgs)]
pub(super) struct Put {
    /// Which key
    key: OsString,
    /// The value; "-" reads it from stdin
    #[arg(allow_hyphen_values = true)]
    value: OsString,
    /// The key expires after this time, such as 30s
    #[arg(long, value_name = "DURATION", value_parser = usage::duration)]
    ttl: Option<Duration>,
    #[command(flatten)]
    common: Common,
}

impl Put {
    pub(super) fn run(&self) -> Result<ExitCode> {
        let (key, value) = (self.common.bytes(&self.key)?, self.common.value(&self.value)?);
        let client = self.common.client()?;
        match self.ttl {
            Some(ttl) => client.put_for(key, value, ttl),
            None => client.put(key, value),
        }
        .map_err(of_write)?;
        self.common.print(true, b"", &json!({ "done": true }))
    }
}

#[derive(ClapArgs)]
pub(super) struct Del {
    /// Which key
    key: OsString,
    #[command(flatten)]
    common: Common,
}

impl Del {
    pub(super) fn run(&self) -> Result<ExitCode> {
        let key = self.common.bytes(&self.key)?;
        if self.common.client()?.delete(key).map_err(of_write)? {
            return self.common.print(true, b"", &json!({ "found": true }));
        }
        self.common.not_found()
    }
}

#[derive(ClapArgs)]
pub(super) struct Cas {
    /// Which key
    key: OsString,
    /// The value that it must have
    #[arg(allow_hyphen_values = true)]
    expected: OsString,
    /// The value that it gets; "-" reads it from stdin
    #[arg(allow_hyphen_values = true)]
    new: OsString,
    #[command(flatten)]
    common: Common,
}

impl Cas {
    pub(super) fn run(&self) -> Result<ExitCode> {
        let [key, expected] = [&self.key, &self.expected].map(|argument| self.common.bytes(argument));
        let new = self.common.value(&self.new)?;
        match self.common.client()?.cas(key?, expected?, new).map_err(of_write)? {
            store::Cas::Done => self.common.print(true, b"", &json!({ "done": true })),
            store::Cas::NotFound => self.common.not_found(),
            store::Cas::Conflict { present } => self.common.conflict("it has another value", &present),
        }
    }
}

#[derive(ClapArgs)]
pub(super) struct Create {
    /// Which key
    key: OsString,
    /// The value; "-" reads it from stdin
    #[arg(allow_hyphen_values = true)]
    value: OsString,
    #[command(flatten)]
    common: Common,
}

impl Create {
    pub(super) fn run(&self) -> Result<ExitCode> {
        let (key, value) = (self.common.bytes(&self.key)?, self.common.value(&self.value)?);
        match self.common.client()?.create(key, value).map_err(of_write)? {
            None => self.common.print(true, b"", &json!({ "done": true })),
            Some(present) => self.common.conflict("there is such a key, with the value", &present),
        }
    }
}

#[derive(ClapArgs)]
pub(super) struct Incr {
    /// Which key
    key: OsString,
    /// What to add
    #[arg(default_value_t = 1, allow_negative_numbers = true)]
    by: i64,
    #[command(flatten)]
    common: Common,
}

impl Incr {
    pub(super) fn run(&self) -> Result<ExitCode> {
        let key = self.common.bytes(&self.key)?;
        let sum = self.common.client()?.incr(key, self.by).map_err(of_write)?;
        self.common.print(true, format!("{sum}\n").as_bytes(), &json!({ "number": sum }))
    }
}

#[derive(ClapArgs)]
pub(super) struct Exists {
    /// Which key
    key: OsString,
    #[command(flatten)]
    common: Common,
}

impl Exists {
    pub(super) fn run(&self) -> Result<ExitCode> {
        let key = self.common.bytes(&self.key)?;
        if self.common.client()?.exists(key)? {
            return self.common.print(true, b"", &json!({ "found": true }));
        }
        self.common.not_found()
    }
}

#[derive(ClapArgs)]
pub(super) struct Ttl {
    /// Which key
    key: OsString,
    #[command(flatten)]
    common: Common,
}

impl Ttl {
    pub(super) fn run(&self) -> Result<ExitCode> {
        let key = self.common.bytes(&self.key)?;
        let updated = self.common.client()?.update(key, Update::default())?;
        if !updated.existed {
            return self.common.not_found();
        }
        let left = updated.expires_in.map(Duration::from_millis);
        let text = left.map_or("never\n".into(), |left| format!("{left:?}\n"));
        self.common.print(true, text.as_bytes(), &json!({ "found": true, "expires_in_ms": updated.expires_in }))
    }
}

#[derive(ClapArgs)]
pub(super) struct Expire {
    /// Which key
    key: OsString,
    /// After this time, such as 30s; or "never"
    #[arg(value_name = "DURATION", value_parser = expiry)]
    expiry: Expiry,
    #[command(flatten)]
    common: Common,
}

fn expiry(argument: &str) -> Result<Expiry, String> {
    if argument == "never" { Ok(Expiry::Never) } else { usage::duration(argument).map(Expiry::of) }
}

impl Expire {
    pub(super) fn run(&self) -> Result<ExitCode> {
        let key = self.common.bytes(&self.key)?;
        let update = Update { condition: Condition::Present, expiry: self.expiry, ..Update::default() };
        if self.common.client()?.update(key, update).map_err(of_write)?.done {
            return self.common.print(true, b"", &json!({ "found": true }));
        }
        self.common.not_found()
    }
}

#[derive(ClapArgs)]
pub(super) struct Scan {
    /// What the keys begin with; default: all
    #[arg(default_value = "")]
    prefix: OsString,
    /// Only how many there are
    #[arg(long)]
    count: bool,
    #[command(flatten)]
    common: Common,
}

impl Scan {
    pub(super) fn run(&self) -> Result<ExitCode> {
        let prefix = self.common.bytes(&self.prefix)?;
        let client = self.common.client()?;
        let (mut count, mut lines) = (0_u64, Vec::new());
        for key in client.scan() {
            let key = key?;
            if !key.starts_with(&prefix) {
                continue;
            }
            count += 1;
            if self.count {
                continue;
            }
            match self.common.json {
                true => lines.extend_from_slice(of_json(&key).to_string().as_bytes()),
                false => lines.extend_from_slice(&self.common.shown(&key)),
            }
            lines.push(b'\n');
            if lines.len() >= LINES_BYTES {
                stdout::print_bytes(&std::mem::take(&mut lines))?;
            }
        }
        if self.count {
            lines = format!("{count}\n").into_bytes();
        }
        stdout::print_bytes(&lines)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// A failed write may still take effect.
fn of_write(error: Error) -> anyhow::Error {
    if error.is_unknown() {
        return anyhow::anyhow!("{error}; the write may have taken place, or may yet: read the key");
    }
    error.into()
}
