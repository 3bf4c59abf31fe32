//! The tools: p4c's back ends for BMv2 and for Tofino, Tofino's assembler, and BMv2's simple_switch. Midflight builds and runs without
//! them.

use crate::run::{Ran, run};
use crate::sources::{Planted, unpack};
use crate::{P4Error, Program};
use std::fs::Permissions;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tempfile::TempDir;

/// A tool, by its name for users.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) variable: &'static str,
    pub(crate) repository: &'static str,
}

const COMPILER: Tool = Tool { name: "p4c-bm2-ss", variable: "P4C", repository: "github.com/p4lang/p4c" };
const SWITCH: Tool = Tool { name: "simple_switch", variable: "BMV2", repository: "github.com/p4lang/behavioral-model" };

impl Tool {
    /// The variable gives the tool or its folder; else it is in PATH.
    pub(crate) fn find(self) -> Result<PathBuf, P4Error> {
        let Self { name, variable, repository } = self;
        let missing = || P4Error::Missing { tool: name, variable, repository };
        let Some(named) = std::env::var_os(variable) else {
            let path = std::env::var_os("PATH").unwrap_or_default();
            return std::env::split_paths(&path)
                .map(|folder| folder.join(name))
                .find(|file| file.is_file())
                .ok_or_else(missing);
        };
        let named = PathBuf::from(named);
        let is_no_tool = || P4Error::Named { tool: name, variable, named: named.display().to_string() };
        [named.clone(), named.join(name)].into_iter().find(|file| file.is_file()).ok_or_else(is_no_tool)
    }
}

/// Timeouts of BMv2's tools, sufficient for a busy machine.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// p4c: takes seconds on a free machine, a minute if it was built without optimisation.
    pub compiling: Duration,
    /// simple_switch, until it listens for its controller.
    pub starting: Duration,
    /// simple_switch, for an answer to its controller.
    pub answering: Duration,
    /// simple_switch, for a frame that passes it.
    pub passing: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        let [compiling, starting, answering, passing] = [600, 10, 20, 10].map(Duration::from_secs);
        Self { compiling, starting, answering, passing }
    }
}

/// The tools that run a program in BMv2.
#[derive(Clone, Debug)]
pub struct Bmv2Tools {
    /// p4c's back end for BMv2.
    pub compiler: PathBuf,
    /// BMv2's simple_switch.
    pub switch: PathBuf,
    /// Timeouts of the tools.
    pub patience: Patience,
    /// Parent of temporary folders for compiled programs.
    pub scratch: PathBuf,
    /// Once this is set, a start in progress is cancelled.
    pub interrupted: Arc<AtomicBool>,
}

impl Bmv2Tools {
    /// Finds the tools.
    ///
    /// # Errors
    /// Names the first that is missing.
    pub fn find() -> Result<Self, P4Error> {
        Ok(Self::at(COMPILER.find()?, SWITCH.find()?))
    }

    /// Tools at these paths.
    #[must_use]
    pub fn at(compiler: PathBuf, switch: PathBuf) -> Self {
        let (patience, scratch, interrupted) = (Patience::default(), std::env::temp_dir(), Arc::default());
        Self { compiler, switch, patience, scratch, interrupted }
    }

    /// A folder for a program, removed on drop.
    pub(crate) fn folder(&self) -> Result<TempDir, P4Error> {
        let made = tempfile::Builder::new().permissions(Permissions::from_mode(0o700)).tempdir_in(&self.scratch);
        made.map_err(P4Error::io(format!("make a temporary folder in {}", self.scratch.display())))
    }

    /// Compiles a program for v1model with these macros, and returns the path of its JSON. All files are written into the folder `to`.
    ///
    /// # Errors
    /// The compiler's error message.
    pub fn compile(
        &self,
        program: Program,
        planted: &[Planted],
        macros: &[String],
        to: &Path,
    ) -> Result<PathBuf, P4Error> {
        unpack(planted, to)?;
        let program = program.name();
        let (source, json) = (to.join(format!("{program}_v1model.p4")), to.join(format!("{program}.json")));
        let mut command = Command::new(&self.compiler);
        command.arg("--std").arg("p4-16").args(macros.iter().map(|name| format!("-D{name}")));
        command.arg("-o").arg(&json).arg(source);
        let Ran { status, said } = run(&mut command, self.patience.compiling, &self.interrupted)?;
        if status != Some(ExitStatus::default()) {
            let how = match status {
                Some(status) => status.to_string(),
                None => format!("it hangs: it did not end within {:?}", self.patience.compiling),
            };
            // A killed or hanging compiler prints no reason.
            let says_why = status.is_some_and(|status| status.code().is_some()) && !said.is_empty();
            let said = if says_why { said } else { format!("{}: {how}\n{said}", self.compiler.display()) };
            let said = said.trim_end().to_owned();
            return Err(P4Error::Compiler { program: program.to_owned(), said });
        }
        let compiled = std::fs::read(&json).map_err(|error| match error.kind() {
            ErrorKind::NotFound => P4Error::Nothing { compiler: self.compiler.display().to_string() },
            _ => P4Error::io(format!("read {}", json.display()))(error),
        })?;
        // The compiler does not report a full disk.
        let whole = serde_json::from_slice::<serde::de::IgnoredAny>(&compiled);
        whole.map_err(|error| P4Error::Cut { path: json.display().to_string(), error })?;
        Ok(json)
    }
}
