//! Why a program is refused.

use crate::field::At;
use crate::program::Pipeline;
use std::fmt;

/// A stage (from 0) of a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// Ingress or egress.
    pub pipeline: Pipeline,
    /// The stage's number.
    pub stage: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} stage {}", self.pipeline, self.stage)
    }
}

/// A limited resource of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resource {
    /// Physical stages.
    Stages,
    /// 8-bit containers of the header vector.
    Containers8,
    /// 16-bit containers.
    Containers16,
    /// 32-bit containers.
    Containers32,
    /// Logical tables of a stage.
    Tables,
    /// Instruction words of a stage.
    Instructions,
    /// Stateful ALUs of a stage.
    StatefulAlus,
    /// SRAM blocks of a stage.
    SramBlocks,
    /// Map RAMs of a stage.
    MapRams,
    /// SRAM blocks of one register.
    RegisterBlocks,
    /// TCAM blocks of a stage.
    TcamBlocks,
    /// Bits that one gateway compares.
    GatewayBits,
    /// Bits that one gateway compares by less-than.
    GatewayOrderBits,
    /// Bits of a range key.
    RangeBits,
    /// Fields that one stateful ALU takes.
    StatefulInputs,
    /// Bytes that a mirrored copy carries.
    MirrorBytes,
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stages => "stages",
            Self::Containers8 => "8-bit containers",
            Self::Containers16 => "16-bit containers",
            Self::Containers32 => "32-bit containers",
            Self::Tables => "logical tables in the stage",
            Self::Instructions => "instruction words in the stage",
            Self::StatefulAlus => "stateful ALUs in the stage",
            Self::SramBlocks => "SRAM blocks in the stage",
            Self::MapRams => "map RAMs in the stage",
            Self::RegisterBlocks => "SRAM blocks of one register",
            Self::TcamBlocks => "TCAM blocks in the stage",
            Self::GatewayBits => "bits in a gateway",
            Self::GatewayOrderBits => "bits that a gateway orders",
            Self::RangeBits => "bits of a range key",
            Self::StatefulInputs => "fields into a stateful ALU",
            Self::MirrorBytes => "bytes of a mirrored copy",
        })
    }
}

/// The law that a program breaks, and where. Locations are lines of the source that built it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A packet could access a register twice.
    #[error(
        "touches register twice: {register}, {place}, at {first} and at {second}; \
         gateways and keys do not prove that these exclude each other"
    )]
    TouchesTwice {
        /// The register's name.
        register: String,
        /// Place of the register.
        place: Place,
        /// Line of one access.
        first: At,
        /// Line of the other.
        second: At,
    },
    /// Two tables access one register, and only their keys exclude each other.
    #[error(
        "shared by keys only: register {register}, {place}, at {first} and at {second}; \
         of two tables that access one register, gateways must exclude each other"
    )]
    SharedByKeys {
        /// The register's name.
        register: String,
        /// Place of the register.
        place: Place,
        /// Line of one access.
        first: At,
        /// Line of the other.
        second: At,
    },
    /// An action reads what it has written: its statements are sequential, so this needs a second stage.
    #[error(
        "reads what its action has written: {field}, {place}, written at {written}, read at {read}; \
         read it first, or in a later stage"
    )]
    WrittenBefore {
        /// The field's name.
        field: String,
        /// Where.
        place: Place,
        /// The line that writes.
        written: At,
        /// The line that reads.
        read: At,
    },
    /// A value is read before it is written.
    #[error("reads a later stage's result: {field}, read in {place} at {read}, written in {by} at {written}")]
    ReadsLater {
        /// The field's name.
        field: String,
        /// Where it is read.
        place: Place,
        /// The line that reads.
        read: At,
        /// Where it is written.
        by: Place,
        /// The line that writes.
        written: At,
    },
    /// Egress reads metadata of ingress that was not declared as bridged.
    #[error("not bridged: {field}, written in ingress at {written}, read in {place} at {read}")]
    NotBridged {
        /// The field's name.
        field: String,
        /// Where it is read.
        place: Place,
        /// The line that reads.
        read: At,
        /// The line that writes.
        written: At,
    },
    /// Metadata is read but never written.
    #[error("reads what nothing writes: {field}, in {place} at {read}")]
    NeverWritten {
        /// The field's name.
        field: String,
        /// Where it is read.
        place: Place,
        /// The line that reads.
        read: At,
    },
    /// One packet could write one thing twice in one stage.
    #[error("writes twice in a stage: {what}, {place}, at {first} and at {second}")]
    WritesTwice {
        /// Name of the field or other thing.
        what: String,
        /// Where.
        place: Place,
        /// Line of one write.
        first: At,
        /// Line of the other.
        second: At,
    },
    /// A register is used in another stage than its own.
    #[error("register {register} is in {home}, and used in {place} at {at}")]
    Elsewhere {
        /// The register's name.
        register: String,
        /// Place of the register.
        home: Place,
        /// Where it is used.
        place: Place,
        /// The line that uses it.
        at: At,
    },
    /// A table reaches more than one register.
    #[error("table {table} in {place} reaches two registers, {first} and {second} (at {at}); a table reaches one")]
    TwoRegisters {
        /// The table's name.
        table: String,
        /// Where.
        place: Place,
        /// One register.
        first: String,
        /// The other.
        second: String,
        /// The line that uses the other.
        at: At,
    },
    /// An index could point beyond the array.
    #[error("index of register {register} in {place} at {at} reaches cell {last}; it has {cells}")]
    IndexBeyond {
        /// The register's name.
        register: String,
        /// Where.
        place: Place,
        /// The line that uses it.
        at: At,
        /// The largest index.
        last: u64,
        /// Cells of the array.
        cells: u32,
    },
    /// Only ingress chooses a destination.
    #[error("output port chosen in egress: {table}, {place}, at {at}")]
    PortInEgress {
        /// The table's name.
        table: String,
        /// Where.
        place: Place,
        /// The line that chooses.
        at: At,
    },
    /// A gateway compares a difference.
    #[error(
        "condition on a subtracted value: {field}, {place}, compared at {at}, subtracted at {written}; make it a table"
    )]
    SubtractedCondition {
        /// The field's name.
        field: String,
        /// Where.
        place: Place,
        /// The line that compares.
        at: At,
        /// The line that subtracts.
        written: At,
    },
    /// Something is malformed.
    #[error("{what}, in {place} at {at}")]
    Malformed {
        /// The error.
        what: String,
        /// Where.
        place: Place,
        /// The line.
        at: At,
    },
    /// A stage's registers cannot be distributed over the parts of its memories.
    #[error(
        "{what} in {place} at {at}: all {used} map RAMs, of {limit}, do not fit {parts} parts with one register in one part"
    )]
    Apart {
        /// The register that has no place.
        what: String,
        /// Where.
        place: Place,
        /// The line that declares it.
        at: At,
        /// The target's parts.
        parts: u32,
        /// Map RAMs of all registers of the stage.
        used: u32,
        /// Map RAMs available.
        limit: u32,
    },
    /// No program of this crate exists for these parameters.
    #[error("{what}")]
    Parameters {
        /// The required values.
        what: &'static str,
    },
    /// A budget of the target is exceeded.
    #[error("{what} in {place} at {at}: {used} {resource}, {limit} exist: {} over budget", .used - .limit)]
    OverBudget {
        /// The register, table or field that exceeds it.
        what: String,
        /// Where.
        place: Place,
        /// The line.
        at: At,
        /// The exceeded resource.
        resource: Resource,
        /// Number used, including this one.
        used: u32,
        /// Number available.
        limit: u32,
    },
}
