//! A turn's output: a line of JSON.

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The longest accepted version or description.
const TEXT_MAX: usize = 400;

/// The metrics every system must report; a missing one is an error.
const OF_CALLS: [&str; 3] = ["submit_per_s", "map_per_s", "rtt_p50_us"];

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(super) struct Turn {
    system: String,
    pub version: String,
    /// How the system was used.
    pub interface: String,
    /// By name; bench/python/turn.py has the names.
    pub values: BTreeMap<String, f64>,
    answers: BTreeMap<String, String>,
}

impl Turn {
    /// What the turn of `system` printed.
    pub(super) fn parse(system: &str, said: &str) -> Result<Self> {
        let mut lines = said.lines().filter(|line| !line.trim().is_empty());
        let (Some(line), None) = (lines.next(), lines.next()) else { bail!("it did not print one line") };
        let turn: Self =
            serde_json::from_str(line).with_context(|| format!("it printed what is no turn: {line:.200}"))?;
        ensure!(turn.system == system, "it printed a turn of {:?}", turn.system);
        for text in [&turn.version, &turn.interface] {
            let fits = (1..=TEXT_MAX).contains(&text.len()) && !text.chars().any(char::is_control);
            ensure!(fits, "{text:?} is no version or description of an interface");
        }
        for (name, value) in &turn.values {
            // A system whose workers have pipes sends nothing over loopback.
            let may_be_none = name.ends_with("_wire_bytes") && *value == 0.0;
            ensure!(value.is_finite() && (*value > 0.0 || may_be_none), "{name} {value} was not measured");
        }
        let missing = OF_CALLS.iter().find(|name| !turn.values.contains_key(**name));
        if let Some(name) = missing.filter(|_| system != super::SERIAL) {
            bail!("it did not measure {name}");
        }
        Ok(turn)
    }

    /// Fails unless its programs computed the same as the other's.
    pub(super) fn same_answers_as(self, other: &Self) -> Result<Self> {
        for (program, expected) in &other.answers {
            let answer = self.answers.get(program).with_context(|| format!("it did not run {program}"))?;
            ensure!(answer == expected, "{program} computed {answer:?} instead of {expected:?}");
        }
        Ok(self)
    }

    pub(super) fn programs(&self) -> impl Iterator<Item = &str> {
        self.answers.keys().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DASK: &str = r#"{"system": "dask", "version": "2026.8.0", "interface": "gather",
        "values": {"submit_per_s": 351.5, "map_per_s": 900, "rtt_p50_us": 9000, "grid_long_s": 0.5}, "answers": {"grid_long": "(1, 0.79125)"}}"#;

    fn line(text: &str) -> String {
        text.replace('\n', " ")
    }

    #[test]
    fn a_turn_is_one_line() {
        let turn = Turn::parse("dask", &format!("\n{}\n", line(DASK))).unwrap();
        assert_eq!((turn.version.as_str(), turn.values["submit_per_s"]), ("2026.8.0", 351.5));
        assert_eq!(turn.programs().collect::<Vec<_>>(), ["grid_long"]);
        let silent = DASK.replacen("\"grid_long_s\": 0.5", "\"alone_wire_bytes\": 0.0", 1);
        assert!(Turn::parse("dask", &line(&silent)).is_ok(), "nothing went over loopback");
        assert!(Turn::parse("dask", "").is_err());
        assert!(Turn::parse("dask", &format!("{0}\n{0}\n", line(DASK))).is_err(), "two lines");
    }

    #[test]
    fn what_is_no_turn_is_refused_with_its_reason() {
        for (from, to, reason) in [
            ("\"dask\"", "\"ray\"", "a turn of \"ray\""),
            ("351.5", "-1", "submit_per_s -1 was not measured"),
            ("0.5}", "0}", "grid_long_s 0 was not measured"),
            ("351.5", "null", "no turn"),
            ("map_per_s", "mop_per_s", "did not measure map_per_s"),
            ("gather", "", "no version"),
            ("2026.8.0", "\\u001b[2J", "no version"),
            ("\"values\"", "\"value\"", "no turn"),
        ] {
            assert!(DASK.contains(from), "{from}");
            let error = format!("{:#}", Turn::parse("dask", &line(&DASK.replacen(from, to, 1))).unwrap_err());
            assert!(error.contains(reason), "{to}: {error}");
        }
    }

    #[test]
    fn another_answer_is_an_error() {
        let turn = Turn::parse("dask", &line(DASK)).unwrap();
        assert!(turn.clone().same_answers_as(&turn).is_ok());
        let other = Turn::parse("dask", &line(&DASK.replace("0.79125", "0.5"))).unwrap();
        let error = other.same_answers_as(&turn).unwrap_err().to_string();
        assert!(error.contains("grid_long computed \"(1, 0.5)\""), "{error}");
    }
}
