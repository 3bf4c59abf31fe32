//! Real traces that cells sample from. They are not part of Midflight.

use anyhow::Result;
use midflight_papers::figures::{TRACES, TraceFile};
use midflight_terminal::usage;
use std::path::{Path, PathBuf};

/// The default folder, also for cells in separate processes.
pub(crate) const VARIABLE: &str = "MIDFLIGHT_TRACES";

/// `asked`, else from the environment.
///
/// # Errors
/// If `asked` is not a folder.
pub(crate) fn folder(asked: Option<&Path>) -> Result<Option<PathBuf>> {
    let Some(asked) = asked else { return Ok(of_the_environment()) };
    if asked.is_dir() {
        return Ok(Some(asked.to_owned()));
    }
    Err(usage::error(format!("--traces {}: no such folder", asked.display())))
}

fn of_the_environment() -> Option<PathBuf> {
    std::env::var_os(VARIABLE).filter(|folder| !folder.is_empty()).map(PathBuf::from)
}

/// Which traces have columns in the figures.
#[derive(Debug)]
pub(super) struct Columns {
    pub folder: Option<PathBuf>,
    pub present: Vec<TraceFile>,
}

impl Columns {
    pub(super) fn in_folder(folder: Option<PathBuf>) -> Self {
        let is_there = |trace: &TraceFile| folder.as_deref().is_some_and(|folder| trace.is_in(folder));
        let present = TRACES.into_iter().filter(is_there).collect();
        Self { folder, present }
    }

    /// What is missing, and how to get it.
    pub(super) fn absent(&self) -> Option<String> {
        let absent: Vec<&TraceFile> = TRACES.iter().filter(|trace| !self.present.contains(trace)).collect();
        if absent.is_empty() {
            return None;
        }
        let list = |name: fn(&TraceFile) -> &str| absent.iter().map(|trace| name(trace)).collect::<Vec<_>>().join(", ");
        let place = self.folder.as_ref().map_or_else(|| "no folder is given".into(), |it| it.display().to_string());
        Some(format!(
            "LEFT OUT: no columns for the real traces {}. Their files, {}, are no part of Midflight and were not found ({place}): --traces or \
             {VARIABLE} says where they are.",
            list(|trace| trace.name),
            list(|trace| trace.file),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_absent_is_named_with_what_to_do() {
        let none = Columns::in_folder(None);
        assert!(none.present.is_empty());
        let said = none.absent().unwrap();
        for part in ["LEFT OUT", "google-sub, google-like, alibaba", "google-sub.tr", "--traces", "MIDFLIGHT_TRACES"] {
            assert!(said.contains(part), "no {part} in {said}");
        }
        let folder = std::env::temp_dir().join(format!("midflight-columns-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("google-sub.tr"), "").unwrap();
        let one = Columns::in_folder(Some(folder.clone()));
        assert_eq!(one.present, [TRACES[0]]);
        assert!(one.absent().unwrap().contains("real traces google-like, alibaba. "), "{:?}", one.absent());
        TRACES.iter().for_each(|trace| std::fs::write(folder.join(trace.file), "").unwrap());
        assert_eq!(Columns::in_folder(Some(folder.clone())).absent(), None);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_folder_that_is_none_is_named() {
        assert!(folder(Some(Path::new("/nonexistent"))).unwrap_err().to_string().contains("/nonexistent"));
    }
}
