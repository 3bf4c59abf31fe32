//! Outcomes of commands: counts, a message for each failure, and a summary.

use super::COMMAND_SHOWN;
use midflight_tasks::functions::ExecResult;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    Ran(ExecResult),
    /// The command has no exit code; the message says why.
    Lost(String),
    /// Lost, and --resume runs it again: stopped, or its output was not kept.
    Undone(String),
    Cancelled,
}

impl End {
    pub(super) fn is_ok(&self) -> bool {
        matches!(self, Self::Ran(result) if result.code == 0)
    }

    /// Empty if it succeeded or did not start.
    pub(super) fn note(&self, place: &str, command: &[u8], timeout: Option<Duration>) -> String {
        let why = match self {
            Self::Ran(result) if result.code == 0 => return String::new(),
            Self::Cancelled => return String::new(),
            Self::Ran(result) => reason(result, timeout),
            Self::Lost(why) | Self::Undone(why) => shown(why.as_bytes(), COMMAND_SHOWN),
        };
        format!("{place}: {why}: {}", shown(command, COMMAND_SHOWN))
    }
}

fn reason(result: &ExecResult, timeout: Option<Duration>) -> String {
    if result.timed_out {
        let timeout = timeout.map(|timeout| format!(" after {}", humantime::format_duration(timeout)));
        return format!("timed out{}", timeout.unwrap_or_default());
    }
    match result.signal {
        Some(signal) => {
            let name = signal_hook::low_level::signal_name(signal.into());
            format!("ended by signal {signal}{}", name.map(|name| format!(" ({name})")).unwrap_or_default())
        }
        None => format!("exit code {}", result.code),
    }
}

/// Any bytes as text on one line, cut to `most` characters.
pub(super) fn shown(text: &[u8], most: usize) -> String {
    let text = &text[..text.len().min(most * 4 + 4)];
    let text = String::from_utf8_lossy(text);
    let mut characters = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut short: String = characters.by_ref().take(most).collect();
    if characters.next().is_some() {
        short.push('…');
    }
    short
}

#[derive(Debug)]
pub(super) struct Report {
    /// What a number counts: "line", or "command".
    noun: &'static str,
    ok: u64,
    failed: Numbers,
    lost: Numbers,
    cancelled: Numbers,
}

impl Report {
    pub(super) fn new(noun: &'static str) -> Self {
        Self { noun, ok: 0, failed: Numbers::default(), lost: Numbers::default(), cancelled: Numbers::default() }
    }

    pub(super) fn add(&mut self, number: u64, end: &End) {
        match end {
            End::Ran(result) if result.code == 0 => self.ok += 1,
            End::Ran(_) => self.failed.add(number),
            End::Lost(_) | End::Undone(_) => self.lost.add(number),
            End::Cancelled => self.cancelled.add(number),
        }
    }

    pub(super) fn ok(&self) -> u64 {
        self.ok
    }

    /// Commands that failed or were lost.
    pub(super) fn failed(&self) -> u64 {
        self.failed.count + self.lost.count
    }

    /// Commands that failed, were lost or were cancelled.
    pub(super) fn not_ok(&self) -> u64 {
        self.failed() + self.cancelled.count
    }

    /// Commands that ended, without those that never started.
    pub(super) fn ended(&self) -> u64 {
        self.ok + self.failed()
    }

    /// The summary, after the words `head`; `None` if all commands succeeded and `head` is empty.
    pub(super) fn summary(&self, head: &str) -> Option<String> {
        if self.not_ok() == 0 && head.is_empty() {
            return None;
        }
        let mut parts = vec![format!("{} finished", self.ok)];
        for (name, numbers) in
            [("failed", &self.failed), ("lost", &self.lost), ("cancelled before they started", &self.cancelled)]
        {
            if numbers.count > 0 {
                let plural = if numbers.count == 1 { "" } else { "s" };
                parts.push(format!("{} {name} ({}{plural} {numbers})", numbers.count, self.noun));
            }
        }
        Some(format!("{head}{}", parts.join(", ")))
    }
}

/// Printed as "1-3, 7". Keeps the ten ranges with the smallest numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbers {
    count: u64,
    /// First and last number of each range.
    ranges: BTreeMap<u64, u64>,
    /// From this number on only the count is kept.
    cut: Option<u64>,
}

impl Numbers {
    const MOST: usize = 10;

    pub(super) fn add(&mut self, number: u64) {
        self.count += 1;
        if self.cut.is_some_and(|cut| number >= cut) {
            return;
        }
        let before =
            self.ranges.range(..number).next_back().filter(|range| *range.1 + 1 == number).map(|range| *range.0);
        let last = self.ranges.remove(&(number + 1)).unwrap_or(number);
        self.ranges.insert(before.unwrap_or(number), last);
        if self.ranges.len() > Self::MOST {
            self.cut = self.ranges.pop_last().map(|(first, _)| first);
        }
    }
}

impl fmt::Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let range =
            |(first, last): (&u64, &u64)| if first == last { first.to_string() } else { format!("{first}-{last}") };
        let mut parts: Vec<_> = self.ranges.iter().map(range).collect();
        if self.cut.is_some() {
            parts.push("…".into());
        }
        f.write_str(&parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(code: i32) -> End {
        End::Ran(ExecResult { code, ..ExecResult::default() })
    }

    #[test]
    fn the_summary_names_the_lines() {
        let mut report = Report::new("line");
        for (number, end) in [(1, ran(0)), (2, ran(1)), (4, End::Cancelled), (3, End::Lost("gone".into()))] {
            report.add(number, &end);
        }
        assert_eq!((report.ok(), report.failed(), report.not_ok(), report.ended()), (1, 2, 3, 3));
        let expected =
            "interrupted: 1 finished, 1 failed (line 2), 1 lost (line 3), 1 cancelled before they started (line 4)";
        assert_eq!(report.summary("interrupted: ").unwrap(), expected);
    }

    fn numbers(all: impl IntoIterator<Item = u64>) -> String {
        let mut numbers = Numbers::default();
        all.into_iter().for_each(|number| numbers.add(number));
        numbers.to_string()
    }

    #[test]
    fn numbers_are_said_in_ranges_whatever_their_order() {
        assert_eq!(numbers([1, 2, 3, 7, 9, 10]), "1-3, 7, 9-10");
        assert_eq!(numbers([10, 2, 9, 7, 1, 3]), "1-3, 7, 9-10");
        let odd = "1, 3, 5, 7, 9, 11, 13, 15, 17, 19, …";
        assert_eq!(numbers((0..30).map(|i| 2 * i + 1)), odd);
        assert_eq!(numbers((0..30).rev().map(|i| 2 * i + 1)), odd);
    }

    #[test]
    fn a_note_says_why_and_is_bounded() {
        let result =
            |code, signal, timed_out| End::Ran(ExecResult { code, signal, timed_out, ..ExecResult::default() });
        let note = |end: End| end.note("line 3", b"a\nb", Some(Duration::from_secs(2)));
        assert_eq!(note(result(2, None, false)), "line 3: exit code 2: a b");
        assert_eq!(note(result(137, Some(9), false)), "line 3: ended by signal 9 (SIGKILL): a b");
        assert_eq!(note(result(137, Some(9), true)), "line 3: timed out after 2s: a b");
        assert_eq!(note(End::Lost("gone".into())), "line 3: gone: a b");
        assert_eq!((note(ran(0)), note(End::Cancelled)), (String::new(), String::new()));
        assert!(ran(1).note("line 1", &[b'x'; 200_000], None).len() < 300);
    }
}
