//! The participants' names and their memory of the switch's packets.

use midflight_wire::store::{Packet, parse};
use std::collections::BTreeMap;
use std::net::SocketAddr;

#[derive(Debug, Default)]
pub(super) struct Names {
    clients: Vec<(String, SocketAddr)>,
    replicas: Vec<(String, SocketAddr)>,
    requests: u64,
    /// Requests by number, as a replica last received them.
    asked: BTreeMap<u64, Vec<u8>>,
    /// By set, the incarnation and time in the last STATE.
    states: BTreeMap<u16, (u64, u64)>,
}

impl Names {
    pub(super) fn declare_client(&mut self, name: &str) {
        let number = self.clients.len() as u8 + 1;
        self.clients.push((name.to_owned(), ([10, 0, 1, number], 7000).into()));
    }

    pub(super) fn declare_replica(&mut self, name: &str) {
        let number = self.replicas.len() as u8 + 1;
        self.replicas.push((name.to_owned(), ([10, 0, 0, number], 7001).into()));
    }

    pub(super) fn replicas(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.replicas.iter().map(|(_, address)| *address)
    }

    pub(super) fn client(&self, name: &str) -> Option<SocketAddr> {
        self.clients.iter().find(|(own, _)| own == name).map(|(_, address)| *address)
    }

    pub(super) fn replica(&self, name: &str) -> Option<(u8, SocketAddr)> {
        let slot = self.replicas.iter().position(|(own, _)| own == name)?;
        Some((slot as u8, self.replicas[slot].1))
    }

    pub(super) fn anybody(&self, name: &str) -> Result<SocketAddr, String> {
        let replica = self.replica(name).map(|(_, address)| address);
        self.client(name).or(replica).ok_or_else(|| format!("{name:?} is nobody: declare a client or a replica"))
    }

    pub(super) fn at(&self, address: SocketAddr) -> String {
        let found = self.clients.iter().chain(&self.replicas).find(|(_, own)| *own == address);
        found.map_or_else(|| address.to_string(), |(name, _)| name.clone())
    }

    pub(super) fn next_request(&mut self) -> u64 {
        self.requests += 1;
        self.requests
    }

    pub(super) fn asked(&self, request: u64) -> Result<&[u8], String> {
        self.asked.get(&request).map(Vec::as_slice).ok_or_else(|| format!("no replica got a request {request}"))
    }

    pub(super) fn state(&self, set: u16) -> (u64, u64) {
        self.states.get(&set).copied().unwrap_or_default()
    }

    pub(super) fn learn(&mut self, sent: &[u8]) {
        match parse(sent) {
            Ok(Packet::Read(request, _) | Packet::Write(request, ..)) => {
                self.asked.insert(request.request.get(), sent.to_vec());
            }
            Ok(Packet::State(state)) => {
                self.states.insert(state.set.get(), (state.incarnation.get(), state.now.get()));
            }
            _ => {}
        }
    }
}
