//! The operator's way to a switch: `midflight purge` over a Unix socket.

use anyhow::{Context, Result};
use midflight_control::Config;
use midflight_control::admin::{self, Answer, Request, Which};
use midflight_host::Switch;
use std::os::unix::net::UnixListener;
use std::sync::{Arc, Weak};

/// A socket that listens, which may need privileges, but does not answer yet.
#[derive(Debug)]
pub(crate) struct Door(Option<UnixListener>);

impl Door {
    /// Listens where the configuration says. What was chosen for the user, and cannot be had, is gone without.
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

    /// Answers for this switch, on a thread of its own, for as long as there is one.
    pub(crate) fn open(self, switch: &Arc<Switch>) -> Result<()> {
        let Some(listener) = self.0 else { return Ok(()) };
        let switch = Arc::downgrade(switch);
        let serve = move || admin::serve(&listener, |request| answer(&switch, request));
        let thread = std::thread::Builder::new().name("mf-admin".into()).spawn(serve);
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
