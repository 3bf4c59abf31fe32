//! The tools: p4c's back ends for BMv2 and for Tofino, Tofino's assembler, and BMv2's simple_switch. None of them is needed to build or
//! use Midflight.

use crate::process::ends_with_us;
use crate::sources::{Planted, unpack};
use crate::{P4Error, Program};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How long p4c may take for BMv2 on a busy machine: seconds on a free one.
const COMPILING_MAX: Duration = Duration::from_secs(180);

/// A tool, as users name it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) variable: &'static str,
    pub(crate) repository: &'static str,
}

const COMPILER: Tool = Tool { name: "p4c-bm2-ss", variable: "P4C", repository: "github.com/p4lang/p4c" };
const SWITCH: Tool = Tool { name: "simple_switch", variable: "BMV2", repository: "github.com/p4lang/behavioral-model" };

impl Tool {
    /// The variable names the tool or its folder; else PATH has it.
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

/// What runs a program in BMv2.
#[derive(Clone, Debug)]
pub struct Bmv2Tools {
    /// p4c's back end for BMv2.
    pub compiler: PathBuf,
    /// BMv2's simple_switch.
    pub switch: PathBuf,
}

impl Bmv2Tools {
    /// Finds them.
    ///
    /// # Errors
    /// Names the first that is missing.
    pub fn find() -> Result<Self, P4Error> {
        Ok(Self { compiler: COMPILER.find()?, switch: SWITCH.find()? })
    }

    /// Compiles a program for v1model, with these macros, and returns its JSON's file. All is written into the folder `to`.
    ///
    /// # Errors
    /// What the compiler says.
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
        let log = to.join("compiler.log");
        let said = File::create(&log).map_err(P4Error::io(format!("write {}", log.display())))?;
        command.arg("-o").arg(&json).arg(source).stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
        ends_with_us(&mut command);
        let child = command.spawn().map_err(P4Error::io(format!("run {}", self.compiler.display())))?;
        let status = wait(child).map_err(P4Error::io(format!("wait for {}", self.compiler.display())))?;
        if status != Some(ExitStatus::default()) {
            let said = std::fs::read(&log).map(|said| String::from_utf8_lossy(&said).trim().to_owned());
            // What died said nothing.
            let how = match status {
                Some(status) => status.to_string(),
                None => format!("it did not end within {} s", COMPILING_MAX.as_secs()),
            };
            let said = Some(said.unwrap_or_default()).filter(|said| !said.is_empty() && status.is_some());
            let said = said.unwrap_or_else(|| format!("{}: {how}", self.compiler.display()));
            return Err(P4Error::Compiler { program: program.to_owned(), said });
        }
        // The compiler does not say that a disk is full.
        let compiled = std::fs::read(&json).map_err(P4Error::io(format!("read {}", json.display())))?;
        let whole = serde_json::from_slice::<serde::de::IgnoredAny>(&compiled);
        whole.map_err(|error| P4Error::Cut { path: json.display().to_string(), error })?;
        Ok(json)
    }
}

/// How a compiler has ended; `None`: it did not in time, and was killed.
fn wait(mut child: Child) -> io::Result<Option<ExitStatus>> {
    let until = Instant::now() + COMPILING_MAX;
    loop {
        match child.try_wait()? {
            Some(status) => return Ok(Some(status)),
            None if Instant::now() > until => {
                child.kill()?;
                return child.wait().map(|_| None);
            }
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}
