//! Versions of the sources that give the same results, so that results from before a harmless change stay valid. `midflight-lab sim figure
//! --recheck` verifies this; `equal.toml`, next to the packs, records it.

use super::store::write_whole;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::path::Path;

const FILE: &str = "equal.toml";

const HEAD: &str = "\
# Results of the version `old` of the sources are those of `new`: so many cells of them were run again with it, and gave the same.
# `midflight-lab sim figure --recheck` writes this (docs/figures.md, Cells).

";

/// Two versions with the same results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Equal {
    /// Version of the sources that computed the results.
    pub old: String,
    pub new: String,
    /// Recomputed results.
    pub cells: usize,
    pub of: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Equals {
    #[serde(default)]
    equal: Vec<Equal>,
}

impl Equals {
    /// Empty without a file.
    ///
    /// # Errors
    /// If it cannot be read, or is damaged.
    pub(super) fn read(directory: &Path) -> Result<Self> {
        let path = directory.join(FILE);
        match midflight_files::read_text(&path, 16 * midflight_files::MIB) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            read => {
                let text = read.with_context(|| format!("cannot read {}", path.display()))?;
                toml::from_str(&text).with_context(|| {
                    format!(
                        "{} is damaged: repair it, or delete it, and what it names is computed again",
                        path.display()
                    )
                })
            }
        }
    }

    /// # Errors
    /// If it cannot be written; the file then stays unchanged.
    pub(super) fn add(&mut self, directory: &Path, equal: Equal) -> Result<()> {
        self.equal.retain(|known| (&known.old, &known.new) != (&equal.old, &equal.new));
        self.equal.push(equal);
        write_whole(&directory.join(FILE), format!("{HEAD}{}", toml::to_string(self)?).as_bytes())
    }

    /// Whether a chain of pairs leads from version `old` to `new`.
    pub(super) fn leads(&self, old: &str, new: &str) -> bool {
        let mut reached = vec![old];
        let mut next = 0;
        while let Some(&version) = reached.get(next) {
            if version == new {
                return true;
            }
            for equal in self.equal.iter().filter(|equal| equal.old == version) {
                if !reached.contains(&equal.new.as_str()) {
                    reached.push(&equal.new);
                }
            }
            next += 1;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn equals(pairs: &[(&str, &str)]) -> Equals {
        let equal = |&(old, new): &(&str, &str)| Equal { old: old.into(), new: new.into(), cells: 3, of: 7 };
        Equals { equal: pairs.iter().map(equal).collect() }
    }

    #[test]
    fn equal_versions_lead_from_old_to_new_and_not_back() {
        let equals = equals(&[("b", "c"), ("a", "b"), ("c", "a"), ("x", "y")]);
        assert!(equals.leads("a", "c") && equals.leads("y", "y") && equals.leads("x", "y"));
        assert!(!equals.leads("y", "x") && !equals.leads("a", "y"));
        assert!(!Equals::default().leads("a", "b"));
    }

    #[test]
    fn what_was_written_is_read_and_a_damaged_file_is_an_error_that_names_it() {
        let store = super::super::store::tests::store("equal");
        let directory = store.directory();
        assert_eq!(Equals::read(directory).unwrap(), Equals::default());
        let mut written = Equals::default();
        for cells in [1, 2] {
            written.add(directory, Equal { old: "a".into(), new: "b".into(), cells, of: 7 }).unwrap();
        }
        assert_eq!((Equals::read(directory).unwrap(), written.equal.len()), (written.clone(), 1));
        std::fs::write(directory.join(FILE), "[[equal]]\nold = 1\n").unwrap();
        let said = format!("{:#}", Equals::read(directory).unwrap_err());
        assert!(said.contains(FILE) && said.contains("damaged"), "{said}");
        std::fs::remove_dir_all(directory).unwrap();
    }
}
