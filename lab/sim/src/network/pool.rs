//! Datagrams in transit, in reused memory.

use crate::NodeId;
use midflight_endpoint::Nanos;
use std::net::SocketAddr;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketId(pub(crate) u32);

#[derive(Debug)]
pub(crate) struct Packet {
    pub(crate) from: NodeId,
    /// The sender's address at the time of sending.
    pub(crate) source: SocketAddr,
    pub(crate) to: NodeId,
    pub(crate) extra: Nanos,
    pub(crate) bytes: Vec<u8>,
}

#[derive(Debug, Default)]
pub(crate) struct Pool {
    packets: Vec<Packet>,
    free: Vec<PacketId>,
}

impl Pool {
    pub(crate) fn add(&mut self, from: NodeId, source: SocketAddr, to: NodeId, extra: Nanos, bytes: &[u8]) -> PacketId {
        let id = self.free.pop().unwrap_or_else(|| {
            self.packets.push(Packet { from, source, to, extra, bytes: Vec::new() });
            PacketId(self.packets.len() as u32 - 1)
        });
        let packet = &mut self.packets[id.0 as usize];
        (packet.from, packet.source, packet.to, packet.extra) = (from, source, to, extra);
        packet.bytes.clear();
        packet.bytes.extend_from_slice(bytes);
        id
    }

    pub(crate) fn get(&self, id: PacketId) -> &Packet {
        &self.packets[id.0 as usize]
    }

    pub(crate) fn set_target(&mut self, id: PacketId, to: NodeId) {
        self.packets[id.0 as usize].to = to;
    }

    /// Returns the memory of [`Pool::take_bytes`] with its current content.
    pub(crate) fn set_bytes(&mut self, id: PacketId, bytes: Vec<u8>) {
        self.packets[id.0 as usize].bytes = bytes;
    }

    /// Takes the payload, to be returned to [`Pool::free`].
    pub(crate) fn take_bytes(&mut self, id: PacketId) -> Vec<u8> {
        std::mem::take(&mut self.packets[id.0 as usize].bytes)
    }

    /// Removes a datagram that has arrived, or never will. `bytes`: the memory of [`Pool::take_bytes`].
    pub(crate) fn free(&mut self, id: PacketId, bytes: Option<Vec<u8>>) {
        if let Some(bytes) = bytes {
            self.set_bytes(id, bytes);
        }
        self.free.push(id);
    }
}
