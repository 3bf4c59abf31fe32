//! The lists of a view as rows of text.

use super::lists::{client, executor, group, job, member, operator, replica, rsnode, server, session, traffic_group};
use super::view::{Detail, Of, View};
use crate::commands::status::OfProgram;
use midflight_control::ProgramStatus;
use midflight_control::watch::{Listed, Watched};
use midflight_terminal::units::{short_number, thousands, time};

pub(super) const COLUMNS_MAX: usize = 7;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Table {
    Executors,
    Jobs,
    Clients,
    Replicas,
    Sessions,
    Members,
    Servers,
    Groups,
    RsNodes,
    Operators,
    TrafficGroups,
    Counters,
    Drops,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Good,
    Warn,
    Bad,
}

/// Cells, and their sort keys.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) cells: Vec<String>,
    pub(super) keys: Vec<Key>,
    pub(super) tone: Tone,
}

#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub(super) enum Key {
    Number(f64),
    Text(String),
}

/// `sides` is as for `aligned`.
pub(super) struct Rows {
    pub(super) titles: &'static [&'static str],
    pub(super) sides: &'static str,
    pub(super) lines: Vec<Line>,
    pub(super) more: u64,
}

impl Table {
    pub(super) fn of(view: &View) -> &'static [Self] {
        match &view.of {
            Of::Switch(status, detail) => match (&status.program, detail) {
                (_, Detail::Tasks(_)) => &[Self::Executors, Self::Jobs, Self::Clients, Self::Drops],
                (_, Detail::Store(_)) => &[Self::Replicas, Self::Sessions, Self::Counters, Self::Drops],
                (_, Detail::Cache(_)) => &[Self::Servers, Self::Groups, Self::RsNodes, Self::Counters, Self::Drops],
                (OfProgram::Tasks(_), Detail::Nothing) => &[Self::Drops],
                (_, Detail::Nothing) => &[Self::Counters, Self::Drops],
            },
            Of::Replica(_) => &[Self::Members, Self::Counters],
            Of::Controller(..) => &[Self::Operators, Self::TrafficGroups, Self::RsNodes, Self::Counters],
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Executors => "Executors",
            Self::Jobs => "Jobs",
            Self::Clients => "Clients",
            Self::Replicas => "Replicas",
            Self::Sessions => "Sessions",
            Self::Members => "Members",
            Self::Servers => "Servers",
            Self::Groups | Self::TrafficGroups => "Groups",
            Self::RsNodes => "RSNodes",
            Self::Operators => "Operators",
            Self::Counters => "Counters",
            Self::Drops => "Drops",
        }
    }
}

pub(super) fn table(view: &View, which: Table) -> Rows {
    match &view.of {
        Of::Switch(_, detail) => of_switch(view, which, detail),
        Of::Replica(status) if which == Table::Members => {
            let lines = status.members.iter().map(|one| member(status, one)).collect();
            Rows { titles: &["replica", "part", "has", "behind", "address"], sides: "rlrrl", lines, more: 0 }
        }
        Of::Controller(_, detail) => match which {
            Table::Operators => {
                let titles = &["operator", "state", "last word", "load", "at most", "address"];
                rows(titles, "llrrrl", &detail.operators, operator)
            }
            Table::TrafficGroups => {
                let titles = &["group", "RSNode", "planned", "requests"];
                rows(titles, "lrlr", &detail.groups, traffic_group)
            }
            Table::RsNodes => {
                let name = |of: &Option<String>| of.clone().unwrap_or_default();
                rows(&["id", "operator", "use"], "rll", &detail.rsnodes, |one| {
                    line(Tone::Plain, [count(one.id.into()), text(&name(&one.switch)), text(&one.used)])
                })
            }
            _ => counters(view, ""),
        },
        Of::Replica(_) => counters(view, ""),
    }
}

fn of_switch(view: &View, which: Table, detail: &Detail) -> Rows {
    match (which, detail) {
        (Table::Executors, Detail::Tasks(detail)) => {
            let titles = &["address", "state", "last word", "busy", "parked", "longest", "to others"];
            rows(titles, "llrrrrr", &detail.executors, executor)
        }
        (Table::Jobs, Detail::Tasks(detail)) => {
            let titles = &["client", "job", "level", "queued", "running", "again", "oldest"];
            rows(titles, "lrrrrrr", &detail.jobs, job)
        }
        (Table::Clients, Detail::Tasks(detail)) => {
            rows(&["client", "user", "open tasks", "last word"], "lrrr", &detail.clients, client)
        }
        (Table::Replicas, Detail::Store(detail)) => {
            let sets = &detail.sets.shown;
            let lines = sets.iter().flat_map(|set| set.replicas.iter().map(|one| replica(set, one))).collect();
            let titles = &["set", "replica", "state", "reads", "lag", "last word", "address"];
            Rows { titles, sides: "rrlrrrl", lines, more: detail.sets.more }
        }
        (Table::Sessions, Detail::Store(detail)) => {
            let titles = &["set", "session", "state", "under way", "policy", "replies"];
            rows(titles, "rllrll", &detail.sets, session)
        }
        (Table::Servers, Detail::Cache(detail)) => {
            let titles = &["server", "state", "asked", "under way", "queue", "service", "response"];
            rows(titles, "llrrrrr", &detail.servers, server)
        }
        (Table::Groups, Detail::Cache(detail)) => {
            rows(&["group", "state", "RSNode", "selected at", "answers"], "rlrlr", &detail.groups, group)
        }
        (Table::RsNodes, Detail::Cache(detail)) => rows(&["id", "operator"], "rl", &detail.rsnodes, rsnode),
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

pub(super) fn ago(ms: u64) -> String {
    time(ms.saturating_mul(1_000_000))
}

/// A rate with a few significant digits.
pub(super) fn per_second(rate: f64) -> String {
    short_number(if rate < 100.0 { (rate * 10.0).round() / 10.0 } else { rate.round() })
}

pub(super) fn text(value: &str) -> (String, Key) {
    (value.to_owned(), Key::Text(value.to_owned()))
}

pub(super) fn number(shown: String, value: impl Into<f64>) -> (String, Key) {
    (shown, Key::Number(value.into()))
}

pub(super) fn count(value: u64) -> (String, Key) {
    number(thousands(value), value as f64)
}

/// Empty for 0.
pub(super) fn some(value: u64) -> (String, Key) {
    number(if value == 0 { String::new() } else { thousands(value) }, value as f64)
}

pub(super) fn line(tone: Tone, cells: impl IntoIterator<Item = (String, Key)>) -> Line {
    let (cells, keys) = cells.into_iter().unzip();
    Line { cells, keys, tone }
}

/// Non-zero counters with this prefix (empty: the program's), the fastest first.
fn counters(view: &View, group: &str) -> Rows {
    let titles = &["name", "a second", "in all"];
    let all: Vec<(String, u64)> = match (&view.of, group) {
        (Of::Switch(status, _), "drops.") => {
            status.drops.iter().map(|(name, &n)| (format!("drops.{name}"), n)).collect()
        }
        (Of::Switch(status, _), _) => match &status.program {
            OfProgram::Tasks(program) => program.counts(),
            OfProgram::Store(program) => program.counts(),
            OfProgram::Cache(program) => program.counts(),
        },
        (Of::Replica(status), _) => status.counts().into_iter().collect(),
        (Of::Controller(status, _), _) => status.counts().into_iter().collect(),
    };
    let mut lines: Vec<_> = all.into_iter().filter(|(_, n)| *n > 0).collect();
    let rate = |name: &str| view.rate(name);
    lines.sort_by(|(a, _), (b, _)| rate(b).total_cmp(&rate(a)).then_with(|| a.cmp(b)));
    let lines = lines.into_iter().map(|(name, n)| {
        let rate = rate(&name);
        let shown = if rate > 0.0 { per_second(rate) } else { String::new() };
        line(
            Tone::Plain,
            [text(name.trim_start_matches("drops.").trim_start_matches("counters.")), number(shown, rate), count(n)],
        )
    });
    Rows { titles, sides: "lrr", lines: lines.collect(), more: 0 }
}
