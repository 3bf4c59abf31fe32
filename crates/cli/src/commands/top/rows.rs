//! The lists of a view as rows of text.

use super::View;
use crate::commands::status::OfProgram;
use midflight_control::watch::{ClientView, ExecutorState, ExecutorView, JobView, Listed};
use midflight_terminal::units::{short_number, thousands, time};

/// Columns of the widest list.
pub(super) const COLUMNS_MAX: usize = 7;

/// A list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Table {
    Executors,
    Jobs,
    Clients,
    Counters,
    Drops,
}

/// What a row says beside its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Good,
    Warn,
    Bad,
}

/// A row: its cells as text, and what they are sorted by.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) cells: Vec<String>,
    pub(super) keys: Vec<Key>,
    pub(super) tone: Tone,
}

/// What a cell is sorted by.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub(super) enum Key {
    Number(f64),
    Text(String),
}

/// A list as text. `sides`: as for `aligned`.
pub(super) struct Rows {
    pub(super) titles: &'static [&'static str],
    pub(super) sides: &'static str,
    pub(super) lines: Vec<Line>,
    pub(super) more: u64,
}

impl Table {
    /// Those that a view has.
    pub(super) fn of(view: &View) -> &'static [Self] {
        match (&view.status.program, &view.detail) {
            (OfProgram::Tasks(_), Some(_)) => &[Self::Executors, Self::Jobs, Self::Clients, Self::Drops],
            (OfProgram::Tasks(_), None) => &[Self::Drops],
            _ => &[Self::Counters, Self::Drops],
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Executors => "Executors",
            Self::Jobs => "Jobs",
            Self::Clients => "Clients",
            Self::Counters => "Counters",
            Self::Drops => "Drops",
        }
    }
}

/// A list of a view.
pub(super) fn table(view: &View, which: Table) -> Rows {
    match (which, &view.detail) {
        (Table::Executors, Some(detail)) => {
            let titles = &["address", "state", "last word", "busy", "parked", "longest", "to others"];
            rows(titles, "llrrrrr", &detail.executors, executor)
        }
        (Table::Jobs, Some(detail)) => {
            let titles = &["client", "job", "level", "queued", "running", "again", "oldest"];
            rows(titles, "lrrrrrr", &detail.jobs, job)
        }
        (Table::Clients, Some(detail)) => {
            rows(&["client", "user", "open tasks", "last word"], "lrrr", &detail.clients, client)
        }
        (Table::Drops, _) => counters(view, "drops."),
        _ => counters(view, ""),
    }
}

fn rows<T>(
    titles: &'static [&'static str],
    sides: &'static str,
    listed: &Listed<T>,
    line: impl Fn(&T) -> Line,
) -> Rows {
    Rows { titles, sides, lines: listed.shown.iter().map(line).collect(), more: listed.more }
}

fn ago(ms: u64) -> String {
    time(ms.saturating_mul(1_000_000))
}

/// A rate, with as many digits as a person reads.
pub(super) fn per_second(rate: f64) -> String {
    short_number(if rate < 100.0 { (rate * 10.0).round() / 10.0 } else { rate.round() })
}

fn text(value: &str) -> (String, Key) {
    (value.to_owned(), Key::Text(value.to_owned()))
}

fn number(shown: String, value: impl Into<f64>) -> (String, Key) {
    (shown, Key::Number(value.into()))
}

fn count(value: u64) -> (String, Key) {
    number(thousands(value), value as f64)
}

/// Nothing for 0.
fn some(value: u64) -> (String, Key) {
    number(if value == 0 { String::new() } else { thousands(value) }, value as f64)
}

fn line(tone: Tone, cells: impl IntoIterator<Item = (String, Key)>) -> Line {
    let (cells, keys) = cells.into_iter().unzip();
    Line { cells, keys, tone }
}

fn executor(e: &ExecutorView) -> Line {
    let (state, tone) = match e.state {
        ExecutorState::Lost => ("lost", Tone::Bad),
        ExecutorState::Silent => ("silent", Tone::Warn),
        ExecutorState::Alive => ("alive", Tone::Good),
        ExecutorState::Left => ("left", Tone::Plain),
    };
    let longest = e.longest_ms.map_or_else(String::new, ago);
    let cells = [
        text(&e.address),
        text(state),
        number(ago(e.heard_ms), e.heard_ms as f64),
        number(format!("{} of {}", e.busy, e.slots), e.busy),
        count(e.parked.into()),
        number(longest, e.longest_ms.map_or(-1.0, |ms| ms as f64)),
        some(e.had.into()),
    ];
    line(tone, cells)
}

fn job(j: &JobView) -> Line {
    let cells = [
        text(&j.address),
        count(j.jid.into()),
        count(j.level.into()),
        count(j.queued),
        count(j.running),
        some(j.again),
        number(ago(j.oldest_ms), j.oldest_ms as f64),
    ];
    line(Tone::Plain, cells)
}

fn client(c: &ClientView) -> Line {
    let heard = number(ago(c.heard_ms), c.heard_ms as f64);
    line(Tone::Plain, [text(&c.address), number(c.uid.to_string(), c.uid), count(c.open.into()), heard])
}

/// Counters whose names begin so, that are not 0: those that change most first. Without a beginning, those of the program.
fn counters(view: &View, group: &str) -> Rows {
    let titles = &["name", "a second", "in all"];
    let all: Vec<(String, u64)> = match (&view.status.program, group) {
        (_, "drops.") => view.status.drops.iter().map(|(name, &n)| (format!("drops.{name}"), n)).collect(),
        (OfProgram::Tasks(program), _) => midflight_control::ProgramStatus::counts(program),
        (OfProgram::Reads(program), _) => midflight_control::ProgramStatus::counts(program),
        (OfProgram::Replicas(program), _) => midflight_control::ProgramStatus::counts(program),
    };
    let mut lines: Vec<_> = all.into_iter().filter(|(_, n)| *n > 0).collect();
    let rate = |name: &str| view.rates.get(name).copied().unwrap_or(0.0);
    lines.sort_by(|(a, _), (b, _)| rate(b).total_cmp(&rate(a)).then_with(|| a.cmp(b)));
    let lines = lines.into_iter().map(|(name, n)| {
        let rate = rate(&name);
        let shown = if rate > 0.0 { per_second(rate) } else { String::new() };
        line(Tone::Plain, [text(name.trim_start_matches("drops.")), number(shown, rate), count(n)])
    });
    Rows { titles, sides: "lrr", lines: lines.collect(), more: 0 }
}
