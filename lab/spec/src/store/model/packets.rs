//! Datagrams in and out.

use super::set::Set;
use midflight_dataplane::Datagram;
use midflight_dataplane::store::Verdict;
use midflight_wire::store::{FLAGS_KEPT, NO_SLOT, Operation, Request, Status};
use midflight_wire::{Address, Header, MAGIC, PACKET_MAX, Reject, VERSION, VERSION_OPERATION, Version};
use std::net::SocketAddr;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

pub(super) type Effect = (Verdict, Vec<Datagram>);

pub(super) fn refused(verdict: Verdict) -> Effect {
    (verdict, Vec::new())
}

#[derive(Clone, Copy)]
pub(super) struct Came<'a> {
    pub(super) from: SocketAddr,
    pub(super) now: u64,
    pub(super) bytes: &'a [u8],
}

impl Came<'_> {
    pub(super) fn forward(&self, to: impl Into<SocketAddr>, request: &Request) -> Effect {
        let bytes = [request.as_bytes(), &self.bytes[size_of::<Request>()..]].concat();
        (Verdict::Forwarded, vec![(to.into(), bytes)])
    }

    pub(super) fn answer_state(&self, verdict: Verdict, set: &Set, question: &Header) -> Effect {
        (verdict, vec![(self.from, set.state(self.now, question.sequence.get()).as_bytes().to_vec())])
    }
}

/// What a client may see of a request or reply.
pub(super) fn for_client(request: &Request) -> Request {
    let mut seen = Request {
        sid: 0.into(),
        seq: 0.into(),
        index: 0.into(),
        client: Address::new_zeroed(),
        replicas: 0,
        flags: request.flags & FLAGS_KEPT,
        ..*request
    };
    seen.header.epoch = 0.into();
    seen
}

pub(super) fn answer(request: &Request, status: Status) -> Request {
    let operation = request.header.operation + 1;
    Request {
        header: Header::new(operation, 0, request.header.sequence.get()),
        key_length: 0.into(),
        slot: NO_SLOT,
        status: status as u8,
        ..for_client(request)
    }
}

pub(super) fn valid_operation(datagram: &[u8]) -> Option<Operation> {
    let (header, _) = Header::ref_from_prefix(datagram).ok()?;
    let is_valid = header.magic.get() == MAGIC && header.version == VERSION && header.key == 0;
    Operation::from_number(header.operation).filter(|_| is_valid && datagram.len() <= PACKET_MAX)
}

/// Whatever follows the header: two switches that answered each other's VERSION would never stop.
pub(super) fn is_version(datagram: &[u8]) -> bool {
    Version::ref_from_prefix(datagram)
        .is_ok_and(|(start, _)| start.magic.get() == MAGIC && start.operation == VERSION_OPERATION)
}

pub(super) fn verdict_of(reject: Reject) -> Verdict {
    match reject {
        Reject::Truncated => Verdict::Truncated,
        Reject::Trailing => Verdict::Trailing,
        Reject::BadMagic => Verdict::BadMagic,
        Reject::BadVersion(_) => Verdict::BadVersion,
        Reject::UnknownKey => Verdict::UnknownKey,
        Reject::UnknownOperation => Verdict::UnknownOperation,
        Reject::BadCount => Verdict::BadCount,
        Reject::BadKey => Verdict::BadKey,
        Reject::BadStatus => Verdict::BadStatus,
        Reject::BadPriority | Reject::BadArgument | Reject::BadResult => Verdict::NotForSwitch,
    }
}
