//! The target's resources that a program uses.

use crate::action::Effect;
use crate::check::{Reads, table_reads, table_writes};
use crate::field::{At, Field, Space, Width};
use crate::program::{Bound, Carried, Pipeline, Source};
use crate::refusal::{Place, Resource};
use crate::register::{Cell, RegisterInfo};
use crate::table::{KeyKind, Match, Table};
use crate::{Refusal, Target};
use std::collections::BTreeSet;
use std::fmt;

/// Entries and bits of a TCAM block.
const TCAM: (u64, u64) = (512, 44);

/// Use of a physical stage by ingress and egress together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StageUse {
    /// Logical tables of ingress.
    pub ingress_tables: u32,
    /// Logical tables of egress.
    pub egress_tables: u32,
    /// Instruction words.
    pub instructions: u32,
    /// Stateful ALUs: one for each register.
    pub stateful_alus: u32,
    /// SRAM blocks, of registers and tables.
    pub sram_blocks: u32,
    /// Map RAMs: one for each block of a register.
    pub map_rams: u32,
    /// TCAM blocks.
    pub tcam_blocks: u32,
    /// TCAM entries, including those of split ranges.
    pub tcam_entries: u32,
}

/// A register and its memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisterUse {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub place: Place,
    /// Contents of a cell.
    pub cell: Cell,
    /// Number of cells.
    pub cells: u32,
    /// SRAM blocks, including the spare one that lets a register be written while it is read.
    pub blocks: u32,
}

/// Resources of a program.
#[derive(Clone, Debug)]
pub struct Report {
    /// The program's name.
    pub program: String,
    /// The target of the check.
    pub target: Target,
    /// Physical stages, from 0 to the last used.
    pub stages: Vec<StageUse>,
    /// Stages of ingress and of egress, from 0 to the last used.
    pub depth: [usize; 2],
    /// Registers, in declaration order.
    pub registers: Vec<RegisterUse>,
    /// Containers of 8, 16 and 32 bits, in ingress and in egress. A field that both use takes one in each.
    pub containers: [[u32; 3]; 2],
    /// Bytes between ingress and egress, before each packet.
    pub bridged_bytes: u32,
    /// Bytes of header that each packet carries at most, without records after the first.
    pub header_bytes: u32,
    /// The program's stated bounds of passes.
    pub bounds: Vec<Bound>,
    /// Contents of recirculating packets, if stated by the program.
    pub carried: Vec<CarriedUse>,
}

/// The bytes of a recirculating packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CarriedUse {
    /// Its kind.
    pub kind: String,
    /// Header fields of the program, including the first record's.
    pub fields: u32,
    /// Other bytes of the packet.
    pub besides: u32,
    /// Bytes of each record after the first; 0: it has no records.
    pub record: u32,
}

impl Report {
    /// Tables of both pipelines.
    #[must_use]
    pub fn tables(&self) -> u32 {
        self.stages.iter().map(|stage| stage.ingress_tables + stage.egress_tables).sum()
    }

    /// SRAM blocks of all stages.
    #[must_use]
    pub fn sram_blocks(&self) -> u32 {
        self.stages.iter().map(|stage| stage.sram_blocks).sum()
    }

    /// Share of the target's SRAM and TCAM blocks in use.
    #[must_use]
    pub fn memory_share(&self) -> [f64; 2] {
        let stages = self.target.stages as f64;
        let tcam_blocks: u32 = self.stages.iter().map(|stage| stage.tcam_blocks).sum();
        let share = |used: u32, of: u32| f64::from(used) / (f64::from(of) * stages);
        [share(self.sram_blocks(), self.target.sram_blocks), share(tcam_blocks, self.target.tcam_blocks)]
    }

    /// Adds up the resources, and refuses the program at the first exceeded budget.
    pub(crate) fn draw(source: &Source, target: &Target) -> Result<Self, Refusal> {
        let header_bytes = source.headers.iter().map(|field| field.width.bits() / 8).sum();
        let mut report = Self {
            program: source.name.clone(),
            target: target.clone(),
            stages: Vec::new(),
            depth: [0; 2],
            registers: Vec::new(),
            containers: [[0; 3]; 2],
            bridged_bytes: 0,
            header_bytes,
            bounds: source.bounds.clone(),
            carried: source.carried.iter().map(|carried| carried_use(source, carried)).collect(),
        };
        source.registers.iter().try_for_each(|register| report.register(register))?;
        source.tables.iter().try_for_each(|table| report.table(source, table))?;
        report.header_vector(source)?;
        Ok(report)
    }

    /// Extends the list of stages up to this one, if it exists.
    fn enter(&mut self, what: &str, place: Place, at: At) -> Result<&mut StageUse, Refusal> {
        let used = place.stage + 1;
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        over(what, place, at, Resource::Stages, number(used), number(self.target.stages))?;
        let depth = &mut self.depth[place.pipeline as usize];
        *depth = used.max(*depth);
        if self.stages.len() < used {
            self.stages.resize(used, StageUse::default());
        }
        Ok(&mut self.stages[place.stage])
    }

    fn register(&mut self, register: &RegisterInfo) -> Result<(), Refusal> {
        let RegisterInfo { name, pipeline, stage, cell, cells, at } = register.clone();
        let place = Place { pipeline, stage };
        let bits = u64::from(cells) * u64::from(cell.word_bits() * cell.words());
        let blocks = blocks(bits) + 1;
        let (target, what) = (self.target.clone(), format!("register {name}"));
        over(&what, place, at, Resource::RegisterBlocks, blocks, target.register_blocks)?;
        let stage = self.enter(&what, place, at)?;
        stage.stateful_alus += 1;
        stage.sram_blocks += blocks;
        stage.map_rams += blocks;
        over(&what, place, at, Resource::StatefulAlus, stage.stateful_alus, target.stateful_alus)?;
        over(&what, place, at, Resource::SramBlocks, stage.sram_blocks, target.sram_blocks)?;
        over(&what, place, at, Resource::MapRams, stage.map_rams, target.map_rams)?;
        let beside = self.registers.iter().filter(|beside| beside.place.stage == place.stage);
        let all: Vec<u32> = beside.map(|beside| beside.blocks).chain([blocks]).collect();
        if !fit(&all, &mut target.parts()) {
            let (used, limit) = (all.iter().sum(), target.map_rams);
            return Err(Refusal::Apart { what, place, at, parts: target.memory_parts, used, limit });
        }
        self.registers.push(RegisterUse { name, place, cell, cells, blocks });
        Ok(())
    }

    fn table(&mut self, source: &Source, table: &Table) -> Result<(), Refusal> {
        let place = Place { pipeline: table.pipeline, stage: table.stage };
        let (target, what, at) = (self.target.clone(), format!("table {}", table.name), table.at);
        let stage = self.enter(&what, place, at)?;
        match table.pipeline {
            Pipeline::Ingress => stage.ingress_tables += 1,
            Pipeline::Egress => stage.egress_tables += 1,
        }
        let memory = Memory::of(table);
        stage.instructions += u32::try_from(table.actions.len()).unwrap_or(u32::MAX);
        stage.sram_blocks += memory.sram_blocks;
        stage.tcam_blocks += memory.tcam_blocks;
        stage.tcam_entries += memory.tcam_entries;
        let tables = stage.ingress_tables + stage.egress_tables;
        over(&what, place, at, Resource::Tables, tables, target.tables)?;
        over(&what, place, at, Resource::Instructions, stage.instructions, target.instructions)?;
        over(&what, place, at, Resource::SramBlocks, stage.sram_blocks, target.sram_blocks)?;
        over(&what, place, at, Resource::TcamBlocks, stage.tcam_blocks, target.tcam_blocks)?;
        for (effect, at) in table.actions.iter().flat_map(|action| &action.effects) {
            let Effect::Mirror(mirror) = effect else { continue };
            let mirror = &source.mirrors[usize::from(mirror.0)];
            let carried = mirror.carries.iter().map(|(to, _)| to.width.bits()).sum::<u32>();
            let bytes = (carried + mirror.kind.0.width.bits()) / 8;
            let what = format!("mirror {} (declared at {})", mirror.name, mirror.at);
            over(&what, place, at, Resource::MirrorBytes, bytes, target.mirror_bytes)?;
        }
        Ok(())
    }

    /// Counts containers: a field takes one in each pipeline that uses it.
    fn header_vector(&mut self, source: &Source) -> Result<(), Refusal> {
        let mut seen = BTreeSet::new();
        for table in &source.tables {
            let place = Place { pipeline: table.pipeline, stage: table.stage };
            for (field, at) in touched(source, table) {
                if !seen.insert((table.pipeline, field)) {
                    continue;
                }
                let info = source.field(field);
                self.container(&info.name, field.width, place, at)?;
                let bridged = field.space == Space::Metadata && info.bridged;
                if bridged && !seen.contains(&(other(table.pipeline), field)) {
                    self.bridged_bytes += field.width.bits() / 8;
                }
            }
        }
        Ok(())
    }

    fn container(&mut self, name: &str, width: Width, place: Place, at: At) -> Result<(), Refusal> {
        let (size, resource) = match width {
            Width::W8 => (0, Resource::Containers8),
            Width::W16 => (1, Resource::Containers16),
            Width::W32 => (2, Resource::Containers32),
        };
        self.containers[place.pipeline as usize][size] += 1;
        let used = self.containers[0][size] + self.containers[1][size];
        over(&format!("field {name}"), place, at, resource, used, self.target.containers[size])
    }
}

fn carried_use(source: &Source, carried: &Carried) -> CarriedUse {
    let bytes = |fields: &[Field]| fields.iter().map(|field| field.width.bits() / 8).sum();
    let has_records = source.record.iter().any(|field| carried.fields.contains(field));
    CarriedUse {
        kind: carried.kind.clone(),
        fields: bytes(&carried.fields),
        besides: carried.besides,
        record: if has_records && carried.records { bytes(&source.record) } else { 0 },
    }
}

fn other(pipeline: Pipeline) -> Pipeline {
    match pipeline {
        Pipeline::Ingress => Pipeline::Egress,
        Pipeline::Egress => Pipeline::Ingress,
    }
}

fn over(what: &str, place: Place, at: At, resource: Resource, used: u32, limit: u32) -> Result<(), Refusal> {
    if used <= limit {
        Ok(())
    } else {
        Err(Refusal::OverBudget { what: what.into(), place, at, resource, used, limit })
    }
}

/// Whether these registers fit into parts with these stateful ALUs and map RAMs, each register in one part.
fn fit(blocks: &[u32], parts: &mut [(u32, u32)]) -> bool {
    let Some((&first, others)) = blocks.split_first() else { return true };
    (0..parts.len()).any(|at| {
        let (alus, rams) = parts[at];
        if alus == 0 || rams < first {
            return false;
        }
        parts[at] = (alus - 1, rams - first);
        let found = fit(others, parts);
        parts[at] = (alus, rams);
        found
    })
}

fn blocks(bits: u64) -> u32 {
    u32::try_from(bits.div_ceil(u64::from(Target::SRAM_BLOCK_BITS))).unwrap_or(u32::MAX)
}

/// All fields that a table needs in the header vector.
fn touched(source: &Source, table: &Table) -> Reads {
    let mut fields = [table_reads(table), table_writes(table)].concat();
    for (effect, at) in table.actions.iter().flat_map(|action| &action.effects) {
        match effect {
            Effect::Mirror(mirror) => {
                let carries = &source.mirrors[usize::from(mirror.0)].carries;
                fields.extend(carries.iter().map(|&(_, from)| (from, *at)));
            }
            // A record can be removed only if it was parsed.
            Effect::Pop => fields.extend(source.record.iter().map(|&field: &Field| (field, *at))),
            Effect::Forward(_) | Effect::Drop(_) => {}
        }
    }
    fields
}

struct Memory {
    sram_blocks: u32,
    tcam_blocks: u32,
    tcam_entries: u32,
}

impl Memory {
    fn of(table: &Table) -> Self {
        if table.keys.is_empty() {
            return Self { sram_blocks: 0, tcam_blocks: 0, tcam_entries: 0 };
        }
        let bits = |key: &crate::table::Key| u64::from(key.field.width.bits());
        let arguments = table.actions.iter().map(crate::Action::arguments).max().unwrap_or(0) as u64 * 32;
        let entries = table.entries.len().max(table.room) as u64;
        if table.keys.iter().all(|key| key.kind == KeyKind::Exact) {
            let width: u64 = table.keys.iter().map(bits).sum();
            return Self { sram_blocks: blocks(entries * (width + arguments)).max(1), tcam_blocks: 0, tcam_entries: 0 };
        }
        // A nibble of a range takes 16 bits, one for each of its values: four times the room of a ternary one, as two entries of twice the
        // width. The entry is split if the range begins or ends within a nibble.
        let width: u64 = table.keys.iter().map(|key| bits(key) * if key.kind == KeyKind::Range { 2 } else { 1 }).sum();
        let tcam_entries: u64 = table.entries.iter().map(|entry| split(table, &entry.matches)).sum();
        let number = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        Self {
            sram_blocks: blocks(entries * arguments) + 1,
            tcam_blocks: number(width.div_ceil(TCAM.1) * tcam_entries.div_ceil(TCAM.0)),
            tcam_entries: number(tcam_entries),
        }
    }
}

/// TCAM entries for one entry of a table: a range over n nibbles takes at most 2 n − 1.
fn split(table: &Table, matches: &[Match]) -> u64 {
    let of = |(key, wanted): (&crate::table::Key, &Match)| match wanted {
        Match::Between(..) => u64::from(key.field.width.bits() / 4) * 2 - 1,
        Match::Masked { .. } => 1,
    };
    table.keys.iter().zip(matches).map(of).product()
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { target, depth, .. } = self;
        let [ingress, egress] = depth;
        writeln!(
            f,
            "{} on {}: {ingress} stages of ingress, {egress} of egress, of {}; both pipelines share all that a stage has.",
            self.program, target.name, target.stages
        )?;
        writeln!(
            f,
            "\n| stage | tables, ingress + egress | instructions | stateful ALUs | SRAM blocks | map RAMs | TCAM blocks (entries) |"
        )?;
        writeln!(f, "|---:|---:|---:|---:|---:|---:|---:|")?;
        for (number, stage) in self.stages.iter().enumerate() {
            let StageUse { ingress_tables, egress_tables, instructions, stateful_alus, .. } = stage;
            let StageUse { sram_blocks, map_rams, tcam_blocks, tcam_entries, .. } = stage;
            write!(f, "| {number} | {ingress_tables} + {egress_tables} | {instructions} | {stateful_alus} ")?;
            writeln!(f, "| {sram_blocks} | {map_rams} | {tcam_blocks} ({tcam_entries}) |")?;
        }
        write!(f, "| of | {} | {} | {} ", target.tables, target.instructions, target.stateful_alus)?;
        writeln!(f, "| {} | {} | {} |", target.sram_blocks, target.map_rams, target.tcam_blocks)?;
        writeln!(f, "\n| register | where | cell | cells | SRAM blocks |\n|---|---|---:|---:|---:|")?;
        for RegisterUse { name, place, cell, cells, blocks } in &self.registers {
            let words = if *cell == Cell::Pair { "2 × " } else { "" };
            writeln!(f, "| {name} | {place} | {words}{} | {cells} | {blocks} |", cell.word_bits())?;
        }
        let [[a, b, c], [x, y, z]] = self.containers;
        let [l, m, n] = target.containers;
        writeln!(f, "\n| containers of | ingress | egress | there are |\n|---:|---:|---:|---:|")?;
        writeln!(f, "| 8 bits | {a} | {x} | {l} |\n| 16 bits | {b} | {y} | {m} |\n| 32 bits | {c} | {z} | {n} |")?;
        writeln!(f, "\nHeader: {} bytes; bridged: {} bytes.", self.header_bytes, self.bridged_bytes)?;
        if !self.bounds.is_empty() {
            writeln!(f, "\n| packet | passes at most | because |\n|---|---:|---|")?;
        }
        self.bounds.iter().try_for_each(|Bound { kind, passes, why }| writeln!(f, "| {kind} | {passes} | {why} |"))?;
        if !self.carried.is_empty() {
            let head =
                "\n| recirculates | header fields | other bytes of its headers | bytes in all |\n|---|---:|---:|---:|";
            writeln!(f, "{head}")?;
        }
        self.carried.iter().try_for_each(|CarriedUse { kind, fields, besides, record }| {
            let records =
                if *record > 0 { format!(", and {record} for each record behind the first") } else { String::new() };
            writeln!(f, "| {kind} | {fields} | {besides} | {}{records} |", fields + besides)
        })
    }
}
