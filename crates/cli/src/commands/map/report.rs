//! The output of `map`: each command's output in the order of the input, and a summary at the end.

use anyhow::{Context, Result};
use midflight_tasks::functions::ExecResult;
use midflight_terminal::progress::Progress;
use std::collections::BTreeMap;
use std::io::Write;

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It ran; its exit code may be anything.
    Ran(ExecResult),
    /// It has no exit code: the message says why.
    Lost(String),
    /// It was not started.
    Cancelled,
}

/// Takes the ends of commands in any order, and prints their output in the order of the input.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// Ended before a command above them in the input.
    early: BTreeMap<usize, (usize, End)>,
    /// Commands that are printed.
    printed: usize,
    ok: usize,
    /// Line numbers.
    failed: Vec<usize>,
    lost: Vec<usize>,
    cancelled: Vec<usize>,
}

impl Report {
    /// Commands whose output has been printed: all up to the first that still runs.
    pub(super) fn printed(&self) -> usize {
        self.printed
    }

    /// Whether the command at `index` has ended.
    pub(super) fn has(&self, index: usize) -> bool {
        index < self.printed || self.early.contains_key(&index)
    }

    /// The command at `index`, which stands in line `number`, ended.
    pub(super) fn end(&mut self, index: usize, number: usize, end: End, progress: &Progress) -> Result<()> {
        self.early.insert(index, (number, end));
        while let Some((number, end)) = self.early.remove(&self.printed) {
            self.printed += 1;
            progress.suspend(|| self.print(number, &end)).context("cannot write the output")?;
        }
        Ok(())
    }

    fn print(&mut self, number: usize, end: &End) -> std::io::Result<()> {
        match end {
            End::Ran(result) => {
                let mut stdout = std::io::stdout().lock();
                stdout.write_all(&result.stdout)?;
                stdout.flush()?;
                std::io::stderr().lock().write_all(&result.stderr)?;
                if result.code == 0 { self.ok += 1 } else { self.failed.push(number) }
            }
            End::Lost(why) => {
                eprintln!("midflight: line {number}: {why}");
                self.lost.push(number);
            }
            End::Cancelled => self.cancelled.push(number),
        }
        Ok(())
    }

    /// Failed, lost or cancelled.
    pub(super) fn not_ok(&self) -> usize {
        self.failed.len() + self.lost.len() + self.cancelled.len()
    }

    /// The summary for people; `None` if all commands succeeded.
    pub(super) fn summary(&self, interrupted: bool) -> Option<String> {
        if self.not_ok() == 0 && !interrupted {
            return None;
        }
        let mut parts = vec![format!("{} finished", self.ok)];
        for (name, lines) in
            [("failed", &self.failed), ("lost", &self.lost), ("cancelled before they started", &self.cancelled)]
        {
            if lines.is_empty() {
                continue;
            }
            let noun = if lines.len() == 1 { "line" } else { "lines" };
            parts.push(format!("{} {name} ({noun} {})", lines.len(), ranges(lines)));
        }
        let head = if interrupted { "interrupted: " } else { "" };
        Some(format!("midflight: {head}{}", parts.join(", ")))
    }
}

/// "1-3, 7" of ascending numbers, at most ten ranges.
fn ranges(numbers: &[usize]) -> String {
    const MOST: usize = 10;
    let runs: Vec<&[usize]> = numbers.chunk_by(|a, b| a + 1 == *b).collect();
    let text = |run: &&[usize]| match run {
        [one] => one.to_string(),
        [first, .., last] => format!("{first}-{last}"),
        [] => String::new(),
    };
    let mut parts: Vec<_> = runs.iter().take(MOST).map(text).collect();
    if runs.len() > MOST {
        parts.push("…".into());
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(code: i32) -> End {
        End::Ran(ExecResult { code, ..ExecResult::default() })
    }

    #[test]
    fn what_ends_early_waits_for_those_above_it() {
        let (mut report, progress) = (Report::default(), Progress::tasks(3, true));
        report.end(1, 2, ran(1), &progress).unwrap();
        assert_eq!(report.printed(), 0);
        report.end(0, 1, ran(0), &progress).unwrap();
        assert_eq!((report.printed(), report.not_ok()), (2, 1));
        report.end(2, 4, End::Cancelled, &progress).unwrap();
        let summary = report.summary(true).unwrap();
        assert_eq!(
            summary,
            "midflight: interrupted: 1 finished, 1 failed (line 2), 1 cancelled before they started (line 4)"
        );
    }

    #[test]
    fn nothing_is_said_where_all_went_well() {
        let (mut report, progress) = (Report::default(), Progress::tasks(1, true));
        report.end(0, 1, ran(0), &progress).unwrap();
        assert_eq!(report.summary(false), None);
    }

    #[test]
    fn numbers_are_said_in_ranges() {
        assert_eq!(ranges(&[1, 2, 3, 7, 9, 10]), "1-3, 7, 9-10");
        let odd: Vec<_> = (0..30).map(|i| 2 * i + 1).collect();
        assert_eq!(ranges(&odd), "1, 3, 5, 7, 9, 11, 13, 15, 17, 19, …");
    }
}
