//! T11: checks a datagram before it changes anything.

use crate::{Stats, Verdict};
use midflight_wire::tasks::{Operation, Packet, Submit, TaskInfo, parse};
use midflight_wire::{Header, MAGIC, Reject, VERSION, VERSION_OPERATION, Version};
use zerocopy::FromBytes;

/// Reads a datagram for a switch with this many levels, and counts it under its operation. BAD_VERSION must be answered by VERSION.
///
/// # Errors
/// The drop reason.
pub fn read<'a>(datagram: &'a [u8], levels: u32, stats: &mut Stats) -> Result<Packet<'a>, Verdict> {
    let (header, operation) = open(datagram)?;
    stats.packets[operation as usize] += 1;
    if header.key != 0 {
        return Err(Verdict::UnknownKey);
    }
    if !is_for_switch(operation) {
        return Err(Verdict::NotForSwitch);
    }
    let packet = parse(datagram);
    match packet {
        Ok(Packet::Submit(_, tasks, ..)) => check_tasks(tasks, levels)?,
        Err(Reject::BadPriority | Reject::BadArgument | Reject::Truncated | Reject::Trailing)
            if operation == Operation::Submit =>
        {
            check_tasks(tasks_of(header, datagram), levels)?;
        }
        _ => {}
    }
    packet.map_err(|reject| match reject {
        Reject::Truncated => Verdict::Truncated,
        Reject::Trailing => Verdict::Trailing,
        Reject::BadMagic => Verdict::BadMagic,
        Reject::BadVersion(_) => Verdict::BadVersion,
        Reject::UnknownKey => Verdict::UnknownKey,
        Reject::UnknownOperation => Verdict::UnknownOperation,
        Reject::BadCount => Verdict::BadCount,
        Reject::BadPriority => Verdict::BadPriority,
        Reject::BadArgument => Verdict::BadArgument,
        Reject::BadResult | Reject::BadKey | Reject::BadStatus => Verdict::NotForSwitch,
    })
}

/// Checks the header: first the part common to all versions, then the version, then the rest.
fn open(datagram: &[u8]) -> Result<(&Header, Operation), Verdict> {
    let (start, _) = Version::ref_from_prefix(datagram).map_err(|_| Verdict::Truncated)?;
    if start.magic.get() != MAGIC {
        return Err(Verdict::BadMagic);
    }
    // Whatever its version: two switches that answered each other's VERSION would never stop.
    if start.operation == VERSION_OPERATION {
        return Err(Verdict::NotForSwitch);
    }
    if start.version != VERSION {
        return Err(Verdict::BadVersion);
    }
    let (header, _) = Header::ref_from_prefix(datagram).map_err(|_| Verdict::Truncated)?;
    let operation = Operation::from_number(header.operation).ok_or(Verdict::UnknownOperation)?;
    Ok((header, operation))
}

/// The first fault of a SUBMIT's tasks, record by record.
fn check_tasks(tasks: &[TaskInfo], levels: u32) -> Result<(), Verdict> {
    for task in tasks {
        if task.priority == 0 || u32::from(task.priority) > levels {
            return Err(Verdict::BadPriority);
        }
        if !task.has_good_argument() {
            return Err(Verdict::BadArgument);
        }
    }
    Ok(())
}

fn is_for_switch(operation: Operation) -> bool {
    use Operation::{Cancel, Keepalive, Probe, Register, Release, Retrieve, Submit};
    matches!(operation, Submit | Register | Retrieve | Keepalive | Release | Probe | Cancel)
}

fn tasks_of<'a>(header: &Header, datagram: &'a [u8]) -> &'a [TaskInfo] {
    let records = datagram.get(size_of::<Submit>()..).unwrap_or_default();
    <[TaskInfo]>::ref_from_prefix_with_elems(records, header.count.into()).map_or(&[], |(tasks, _)| tasks)
}
