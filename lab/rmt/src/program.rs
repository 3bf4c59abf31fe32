//! A program: data, built by a [`Builder`] and checked as a whole.

use crate::field::{At, Field, FieldInfo, Space, Width};
use crate::machine::{Packet, SLOTS};
use crate::register::{Cell, Register, RegisterInfo};
use crate::table::Table;
use crate::{Refusal, Report, Target, check, stages};
use std::fmt;
use std::panic::Location;

/// A pipeline: a packet passes ingress, then the traffic manager, then egress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pipeline {
    /// The first, which chooses the destination.
    Ingress,
    /// The second, after the traffic manager.
    Egress,
}

impl fmt::Display for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ingress => "ingress",
            Self::Egress => "egress",
        })
    }
}

/// A mirror session, as a handle into the program that declared it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Mirror(pub(crate) u16);

#[derive(Clone, Debug)]
pub(crate) struct MirrorInfo {
    pub(crate) name: String,
    /// The header field for the copy's kind, and its value.
    pub(crate) kind: (Field, u32),
    /// The copy's header fields, and the fields whose values at the end of the pipeline they get.
    pub(crate) carries: Vec<(Field, Field)>,
    pub(crate) at: At,
}

/// Upper bound of a packet kind's passes.
#[derive(Clone, Debug)]
pub struct Bound {
    /// The kind of packet.
    pub kind: String,
    /// Passes, including the first: a number, or the quantity that it depends on.
    pub passes: String,
    /// The reason for the bound, or for its absence.
    pub why: String,
}

/// Contents of a kind's packets when they recirculate.
#[derive(Clone, Debug)]
pub(crate) struct Carried {
    pub(crate) kind: String,
    /// The field and value that identify the kind.
    pub(crate) is: (Field, u32),
    pub(crate) fields: Vec<Field>,
    /// Bytes of headers that no table reads.
    pub(crate) besides: u32,
    /// Whether it has records after the first.
    pub(crate) records: bool,
}

/// A whole program, before its check (in the [`Builder`]) and after (in the [`Program`]).
#[derive(Clone, Debug, Default)]
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) headers: Vec<FieldInfo>,
    pub(crate) metadata: Vec<FieldInfo>,
    pub(crate) registers: Vec<RegisterInfo>,
    pub(crate) tables: Vec<Table>,
    pub(crate) mirrors: Vec<MirrorInfo>,
    /// Header fields that a packet carries more than once.
    pub(crate) record: Vec<Field>,
    pub(crate) bounds: Vec<Bound>,
    pub(crate) carried: Vec<Carried>,
    /// Names of a field's values, for readers.
    pub(crate) names: Vec<(Field, u32, &'static str)>,
}

impl Source {
    pub(crate) fn field(&self, field: Field) -> &FieldInfo {
        match field.space {
            Space::Header => &self.headers[usize::from(field.index)],
            Space::Metadata => &self.metadata[usize::from(field.index)],
        }
    }

    pub(crate) fn register(&self, register: Register) -> &RegisterInfo {
        &self.registers[usize::from(register.0)]
    }
}

/// Builds a program. Each declaration remembers its source line.
#[derive(Clone, Debug)]
pub struct Builder {
    source: Source,
}

impl Builder {
    /// An empty program.
    pub fn new(name: impl Into<String>) -> Self {
        Self { source: Source { name: name.into(), ..Source::default() } }
    }

    /// A field that travels with the packet. All packets carry all header fields; those that a kind of packet does not use are zero.
    pub fn header(&mut self, name: impl Into<String>, width: Width) -> Field {
        self.declare(Space::Header, name.into(), width, false)
    }

    /// A field that is zero at the start of each pipeline.
    pub fn metadata(&mut self, name: impl Into<String>, width: Width) -> Field {
        self.declare(Space::Metadata, name.into(), width, false)
    }

    /// Metadata that ingress passes to egress, in a header between the two.
    pub fn bridged(&mut self, name: impl Into<String>, width: Width) -> Field {
        self.declare(Space::Metadata, name.into(), width, true)
    }

    fn declare(&mut self, space: Space, name: String, width: Width, bridged: bool) -> Field {
        let Source { headers, metadata, .. } = &mut self.source;
        assert!(headers.len() + metadata.len() < SLOTS, "no switch has containers for {SLOTS} fields");
        let fields = if space == Space::Header { headers } else { metadata };
        let index = u16::try_from(fields.len()).expect("bounded above");
        fields.push(FieldInfo { name, width, bridged });
        Field { space, index, width }
    }

    /// Declares these header fields as the first of a list of records in a packet.
    pub fn record(&mut self, fields: &[Field]) {
        assert!(fields.iter().all(|f| f.space == Space::Header), "a record is made of header fields");
        self.source.record = fields.to_vec();
    }

    /// An array of `cells` cells, initially zero, in one stage (from 0) of one pipeline.
    #[track_caller]
    pub fn register(
        &mut self,
        pipeline: Pipeline,
        stage: usize,
        name: impl Into<String>,
        cell: Cell,
        cells: u32,
    ) -> Register {
        let id = u16::try_from(self.source.registers.len()).expect("fewer registers than stages would fit");
        let at = Location::caller();
        self.source.registers.push(RegisterInfo { name: name.into(), pipeline, stage, cell, cells, at });
        Register(id)
    }

    /// A mirror session: a copy in which `kind.0` is `kind.1`, each first field of `carries` has the value of the second at the end of the
    /// requesting pipeline, and all else is zero.
    #[track_caller]
    pub fn mirror(&mut self, name: impl Into<String>, kind: (Field, u32), carries: &[(Field, Field)]) -> Mirror {
        let mut copied = carries.iter().map(|(to, _)| to).chain([&kind.0]);
        assert!(copied.all(|f| f.space == Space::Header), "a copy has header fields only");
        assert!(
            carries.iter().all(|(to, from)| to.width == from.width),
            "a copy's fields are as wide as their origins"
        );
        let id = u16::try_from(self.source.mirrors.len()).expect("fewer mirrors than tables");
        let at = Location::caller();
        self.source.mirrors.push(MirrorInfo { name: name.into(), kind, carries: carries.to_vec(), at });
        Mirror(id)
    }

    /// A table in a stage (from 0) of a pipeline; its methods define the rest.
    #[track_caller]
    pub fn table(&mut self, pipeline: Pipeline, stage: usize, name: impl Into<String>) -> &mut Table {
        self.source.tables.push(Table::new(pipeline, stage, name.into(), Location::caller()));
        self.source.tables.last_mut().expect("just pushed")
    }

    /// Names a field's values, for the printed program.
    pub fn name_values(&mut self, field: Field, names: &[(u32, &'static str)]) {
        self.source.names.extend(names.iter().map(|&(value, name)| (field, value, name)));
    }

    /// States an upper bound of a packet kind's passes, if there is one. The build does not check it.
    pub fn bound(&mut self, kind: impl Into<String>, passes: impl fmt::Display, why: impl Into<String>) {
        self.source.bounds.push(Bound { kind: kind.into(), passes: passes.to_string(), why: why.into() });
    }

    /// States which header fields a packet needs when it recirculates with this value in this field, and how many bytes its headers have in
    /// addition; `records`: also those after the first. The build does not check it; a search can, as [`Program::forget`] zeroes all
    /// others.
    pub fn carries(
        &mut self,
        kind: impl Into<String>,
        is: (Field, u32),
        fields: &[Field],
        besides: u32,
        records: bool,
    ) {
        self.source.carried.push(Carried { kind: kind.into(), is, fields: fields.to_vec(), besides, records });
    }

    /// All tables so far, for planted defects.
    #[cfg(feature = "check")]
    pub(crate) fn tables(&mut self) -> &mut [Table] {
        &mut self.source.tables
    }

    /// Checks the program against the laws and a target's budgets.
    pub fn build(self, target: &Target) -> Result<Program, Refusal> {
        let report = check::check(&self.source, target)?;
        Ok(Program { source: self.source, report })
    }
}

/// A program that keeps the laws and fits its target.
#[derive(Clone, Debug)]
pub struct Program {
    pub(crate) source: Source,
    report: Report,
}

impl Program {
    /// Name of the program.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.source.name
    }

    /// The resources of the target that it uses.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Each table's function, stage by stage, as a table in Markdown.
    #[must_use]
    pub fn stages(&self) -> String {
        stages::print(&self.source)
    }

    /// The entries of the table with this name, in priority order, as a table in Markdown.
    #[must_use]
    pub fn entries(&self, table: &str) -> Option<String> {
        let table = self.source.tables.iter().find(|known| known.name == table)?;
        Some(stages::entries(&self.source, table))
    }

    /// The register with this name.
    #[must_use]
    pub fn register(&self, name: &str) -> Option<Register> {
        let index = self.source.registers.iter().position(|register| register.name == name)?;
        u16::try_from(index).ok().map(Register)
    }

    /// Zeroes the header fields that a recirculating packet of this kind does not need, if the program states which it needs.
    pub fn forget(&self, packet: &mut Packet) {
        let of = |carried: &&Carried| packet.get(carried.is.0) == carried.is.1;
        let Some(carried) = self.source.carried.iter().find(of) else { return };
        for (index, info) in self.source.headers.iter().enumerate() {
            let index = u16::try_from(index).unwrap_or(u16::MAX);
            let field = Field { space: Space::Header, index, width: info.width };
            if !carried.fields.contains(&field) {
                packet.set(field, 0);
            }
        }
    }

    /// The header field with this name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<Field> {
        let index = self.source.headers.iter().position(|field| field.name == name)?;
        let width = self.source.headers[index].width;
        Some(Field { space: Space::Header, index: u16::try_from(index).ok()?, width })
    }
}
