//! Labs that are taken down when their command ends, even by a signal.

use crate::processes;
use anyhow::{Context, Result};
use midflight_net::{Lab, LabError, Options};
use midflight_terminal::usage::INTERRUPTED;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Once created, SIGINT, SIGTERM and SIGHUP take down the labs of [`LabGuard::up`], and end this process.
#[derive(Debug)]
pub(crate) struct LabGuard(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    interrupted: AtomicBool,
    /// Locked while one is set up.
    names: Mutex<Vec<String>>,
    directories: Mutex<Vec<PathBuf>>,
}

impl LabGuard {
    pub(crate) fn new() -> Result<Self> {
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("cannot handle signals")?;
        let shared = Arc::new(Shared::default());
        let ours = Arc::clone(&shared);
        let end = move || {
            if signals.forever().next().is_some() {
                ours.interrupted.store(true, SeqCst);
                // A process started after `take_down` would outlive the lab.
                processes::start_no_more();
                let code = ours.take_down();
                std::process::exit(code);
            }
        };
        std::thread::Builder::new().name("mf-signals".into()).spawn(end).context("cannot start a thread")?;
        Ok(Self(shared))
    }

    /// As [`Lab::up_unless`] a signal has come.
    pub(crate) fn up(&self, options: &Options) -> Result<Lab, LabError> {
        let mut names = self.0.names.lock().unwrap_or_else(PoisonError::into_inner);
        let lab = Lab::up_unless(options, &self.0.interrupted)?;
        names.push(lab.name().to_owned());
        Ok(lab)
    }

    /// Also removes this directory on a signal.
    pub(crate) fn remove_too(&self, directory: &Path) {
        self.0.directories.lock().unwrap_or_else(PoisonError::into_inner).push(directory.into());
    }
}

/// Fails after a signal, for a study that takes its lab down itself.
pub(crate) fn unless(interrupted: &AtomicBool, lab: &Lab) -> Result<(), LabError> {
    if interrupted.load(SeqCst) { Err(LabError::Interrupted(lab.name().to_owned())) } else { Ok(()) }
}

impl LabGuard {
    /// Exits instead if a signal ended the work.
    pub(crate) fn unless_interrupted<T>(&self, result: Result<T>) -> Result<T> {
        if result.is_err() && self.0.interrupted.load(SeqCst) {
            std::thread::sleep(Duration::MAX);
        }
        result
    }
}

impl Shared {
    fn take_down(&self) -> i32 {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let mut code = INTERRUPTED;
        for name in names.iter() {
            match Lab::remove(name) {
                Ok(()) | Err(LabError::NotFound(_)) => {} // another process removed it
                Err(error) => {
                    eprintln!("error: lab {name} was not taken down: {error}");
                    code = midflight_terminal::usage::FAILURE;
                }
            }
        }
        for directory in self.directories.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            // Leftovers stay in the temporary directory.
            let _ = std::fs::remove_dir_all(directory);
        }
        i32::from(code)
    }
}
