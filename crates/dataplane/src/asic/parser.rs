//! From the wire to the fields of a program.

use super::Inside;
use super::pipeline::Pipeline;
use crate::Verdict;
use midflight_wire::{BY_REFERENCE, BlobRef, Retrieve, Submit, TaskInfo, Wait};
use std::net::{IpAddr, SocketAddr, SocketAddrV4};

/// What a packet carries behind the fields that the parser reads. It stays with the packet, round and round.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Origin {
    pub(super) from: SocketAddr,
    pub(super) asked: Asked,
}

/// What was asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Asked {
    /// SUBMIT.
    Submit { sequence: u32, client: u64, count: u8 },
    /// RETRIEVE.
    Retrieve { slot: u32, generation: u32, sequence: u32 },
}

/// A SUBMIT. An entry has so many bytes of argument, where a reference needs all 16, and an IPv4 address.
pub(super) fn submit(
    pipeline: &Pipeline,
    from: SocketAddr,
    submit: &Submit,
    tasks: &[TaskInfo],
) -> Result<Inside, Verdict> {
    let client = ipv4(from)?;
    let most = pipeline.argument_bytes();
    let needs = |task: &TaskInfo| match task.argument_length {
        BY_REFERENCE => size_of::<BlobRef>(),
        bytes => bytes.into(),
    };
    if tasks.iter().any(|task| needs(task) > most) {
        return Err(Verdict::BadArgument);
    }
    let (sequence, identity) = (submit.header.sequence.get(), submit.client.get());
    let asked = Asked::Submit { sequence, client: identity, count: submit.header.count };
    let packet = pipeline.submit(client, identity as u32, sequence, tasks);
    Ok(Inside { packet, origin: Origin { from, asked } })
}

/// A RETRIEVE of one slot.
pub(super) fn retrieve(
    pipeline: &Pipeline,
    from: SocketAddr,
    retrieve: &Retrieve,
    wait: Wait,
) -> Result<Inside, Verdict> {
    let executor = ipv4(from)?;
    let Wait { slot, generation, sequence } = wait;
    let asked = Asked::Retrieve { slot: slot.get(), generation: generation.get(), sequence: sequence.get() };
    Ok(Inside { packet: pipeline.retrieve(executor, retrieve.resources), origin: Origin { from, asked } })
}

/// The switch has parsed IPv4 only; what is mapped into IPv6 arrived as IPv4.
fn ipv4(address: SocketAddr) -> Result<SocketAddrV4, Verdict> {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => Ok(SocketAddrV4::new(ip, address.port())),
        IpAddr::V6(_) => Err(Verdict::NotForSwitch),
    }
}
