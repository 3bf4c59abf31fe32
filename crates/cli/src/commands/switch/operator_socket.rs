//! The operator's socket: `midflight purge` reaches the switch over it.

use anyhow::{Context, Result};
use midflight_control::Config;
use midflight_control::admin::{self, Answer, Request, Which};
use midflight_host::Switch;
use std::os::unix::net::UnixListener;
use std::sync::{Arc, Weak};

/// The operator's socket, which listens but does not answer yet: listening may need privileges, answering needs none.
#[derive(Debug)]
pub(crate) struct OperatorSocket(Option<UnixListener>);

impl OperatorSocket {
    /// Listens at the path in the configuration. If that is "auto" and the path cannot be used, warns and goes on without a
    /// socket.
    pub(crate) fn bind(config: &Config, port: u16) -> Result<Self> {
        let Some(path) = config.switch.admin_path(port) else { return Ok(Self(None)) };
        match admin::listen(&path) {
            Ok(listener) => Ok(Self(Some(listener))),
            Err(error) if config.switch.admin == "auto" => {
                tracing::warn!(
                    "`midflight purge` will not reach this switch: cannot listen on {}: {error}",
                    path.display()
                );
                Ok(Self(None))
            }
            Err(error) => Err(error).with_context(|| {
                let path = path.display();
                format!("cannot listen on {path} (`admin` in the configuration: name another path, or \"\" for none)")
            }),
        }
    }

    /// Answers requests to this switch, on a thread of its own.
    pub(crate) fn serve(self, switch: &Arc<Switch>) -> Result<()> {
        let Some(listener) = self.0 else { return Ok(()) };
        let switch = Arc::downgrade(switch);
        let run = move || admin::serve(&listener, |request| answer(&switch, request));
        let thread = std::thread::Builder::new().name("mf-admin".into()).spawn(run);
        thread.map(drop).context("cannot start a thread for the operator's socket")
    }
}

fn answer(switch: &Weak<Switch>, request: Request) -> Answer {
    let Request::Purge(which) = request;
    let which = match which {
        Which::Client(identity) => midflight_host::Which::Client(identity),
        Which::Resources(mask) => midflight_host::Which::Resources(mask),
        Which::Address(ip) => midflight_host::Which::Address(ip),
    };
    match switch.upgrade().map(|switch| switch.purge(which)) {
        Some(Ok(tasks)) => Answer::Purged(tasks),
        Some(Err(error)) => Answer::Error(error.to_string()),
        None => Answer::Error("the switch is ending".into()),
    }
}
