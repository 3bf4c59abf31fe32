//! Labs that live as long as a command: they are taken down when they are dropped, and on a signal.

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

/// From now on SIGINT, SIGTERM and SIGHUP take down what [`LabGuard::up`] has set up, and end this process.
#[derive(Debug)]
pub(crate) struct LabGuard(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    interrupted: AtomicBool,
    /// The labs that are up; locked while one is being set up.
    names: Mutex<Vec<String>>,
    /// What goes with them.
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
                // One that is started behind the back of `take_down` would outlive the lab.
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

    /// On a signal, removes this directory too.
    pub(crate) fn remove_too(&self, directory: &Path) {
        self.0.directories.lock().unwrap_or_else(PoisonError::into_inner).push(directory.into());
    }
}

/// An error once a signal asks a study that tends its lab itself to end.
pub(crate) fn unless(interrupted: &AtomicBool, lab: &Lab) -> Result<(), LabError> {
    if interrupted.load(SeqCst) { Err(LabError::Interrupted(lab.name().to_owned())) } else { Ok(()) }
}

impl LabGuard {
    /// Passes a result on. If a signal has ended the work, the process ends here instead.
    pub(crate) fn unless_interrupted<T>(&self, result: Result<T>) -> Result<T> {
        if result.is_err() && self.0.interrupted.load(SeqCst) {
            std::thread::sleep(Duration::MAX);
        }
        result
    }
}

impl Shared {
    /// The exit code.
    fn take_down(&self) -> i32 {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let mut code = INTERRUPTED;
        for name in names.iter() {
            match Lab::remove(name) {
                Ok(()) | Err(LabError::NotFound(_)) => {} // the latter is gone already
                Err(error) => {
                    eprintln!("error: lab {name} was not taken down: {error}");
                    code = midflight_terminal::usage::FAILURE;
                }
            }
        }
        for directory in self.directories.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            // What cannot be removed stays in the temporary directory.
            let _ = std::fs::remove_dir_all(directory);
        }
        i32::from(code)
    }
}
