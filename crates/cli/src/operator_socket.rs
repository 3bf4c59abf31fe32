//! The operator's socket of a process, for `midflight purge` (a switch) and `midflight store members` (a replica).

use anyhow::{Context, Result};
use midflight_control::admin;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

/// Listens but does not answer yet: only listening may need privileges.
#[derive(Debug)]
pub(crate) struct OperatorSocket(Option<UnixListener>);

impl OperatorSocket {
    /// If the path `is_default` and unusable, warns that `command` will not reach this process, and continues without a socket.
    pub(crate) fn bind(path: Option<PathBuf>, is_default: bool, command: &str) -> Result<Self> {
        let Some(path) = path else { return Ok(Self(None)) };
        match admin::listen(&path) {
            Ok(listener) => Ok(Self(Some(listener))),
            Err(error) if is_default => {
                tracing::warn!("`{command}` will not reach this process: cannot listen on {}: {error}", path.display());
                Ok(Self(None))
            }
            Err(error) => Err(error).with_context(|| {
                let path = path.display();
                format!("cannot listen on {path} (`admin` in the configuration: name another path, or \"\" for none)")
            }),
        }
    }

    /// Answers requests on its own thread.
    pub(crate) fn serve<Q: DeserializeOwned, A: Serialize>(
        self,
        answer: impl FnMut(Q) -> Result<A, String> + Send + 'static,
    ) -> Result<()> {
        let Some(listener) = self.0 else { return Ok(()) };
        let thread = std::thread::Builder::new().name("mf-admin".into());
        let thread = thread.spawn(move || admin::serve(&listener, answer));
        thread.map(drop).context("cannot start a thread for the operator's socket")
    }
}
