//! T11: what is wrong with a datagram, before anything is changed.

use crate::{Stats, Verdict};
use midflight_wire::{ARGUMENT_MAX, BY_REFERENCE, Header, Operation, Packet, Reject, Submit, TaskInfo, parse};
use zerocopy::FromBytes;

/// Reads a datagram for a switch that has so many levels, and counts it under its operation.
pub(crate) fn read<'a>(datagram: &'a [u8], levels: u32, stats: &mut Stats) -> Result<Packet<'a>, Verdict> {
    let packet = parse(datagram);
    if let Ok((header, _)) = Header::ref_from_prefix(datagram)
        && !matches!(packet, Err(Reject::BadMagic | Reject::BadVersion | Reject::UnknownOperation))
    {
        stats.packets[usize::from(header.operation)] += 1;
        if Operation::from_number(header.operation).is_none_or(|operation| !is_for_switch(operation)) {
            return Err(Verdict::NotForSwitch);
        }
    }
    match packet {
        Ok(Packet::Submit(_, tasks)) => check_tasks(tasks, levels)?,
        Err(Reject::BadPriority | Reject::BadArgument) => check_tasks(tasks_of(datagram), levels)?,
        _ => {}
    }
    packet.map_err(|reject| match reject {
        Reject::Truncated => Verdict::Truncated,
        Reject::Trailing => Verdict::Trailing,
        Reject::BadMagic => Verdict::BadMagic,
        Reject::BadVersion => Verdict::BadVersion,
        Reject::UnknownOperation => Verdict::UnknownOperation,
        Reject::BadCount => Verdict::BadCount,
        Reject::BadPriority => Verdict::BadPriority,
        Reject::BadArgument => Verdict::BadArgument,
        Reject::BadResult => Verdict::NotForSwitch,
    })
}

/// The first fault of a SUBMIT's tasks, record by record.
fn check_tasks(tasks: &[TaskInfo], levels: u32) -> Result<(), Verdict> {
    for task in tasks {
        if task.priority == 0 || u32::from(task.priority) > levels {
            return Err(Verdict::BadPriority);
        }
        if usize::from(task.argument_length) > ARGUMENT_MAX && task.argument_length != BY_REFERENCE {
            return Err(Verdict::BadArgument);
        }
    }
    Ok(())
}

fn is_for_switch(operation: Operation) -> bool {
    use Operation::{Cancel, Keepalive, Probe, Register, Release, Retrieve, Submit};
    matches!(operation, Submit | Register | Retrieve | Keepalive | Release | Probe | Cancel)
}

/// The tasks of a SUBMIT whose lengths are right.
fn tasks_of(datagram: &[u8]) -> &[TaskInfo] {
    let records = datagram.get(size_of::<Submit>()..).unwrap_or_default();
    <[TaskInfo]>::ref_from_bytes(records).unwrap_or_default()
}
