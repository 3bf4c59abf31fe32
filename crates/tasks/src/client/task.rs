//! Tasks as callers describe them.

use crate::place::Preference;
use midflight_endpoint::Nanos;
use midflight_wire::tasks::{
    APPENDED, APPENDED_MAX, ARGUMENT_BLOB_MAX, ARGUMENT_MAX, BY_REFERENCE, BlobRef, LEVELS, TaskInfo,
};
use std::sync::Arc;
use zerocopy::{FromBytes, IntoBytes};

/// Identifies a task in this client; unique, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskKey(pub u64);

/// What to run, and how. [`Task::new`] sets the defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Number of the function: [`crate::functions::function_id`].
    pub function: u32,
    /// Argument of the function.
    pub argument: Argument,
    /// 1 (the highest) to 8. Default 4.
    pub priority: u8,
    /// Mask of the resources that the executor must have. Default none.
    pub resources: u8,
    /// Longest time from `submit`, or the end of the previous attempt, to the completion, without the time to fetch the result.
    /// Default: unlimited.
    pub timeout: Option<Nanos>,
    /// Bound of attempts that are abandoned, time out or (with `retry_failed`) fail; 0 means 1. An attempt lost with its switch
    /// or executor does not count. Default 3.
    pub attempts: u32,
    /// Whether to retry after a failure, or an unknown function. Default `false`.
    pub retry_failed: bool,
    /// Placement preference (T19) of each submission. Default: anywhere.
    pub prefer: Option<Preference>,
}

/// The argument of a task.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// In the packet.
    Inline {
        /// The bytes, padded with zeros.
        bytes: [u8; ARGUMENT_MAX],
        /// Length in bytes, at most 16.
        length: u8,
    },
    /// In the packet, behind the records: 17 to [`APPENDED_MAX`] bytes.
    Appended(Arc<Vec<u8>>),
    /// The driver keeps it, and executors fetch it there over TCP.
    ByReference(BlobRef),
}

impl Argument {
    /// No argument.
    pub const NONE: Self = Self::Inline { bytes: [0; ARGUMENT_MAX], length: 0 };

    /// An inline argument; `None` if it exceeds [`ARGUMENT_MAX`].
    #[must_use]
    pub fn inline(argument: &[u8]) -> Option<Self> {
        let mut bytes = [0; ARGUMENT_MAX];
        bytes.get_mut(..argument.len())?.copy_from_slice(argument);
        Some(Self::Inline { bytes, length: u8::try_from(argument.len()).ok()? })
    }

    /// The argument of a task's record, or what was appended for it.
    #[must_use]
    pub fn of(task: &TaskInfo, appended: Option<Arc<Vec<u8>>>) -> Self {
        if let Some(appended) = appended {
            return Self::Appended(appended);
        }
        if task.argument_length == BY_REFERENCE {
            let (blob, _) = BlobRef::read_from_prefix(&task.argument).expect("a reference is as long as an argument");
            return Self::ByReference(blob);
        }
        // Parsers accept no other length.
        Self::Inline { bytes: task.argument, length: task.argument_length.min(ARGUMENT_MAX as u8) }
    }
}

impl Task {
    /// A task with the defaults.
    #[must_use]
    pub fn new(function: u32, argument: Argument) -> Self {
        Self {
            function,
            argument,
            priority: 4,
            resources: 0,
            timeout: None,
            attempts: 3,
            retry_failed: false,
            prefer: None,
        }
    }

    pub(super) fn info(&self, tid: u32) -> TaskInfo {
        let mut argument = [0; ARGUMENT_MAX];
        let argument_length = match &self.argument {
            Argument::Inline { bytes, length } => {
                let length_used = usize::from(*length);
                argument[..length_used].copy_from_slice(&bytes[..length_used]);
                *length
            }
            Argument::Appended(bytes) => {
                argument[..2].copy_from_slice(&(bytes.len() as u16).to_be_bytes());
                APPENDED
            }
            Argument::ByReference(blob) => {
                argument.copy_from_slice(blob.as_bytes());
                BY_REFERENCE
            }
        };
        TaskInfo {
            tid: tid.into(),
            function: self.function.into(),
            priority: self.priority,
            resources: self.resources,
            argument_length,
            attempt: 0,
            argument,
        }
    }

    /// A durable client must be able to serve the same bytes after a restart, so it appends nothing.
    pub(super) fn check(&self, index: usize, durable: bool) -> Result<(), SubmitError> {
        if self.priority == 0 || self.priority > LEVELS {
            return Err(SubmitError::BadPriority { index, priority: self.priority });
        }
        match &self.argument {
            Argument::Inline { length, .. } if usize::from(*length) > ARGUMENT_MAX => {
                Err(SubmitError::ArgumentTooLong { index, length: *length })
            }
            Argument::Appended(bytes) if durable || !(ARGUMENT_MAX + 1..=APPENDED_MAX).contains(&bytes.len()) => {
                Err(SubmitError::CannotAppend { index, length: bytes.len() })
            }
            Argument::ByReference(blob) if blob.length.get() > ARGUMENT_BLOB_MAX => {
                Err(SubmitError::BlobTooLong { index, length: blob.length.get() })
            }
            _ => Ok(()),
        }
    }
}

/// Why `submit` accepted no task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// The bound of open tasks would be exceeded.
    #[error("{open} tasks are open and {asked} more would exceed `max_open` = {max_open}: wait for some to end")]
    TooManyOpen {
        /// Number of open tasks.
        open: usize,
        /// Number of tasks in this call.
        asked: usize,
        /// The bound.
        max_open: usize,
    },
    /// A priority outside 1 to 8.
    #[error("task {index}: priority {priority} does not exist: use 1 (the highest) to {LEVELS}")]
    BadPriority {
        /// Index of the task in the call.
        index: usize,
        /// Its priority.
        priority: u8,
    },
    /// An inline argument that does not fit.
    #[error("task {index}: an inline argument of {length} bytes exceeds {ARGUMENT_MAX}: pass it by reference")]
    ArgumentTooLong {
        /// Index of the task in the call.
        index: usize,
        /// Its length in bytes.
        length: u8,
    },
    /// An argument that cannot be appended: of a wrong length, or of a durable client.
    #[error(
        "task {index}: an argument of {length} bytes cannot be appended: pass it inline, up to {ARGUMENT_MAX} bytes, or by reference"
    )]
    CannotAppend {
        /// Index of the task in the call.
        index: usize,
        /// Its length in bytes.
        length: usize,
    },
    /// An argument by reference that is too long.
    #[error("task {index}: an argument of {length} bytes exceeds {ARGUMENT_BLOB_MAX}: split it")]
    BlobTooLong {
        /// Index of the task in the call.
        index: usize,
        /// Its length in bytes.
        length: u32,
    },
}
