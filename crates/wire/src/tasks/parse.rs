//! Parses datagrams. Checks every length and count before it reads a record.

use super::layout::*;
use super::{CANCEL_MAX, COMPLETE_MAX, LEVELS, Operation, PROBE_MAX, REGISTER_MAX, RESULT_MAX, SLOTS_MAX, SUBMIT_MAX};
use crate::mutants::planted;
use crate::parse::{Start, beginning, counting, start, with_records};
use crate::{Header, PACKET_MAX, Reject, Version};
use zerocopy::FromBytes;

/// A well-formed packet, borrowed from its datagram.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "named after the operations")]
pub enum Packet<'a> {
    Submit(&'a Submit, &'a [TaskInfo], Appendix<'a>, Option<&'a Preference>),
    SubmitAck(&'a SubmitAck),
    Register(&'a Register),
    Registered(&'a Registered, &'a [SlotName]),
    Reset(&'a Reset, &'a [Wait]),
    Retrieve(&'a Retrieve, &'a [Wait]),
    Assign(&'a Assign, &'a [Assignment], Appendix<'a>),
    Keepalive(&'a Keepalive, &'a [Wait]),
    Release(&'a Release, &'a [Leave]),
    Released(&'a Released, &'a [SlotName]),
    Complete(&'a Complete, Completions<'a>),
    CompleteAck(&'a CompleteAck, &'a [Completed]),
    Probe(&'a Probe, &'a [TaskName]),
    ProbeAck(&'a ProbeAck),
    Cancel(&'a Cancel, &'a [TaskName]),
    CancelAck(&'a CancelAck, &'a [Holder]),
    NoOp(&'a NoOp, &'a [Wait]),
    Cookie(&'a Cookie),
    Stop(&'a Stop, &'a [RunName]),
    /// The sender uses another version.
    Version(&'a Version),
}

/// The appended arguments of a packet, already validated.
#[derive(Clone, Copy, Debug, Default)]
pub struct Appendix<'a>(&'a [u8]);

impl<'a> Appendix<'a> {
    /// The argument of the next task, in the order of the records; `None` if it is not appended.
    pub fn next(&mut self, task: &TaskInfo) -> Option<&'a [u8]> {
        let argument = self.next_padded(task).get(..task.appended_length())?;
        (!argument.is_empty()).then_some(argument)
    }

    /// The same with its padding; empty if it is not appended.
    pub fn next_padded(&mut self, task: &TaskInfo) -> &'a [u8] {
        let (argument, rest) = self.0.split_at_checked(task.appended_bytes()).unwrap_or_default();
        self.0 = rest;
        argument
    }
}

/// The completions of a COMPLETE with their results, already validated.
#[derive(Clone, Copy, Debug)]
pub struct Completions<'a> {
    count: u8,
    rest: &'a [u8],
}

/// Parses a datagram.
///
/// # Errors
/// A [`Reject`] if the datagram is malformed.
pub fn parse(datagram: &[u8]) -> Result<Packet<'_>, Reject> {
    let header = match start(datagram)? {
        Start::Version(version) => return Ok(Packet::Version(version)),
        Start::Packet(header) => header,
    };
    let operation = Operation::from_number(header.operation).ok_or(Reject::UnknownOperation)?;
    match operation {
        Operation::Submit => submit(datagram, header),
        Operation::SubmitAck => counting(datagram, header, 1..=SUBMIT_MAX, Packet::SubmitAck),
        Operation::Register => counting(datagram, header, 1..=REGISTER_MAX, Packet::Register),
        Operation::Registered => with_records(datagram, header, 0..=REGISTER_MAX, Packet::Registered),
        Operation::Reset => with_records(datagram, header, 0..=REGISTER_MAX, Packet::Reset),
        Operation::Retrieve => with_records(datagram, header, 1..=SLOTS_MAX, Packet::Retrieve),
        Operation::Assign => assign(datagram, header),
        Operation::Keepalive => with_records(datagram, header, 1..=REGISTER_MAX, Packet::Keepalive),
        Operation::Release if planted(55) => with_records(datagram, header, 0..=SLOTS_MAX, Packet::Release),
        Operation::Release => with_records(datagram, header, 1..=SLOTS_MAX, Packet::Release),
        Operation::Released => with_records(datagram, header, 1..=REGISTER_MAX, Packet::Released),
        Operation::Complete => complete(datagram, header),
        Operation::CompleteAck => with_records(datagram, header, 1..=COMPLETE_MAX, Packet::CompleteAck),
        Operation::Probe => with_records(datagram, header, 0..=PROBE_MAX, Packet::Probe),
        Operation::ProbeAck => counting(datagram, header, 0..=PROBE_MAX, Packet::ProbeAck),
        Operation::Cancel => with_records(datagram, header, 1..=CANCEL_MAX, Packet::Cancel),
        Operation::CancelAck => with_records(datagram, header, 0..=CANCEL_MAX, Packet::CancelAck),
        Operation::NoOp => with_records(datagram, header, 1..=SLOTS_MAX, Packet::NoOp),
        Operation::Cookie => counting(datagram, header, 0..=0, Packet::Cookie),
        Operation::Stop => with_records(datagram, header, 1..=CANCEL_MAX, Packet::Stop),
    }
}

fn submit<'a>(datagram: &'a [u8], header: &Header) -> Result<Packet<'a>, Reject> {
    let (fixed, tasks, rest) = beginning::<Submit, TaskInfo>(datagram, header, 1..=SUBMIT_MAX)?;
    let (appendix, rest) = appendix(tasks.iter(), rest)?;
    if datagram.len() > PACKET_MAX {
        return Err(Reject::Trailing);
    }
    if rest.is_empty() {
        return Ok(Packet::Submit(fixed, tasks, appendix, None));
    }
    let preference = Preference::ref_from_bytes(rest).map_err(|_| Reject::Trailing)?;
    Ok(Packet::Submit(fixed, tasks, appendix, Some(preference)))
}

fn assign<'a>(datagram: &'a [u8], header: &Header) -> Result<Packet<'a>, Reject> {
    let (fixed, assignments, rest) = beginning::<Assign, Assignment>(datagram, header, 1..=SLOTS_MAX)?;
    let (appendix, rest) = appendix(assignments.iter().map(|assignment| &assignment.task), rest)?;
    if rest.is_empty() { Ok(Packet::Assign(fixed, assignments, appendix)) } else { Err(Reject::Trailing) }
}

/// Checks the tasks and splits off their appended arguments.
fn appendix<'a, 'b>(
    mut tasks: impl Iterator<Item = &'b TaskInfo>,
    rest: &'a [u8],
) -> Result<(Appendix<'a>, &'a [u8]), Reject> {
    let bytes = tasks.try_fold(0, |bytes, task| {
        check_task(task)?;
        Ok(bytes + task.appended_bytes())
    })?;
    let (appended, rest) = rest.split_at_checked(bytes).ok_or(Reject::Truncated)?;
    Ok((Appendix(appended), rest))
}

fn check_task(task: &TaskInfo) -> Result<(), Reject> {
    if task.priority == 0 || task.priority > LEVELS {
        return Err(Reject::BadPriority);
    }
    if !task.has_good_argument() {
        return Err(Reject::BadArgument);
    }
    Ok(())
}

fn complete<'a>(datagram: &'a [u8], header: &Header) -> Result<Packet<'a>, Reject> {
    if !(1..=COMPLETE_MAX).contains(&usize::from(header.count)) {
        return Err(Reject::BadCount);
    }
    let (fixed, rest) = Complete::ref_from_prefix(datagram).map_err(|_| Reject::Truncated)?;
    let completions = Completions { count: header.count, rest };
    let mut unread = completions;
    while unread.count > 0 {
        unread.read()?;
    }
    if unread.rest.is_empty() { Ok(Packet::Complete(fixed, completions)) } else { Err(Reject::Trailing) }
}

impl<'a> Completions<'a> {
    fn read(&mut self) -> Result<(&'a Completion, &'a [u8]), Reject> {
        let (completion, rest) = Completion::ref_from_prefix(self.rest).map_err(|_| Reject::Truncated)?;
        let length = usize::from(completion.result_length.get());
        let fits = match completion.by_reference {
            0 => length <= RESULT_MAX,
            1 => length == size_of::<BlobRef>() || (planted(54) && length > size_of::<BlobRef>()),
            _ => false,
        };
        if !fits {
            return Err(Reject::BadResult);
        }
        let padded = if planted(52) { (length / 4 + 1) * 4 } else { length.next_multiple_of(4) };
        if rest.len() < padded {
            return Err(Reject::Truncated);
        }
        self.rest = &rest[padded..];
        self.count -= 1;
        Ok((completion, &rest[..length]))
    }
}

impl<'a> Iterator for Completions<'a> {
    type Item = (&'a Completion, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        if self.count == 0 {
            return None;
        }
        self.read().ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::from(self.count), Some(usize::from(self.count)))
    }
}
