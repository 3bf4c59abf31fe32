//! A client of a running switch, and its status.

use crate::units;
use anyhow::{Result, anyhow};
use midflight_host::{Client, ClientBuilder, Error};
use std::net::SocketAddr;
use std::time::Duration;

/// Timeout for a process's first answer.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(3);

/// A client of the first of these switches that answers.
pub fn connect(switches: Vec<SocketAddr>) -> Result<Client> {
    connect_with(Client::builder().switches(switches))
}

/// As [`connect`], with options.
pub fn connect_with(builder: ClientBuilder) -> Result<Client> {
    builder.connect().map_err(|error| match error {
        Error::NotConnected { addresses, .. } => {
            let names: Vec<_> = addresses.iter().map(ToString::to_string).collect();
            anyhow!(
                "no switch answers on {}: start one with `midflight up` or `midflight switch`, or give --switch HOST:PORT (`up` of another user does not answer)",
                names.join(", ")
            )
        }
        error => error.into(),
    })
}

/// Timeout for a process's status.
pub const STATUS_WITHIN: Duration = Duration::from_secs(2);

/// The body of a switch's `/status`.
pub fn status(http: &str) -> Result<String> {
    status_of("switch", "midflight up` or `midflight switch", http)
}

/// The body of another process's `/status`. For errors: `what` it is, and the command that starts one.
pub fn status_of(what: &str, start: &str, http: &str) -> Result<String> {
    let host = http.trim_start_matches("http://").trim_end_matches('/');
    let agent: ureq::Agent = ureq::Agent::config_builder().timeout_global(Some(STATUS_WITHIN)).build().into();
    let response = agent.get(format!("http://{host}/status")).call();
    response.and_then(|mut response| response.body_mut().read_to_string()).map_err(|error| match error {
        ureq::Error::Timeout(_) => anyhow!(
            "the {what} on http://{host} has given no answer for {}: its process is stopped (kill -CONT continues it) or \
             overloaded, or a firewall drops the packets",
            units::duration(STATUS_WITHIN)
        ),
        ureq::Error::StatusCode(code) => anyhow!("http://{host} is no {what}: it answered /status with {code}; give --http HOST:PORT"),
        error => {
            anyhow!("no {what} answers on http://{host}: {error}; start one with `{start}`, or give --http HOST:PORT")
        }
    })
}
