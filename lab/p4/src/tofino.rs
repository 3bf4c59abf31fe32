//! Compiles and assembles the programs for TNA and T2NA (Tofino 1 and 2), and reports the resources. They were never run on one.

use crate::run::{Ran, run};
use crate::sources::{hash, unpack};
use crate::tools::Tool;
use crate::{P4Error, Program};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const COMPILER: Tool = Tool { name: "p4c-barefoot", variable: "P4C_TOFINO", repository: "github.com/p4lang/p4c" };
const ASSEMBLER: Tool = Tool { name: "bfas", variable: "BFAS", repository: "github.com/p4lang/p4c" };
/// Folder of `tna.p4` and `t2na.p4`, for a compiler that is not installed.
const INCLUDE: &str = "TNA_INCLUDE";
/// More than a tool takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(3_600);
/// In the name of a register for part of a word's cells, between the word and the part's number.
const BANK: &str = "_bank_";

/// A switch to compile for, and its resources.
#[derive(Debug)]
pub struct Target {
    /// Name for users.
    pub name: &'static str,
    /// The compiler's name of its architecture, also in our files' names.
    pub arch: &'static str,
    /// Its name for the compiler and the assembler.
    target: &'static str,
    /// The value of `__TARGET_TOFINO__`.
    number: u32,
    /// Further arguments of the compiler.
    arguments: &'static [&'static str],
    /// Stages of a pipe.
    pub stages: u32,
    /// Containers of 8, 16 and 32 bits that an ALU may write in any way.
    pub containers: [u32; 3],
}

impl Target {
    /// The switch of the papers.
    pub const TOFINO_1: Self = Self {
        name: "Tofino 1",
        arch: "tna",
        target: "tofino",
        number: 1,
        arguments: &[],
        stages: 12,
        containers: [64, 96, 64],
    };

    /// Its successor. "CLOT" is off: keeping fields of these programs outside of containers causes an internal error of this compiler.
    pub const TOFINO_2: Self = Self {
        name: "Tofino 2",
        arch: "t2na",
        target: "tofino2",
        number: 2,
        arguments: &["--no-clot"],
        stages: 20,
        containers: [48, 72, 48],
    };

    /// All targets.
    pub const ALL: [&'static Self; 2] = [&Self::TOFINO_1, &Self::TOFINO_2];

    /// The message of a compiler that was built without this target. For a program it has many similar messages.
    fn unknown(&self) -> String {
        format!("Target '{}-{}' is not supported", self.target, self.arch)
    }

    /// SRAM blocks of a pipe.
    #[must_use]
    pub fn sram_blocks(&self) -> u32 {
        80 * self.stages
    }

    /// TCAM blocks of a pipe.
    #[must_use]
    pub fn tcam_blocks(&self) -> u32 {
        24 * self.stages
    }

    /// The name of a program's main file for this target, and of its report.
    #[must_use]
    pub fn file(&self, program: Program) -> String {
        format!("{}_{}", program.name(), self.arch)
    }
}

/// The widths of containers.
const WIDTHS: [u32; 3] = [8, 16, 32];

/// The compiler's and assembler's results for one program, as in `p4/reports/`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Name of the program.
    pub program: String,
    /// A hash of its sources, in hexadecimal.
    pub sources: String,
    /// The compiler's name and version.
    pub compiler: String,
    /// Entries of each of the four levels.
    pub entries_per_level: u32,
    /// Stages in use.
    pub stages: u32,
    /// SRAM blocks in use.
    pub sram_blocks: u32,
    /// TCAM blocks in use.
    pub tcam_blocks: u32,
    /// Containers of 8, 16 and 32 bits in use, of those that an ALU may write in any way.
    pub containers: [u32; 3],
    /// Bytes of the assembled program.
    pub bytes: u64,
}

impl Report {
    /// The stored report.
    ///
    /// # Errors
    /// If it is not readable as a report.
    pub fn kept(program: Program, target: &Target) -> Result<Self, P4Error> {
        let text = match (program, target.number) {
            (Program::Safe, 1) => include_str!("../../../p4/reports/tasks_safe_tna.toml"),
            (Program::Safe, _) => include_str!("../../../p4/reports/tasks_safe_t2na.toml"),
            (Program::Published, 1) => include_str!("../../../p4/reports/tasks_published_tna.toml"),
            (Program::Published, _) => include_str!("../../../p4/reports/tasks_published_t2na.toml"),
        };
        toml::from_str(text).map_err(|error| P4Error::Report { program: program.name(), what: error.to_string() })
    }

    /// Whether it belongs to these sources.
    #[must_use]
    pub fn is_of_these_sources(&self, program: Program, target: &Target) -> bool {
        self.sources == sources(program, target)
    }

    /// SRAM blocks, in percent of the switch's.
    #[must_use]
    pub fn sram_percent(&self, target: &Target) -> f64 {
        100.0 * f64::from(self.sram_blocks) / f64::from(target.sram_blocks())
    }

    /// TCAM blocks, in percent of the switch's.
    #[must_use]
    pub fn tcam_percent(&self, target: &Target) -> f64 {
        100.0 * f64::from(self.tcam_blocks) / f64::from(target.tcam_blocks())
    }

    /// Bits of containers in use, in percent of the switch's.
    #[must_use]
    pub fn phv_percent(&self, target: &Target) -> f64 {
        let bits =
            |counts: [u32; 3]| WIDTHS.iter().zip(counts).map(|(bits, n)| f64::from(*bits) * f64::from(n)).sum::<f64>();
        100.0 * bits(self.containers) / bits(target.containers)
    }

    /// The text of its file.
    ///
    /// # Errors
    /// None in practice: all its values can be written.
    pub fn to_toml(&self) -> Result<String, P4Error> {
        let text = toml::to_string(self);
        let text = text.map_err(|error| P4Error::Report { program: "this program", what: error.to_string() })?;
        Ok(format!(
            "# Written by `midflight-lab check p4 --report p4/reports`; a test says when the sources have changed since.\n{text}"
        ))
    }
}

fn sources(program: Program, target: &Target) -> String {
    format!("{:016x}", hash(&format!("{}.p4", target.file(program))))
}

/// The tools that compile a program for a Tofino.
#[derive(Clone, Debug)]
pub struct TofinoTools {
    /// p4c's back end for Tofino.
    pub compiler: PathBuf,
    /// The assembler.
    pub assembler: PathBuf,
    /// Timeout for each: they take one to ten minutes on a free machine.
    pub patience: Duration,
    /// Parent of temporary folders.
    pub scratch: PathBuf,
}

impl TofinoTools {
    /// Finds the tools.
    ///
    /// # Errors
    /// Names the first that is missing.
    pub fn find() -> Result<Self, P4Error> {
        let (compiler, assembler) = (COMPILER.find()?, ASSEMBLER.find()?);
        Ok(Self { compiler, assembler, patience: PATIENCE, scratch: std::env::temp_dir() })
    }

    /// Compiles and assembles a program as it is deployed. Takes one to ten minutes.
    ///
    /// # Errors
    /// A tool's error message; also if the program needs too many stages, and if the compiler does not support the target.
    pub fn compile(&self, program: Program, target: &Target) -> Result<Report, P4Error> {
        let folder = tempfile::Builder::new()
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(&self.scratch)
            .map_err(P4Error::io("make a temporary folder"))?;
        unpack(&[], folder.path())?;
        let name = target.file(program);
        let (out, assembled) = (folder.path().join("out"), folder.path().join("assembled"));
        let logs = assembled.join("logs");
        std::fs::create_dir_all(&logs).map_err(P4Error::io(format!("make {}", logs.display())))?;

        let mut command = Command::new(&self.compiler);
        command.args(["--target", target.target, "--arch", target.arch]).args(target.arguments);
        command.arg(format!("-D__TARGET_TOFINO__={}", target.number));
        if let Some(include) = std::env::var_os(INCLUDE) {
            command.arg("-I").arg(include);
        }
        let ran = self.run(&name, command.arg("-o").arg(&out).arg(folder.path().join(format!("{name}.p4"))));
        ran.map_err(|error| match error {
            P4Error::Compiler { said, .. } if said.contains(&target.unknown()) => {
                P4Error::NoTarget { target: target.name, said }
            }
            other => other,
        })?;
        let assembly = out.join("pipe").join(format!("{name}.bfa"));
        let mut command = Command::new(&self.assembler);
        self.run(&name, command.args(["--target", target.target, "-o"]).arg(&assembled).arg(assembly))?;

        let bytes = std::fs::metadata(assembled.join(format!("{}.bin", target.target)))
            .map_err(P4Error::io("see the assembled program"))?
            .len();
        let context = assembled.join("context.json");
        let context = std::fs::read(&context).map_err(P4Error::io(format!("read {}", context.display())))?;
        let unreadable = |what: String| P4Error::Report { program: program.name(), what };
        let context: Value = serde_json::from_slice(&context).map_err(|error| unreadable(error.to_string()))?;
        let used = Used::of(&context);
        if used.stages == 0 || used.stages > target.stages {
            return Err(unreadable(format!("{} stages, where there are {}", used.stages, target.stages)));
        }
        Ok(Report {
            program: program.name().to_owned(),
            sources: sources(program, target),
            compiler: format!("p4c {}", context["compiler_version"].as_str().unwrap_or("of an unknown version")),
            entries_per_level: used.cells / 4,
            stages: used.stages,
            sram_blocks: used.sram,
            tcam_blocks: used.tcam,
            containers: used.containers,
            bytes,
        })
    }

    /// Runs a tool, and returns its error messages as the error.
    fn run(&self, name: &str, command: &mut Command) -> Result<(), P4Error> {
        let tool = Path::new(command.get_program()).display().to_string();
        let Ran { status, said } = run(command, self.patience, &AtomicBool::new(false))?;
        if status.is_some_and(|status| status.success()) {
            return Ok(());
        }
        let how = match status {
            Some(status) => status.to_string(),
            None => format!("it hangs: it did not end within {:?}", self.patience),
        };
        let errors: Vec<&str> = said.lines().filter(|line| line.contains("rror")).collect();
        // A killed or hanging tool prints no such message.
        let said = if errors.is_empty() { format!("{tool}: {how}\n{said}") } else { errors.join("\n") };
        Err(P4Error::Compiler { program: name.to_owned(), said })
    }
}

/// A program's resources, from the assembler's description for drivers (`context.json`).
#[derive(Default)]
pub(crate) struct Used {
    pub(crate) stages: u32,
    pub(crate) sram: u32,
    pub(crate) tcam: u32,
    pub(crate) containers: [u32; 3],
    /// Cells of its largest words: the sum of their registers'.
    pub(crate) cells: u32,
}

impl Used {
    pub(crate) fn of(context: &Value) -> Self {
        let mut units = BTreeMap::new();
        let mut stages = BTreeSet::new();
        collect(&context["tables"], None, &mut stages, &mut units);
        let blocks = |kind: &str| units.get(kind).map_or(0, |blocks: &BTreeSet<_>| blocks.len() as u32);
        let registers = context["tables"].as_array().into_iter().flatten();
        let registers = registers.filter(|table| table["table_type"] == "stateful");
        let mut words: BTreeMap<&str, u64> = BTreeMap::new();
        for (name, size) in registers.filter_map(|table| Some((table["name"].as_str()?, table["size"].as_u64()?))) {
            *words.entry(name.split(BANK).next().unwrap_or(name)).or_default() += size;
        }
        let cells = words.into_values().max().unwrap_or(0) as u32;
        let stages = stages.last().map_or(0, |last| *last as u32 + 1);
        Self {
            stages,
            sram: blocks("sram"),
            tcam: blocks("tcam"),
            containers: containers(&context["phv_allocation"]),
            cells,
        }
    }
}

/// The stages that have a table, and the memory blocks of each kind, as stage and number.
fn collect(
    value: &Value,
    stage: Option<u64>,
    stages: &mut BTreeSet<u64>,
    units: &mut BTreeMap<String, BTreeSet<(u64, u64)>>,
) {
    let numbers = |value: &Value| -> Vec<u64> {
        match value {
            Value::Array(all) => all.iter().filter_map(Value::as_u64).collect(),
            one => one.as_u64().into_iter().collect(),
        }
    };
    match value {
        Value::Array(all) => all.iter().for_each(|value| collect(value, stage, stages, units)),
        Value::Object(fields) => {
            let stage = fields.get("stage_number").and_then(Value::as_u64).or(stage);
            stages.extend(stage);
            let memory = &value["memory_resource_allocation"];
            if let (Some(stage), Some(kind)) = (stage, memory["memory_type"].as_str()) {
                let blocks = memory["memory_units_and_vpns"].as_array().into_iter().flatten();
                let blocks = blocks.flat_map(|unit| numbers(&unit["memory_units"]));
                let blocks = blocks.chain(numbers(&memory["spare_bank_memory_unit"])).map(|block| (stage, block));
                units.entry(kind.to_owned()).or_default().extend(blocks);
            }
            fields.values().for_each(|value| collect(value, stage, stages, units));
        }
        _ => {}
    }
}

/// Containers of each width in use in some stage.
fn containers(allocation: &Value) -> [u32; 3] {
    let stages = allocation.as_array().into_iter().flatten();
    let all = stages.flat_map(|stage| ["ingress", "egress"].map(|pipeline| &stage[pipeline]));
    let all = all.filter_map(Value::as_array).flatten().filter(|container| container["container_type"] == "normal");
    let used: BTreeSet<(u64, u64)> = all
        .filter_map(|container| Some((container["word_bit_width"].as_u64()?, container["phv_number"].as_u64()?)))
        .collect();
    WIDTHS.map(|bits| used.iter().filter(|(width, _)| *width == u64::from(bits)).count() as u32)
}
