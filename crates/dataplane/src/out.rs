//! The datagrams that a call sends.

use crate::Datagram;
use crate::program::{CallError, Called};
use crate::raw::{OUT_MAX, RawForward, RawOut};
use midflight_wire::{Address, PACKET_MAX};
use std::net::SocketAddr;
use zerocopy::FromZeros;

/// The datagrams that a call sends. Reuse one for the life of a switch: it is large, and calls overwrite it.
pub struct Out(pub(crate) Box<RawOut>);

/// Where a datagram is forwarded; its header was rewritten in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forward {
    /// The new receiver.
    pub to: SocketAddr,
    /// Receiver of a copy, if any.
    pub copy_to: Option<SocketAddr>,
    /// Bytes to forward.
    pub length: usize,
}

impl std::fmt::Debug for Out {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Default for Out {
    fn default() -> Self {
        Self::new()
    }
}

impl Out {
    /// An empty output.
    #[must_use]
    pub fn new() -> Self {
        // SAFETY: all fields are integers, for which zero is valid.
        Self(unsafe { Box::new_zeroed().assume_init() })
    }

    #[cfg(feature = "kernel")]
    pub(crate) fn copy_from(&mut self, other: &RawOut) {
        let count = (other.count as usize).min(OUT_MAX);
        self.0.count = count as u32;
        self.0.is_genuine = other.is_genuine;
        self.0.is_forwarded = other.is_forwarded;
        self.0.forward = other.forward;
        for (own, others) in self.0.packet.iter_mut().zip(&other.packet[..count]) {
            own.to = others.to;
            own.length = others.length.min(own.data.len() as u32);
            let used = own.length as usize;
            own.data[..used].copy_from_slice(&others.data[..used]);
        }
    }

    /// Replaces the contents by these datagrams.
    ///
    /// # Errors
    /// If some have no room and are left out: the last ones, and those longer than a packet.
    pub fn owe(&mut self, datagrams: &[Datagram]) -> Called<()> {
        self.clear();
        let mut places = self.0.packet.iter_mut();
        let fitting = datagrams.iter().filter(|(_, bytes)| bytes.len() <= PACKET_MAX);
        for ((to, bytes), own) in fitting.zip(&mut places) {
            own.data[..bytes.len()].copy_from_slice(bytes);
            (own.to, own.length) = ((*to).into(), bytes.len() as u32);
            self.0.count += 1;
        }
        match datagrams.len() - self.len() {
            0 => Ok(()),
            left_out => Err(CallError(format!("{left_out} answers are more than a call may owe"))),
        }
    }

    /// Forwards the first `length` bytes of the datagram in their current form, and sends nothing else.
    pub fn forward_to(&mut self, to: SocketAddr, header: usize, length: usize) {
        self.clear();
        let none = Address::new_zeroed();
        self.0.forward = RawForward { to: to.into(), copy_to: none, header: header as u32, length: length as u32 };
        self.0.is_forwarded = 1;
    }

    /// Also sends a copy of the forwarded datagram to this address.
    pub fn copy_to(&mut self, to: Option<SocketAddr>) {
        self.0.forward.copy_to = to.map_or_else(Address::new_zeroed, Address::from);
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        (self.0.count, self.0.is_genuine, self.0.is_forwarded) = (0, 0, 0);
    }

    /// Number of answers.
    #[must_use]
    pub fn len(&self) -> usize {
        (self.0.count as usize).min(OUT_MAX)
    }

    /// Whether there is no answer.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The answers in sending order.
    pub fn iter(&self) -> impl Iterator<Item = (SocketAddr, &[u8])> {
        self.0.packet[..self.len()].iter().map(|p| (p.to.into(), &p.data[..p.length as usize]))
    }

    /// The receiver of the forwarded datagram, if any.
    #[must_use]
    pub fn forward(&self) -> Option<Forward> {
        let forward = &self.0.forward;
        let copy_to = SocketAddr::from(forward.copy_to);
        (self.0.is_forwarded != 0).then(|| Forward {
            to: forward.to.into(),
            copy_to: (copy_to.port() != 0).then_some(copy_to),
            length: forward.length as usize,
        })
    }

    /// All datagrams to send: the forwarded datagram as rewritten by the program, if any; then the answers.
    pub fn all<'a>(&'a self, datagram: &'a [u8]) -> impl Iterator<Item = (SocketAddr, &'a [u8])> {
        let forward = self.forward();
        let onward = forward.into_iter().flat_map(|forward| [Some(forward.to), forward.copy_to].into_iter().flatten());
        let bytes = forward.and_then(|forward| datagram.get(..forward.length));
        onward.filter_map(move |to| Some((to, bytes?))).chain(self.iter())
    }

    /// Marks the datagram as genuine: see [`is_genuine`](Self::is_genuine).
    pub fn set_genuine(&mut self) {
        self.0.is_genuine = 1;
    }

    /// Whether only the owner of the sender's address can have sent the datagram, and it is no copy of an earlier one. If so, the caller
    /// may learn the path to that peer from it.
    #[must_use]
    pub fn is_genuine(&self) -> bool {
        self.0.is_genuine != 0
    }
}
