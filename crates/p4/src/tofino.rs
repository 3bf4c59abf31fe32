//! The programs for TNA: compiled and assembled for Tofino 1, and what this takes of the switch. They were never run on one.

use crate::sources::{hash, unpack};
use crate::tools::Tool;
use crate::{P4Error, Program};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const COMPILER: Tool = Tool { name: "p4c-barefoot", variable: "P4C_TOFINO", repository: "github.com/p4lang/p4c" };
const ASSEMBLER: Tool = Tool { name: "bfas", variable: "BFAS", repository: "github.com/p4lang/p4c" };
/// Where a compiler that is not installed finds `tna.p4`.
const INCLUDE: &str = "TNA_INCLUDE";

/// What Tofino 1 has in all stages of a pipe.
const STAGES: u32 = 12;
const SRAM_BLOCKS: u32 = 960;
const TCAM_BLOCKS: u32 = 288;
/// Its containers of 8, 16 and 32 bits.
const CONTAINERS: [(u64, u32); 3] = [(8, 64), (16, 96), (32, 64)];

/// What the compiler and the assembler said of one program, as it stands in `p4/reports/`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// The program.
    pub program: String,
    /// A hash of its sources, in hexadecimal.
    pub sources: String,
    /// The compiler, by its own name.
    pub compiler: String,
    /// Entries of each of the four levels.
    pub entries_per_level: u32,
    /// Stages that hold something, of 12.
    pub stages: u32,
    /// SRAM blocks, of 960.
    pub sram_blocks: u32,
    /// TCAM blocks, of 288.
    pub tcam_blocks: u32,
    /// Containers of 8 bits (of 64), 16 bits (of 96) and 32 bits (of 64), tagalong ones not counted.
    pub containers: [u32; 3],
    /// Bytes of the assembled program.
    pub bytes: u64,
}

impl Report {
    /// The one that is kept.
    ///
    /// # Errors
    /// It is not readable as a report.
    pub fn kept(program: Program) -> Result<Self, P4Error> {
        let text = match program {
            Program::Safe => include_str!("../../../p4/reports/tasks_safe.toml"),
            Program::Published => include_str!("../../../p4/reports/tasks_published.toml"),
        };
        toml::from_str(text).map_err(|error| P4Error::Report { program: program.name(), what: error.to_string() })
    }

    /// Whether it is about these sources.
    #[must_use]
    pub fn is_of_these_sources(&self, program: Program) -> bool {
        self.sources == sources(program)
    }

    /// SRAM blocks, in percent of the switch's.
    #[must_use]
    pub fn sram_percent(&self) -> f64 {
        100.0 * f64::from(self.sram_blocks) / f64::from(SRAM_BLOCKS)
    }

    /// TCAM blocks, in percent of the switch's.
    #[must_use]
    pub fn tcam_percent(&self) -> f64 {
        100.0 * f64::from(self.tcam_blocks) / f64::from(TCAM_BLOCKS)
    }

    /// Bits of containers that hold something, in percent of the switch's.
    #[must_use]
    pub fn phv_percent(&self) -> f64 {
        let bits = |counts: [u32; 3]| {
            CONTAINERS.iter().zip(counts).map(|((bits, _), n)| *bits as f64 * f64::from(n)).sum::<f64>()
        };
        100.0 * bits(self.containers) / bits(CONTAINERS.map(|(_, number)| number))
    }

    /// The text of its file.
    ///
    /// # Errors
    /// None in practice: all that it has can be written.
    pub fn to_toml(&self) -> Result<String, P4Error> {
        let text = toml::to_string(self);
        let text = text.map_err(|error| P4Error::Report { program: "this program", what: error.to_string() })?;
        Ok(format!(
            "# Written by `midflight check p4 --report p4/reports`; a test says when the sources have changed since.\n{text}"
        ))
    }
}

fn sources(program: Program) -> String {
    format!("{:016x}", hash("tna", program.name()))
}

/// What compiles a program for Tofino 1.
#[derive(Clone, Debug)]
pub struct TofinoTools {
    /// p4c's back end for Tofino.
    pub compiler: PathBuf,
    /// The assembler.
    pub assembler: PathBuf,
}

impl TofinoTools {
    /// Finds them.
    ///
    /// # Errors
    /// Names the first that is missing.
    pub fn find() -> Result<Self, P4Error> {
        Ok(Self { compiler: COMPILER.find()?, assembler: ASSEMBLER.find()? })
    }

    /// Compiles and assembles a program as it is deployed. Takes one to ten minutes.
    ///
    /// # Errors
    /// What a tool says; also where the program needs more stages than there are.
    pub fn compile(&self, program: Program) -> Result<Report, P4Error> {
        let folder = tempfile::tempdir().map_err(P4Error::io("make a folder"))?;
        unpack(&[], folder.path())?;
        let name = format!("{}_tna", program.name());
        let (out, assembled) = (folder.path().join("out"), folder.path().join("assembled"));
        let logs = assembled.join("logs");
        std::fs::create_dir_all(&logs).map_err(P4Error::io(format!("make {}", logs.display())))?;

        let mut command = Command::new(&self.compiler);
        command.args(["--target", "tofino", "--arch", "tna", "-D__TARGET_TOFINO__=1"]);
        if let Some(include) = std::env::var_os(INCLUDE) {
            command.arg("-I").arg(include);
        }
        run(program, command.arg("-o").arg(&out).arg(folder.path().join(format!("{name}.p4"))))?;
        let assembly = out.join("pipe").join(format!("{name}.bfa"));
        run(program, Command::new(&self.assembler).arg("-o").arg(&assembled).arg(assembly))?;

        let bytes =
            std::fs::metadata(assembled.join("tofino.bin")).map_err(P4Error::io("see the assembled program"))?.len();
        let context = assembled.join("context.json");
        let context = std::fs::read(&context).map_err(P4Error::io(format!("read {}", context.display())))?;
        let unreadable = |what: String| P4Error::Report { program: program.name(), what };
        let context: Value = serde_json::from_slice(&context).map_err(|error| unreadable(error.to_string()))?;
        let used = Used::of(&context);
        if used.stages == 0 || used.stages > STAGES {
            return Err(unreadable(format!("{} stages, where there are {STAGES}", used.stages)));
        }
        Ok(Report {
            program: program.name().to_owned(),
            sources: sources(program),
            compiler: format!("p4c {}", context["compiler_version"].as_str().unwrap_or("of an unknown version")),
            entries_per_level: used.cells / 4,
            stages: used.stages,
            sram_blocks: used.sram,
            tcam_blocks: used.tcam,
            containers: used.containers,
            bytes,
        })
    }
}

/// Runs a tool; what it calls an error is the error.
fn run(program: Program, command: &mut Command) -> Result<(), P4Error> {
    let tool = Path::new(command.get_program()).display().to_string();
    let Output { status, stdout, stderr } = command.output().map_err(P4Error::io(format!("run {tool}")))?;
    if status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&stderr).into_owned() + &String::from_utf8_lossy(&stdout);
    let errors: Vec<&str> = said.lines().filter(|line| line.contains("rror")).collect();
    // What died said no such thing.
    let said = if errors.is_empty() { format!("{tool}: {status}\n{said}") } else { errors.join("\n") };
    Err(P4Error::Compiler { program: format!("{}_tna", program.name()), said })
}

/// What a program takes, as the assembler's description of it for drivers (`context.json`) says.
#[derive(Default)]
pub(crate) struct Used {
    pub(crate) stages: u32,
    pub(crate) sram: u32,
    pub(crate) tcam: u32,
    pub(crate) containers: [u32; 3],
    /// Cells of its largest registers.
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
        let cells = registers.filter_map(|table| table["size"].as_u64()).max().unwrap_or(0) as u32;
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

/// Containers of each width that hold something in some stage.
fn containers(allocation: &Value) -> [u32; 3] {
    let stages = allocation.as_array().into_iter().flatten();
    let all = stages.flat_map(|stage| ["ingress", "egress"].map(|pipeline| &stage[pipeline]));
    let all = all.filter_map(Value::as_array).flatten().filter(|container| container["container_type"] == "normal");
    let used: BTreeSet<(u64, u64)> = all
        .filter_map(|container| Some((container["word_bit_width"].as_u64()?, container["phv_number"].as_u64()?)))
        .collect();
    CONTAINERS.map(|(bits, _)| used.iter().filter(|(width, _)| *width == bits).count() as u32)
}
