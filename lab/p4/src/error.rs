//! What can go wrong.

use midflight_net::LabError;
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
    /// The compiler has written nothing.
    #[error("the compiler {compiler} has ended well, but has written no program: is it p4c-bm2-ss?")]
    Nothing {
        /// Its path.
        compiler: String,
    },
    /// The compiler has written a part of a program.
    #[error(
        "the compiled program {path} is not whole ({error}): is there no room on that disk? TMPDIR names another folder"
    )]
    Cut {
        /// Its file.
        path: String,
        /// What is wrong with it.
        error: serde_json::Error,
    },
    /// The compiler does not know a target.
    #[error("the compiler was built without {target} ({said}); p4c's back end for Tofino has it")]
    NoTarget {
        /// Which one.
        target: &'static str,
        /// What it wrote.
        said: String,
    },
    /// What a tool wrote about a program, or a report of it, is not as expected.
    #[error("the report of {program}: {what}")]
    Report {
        /// Which one.
        program: &'static str,
        /// What is wrong.
        what: String,
    },
    /// A change has no place.
    #[error("p4/{file} has no text {text:?}")]
    Planted {
        /// The source.
        file: &'static str,
        /// What is not in it.
        text: &'static str,
    },
    /// The port of its Thrift interface is taken.
    #[error(
        "another process serves TCP port {port} ({source}): perhaps a simple_switch that has a program and tables already; \
         end it, or run this in another network namespace"
    )]
    Taken {
        /// The port.
        port: u16,
        /// What the kernel said.
        source: io::Error,
    },
    /// The switch runs another program.
    #[error(
        "the switch that answers runs another program than the one that was compiled: end it, and leave it to `midflight \
         switch` to start one"
    )]
    Pipeline,
    /// Its tables are not as they were left.
    #[error(
        "the switch's table {table} has {there} entries instead of {ours}: it has lost them, or another controller has \
         changed them; a new start begins with empty tables and a new epoch"
    )]
    Tables {
        /// Which one.
        table: &'static str,
        /// How many entries it has.
        there: u32,
        /// How many this process has entered.
        ours: u32,
    },
    /// The kernel forwards between the switch's interfaces.
    #[error(
        "the kernel forwards packets from {interface} as the switch does, and they would go twice: \
         sysctl -w net.ipv4.conf.{interface}.forwarding=0 (or net.ipv4.ip_forward=0) first"
    )]
    Forwards {
        /// At this interface.
        interface: String,
    },
    /// An interface cannot be a port.
    #[error(transparent)]
    Interface(#[from] LabError),
    /// It was asked to end before the switch served.
    #[error("interrupted before the switch has started")]
    Interrupted,
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
    #[cfg(feature = "compare")]
    #[error(transparent)]
    Model(#[from] midflight_rmt::Refusal),
}

impl P4Error {
    /// Whether nothing was begun, for want of a tool or of a right.
    #[must_use]
    pub fn is_for_want_of_something(&self) -> bool {
        matches!(
            self,
            Self::Missing { .. }
                | Self::Named { .. }
                | Self::NotHere { .. }
                | Self::NoTarget { .. }
                | Self::Interface(LabError::Privilege | LabError::MissingCommand(_))
        )
    }

    pub(crate) fn not_here(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::NotHere { what, source }
    }

    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        |source| Self::Io { what: what.into(), source }
    }
}
