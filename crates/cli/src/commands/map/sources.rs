//! Arguments: lines, words after `:::`, files after `::::`, and their combinations.

use super::COMMAND_LINE_MAX;
use super::records::{Ends, Record, Records};
use anyhow::{Result, ensure};
use midflight_terminal::usage;
use regex::bytes::Regex;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Bytes of memory for all sources but the first, which is read as needed.
const TABLES_MAX: usize = 256 << 20;
/// Bytes of the allocator per allocation.
const ALLOCATION: usize = 16;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Line number, from 1; with several sources, the number of the command.
    pub number: u64,
    pub arguments: Vec<Vec<u8>>,
    /// Bytes of a line longer than any command line; the argument holds its beginning.
    pub too_long: Option<u64>,
}

impl Entry {
    /// Fails if the line was too long.
    pub(super) fn check(&self) -> Result<(), String> {
        match self.too_long {
            Some(length) => {
                Err(format!("{length} bytes exceed a command line's {COMMAND_LINE_MAX}: put them into a file"))
            }
            None => Ok(()),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// After `:::`.
    Words(Vec<OsString>),
    /// After `::::`; "-" for stdin.
    File(PathBuf),
}

/// Taken in parallel. Groups combine: each value with each of the others'.
pub(super) type Group = Vec<Source>;

/// The word, if it begins a source.
fn marker(word: &OsStr) -> Option<&str> {
    word.to_str().filter(|word| [":::", "::::", ":::+", "::::+"].contains(word))
}

/// Splits the template before the first `:::` or `::::` from the sources after it.
pub(super) fn split(words: &[OsString]) -> Result<(Vec<OsString>, Vec<Group>)> {
    let is_marker = |word: &OsString| marker(word).is_some();
    let first = words.iter().position(is_marker).unwrap_or(words.len());
    let (template, mut rest) = words.split_at(first);
    let mut groups: Vec<Group> = Vec::new();
    while let [word, values @ ..] = rest {
        let marker = marker(word).unwrap_or_default(); // the loop found one
        let end = values.iter().position(is_marker).unwrap_or(values.len());
        let sources: Vec<Source> = match marker {
            ":::" | ":::+" => vec![Source::Words(values[..end].to_vec())],
            _ => values[..end].iter().map(|file| Source::File(file.into())).collect(),
        };
        ensure!(!sources.is_empty(), usage::error(format!("{marker} names no file: write `{marker} FILE`")));
        if marker.ends_with('+') {
            let Some(group) = groups.last_mut() else {
                return Err(usage::error(format!(
                    "{marker} has no source before it: begin with {}",
                    marker.trim_end_matches('+')
                )));
            };
            group.extend(sources);
        } else {
            groups.extend(sources.into_iter().map(|source| vec![source]));
        }
        rest = &values[end..];
    }
    Ok((template.to_vec(), groups))
}

/// One group's values for one command.
#[derive(Clone, Debug, Default)]
struct Row {
    number: u64,
    values: Vec<Vec<u8>>,
    too_long: Option<u64>,
}

impl Row {
    fn bytes(&self) -> usize {
        let value = |value: &Vec<u8>| size_of::<Vec<u8>>() + ALLOCATION + value.capacity();
        size_of::<Self>() + ALLOCATION + self.values.iter().map(value).sum::<usize>()
    }
}

/// Lines read as needed, or rows in memory.
enum First {
    Lines(Records),
    Rows(VecDeque<Row>),
}

#[derive(Clone, Debug)]
pub(super) struct Format {
    pub ends: Ends,
    /// Separates the columns of a record.
    pub columns: Option<Regex>,
}

impl Format {
    fn row(&self, Record { number, text, length }: Record) -> Row {
        let too_long = (length > text.len() as u64).then_some(length);
        let values = match &self.columns {
            Some(separator) => separator.split(&text).map(<[u8]>::to_vec).collect(),
            None => vec![text],
        };
        Row { number, values, too_long }
    }
}

pub(super) struct Entries {
    format: Format,
    first: First,
    /// The other groups; the last one changes fastest.
    tables: Vec<Vec<Row>>,
    /// Row and positions in the tables of the next command.
    current: Option<Row>,
    places: Vec<usize>,
    count: u64,
    /// Each command is one line.
    is_lines: bool,
}

impl Entries {
    pub(super) fn open(groups: &[Group], format: Format) -> Result<Self> {
        let stdin = groups.iter().flatten().filter(|source| **source == Source::File("-".into())).count();
        ensure!(stdin <= 1, usage::error("the standard input is named twice: only one source can read it"));
        let mut bytes = 0;
        let (first, is_lines) = match groups.first().map(Vec::as_slice) {
            Some([Source::File(file)]) => (First::Lines(Records::open(file, format.ends)?), groups.len() == 1),
            Some(group) => (First::Rows(rows(group, &format, &mut bytes)?.into()), false),
            None => (First::Rows(VecDeque::new()), false),
        };
        let tables = groups.iter().skip(1).map(|group| rows(group, &format, &mut bytes)).collect::<Result<Vec<_>>>()?;
        let places = vec![0; tables.len()];
        Ok(Self { format, first, tables, current: None, places, count: 0, is_lines })
    }

    pub(super) fn is_lines(&self) -> bool {
        self.is_lines
    }

    /// Arguments per command, if the same for all.
    pub(super) fn width(&self) -> Option<usize> {
        if self.format.columns.is_some() {
            return None;
        }
        let first = match &self.first {
            First::Lines(_) => 1,
            First::Rows(rows) => rows.front()?.values.len(),
        };
        Some(first + self.tables.iter().filter_map(|rows| rows.first()).map(|row| row.values.len()).sum::<usize>())
    }

    /// Whether the next command needs no wait for input.
    pub(super) fn is_ready(&self) -> bool {
        let lines_ready = match &self.first {
            First::Lines(records) => records.is_ready(),
            First::Rows(rows) => !rows.is_empty(),
        };
        self.current.is_some() || lines_ready
    }

    pub(super) fn next(&mut self) -> Result<Option<Entry>> {
        if self.tables.iter().any(Vec::is_empty) {
            return Ok(None);
        }
        let Some(row) = self.current.take().map_or_else(|| self.next_row(), |row| Ok(Some(row)))? else {
            return Ok(None);
        };
        self.count += 1;
        let number = if self.is_lines { row.number } else { self.count };
        if self.tables.is_empty() {
            return Ok(Some(Entry { number, arguments: row.values, too_long: row.too_long }));
        }
        let others = || self.tables.iter().zip(&self.places).map(|(rows, &place)| &rows[place]);
        let arguments = row.values.iter().chain(others().flat_map(|row| &row.values)).cloned().collect();
        let too_long = row.too_long.or_else(|| others().find_map(|row| row.too_long));
        self.current = self.advance().then_some(row);
        Ok(Some(Entry { number, arguments, too_long }))
    }

    fn next_row(&mut self) -> Result<Option<Row>> {
        match &mut self.first {
            First::Lines(records) => Ok(records.next()?.map(|record| self.format.row(record))),
            First::Rows(rows) => Ok(rows.pop_front()),
        }
    }

    fn advance(&mut self) -> bool {
        for (place, rows) in self.places.iter_mut().zip(&self.tables).rev() {
            *place += 1;
            if *place < rows.len() {
                return true;
            }
            *place = 0;
        }
        false
    }
}

/// Rows of sources taken in parallel, up to the end of the shortest.
fn rows(group: &[Source], format: &Format, bytes: &mut usize) -> Result<Vec<Row>> {
    let mut rows: Option<Vec<Row>> = None;
    for source in group {
        let values = rows_of(source, format, bytes)?;
        rows = Some(match rows {
            None => values,
            Some(rows) => rows.into_iter().zip(values).map(|(left, right)| beside(left, right)).collect(),
        });
    }
    Ok(rows.unwrap_or_default())
}

fn beside(mut left: Row, right: Row) -> Row {
    left.values.extend(right.values);
    left.too_long = left.too_long.or(right.too_long);
    left
}

fn rows_of(source: &Source, format: &Format, bytes: &mut usize) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut add = |record: Record| {
        let row = format.row(record);
        *bytes += row.bytes();
        rows.push(row);
        ensure!(
            *bytes <= TABLES_MAX,
            usage::error(format!(
                "the sources after the first take more than {TABLES_MAX} bytes of memory: put the largest one first, it is read as it is needed"
            ))
        );
        Ok(())
    };
    match source {
        Source::Words(words) => {
            for (number, word) in (1..).zip(words) {
                add(Record { number, text: word.as_bytes().to_vec(), length: word.len() as u64 })?;
            }
        }
        Source::File(file) => {
            let mut records = Records::open(file, format.ends)?;
            while let Some(record) = records.next()? {
                add(record)?;
            }
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    fn lines() -> Format {
        Format { ends: Ends { separator: b'\n', crlf: false }, columns: None }
    }

    #[test]
    fn columns_are_arguments_of_their_own() {
        let columns = Format { columns: Some(Regex::new(", ?").unwrap()), ..lines() };
        let (_, groups) =
            split(&["::: ".trim().into(), "a, b".into(), "c,d,e".into(), ":::".into(), "1".into()]).unwrap();
        let mut entries = Entries::open(&groups, columns).unwrap();
        assert_eq!(entries.width(), None);
        assert_eq!(entries.next().unwrap().unwrap().arguments, [&b"a"[..], b"b", b"1"]);
        assert_eq!(entries.next().unwrap().unwrap().arguments, [&b"c"[..], b"d", b"e", b"1"]);
        assert_eq!(entries.next().unwrap(), None);
    }

    #[test]
    fn rows_count_with_all_the_memory_that_they_take() {
        let columns = Format { columns: Some(Regex::new(",").unwrap()), ..lines() };
        let row = columns.row(Record { number: 1, text: b",".repeat(1000), length: 1000 });
        assert!(row.bytes() >= 1001 * size_of::<Vec<u8>>(), "{}", row.bytes());
        assert!(lines().row(Record { number: 1, text: vec![b'a'], length: 1 }).bytes() >= 100);
    }

    #[test]
    fn what_names_no_source_is_a_usage_error() {
        for line in ["echo ::::", "echo :::+ a", "echo ::::+ f"] {
            assert!(split(&words(line)).unwrap_err().is::<usage::UsageError>(), "{line}");
        }
        let (_, groups) = split(&words(":::: - -")).unwrap();
        assert!(Entries::open(&groups, lines()).err().unwrap().to_string().contains("twice"));
    }
}
