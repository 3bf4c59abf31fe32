//! Compares two runs of figures: do their verdicts depend on the seeds?

use anyhow::{Context, Result};
use midflight_papers::findings::Verdict;
use midflight_terminal::envelope::{Envelope, Measure};
use midflight_terminal::usage;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// Percentage of rows whose verdict must be the same.
const EQUAL_PERCENT: usize = 90;

/// A result that must match: the hash of constants and rules.
pub(super) const RULES: &str = "figures.rules";

#[derive(Debug, Default, PartialEq)]
pub(super) struct Comparison {
    /// Rows that both have.
    rows: usize,
    equal: usize,
    /// Rows with their old and new verdicts.
    changed: Vec<(String, Verdict, Verdict)>,
    /// Rows that only one run has, although both have the figure.
    alone: Vec<String>,
    other_rules: bool,
}

impl Comparison {
    /// Whether the runs agree: no row turned, and most have the same verdict. False if there is nothing to compare.
    pub(super) fn holds(&self) -> bool {
        self.rows > 0 && self.turned().next().is_none() && self.equal * 100 >= self.rows * EQUAL_PERCENT
    }

    /// Rows that passed and now fail, or the reverse.
    fn turned(&self) -> impl Iterator<Item = &(String, Verdict, Verdict)> {
        let turned = |before: Verdict, now: Verdict| (before, now) == (Verdict::Pass, Verdict::Fail);
        self.changed.iter().filter(move |(_, before, now)| turned(*before, *now) || turned(*now, *before))
    }

    pub(super) fn measures(&self) -> [Measure; 4] {
        let count =
            |name: &str, number: usize| Measure::count(&format!("figures.compared.{name}"), number as u64, "rows");
        [
            count("rows", self.rows),
            count("equal", self.equal),
            count("turned", self.turned().count()),
            Measure::text("figures.compared.verdict", if self.holds() { "pass" } else { "fail" }),
        ]
    }

    pub(super) fn table(&self, with: &Path) -> String {
        let mut text =
            format!("compared with {}: {} of {} verdicts are equal\n", with.display(), self.equal, self.rows);
        // Writing to a String cannot fail.
        for (row, before, now) in &self.changed {
            let _ = writeln!(text, "  {row}: {}, and was {}", now.name(), before.name());
        }
        for row in &self.alone {
            let _ = writeln!(text, "  {row}: in one of them only");
        }
        if self.other_rules {
            let _ = writeln!(text, "  constants or rules have changed in between, so that not only the seeds differ");
        }
        let turned = self.turned().count();
        if !self.holds() {
            let _ = writeln!(
                text,
                "  FAILED: {turned} turned from pass to fail or back (allowed: none), {} of {} are equal (at least {EQUAL_PERCENT} %)",
                self.equal, self.rows
            );
        }
        text
    }
}

/// Bytes of the largest results.
const LARGEST: u64 = 64 * midflight_files::MIB;

/// # Errors
/// If they cannot be read, or are not results of figures.
pub(super) fn read(path: &Path) -> Result<Envelope> {
    let bad = |what: String| usage::error(format!("--compare {}: {what}", path.display()));
    let text = midflight_files::read_text(path, LARGEST).map_err(|error| bad(error.to_string()))?;
    let envelope = Envelope::parse(&text).context("no results").map_err(|error| bad(format!("{error:#}")))?;
    if verdicts(&envelope).is_empty() {
        return Err(bad("no verdicts of figures; `midflight-lab sim figure` writes them to results.json".into()));
    }
    Ok(envelope)
}

/// Rows of figures that both have.
pub(super) fn compare(before: &Envelope, now: &Envelope) -> Comparison {
    let (old, new) = (verdicts(before), verdicts(now));
    let figure = |row: &str| row.split('.').next().unwrap_or_default().to_owned();
    let has = |verdicts: &BTreeMap<String, Verdict>, row: &str| verdicts.keys().any(|it| figure(it) == figure(row));
    let rules = |envelope: &Envelope| envelope.results().iter().find(|it| it.name == RULES).map(|it| it.value.clone());
    let mut comparison = Comparison { other_rules: rules(before) != rules(now), ..Comparison::default() };
    for (row, &now) in &new {
        match old.get(row) {
            Some(&before) if before == now => comparison.equal += 1,
            Some(&before) => comparison.changed.push((row.clone(), before, now)),
            None if has(&old, row) => comparison.alone.push(row.clone()),
            None => {}
        }
    }
    comparison.rows = comparison.equal + comparison.changed.len();
    comparison.alone.extend(old.keys().filter(|row| !new.contains_key(*row) && has(&new, row)).cloned());
    comparison
}

/// `FIGURE.ROW` and its verdict.
fn verdicts(envelope: &Envelope) -> BTreeMap<String, Verdict> {
    let verdict = |measure: &Measure| {
        let row = measure.name.strip_suffix(".verdict").filter(|row| !row.starts_with("figures."))?;
        let verdict = Verdict::ALL.into_iter().find(|verdict| measure.value == verdict.name())?;
        Some((row.to_owned(), verdict))
    };
    envelope.results().iter().filter_map(verdict).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `rows` rows of bolt-12 pass.
    fn results(rows: usize, others: &[(&str, &str)]) -> Envelope {
        let passing = (0..rows).map(|row| (format!("bolt-12.row-{row}"), "pass"));
        let others = others.iter().map(|(row, verdict)| ((*row).to_owned(), *verdict));
        let measures = passing.chain(others).map(|(row, verdict)| Measure::text(&format!("{row}.verdict"), verdict));
        Envelope::new("figure", measures.collect())
    }

    fn of(before: &[(&str, &str)], now: &[(&str, &str)]) -> Comparison {
        compare(&results(9, before), &results(9, now))
    }

    #[test]
    fn nine_of_ten_equal_verdicts_hold_unless_one_turns() {
        let one = |before, now| of(&[("bolt-12.one", before)], &[("bolt-12.one", now)]);
        assert!(one("pass", "pass").holds() && one("pass", "unsure").holds() && one("shape", "fail").holds());
        assert!(!one("pass", "fail").holds() && !one("fail", "pass").holds());
        let [rows, equal, turned, verdict] = one("pass", "fail").measures();
        assert_eq!([rows.value, equal.value, turned.value], [10, 9, 1].map(serde_json::Value::from));
        assert_eq!(verdict.value, "fail");
    }

    #[test]
    fn fewer_than_nine_of_ten_do_not_hold() {
        let two = of(
            &[("bolt-12.one", "pass"), ("bolt-12.two", "unsure")],
            &[("bolt-12.one", "unsure"), ("bolt-12.two", "shape")],
        );
        assert_eq!((two.rows, two.equal, two.turned().count()), (11, 9, 0));
        assert!(!two.holds());
        let said = two.table(Path::new("old.json"));
        for part in ["9 of 11", "bolt-12.one: unsure, and was pass", "FAILED: 0 turned", "at least 90 %"] {
            assert!(said.contains(part), "no {part} in {said}");
        }
    }

    #[test]
    fn rows_that_only_one_of_them_has_are_named_and_other_figures_are_not_compared() {
        let alone =
            of(&[("bolt-12.old", "pass"), ("scale.flat", "fail")], &[("bolt-12.new", "pass"), ("bolt-17.end", "fail")]);
        assert_eq!((alone.rows, alone.alone.as_slice()), (9, &["bolt-12.new".to_owned(), "bolt-12.old".into()][..]));
        assert!(alone.holds());
        assert!(!compare(&results(0, &[("scale.flat", "pass")]), &results(1, &[])).holds(), "nothing to compare");
    }

    #[test]
    fn other_rules_are_said() {
        let with = |rules| {
            Envelope::new("figure", vec![Measure::text(RULES, rules), Measure::text("scale.flat.verdict", "pass")])
        };
        assert!(!compare(&with("a"), &with("a")).other_rules);
        let other = compare(&with("a"), &with("b"));
        assert!(other.other_rules && other.table(Path::new("x")).contains("rules have changed"));
    }

    #[test]
    fn what_is_no_report_is_named() {
        let file = std::env::temp_dir().join(format!("midflight-compare-{}.json", std::process::id()));
        let error = |text: &str| {
            std::fs::write(&file, text).unwrap();
            read(&file).unwrap_err().to_string()
        };
        assert!(error("{").contains("--compare"));
        let other = serde_json::to_string(&Envelope::new("loop", vec![])).unwrap();
        assert!(error(&other).contains("results.json"));
        std::fs::remove_file(&file).unwrap();
        assert!(read(&file).unwrap_err().to_string().contains("No such file"));
    }
}
