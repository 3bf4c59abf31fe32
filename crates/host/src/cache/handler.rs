//! Reads the servers' answers and completes the gets.

use super::counters::{Counts, add};
use super::error::{CacheError, ServerError};
use super::exchange::{Answer as StreamAnswer, read_answer};
use super::long::{LongGets, Wanted};
use super::pending::{Ending, GetOutcome};
use crate::driver::Handler;
use midflight_cache::client::{Answer, Client, Event, Failure, ReadKey};
use midflight_cache::keyspace::Keyspace;
use midflight_wire::cache::NETRS_VERSION;
use midflight_wire::cache::backend::{BackendAnswer, parse_answer};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

pub(super) struct Open {
    pub(super) ending: Ending,
    pub(super) request: Vec<u8>,
    pub(super) group: u32,
    pub(super) deadline: Instant,
}

pub(super) struct AnswerHandler {
    keyspace: Arc<Keyspace>,
    counts: Arc<Counts>,
    long: Arc<LongGets>,
    open: HashMap<ReadKey, Open>,
    /// Ended gets whose callers have not been told.
    ended: Vec<(Ending, GetOutcome)>,
    /// Gets that continue over TCP.
    wanted: Vec<Wanted>,
}

enum Parsed {
    Ended(GetOutcome),
    Long,
    Unusable(ServerError),
}

impl AnswerHandler {
    pub(super) fn new(keyspace: Arc<Keyspace>, counts: Arc<Counts>, long: Arc<LongGets>) -> Self {
        Self { keyspace, counts, long, open: HashMap::new(), ended: vec![], wanted: vec![] }
    }

    pub(super) fn expect(&mut self, key: ReadKey, open: Open) {
        self.open.insert(key, open);
    }

    pub(super) fn close(&mut self) -> Vec<Open> {
        std::mem::take(&mut self.open).into_values().collect()
    }

    fn done(&mut self, open: Open, outcome: Result<Answer, Failure>) {
        let answer = match outcome {
            Ok(answer) => answer,
            Err(failure) => return self.ended.push((open.ending, Err(CacheError::from(failure).into()))),
        };
        // This server may have an old value. The selector's groups differ from ours.
        if !self.keyspace.servers(open.group).contains(&answer.server) {
            return self.go_on(open, answer.server, None);
        }
        match read(&answer.bytes) {
            Parsed::Ended(outcome) => {
                add(if matches!(outcome, Ok(Some(_))) { &self.counts.values } else { &self.counts.missing });
                self.ended.push((open.ending, outcome));
            }
            Parsed::Long => {
                add(&self.counts.long);
                self.go_on(open, answer.server, None);
            }
            Parsed::Unusable(why) => {
                self.counts.server_failed(&why);
                self.go_on(open, answer.server, Some(why));
            }
        }
    }

    /// Continues over TCP with the replicas, the server that answered first if usable. Never asks other servers, whatever the answer says.
    fn go_on(&mut self, open: Open, answered: SocketAddr, why: Option<ServerError>) {
        let mut servers = self.keyspace.servers(open.group).to_vec();
        match servers.iter().position(|server| *server == answered) {
            Some(place) if why.is_some() => drop(servers.remove(place)),
            Some(place) => servers.swap(0, place),
            None => add(&self.counts.foreign_servers),
        }
        let failed = why.map(|why| (answered, why)).into_iter().collect();
        let Open { ending, request, deadline, .. } = open;
        self.wanted.push(Wanted { ending, request, servers, failed, deadline });
    }
}

/// Nothing may follow an answer in a datagram.
fn read(bytes: &[u8]) -> Parsed {
    let answer = match parse_answer(bytes) {
        Ok(Some((BackendAnswer::Long { .. }, length))) if length == bytes.len() => return Parsed::Long,
        Ok(Some((answer, length))) if length == bytes.len() => answer,
        Ok(Some(_)) => return Parsed::Unusable(ServerError::Unfit),
        Ok(None) => return Parsed::Unusable(ServerError::Incomplete),
        Err(reject) => return Parsed::Unusable(ServerError::Garbage(reject)),
    };
    match read_answer(&answer) {
        Ok(StreamAnswer::Value(value)) => Parsed::Ended(Ok(Some(value))),
        Ok(StreamAnswer::Missing) => Parsed::Ended(Ok(None)),
        Ok(StreamAnswer::Done) => Parsed::Unusable(ServerError::Unfit),
        Err(why) => Parsed::Unusable(why),
    }
}

impl Handler<Client> for AnswerHandler {
    fn event(&mut self, _client: &mut Client, event: Event) {
        match event {
            Event::Done { key, outcome } => {
                // Absent after `close`.
                if let Some(open) = self.open.remove(&key) {
                    self.done(open, outcome);
                }
            }
            Event::OtherVersion { at, version } => tracing::error!(
                "{at} speaks version {version} of the cache's wire format, this program {NETRS_VERSION}: use one release of \
                 Midflight on all machines"
            ),
        }
    }

    fn after(&mut self) -> Option<impl FnOnce() + use<>> {
        let (ended, wanted) = (std::mem::take(&mut self.ended), std::mem::take(&mut self.wanted));
        let long = Arc::clone(&self.long);
        (!ended.is_empty() || !wanted.is_empty()).then_some(move || {
            ended.into_iter().for_each(|(ending, outcome)| ending.end(outcome));
            wanted.into_iter().for_each(|wanted| long.push(wanted));
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::client::Value;
    use midflight_wire::cache::backend::{BACKEND_VERSION, BackendReject, write_answer};

    fn bytes(answer: &BackendAnswer<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_answer(answer, &mut bytes);
        bytes
    }

    fn why(bytes: &[u8]) -> ServerError {
        match read(bytes) {
            Parsed::Unusable(why) => why,
            Parsed::Ended(outcome) => panic!("{outcome:?}"),
            Parsed::Long => panic!("long"),
        }
    }

    #[test]
    fn n8_what_is_no_answer_to_a_get_is_never_a_value() {
        let value = bytes(&BackendAnswer::Value { value: b"v", flags: 7 });
        let expected = Value { bytes: b"v".to_vec(), flags: 7 };
        assert!(matches!(read(&value), Parsed::Ended(Ok(Some(value))) if value == expected));
        assert!(matches!(read(&bytes(&BackendAnswer::Missing)), Parsed::Ended(Ok(None))));
        assert!(matches!(read(&bytes(&BackendAnswer::Long { length: 9 })), Parsed::Long));

        assert_eq!(why(&value[..value.len() - 1]), ServerError::Incomplete);
        assert_eq!(why(&[]), ServerError::Incomplete);
        assert_eq!(why(&[&value[..], b"x"].concat()), ServerError::Unfit);
        assert_eq!(why(b"SERVER_ERROR out of memory"), ServerError::Garbage(BackendReject::BadMagic));
        assert_eq!(why(&bytes(&BackendAnswer::Done)), ServerError::Unfit);
        assert_eq!(why(&bytes(&BackendAnswer::Refused { why: "full" })), ServerError::Refused("full".into()));
        let other = bytes(&BackendAnswer::OtherVersion { version: BACKEND_VERSION + 1 });
        assert_eq!(why(&other), ServerError::OtherVersion(BACKEND_VERSION + 1));
    }
}
