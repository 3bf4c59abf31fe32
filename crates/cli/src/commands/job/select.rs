//! Selects jobs by `7`, `2-4`, `last` or `all`.

use super::{all, connect};
use anyhow::{Result, ensure};
use midflight_jobs::connection::Connection;
use midflight_jobs::model::JobRow;
use midflight_terminal::usage;
use std::str::FromStr;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Select {
    Range(u64, u64),
    Last,
    All,
}

impl FromStr for Select {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no job: write a number, a range such as 2-4, last or all");
        let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
        match (text, text.split_once('-')) {
            ("last", _) => Ok(Self::Last),
            ("all", _) => Ok(Self::All),
            (_, Some((first, last))) => {
                let (first, last) = (number(first)?, number(last)?);
                if first <= last { Ok(Self::Range(first, last)) } else { Err(wrong()) }
            }
            (one, None) => number(one).map(|job| Self::Range(job, job)),
        }
    }
}

/// The selected jobs, in the order given. A single number must exist; a range may have gaps.
pub(super) fn select(connection: &mut Connection, selects: &[Select]) -> Result<Vec<JobRow>> {
    let jobs = all(connection)?;
    let last = jobs.last().map(|row| row.job);
    for select in selects {
        let exists = |first, end| jobs.iter().any(|row| (first..=end).contains(&row.job));
        match *select {
            Select::Range(first, end) if first == end && !exists(first, end) => {
                return Err(usage::error(format!("there is no job {first}: `midflight job list` has all")));
            }
            Select::Last => ensure!(last.is_some(), usage::error("there is no job yet")),
            Select::Range(..) | Select::All => {}
        }
    }
    let is_meant = |job: u64| {
        selects.iter().any(|select| match *select {
            Select::Range(first, end) => (first..=end).contains(&job),
            Select::Last => last == Some(job),
            Select::All => true,
        })
    };
    Ok(jobs.into_iter().filter(|row| is_meant(row.job)).collect())
}

/// A single number need not exist.
pub(super) fn numbers(selects: &[Select]) -> Result<Vec<u64>> {
    let number = |select: &Select| match *select {
        Select::Range(first, last) if first == last => Some(first),
        _ => None,
    };
    match selects.iter().map(number).collect() {
        Some(numbers) => Ok(numbers),
        None => Ok(select(&mut connect()?, selects)?.into_iter().map(|row| row.job).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_named_by_numbers_ranges_and_words() {
        assert_eq!("7".parse(), Ok(Select::Range(7, 7)));
        assert_eq!("2-4".parse(), Ok(Select::Range(2, 4)));
        assert_eq!("last".parse(), Ok(Select::Last));
        for wrong in ["", "-1", "4-2", "x", "1-"] {
            assert!(wrong.parse::<Select>().unwrap_err().contains("is no job"), "{wrong}");
        }
    }
}
