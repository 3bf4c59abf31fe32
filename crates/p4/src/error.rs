//! What can go wrong.

use std::io;

/// Why a program was not compiled, run or compared.
#[derive(Debug, thiserror::Error)]
pub enum P4Error {
    /// A tool is not there.
    #[error(
        "{tool} is missing: set {variable} to it, or to its folder, or put it into PATH; it is built from {repository}"
    )]
    Missing {
        /// Its name.
        tool: &'static str,
        /// The environment variable that may name it.
        variable: &'static str,
        /// Where its source is.
        repository: &'static str,
    },
    /// A variable names something else than the tool.
    #[error("{variable} is {named}, which neither is {tool} nor a folder that has it: correct it, or unset it")]
    Named {
        /// The tool.
        tool: &'static str,
        /// The environment variable.
        variable: &'static str,
        /// What it says.
        named: String,
    },
    /// A right or a command of this machine that a comparison needs.
    #[error("this machine does not let us {what}: {source}; as root, with iproute2, it does")]
    NotHere {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// The compiler refused a program.
    #[error("{program} does not compile:\n{said}")]
    Compiler {
        /// Which one.
        program: String,
        /// What it wrote.
        said: String,
    },
    /// A change has no place.
    #[error("p4/{file} has no text {text:?}")]
    Planted {
        /// The source.
        file: &'static str,
        /// What is not in it.
        text: &'static str,
    },
    /// The switch ended, or did not start.
    #[error("simple_switch {what}")]
    Switch {
        /// What it did.
        what: String,
    },
    /// A call to the switch failed: a pipeline that is not this program's, say.
    #[error("the switch's Thrift interface: {what}")]
    Thrift {
        /// What was asked, and what came.
        what: String,
    },
    /// The machine did not let us.
    #[error("cannot {what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// Why it failed.
        source: io::Error,
    },
    /// A transcript could not be run.
    #[error("transcript {name}: {what}")]
    Transcript {
        /// Its file.
        name: String,
        /// Why.
        what: String,
    },
    /// The model refuses the program's size.
    #[error(transparent)]
    Model(#[from] midflight_rmt::Refusal),
}

impl P4Error {
    /// Whether nothing was begun, for want of a tool or of a right.
    #[must_use]
    pub fn is_for_want_of_something(&self) -> bool {
        matches!(self, Self::Missing { .. } | Self::Named { .. } | Self::NotHere { .. })
    }

    pub(crate) fn not_here(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::NotHere { what, source }
    }

    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        |source| Self::Io { what: what.into(), source }
    }
}
