//! The participants' names and their memory of the operator's packets.

use midflight_wire::cache::{Packet, parse};
use std::collections::BTreeMap;
use std::net::SocketAddr;

#[derive(Debug, Default)]
pub(super) struct Names {
    all: Vec<(String, SocketAddr)>,
    requests: u64,
    /// Requests by number, as they last left the operator.
    asked: BTreeMap<u64, Vec<u8>>,
}

impl Names {
    /// Each kind has its own network.
    pub(super) fn declare(&mut self, kind: &str, name: &str) {
        let (network, port) = match kind {
            "client" => (1, 7000),
            "server" => (2, 7800),
            "operator" => (3, 7900),
            _ => (4, 7901),
        };
        let number = self.all.len() as u8 + 1;
        self.all.push((name.to_owned(), ([10, 0, network, number], port).into()));
    }

    pub(super) fn anybody(&self, name: &str) -> Result<SocketAddr, String> {
        let found = self.all.iter().find(|(own, _)| own == name).map(|(_, address)| *address);
        found.ok_or_else(|| format!("{name:?} is nobody: declare a client, a server, an operator or a selector"))
    }

    pub(super) fn at(&self, address: SocketAddr) -> String {
        let found = self.all.iter().find(|(_, own)| *own == address);
        found.map_or_else(|| address.to_string(), |(name, _)| name.clone())
    }

    pub(super) fn next_request(&mut self) -> u64 {
        self.requests += 1;
        self.requests
    }

    pub(super) fn asked(&self, request: u64) -> Result<&[u8], String> {
        self.asked.get(&request).map(Vec::as_slice).ok_or_else(|| format!("no request {request} was passed on"))
    }

    pub(super) fn learn(&mut self, sent: &[u8]) {
        if let Ok(Packet::Request(_, ends, _) | Packet::ForServer(_, _, ends, _)) = parse(sent) {
            self.asked.insert(ends.request.get(), sent.to_vec());
        }
    }
}
