//! Errors of this crate.

use midflight_net::LabError;
use std::io;

/// Why a program was not compiled, run or compared.
#[derive(Debug, thiserror::Error)]
pub enum P4Error {
    /// A tool is missing.
    #[error(
        "{tool} is missing: set {variable} to it, or to its folder, or put it into PATH; it is built from {repository}"
    )]
    Missing {
        /// Name of the tool.
        tool: &'static str,
        /// The environment variable for its path.
        variable: &'static str,
        /// Repository of its source.
        repository: &'static str,
    },
    /// A variable does not name the tool.
    #[error("{variable} is {named}, which neither is {tool} nor a folder that has it: correct it, or unset it")]
    Named {
        /// The tool.
        tool: &'static str,
        /// The environment variable.
        variable: &'static str,
        /// Its value.
        named: String,
    },
    /// The machine lacks a right or a command for a comparison.
    #[error("this machine does not let us {what}: {source}; as root, with iproute2, it does")]
    NotHere {
        /// The operation.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The compiler refused a program.
    #[error("{program} does not compile:\n{said}")]
    Compiler {
        /// The program.
        program: String,
        /// The compiler's output.
        said: String,
    },
    /// The compiler has written nothing.
    #[error("the compiler {compiler} has ended well, but has written no program: is it p4c-bm2-ss?")]
    Nothing {
        /// Its path.
        compiler: String,
    },
    /// The compiler has written only a part of a program.
    #[error(
        "the compiled program {path} is not whole ({error}): is there no room on that disk? TMPDIR names another folder"
    )]
    Cut {
        /// The file.
        path: String,
        /// The parser's error.
        error: serde_json::Error,
    },
    /// The compiler does not support a target.
    #[error("the compiler was built without {target} ({said}); p4c's back end for Tofino has it")]
    NoTarget {
        /// The target.
        target: &'static str,
        /// The compiler's output.
        said: String,
    },
    /// A tool's output about a program, or a report of it, is not as expected.
    #[error("the report of {program}: {what}")]
    Report {
        /// The program.
        program: &'static str,
        /// The error.
        what: String,
    },
    /// A planted change does not match the source.
    #[error("p4/{file} has no text {text:?}")]
    Planted {
        /// The source.
        file: &'static str,
        /// The missing text.
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
        /// The kernel's error.
        source: io::Error,
    },
    /// The switch runs another program.
    #[error(
        "the switch that answers runs another program than the one that was compiled: end it, and leave it to `midflight \
         switch` to start one"
    )]
    Pipeline,
    /// The switch's tables were changed by others.
    #[error(
        "the switch's table {table} has {there} entries instead of {ours}: it has lost them, or another controller has \
         changed them; a new start begins with empty tables and a new epoch"
    )]
    Tables {
        /// The table.
        table: &'static str,
        /// Entries in the switch.
        there: u32,
        /// Entries added by this process.
        ours: u32,
    },
    /// The kernel forwards between the switch's interfaces.
    #[error(
        "the kernel forwards packets from {interface} as the switch does, and they would go twice: \
         sysctl -w net.ipv4.conf.{interface}.forwarding=0 (or net.ipv4.ip_forward=0) first"
    )]
    Forwards {
        /// The interface.
        interface: String,
    },
    /// An interface cannot be a port.
    #[error(transparent)]
    Interface(#[from] LabError),
    /// Interrupted before the switch served.
    #[error("interrupted before the switch has started")]
    Interrupted,
    /// The switch ended, or did not start.
    #[error("simple_switch {what}")]
    Switch {
        /// The event.
        what: String,
    },
    /// A call to the switch failed, for example because it runs another program.
    #[error("the switch's Thrift interface: {what}")]
    Thrift {
        /// The call and its result.
        what: String,
    },
    /// A system call failed.
    #[error("cannot {what}: {source}")]
    Io {
        /// The operation.
        what: String,
        /// The system's error.
        source: io::Error,
    },
    /// A transcript could not be run.
    #[error("transcript {name}: {what}")]
    Transcript {
        /// Its file.
        name: String,
        /// The reason.
        what: String,
    },
    /// The model refuses the program's size.
    #[cfg(feature = "compare")]
    #[error(transparent)]
    Model(#[from] midflight_rmt::Refusal),
}

impl P4Error {
    /// Whether nothing was begun, because a tool or a right is missing.
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
