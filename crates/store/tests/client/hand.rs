use super::common::packets::Asked;
use midflight_endpoint::{Endpoint, MS, Nanos, SECOND};
use midflight_store::client::{Answer, Client, ClientConfig, Counters, Event, Operation, OperationKey, StoreError};
use midflight_wire::store::Status;
use std::net::SocketAddr;

pub(super) const SET: u16 = 3;

pub(super) fn switch(last: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, last], 7700))
}

/// A client, with scripted switches and replicas.
pub(super) struct Hand {
    pub(super) client: Client,
    pub(super) now: Nanos,
}

impl Hand {
    pub(super) fn new(switches: u8, change: impl FnOnce(&mut ClientConfig)) -> Self {
        let mut config = ClientConfig::new((1..=switches).map(switch).collect(), SET, 7);
        change(&mut config);
        let now = 1_000 * SECOND;
        Self { client: Client::new(config, now).unwrap(), now }
    }

    /// Has one switch, a round trip of a millisecond and, in its only lane, client id 50.
    pub(super) fn settled() -> Self {
        let mut hand = Self::new(1, |config| config.lanes = 1);
        hand.submit(put("settled"));
        hand.submit(get("settled"));
        let [(_, read), (_, opening)] = &hand.sent()[..] else { panic!("a read and an opening") };
        hand.now += MS;
        hand.says(1, &opening.answer(Status::Done, &50_u64.to_be_bytes()));
        hand.says(1, &read.answer(Status::NotFound, b""));
        let write = hand.one().1;
        hand.now += MS;
        hand.says(1, &write.answer(Status::Done, b""));
        hand.events();
        hand
    }

    pub(super) fn submit(&mut self, operation: Operation) -> OperationKey {
        self.client.submit(self.now, operation).unwrap()
    }

    pub(super) fn sent(&mut self) -> Vec<(SocketAddr, Asked)> {
        let mut buffer = Vec::new();
        let mut sent = Vec::new();
        while let Some(to) = self.client.poll_transmit(self.now, &mut buffer) {
            sent.push((to, Asked::read(&buffer)));
        }
        sent
    }

    pub(super) fn one(&mut self) -> (SocketAddr, Asked) {
        let sent = self.sent();
        let [one] = &sent[..] else { panic!("one packet: {sent:?}") };
        one.clone()
    }

    pub(super) fn says(&mut self, from: u8, datagram: &[u8]) {
        self.client.handle(self.now, switch(from), datagram);
    }

    pub(super) fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.client.poll_event()).collect()
    }

    /// The outcome of the only operation that has ended.
    pub(super) fn outcome(&mut self) -> Result<Answer, StoreError> {
        let mut done = self.events().into_iter().filter_map(|event| match event {
            Event::Done { outcome, .. } => Some(outcome),
            _ => None,
        });
        let first = done.next().expect("an operation has ended");
        assert_eq!(done.next(), None);
        first
    }

    /// Advances time and runs timers; returns what the client sends, with the time since the start.
    pub(super) fn pass(&mut self, time: Nanos) -> Vec<(Nanos, SocketAddr, Asked)> {
        let (begin, end) = (self.now, self.now + time);
        let mut sent: Vec<_> = self.sent().into_iter().map(|(to, asked)| (0, to, asked)).collect();
        while let Some(due) = self.client.poll_timeout().filter(|due| *due <= end) {
            assert!(due > self.now || sent.len() < 10_000, "timers that are due again at once");
            self.now = self.now.max(due);
            self.client.handle_timeout(self.now);
            sent.extend(self.sent().into_iter().map(|(to, asked)| (self.now - begin, to, asked)));
        }
        self.now = end;
        sent
    }

    pub(super) fn counters(&self) -> Counters {
        *self.client.counters()
    }
}

pub(super) fn get(key: &str) -> Operation {
    Operation::Get { key: key.into() }
}

pub(super) fn put(key: &str) -> Operation {
    Operation::Put { key: key.into(), value: b"value".to_vec() }
}

pub(super) fn incr(key: &str) -> Operation {
    Operation::Incr { key: key.into(), by: 2 }
}
