//! The tools: p4c's back end for BMv2, and BMv2's simple_switch. None of them is needed to build or use Midflight.

use crate::{P4Error, Program};
use std::path::{Path, PathBuf};
use std::process::Command;

macro_rules! sources {
    ($($name:literal),* $(,)?) => { [$(($name, include_str!(concat!("../../../p4/", $name)))),*] };
}

/// The sources of all programs, by their path in `p4/`.
const SOURCES: &[(&str, &str)] = &sources![
    "answer.p4",
    "entry.p4",
    "forward.p4",
    "front.p4",
    "headers.p4",
    "metadata.p4",
    "published/entry.p4",
    "published/guard.p4",
    "published/kind.p4",
    "published/metadata.p4",
    "published/pointers.p4",
    "published/queue.p4",
    "published/route.p4",
    "roles.p4",
    "safe/accept.p4",
    "safe/count.p4",
    "safe/entry.p4",
    "safe/head.p4",
    "safe/metadata.p4",
    "safe/queue.p4",
    "safe/route.p4",
    "sizes.p4",
    "states.p4",
    "target/v1model.p4",
    "target/v1model_switch.p4",
    "tasks_published_v1model.p4",
    "tasks_safe_v1model.p4",
];

/// A change of a source, to see that tests notice it.
#[derive(Clone, Copy, Debug)]
pub struct Planted {
    /// The file's path in `p4/`.
    pub file: &'static str,
    /// A text that occurs in it.
    pub from: &'static str,
    /// What stands there instead.
    pub to: &'static str,
}

/// Writes the sources into a folder.
fn unpack(planted: &[Planted], folder: &Path) -> Result<(), P4Error> {
    let failed = |path: &Path| P4Error::io(format!("write {}", path.display()));
    for (name, text) in SOURCES {
        let path = folder.join(name);
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent).map_err(failed(parent))?;
        let mut text = (*text).to_owned();
        for &Planted { from, to, .. } in planted.iter().filter(|planted| planted.file == *name) {
            if !text.contains(from) {
                return Err(P4Error::Planted { file: name, text: from });
            }
            text = text.replace(from, to);
        }
        std::fs::write(&path, text).map_err(failed(&path))?;
    }
    Ok(())
}

/// A tool, as users name it.
#[derive(Clone, Copy, Debug)]
struct Tool {
    name: &'static str,
    variable: &'static str,
    repository: &'static str,
}

const COMPILER: Tool = Tool { name: "p4c-bm2-ss", variable: "P4C", repository: "github.com/p4lang/p4c" };
const SWITCH: Tool = Tool { name: "simple_switch", variable: "BMV2", repository: "github.com/p4lang/behavioral-model" };

impl Tool {
    /// The variable names the tool or its folder; else PATH has it.
    fn find(self) -> Result<PathBuf, P4Error> {
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
        let output = command.arg("-o").arg(&json).arg(source).output();
        let output = output.map_err(P4Error::io(format!("run {}", self.compiler.display())))?;
        if output.status.success() {
            return Ok(json);
        }
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(P4Error::Compiler { program: program.to_owned(), said })
    }
}
