//! Errors, each on one line that says what to do.

use midflight_cache::client::Failure;
use midflight_wire::cache::backend::{BACKEND_VERSION, BackendReject};
use std::fmt;
use std::io;
use std::net::SocketAddr;

/// Why the cache did not carry out an operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// No answer in time.
    #[error("no answer in time; see whether the operator, the agents and their backends run")]
    TimedOut,
    /// The servers refused it.
    #[error("the servers refused it: they have no room, or their backends do not answer; see whether these run")]
    Refused,
    /// Servers answered, but none with a usable result.
    #[error("no server had an answer that can be used: {}", each(.0))]
    Unusable(Vec<(SocketAddr, ServerError)>),
    /// Some replica did not take a write.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl From<Failure> for CacheError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::TimedOut => Self::TimedOut,
            Failure::Refused => Self::Refused,
        }
    }
}

/// Why a server did not carry out a request, or why its answer is unusable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// No connection, or it broke.
    #[error("cannot be reached ({0})")]
    Unreachable(io::ErrorKind),
    /// Timeout. A write may have taken place, or may yet.
    #[error("does not answer in time")]
    TimedOut,
    /// It closed the connection before answering. A write may have taken place.
    #[error("closed the connection before it answered")]
    Closed,
    /// It refused, with a reason. A write may have taken place.
    #[error("could not: {0}")]
    Refused(String),
    /// The answer is invalid.
    #[error("answers what cannot be read ({0})")]
    Garbage(BackendReject),
    /// The answer is truncated.
    #[error("answers something incomplete")]
    Incomplete,
    /// The answer does not match the request.
    #[error("answers something that was not asked")]
    Unfit,
    /// It speaks another version of the format.
    #[error(
        "speaks version {0} of the format, this program {BACKEND_VERSION}: use one release of Midflight on all machines"
    )]
    OtherVersion(u8),
}

/// A set or delete that some server of the key did not take.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriteError {
    /// Whether it was a set.
    pub is_set: bool,
    /// Servers that took it; after a set they have the new value.
    pub done: Vec<SocketAddr>,
    /// Servers that failed or did not confirm.
    pub failed: Vec<FailedServer>,
}

/// A server that did not take a write.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailedServer {
    /// Its address.
    pub server: SocketAddr,
    /// The reason.
    pub why: ServerError,
    /// After a set: whether it deleted the key as told. If not, it may return an older value until that expires.
    pub has_forgotten: bool,
}

impl std::error::Error for WriteError {}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.done.len() + self.failed.len();
        let what = if self.is_set { "have the new value" } else { "have forgotten the key" };
        write!(f, "{} of {all} servers {what}", self.done.len())?;
        if !self.done.is_empty() {
            let done: Vec<_> = self.done.iter().map(ToString::to_string).collect();
            write!(f, " ({})", done.join(", "))?;
        }
        for FailedServer { server, why, has_forgotten } in &self.failed {
            let then =
                if *has_forgotten { "it has forgotten the key" } else { "it may still answer with an older value" };
            write!(f, "; {server} {why}: {then}")?;
        }
        Ok(())
    }
}

fn each(servers: &[(SocketAddr, ServerError)]) -> String {
    let texts: Vec<_> = servers.iter().map(|(server, why)| format!("{server} {why}")).collect();
    texts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_error_names_who_has_it_and_who_has_not() {
        let server = |n: u8| SocketAddr::from(([10, 0, 0, n], 7800));
        let failed = |n, why, has_forgotten| FailedServer { server: server(n), why, has_forgotten };
        let error = WriteError {
            is_set: true,
            done: vec![server(1)],
            failed: vec![
                failed(2, ServerError::Refused("the backend is full".into()), true),
                failed(3, ServerError::Unreachable(io::ErrorKind::ConnectionRefused), false),
            ],
        };
        assert_eq!(
            error.to_string(),
            "1 of 3 servers have the new value (10.0.0.1:7800); 10.0.0.2:7800 could not: the backend is full: it has forgotten the \
             key; 10.0.0.3:7800 cannot be reached (connection refused): it may still answer with an older value"
        );
    }
}
