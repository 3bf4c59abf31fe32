//! A sweep: a cell, and values for some of its parameters.

use anyhow::Result;
use midflight_control::file;
use midflight_papers::experiment::Experiment;
use midflight_terminal::usage;
use serde::Deserialize;
use serde_json::map::Entry;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// More are surely a mistake.
const MOST_CELLS: u64 = 100_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default = "five")]
    seeds: u64,
    cell: Map<String, Value>,
    #[serde(default)]
    grid: Map<String, Value>,
}

fn five() -> u64 {
    5
}

#[derive(Debug)]
pub(super) struct Spec {
    path: PathBuf,
    pub seeds: u64,
    cell: Value,
    /// Paths into the cell, in alphabetical order, with the values to try.
    grid: Vec<(String, Vec<Value>)>,
}

/// One combination.
#[derive(Debug)]
pub(super) struct Point {
    /// Paths with values, in the order of the grid.
    pub parameters: Vec<(String, Value)>,
    cell: Experiment,
}

impl Point {
    pub(super) fn cell(&self, seed: u64) -> Experiment {
        self.cell.with_seed(seed)
    }

    /// For display.
    pub(super) fn name(&self) -> String {
        let words: Vec<String> = self.parameters.iter().map(|(path, value)| format!("{path}={value}")).collect();
        if words.is_empty() { "the cell".into() } else { words.join(" ") }
    }
}

impl Spec {
    /// # Errors
    /// If the file cannot be read or is invalid: names the file, the key and the allowed values.
    pub(super) fn load(path: &Path) -> Result<Self> {
        let bad = |what: String| usage::error(format!("{}: {what}", path.display()));
        let text = file::read(path, "`midflight-lab sim sweep --help` shows one").map_err(usage::error)?;
        let file: File = file::parse(&text, path).map_err(usage::error)?;
        if !(1..=1_000).contains(&file.seeds) {
            return Err(bad(format!("seeds: {}; allowed: 1 to 1000", file.seeds)));
        }
        if file.cell.contains_key("seed") {
            return Err(bad("cell.seed: a sweep takes the seeds 1 to `seeds`; leave it out".into()));
        }
        let mut grid = Vec::new();
        for (key, values) in file.grid {
            match values {
                Value::Array(values) if !values.is_empty() => grid.push((key, values)),
                _ => return Err(bad(format!("grid.\"{key}\": must be a list of values"))),
            }
        }
        let spec = Self { path: path.to_owned(), seeds: file.seeds, cell: Value::Object(file.cell), grid };
        let cells = spec.grid.iter().try_fold(spec.seeds, |cells, (_, values)| cells.checked_mul(values.len() as u64));
        if cells.is_none_or(|cells| cells > MOST_CELLS) {
            return Err(bad(format!("more than {MOST_CELLS} cells: take fewer values or seeds")));
        }
        Ok(spec)
    }

    /// The last path changes fastest.
    pub(super) fn points(&self) -> Result<Vec<Point>> {
        let mut combinations: Vec<Vec<(String, Value)>> = vec![vec![]];
        for (path, values) in &self.grid {
            let with = |value: &Value, so_far: &[(String, Value)]| [so_far, &[(path.clone(), value.clone())]].concat();
            combinations = combinations.iter().flat_map(|so_far| values.iter().map(|v| with(v, so_far))).collect();
        }
        combinations.into_iter().map(|parameters| self.point(parameters)).collect()
    }

    fn point(&self, parameters: Vec<(String, Value)>) -> Result<Point> {
        let mut cell = self.cell.clone();
        for (path, value) in &parameters {
            let set = set(&mut cell, path, value.clone());
            set.map_err(|what| self.bad(&parameters, &format!("grid.\"{path}\": {what}")))?;
        }
        if let Value::Object(keys) = &mut cell {
            keys.insert("seed".into(), 1.into());
        }
        let cell: Experiment =
            serde_json::from_value(cell).map_err(|error| self.bad(&parameters, &format!("cell: {error}")))?;
        cell.check().map_err(|error| self.bad(&parameters, &format!("cell: {error}")))?;
        Ok(Point { parameters, cell })
    }

    fn bad(&self, parameters: &[(String, Value)], what: &str) -> anyhow::Error {
        let with: Vec<String> = parameters.iter().map(|(path, value)| format!("{path} = {value}")).collect();
        let with = if with.is_empty() { String::new() } else { format!(" (with {})", with.join(", ")) };
        usage::error(format!("{}: {what}{with}", self.path.display()))
    }
}

/// `path` has keys of tables and indices of lists, joined by dots.
fn set(cell: &mut Value, path: &str, value: Value) -> Result<(), String> {
    let mut place = cell;
    let steps: Vec<&str> = path.split('.').collect();
    for (depth, step) in steps.iter().enumerate() {
        let last = depth + 1 == steps.len();
        let so_far = steps[..=depth].join(".");
        place = match place {
            // A missing key may have a default. Parsing the cell later rejects unknown keys.
            Value::Object(keys) => match keys.entry((*step).to_owned()) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) if last => entry.insert(Value::Null),
                Entry::Vacant(_) => return Err(format!("there is no `{so_far}` in [cell]")),
            },
            Value::Array(entries) => {
                let count = entries.len();
                let entry = step.parse::<usize>().ok().and_then(|index| entries.get_mut(index));
                entry.ok_or(format!(
                    "there is no `{so_far}` in [cell]: that list has the entries 0 to {}",
                    count.max(1) - 1
                ))?
            }
            _ => return Err(format!("`{so_far}`: what is before `{step}` is neither a table nor a list")),
        };
    }
    *place = value;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CELL: &str = r#"
        seeds = 2
        [cell]
        warmup_ms = 0
        duration_ms = 100
        scheme = { name = "sparrow-cpp" }
        cluster = { groups = [{ nodes = 10, executors = 6 }] }
        load = { name = "sw1", utilisation = 0.8, work = "sleep" }
    "#;

    fn spec(grid: &str) -> Result<Spec> {
        let path = std::env::temp_dir().join(format!(
            "midflight-sweep-{}-{:?}.toml",
            std::process::id(),
            std::thread::current().id()
        ));
        std::fs::write(&path, format!("{CELL}\n{grid}")).unwrap();
        let spec = Spec::load(&path);
        std::fs::remove_file(&path).unwrap();
        spec
    }

    #[test]
    fn all_combinations_are_run_and_the_last_path_changes_fastest() {
        let spec = spec("[grid]\n\"load.utilisation\" = [0.5, 0.9]\n\"scheme.ratio\" = [1.05, 2, 3]").unwrap();
        let points = spec.points().unwrap();
        let names: Vec<String> = points.iter().map(Point::name).collect();
        assert_eq!(names.len(), 6);
        assert_eq!(names[0], "load.utilisation=0.5 scheme.ratio=1.05");
        assert_eq!(names[1], "load.utilisation=0.5 scheme.ratio=2");
        assert_eq!(names[5], "load.utilisation=0.9 scheme.ratio=3");
        assert_eq!(points[0].cell(7).seed(), 7);
    }

    #[test]
    fn list_entries_and_whole_tables_can_be_set() {
        let spec = spec(
            "[grid]\n\"cluster.groups.0.executors\" = [12]\nscheme = [{ name = \"midflight\" }, { name = \"spark\" }]",
        )
        .unwrap();
        let points = spec.points().unwrap();
        assert_eq!(points.len(), 2);
        let Experiment::Tasks(cell) = &points[1].cell else { panic!("a cell with a scheme") };
        assert_eq!(cell.cluster.executors(), 120);
    }

    #[test]
    fn without_a_grid_there_is_one_point() {
        assert_eq!(spec("").unwrap().points().unwrap().len(), 1);
    }
}
