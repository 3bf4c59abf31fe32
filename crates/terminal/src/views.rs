//! The views of a switch that a viewer receives (`/events`).

use crate::switches::STATUS_WITHIN;
use anyhow::{Result, anyhow, bail, ensure};
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Bytes of a view: a switch lists some hundred lines of some hundred bytes.
const VIEW_MAX: u64 = 16 << 20;
const AHEAD: usize = 2;
/// Timeout for the next view; one comes every second.
const SILENT_FOR: Duration = Duration::from_secs(5);

/// A stream of views, read by its own thread.
#[derive(Debug)]
pub struct Views {
    address: SocketAddr,
    views: Receiver<Result<String>>,
}

impl Views {
    /// Watches the switch with this HTTP address.
    ///
    /// # Errors
    /// If it does not answer, or has no room for another viewer.
    pub fn open(address: SocketAddr) -> Result<Self> {
        let within = Some(STATUS_WITHIN);
        let config = ureq::Agent::config_builder().timeout_connect(within).timeout_recv_response(within);
        let agent: ureq::Agent = config.http_status_as_error(false).build().into();
        let answer = agent.get(format!("http://{address}/events")).call();
        let mut answer = answer.map_err(|error| {
            anyhow!(
                "no switch answers on http://{address}: {error}; start one with `midflight up` or `midflight switch`, or give --http HOST:PORT"
            )
        })?;
        let status = answer.status().as_u16();
        ensure!(status != 404, "http://{address} is no switch of this version; give --http HOST:PORT of one");
        if status != 200 {
            let why = answer.body_mut().with_config().limit(1024).read_to_string().unwrap_or_default();
            bail!("the switch on http://{address} shows nothing ({status}): {}", crate::columns::plain(why.trim()));
        }
        let mut reader = BufReader::new(answer.into_body().into_reader());
        let (sender, views) = sync_channel(AHEAD);
        std::thread::Builder::new().name("mf-views".into()).spawn(move || {
            // The thread ends when the stream is dropped, or after an error.
            loop {
                let view = next(&mut reader);
                let is_over = view.is_err();
                if sender.send(view).is_err() || is_over {
                    return;
                }
            }
        })?;
        Ok(Self { address, views })
    }

    /// The next view, if it comes within this time.
    ///
    /// # Errors
    /// If the stream has ended.
    pub fn next_within(&self, within: Duration) -> Result<Option<String>> {
        match self.views.recv_timeout(within) {
            Ok(view) => view.map(Some).map_err(|why| anyhow!("the switch on http://{} has gone: {why}", self.address)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => bail!("the switch on http://{} has gone", self.address),
        }
    }

    /// The next view.
    ///
    /// # Errors
    /// If none comes in time, or the stream has ended.
    pub fn next(&self) -> Result<String> {
        let view = self.next_within(SILENT_FOR)?;
        view.ok_or_else(|| anyhow!("the switch on http://{} says nothing: is its process stopped?", self.address))
    }
}

fn next(reader: &mut impl BufRead) -> Result<String> {
    loop {
        let mut line = Vec::new();
        reader.by_ref().take(VIEW_MAX).read_until(b'\n', &mut line)?;
        ensure!(line.ends_with(b"\n"), if line.is_empty() { "it has ended the stream" } else { "a view is too long" });
        if let Some(data) = line.strip_prefix(b"data: ") {
            return Ok(String::from_utf8(data.trim_ascii_end().to_vec())?);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::next;

    #[test]
    fn a_view_is_the_data_of_an_event() {
        let mut stream: &[u8] = b": hello\nid: 7\ndata: {\"a\":1}\n\ndata: {}\n\nda";
        assert_eq!(next(&mut stream).unwrap(), "{\"a\":1}");
        assert_eq!(next(&mut stream).unwrap(), "{}");
        assert_eq!(next(&mut stream).unwrap_err().to_string(), "a view is too long");
        assert_eq!(next(&mut stream).unwrap_err().to_string(), "it has ended the stream");
    }
}
