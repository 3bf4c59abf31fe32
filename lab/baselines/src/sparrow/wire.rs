//! Sparrow's packets: a fixed header, then `count` records of equal size. All numbers are in network byte order.
//!
//! | operation | from, to | records | answered by |
//! |---|---|---|---|
//! | SUBMIT | client → scheduler | tasks `first` to `first + count` of the `total` of a job | SUBMIT_ACK |
//! | RESERVE | scheduler → worker | one reservation | RESERVE_ACK |
//! | GET_TASK | worker → scheduler | one reservation (0: any task) | TASK |
//! | TASK | scheduler → worker | the task, or none | |
//! | CANCEL | scheduler → worker | reservations | CANCEL_ACK |
//! | DONE | worker → scheduler | ends of tasks | DONE_ACK |
//! | ENDED | scheduler → client | ends of tasks | ENDED_ACK |

use midflight_wire::tasks::TaskInfo;
use zerocopy::byteorder::network_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// "SP" in ASCII.
pub const MAGIC: u16 = 0x5350;
/// Version of this format.
pub const VERSION: u8 = 1;
/// Maximum records in a packet.
pub const RECORDS_MAX: usize = 32;
/// Maximum tasks in a job.
pub const JOB_MAX: u32 = 1 << 20;

macro_rules! layout {
    ($($(#[$doc:meta])* pub struct $name:ident { $($(#[$fdoc:meta])* pub $field:ident: $ty:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
        #[repr(C)]
        pub struct $name { $($(#[$fdoc])* pub $field: $ty,)* }
    )*};
}

layout! {
    /// The 16-byte header of every packet.
    pub struct Header {
        /// [`MAGIC`].
        pub magic: U16,
        /// [`VERSION`].
        pub version: u8,
        /// An [`Operation`].
        pub operation: u8,
        /// Number of records that follow.
        pub count: u8,
        /// Zero.
        pub reserved: [u8; 3],
        /// Request number, repeated in the answer.
        pub request: U64,
    }

    /// The job of a SUBMIT, before its tasks.
    pub struct Part {
        /// The client's identity: random, different for each process.
        pub client: U64,
        /// The job's number: 0, 1, 2 ….
        pub job: U32,
        /// Number of the first task in this packet.
        pub first: U32,
        /// Number of tasks in the whole job.
        pub total: U32,
    }

    /// An answer to GET_TASK, after the header. A [`TaskInfo`] follows if there is a task.
    pub struct Given {
        /// The scheduler's number for the task.
        pub task: U64,
        /// The client's identity.
        pub client: U64,
        /// The job.
        pub job: U32,
    }

    /// A reservation or task, as its scheduler numbers it.
    pub struct Number {
        /// Counts from 1.
        pub number: U64,
    }

    /// End of a task, reported to its scheduler.
    pub struct Done {
        /// [`Given::task`].
        pub task: U64,
        /// A [`midflight_wire::tasks::Status`].
        pub status: u8,
        /// Zero.
        pub reserved: [u8; 3],
    }

    /// End of a task, reported to its client.
    pub struct Ended {
        /// The job.
        pub job: U32,
        /// The task's number in the job.
        pub tid: U32,
        /// A [`midflight_wire::tasks::Status`].
        pub status: u8,
        /// Zero.
        pub reserved: [u8; 3],
    }
}

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident = $number:literal,)*) => {
        /// Purpose of a packet; see the module's table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        #[allow(missing_docs, reason = "the module's table has a line for each")]
        pub enum Operation { $($name = $number,)* }

        impl Operation {
            fn from_number(number: u8) -> Option<Self> {
                match number { $($number => Some(Self::$name),)* _ => None }
            }
        }
    };
}

operations! {
    Submit = 1,
    SubmitAck = 2,
    Reserve = 3,
    ReserveAck = 4,
    GetTask = 5,
    Task = 6,
    Cancel = 7,
    CancelAck = 8,
    Done = 9,
    DoneAck = 10,
    Ended = 11,
    EndedAck = 12,
}

/// A parsed packet.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the module's table has a line for each")]
pub enum Packet<'a> {
    Submit(&'a Part, &'a [TaskInfo]),
    Reserve(u64),
    GetTask(u64),
    Task(Option<(&'a Given, &'a TaskInfo)>),
    Cancel(&'a [Number]),
    Done(&'a [Done]),
    Ended(&'a [Ended]),
    /// An empty answer; the header has its request's number.
    Ack(Operation),
}

/// Why a datagram was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reject {
    /// Its length is wrong.
    #[error("length")]
    Length,
    /// Unknown magic or version.
    #[error("format")]
    Format,
    /// A count or number is out of bounds.
    #[error("bounds")]
    Bounds,
}

/// Parses and checks a datagram. Returns the request's number and the packet.
///
/// # Errors
/// [`Reject`] if it is malformed.
pub fn parse(datagram: &[u8]) -> Result<(u64, Packet<'_>), Reject> {
    let (header, rest) = Header::ref_from_prefix(datagram).map_err(|_| Reject::Length)?;
    if header.magic.get() != MAGIC || header.version != VERSION {
        return Err(Reject::Format);
    }
    let operation = Operation::from_number(header.operation).ok_or(Reject::Format)?;
    let count = usize::from(header.count);
    let packet = match operation {
        Operation::Submit => submit(rest, count)?,
        Operation::Reserve => Packet::Reserve(one::<Number>(rest, count)?.number.get()),
        Operation::GetTask => Packet::GetTask(one::<Number>(rest, count)?.number.get()),
        Operation::Task if count == 0 && rest.is_empty() => Packet::Task(None),
        Operation::Task => Packet::Task(Some(given(rest, count)?)),
        Operation::Cancel => Packet::Cancel(records(rest, count)?),
        Operation::Done => Packet::Done(records(rest, count)?),
        Operation::Ended => Packet::Ended(records(rest, count)?),
        ack if rest.is_empty() && count == 0 => Packet::Ack(ack),
        _ => return Err(Reject::Length),
    };
    Ok((header.request.get(), packet))
}

fn records<R>(rest: &[u8], count: usize) -> Result<&[R], Reject>
where
    R: FromBytes + KnownLayout + Immutable + Unaligned,
{
    if !(1..=RECORDS_MAX).contains(&count) {
        return Err(Reject::Bounds);
    }
    <[R]>::ref_from_bytes_with_elems(rest, count).map_err(|_| Reject::Length)
}

fn one<R>(rest: &[u8], count: usize) -> Result<&R, Reject>
where
    R: FromBytes + KnownLayout + Immutable + Unaligned,
{
    match records::<R>(rest, count)? {
        [one] => Ok(one),
        _ => Err(Reject::Bounds),
    }
}

fn submit(rest: &[u8], count: usize) -> Result<Packet<'_>, Reject> {
    let (part, rest) = Part::ref_from_prefix(rest).map_err(|_| Reject::Length)?;
    let tasks: &[TaskInfo] = records(rest, count)?;
    let (first, total) = (part.first.get(), part.total.get());
    let end = first.checked_add(tasks.len() as u32).ok_or(Reject::Bounds)?;
    if total > JOB_MAX || end > total || !(first as usize).is_multiple_of(RECORDS_MAX) {
        return Err(Reject::Bounds);
    }
    tasks.iter().try_for_each(check_task)?;
    Ok(Packet::Submit(part, tasks))
}

fn given(rest: &[u8], count: usize) -> Result<(&Given, &TaskInfo), Reject> {
    let (given, rest) = Given::ref_from_prefix(rest).map_err(|_| Reject::Length)?;
    let task: &TaskInfo = one(rest, count)?;
    check_task(task)?;
    Ok((given, task))
}

fn check_task(task: &TaskInfo) -> Result<(), Reject> {
    if usize::from(task.argument_length) > task.argument.len() { Err(Reject::Bounds) } else { Ok(()) }
}

/// Writes a packet's header.
pub fn write(buffer: &mut Vec<u8>, operation: Operation, request: u64) {
    let header = Header {
        magic: MAGIC.into(),
        version: VERSION,
        operation: operation as u8,
        count: 0,
        reserved: [0; 3],
        request: request.into(),
    };
    buffer.clear();
    buffer.extend_from_slice(header.as_bytes());
}

/// Appends the fixed part between header and records.
pub fn write_fixed<F: IntoBytes + Immutable>(buffer: &mut Vec<u8>, fixed: &F) {
    buffer.extend_from_slice(fixed.as_bytes());
}

/// Appends a record.
pub fn write_record<R: IntoBytes + Immutable>(buffer: &mut Vec<u8>, record: &R) {
    buffer.extend_from_slice(record.as_bytes());
    buffer[std::mem::offset_of!(Header, count)] += 1;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn t11_no_datagram_is_trusted(bytes in proptest::collection::vec(any::<u8>(), 0..200), operation in 0u8..14) {
            let mut datagram = Vec::new();
            write(&mut datagram, Operation::Submit, 1);
            datagram[3] = operation;
            datagram.extend_from_slice(&bytes);
            if let Some(count) = bytes.first() {
                datagram[4] = *count;
            }
            let _ = parse(&datagram);
            let _ = parse(&bytes);
        }
    }

    #[test]
    fn t11_what_is_too_short_too_long_or_foreign_is_refused() {
        let mut datagram = Vec::new();
        write(&mut datagram, Operation::Reserve, 7);
        assert_eq!(parse(&datagram).unwrap_err(), Reject::Bounds);
        write_record(&mut datagram, &Number { number: 9.into() });
        assert!(matches!(parse(&datagram), Ok((7, Packet::Reserve(9)))));
        assert_eq!(parse(&datagram[..20]).unwrap_err(), Reject::Length);
        datagram.push(0);
        assert_eq!(parse(&datagram).unwrap_err(), Reject::Length);
        datagram[0] = 0;
        assert_eq!(parse(&datagram).unwrap_err(), Reject::Format);
    }
}
