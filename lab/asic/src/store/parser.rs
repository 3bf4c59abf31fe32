//! Checks a datagram before it changes anything.

use midflight_dataplane::store::{Stats, Verdict};
use midflight_wire::store::{Operation, Packet, parse};
use midflight_wire::{Header, MAGIC, PACKET_MAX, Reject, VERSION, VERSION_OPERATION, Version};
use zerocopy::FromBytes;

/// Reads a datagram, and counts it under its operation. BAD_VERSION must be answered by VERSION.
pub(super) fn read<'a>(datagram: &'a [u8], stats: &mut Stats) -> Result<Packet<'a>, Verdict> {
    if let Some(operation) = operation(datagram) {
        stats.packets[operation as usize] += 1;
        if operation == Operation::State {
            return Err(Verdict::NotForSwitch);
        }
    }
    if is_version(datagram) {
        return Err(Verdict::NotForSwitch);
    }
    parse(datagram).map_err(|reject| match reject {
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
    })
}

/// The operation of a datagram whose header is right.
fn operation(datagram: &[u8]) -> Option<Operation> {
    let (header, _) = Header::ref_from_prefix(datagram).ok()?;
    let is_valid = header.magic.get() == MAGIC && header.version == VERSION && header.key == 0;
    Operation::from_number(header.operation).filter(|_| is_valid && datagram.len() <= PACKET_MAX)
}

/// Whatever its version: two switches that answered each other's VERSION would never stop.
fn is_version(datagram: &[u8]) -> bool {
    Version::ref_from_prefix(datagram)
        .is_ok_and(|(start, _)| start.magic.get() == MAGIC && start.operation == VERSION_OPERATION)
}
