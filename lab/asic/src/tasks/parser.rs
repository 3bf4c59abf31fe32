//! Parses packets into the fields of a program.

use super::Inside;
use super::pipeline::Pipeline;
use midflight_wire::tasks::{BY_REFERENCE, BlobRef, Preference, Retrieve, Submit, TaskInfo, Wait};
use std::net::{IpAddr, SocketAddr, SocketAddrV4};

/// The payload after the parsed fields. It stays with a packet that recirculates.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub(super) from: SocketAddr,
    pub(super) asked: Asked,
}

#[derive(Clone, Debug)]
pub(super) enum Asked {
    /// SUBMIT. `prefers`: its tasks have a placement preference.
    Submit { sequence: u32, client: u64, count: u8, prefers: bool },
    /// RETRIEVE.
    Retrieve { slot: u32, generation: u32, sequence: u32 },
}

/// The sender. The parser supports IPv4 only.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sender {
    pub(super) from: SocketAddr,
    ipv4: SocketAddrV4,
}

/// An IPv4 sender, also in the mapped form of IPv6.
pub(super) fn ipv4(from: SocketAddr) -> Option<Sender> {
    match from.ip().to_canonical() {
        IpAddr::V4(ip) => Some(Sender { from, ipv4: SocketAddrV4::new(ip, from.port()) }),
        IpAddr::V6(_) => None,
    }
}

/// A SUBMIT with the lower half of its token, unless an argument is longer than an entry has room for; a reference needs all 16 bytes.
pub(super) fn submit(
    pipeline: &Pipeline,
    sender: Sender,
    submit: &Submit,
    tasks: &[TaskInfo],
    preference: Option<&Preference>,
) -> Option<Inside> {
    let needs = |task: &TaskInfo| match task.argument_length {
        BY_REFERENCE => size_of::<BlobRef>(),
        bytes => bytes.into(),
    };
    if tasks.iter().any(|task| needs(task) > pipeline.argument_bytes()) {
        return None;
    }
    let sequence = submit.header.sequence.get();
    let prefers = preference.is_some_and(|preference| preference.place.get() != 0);
    let asked = Asked::Submit { sequence, client: submit.client.get(), count: submit.header.count, prefers };
    let packet = pipeline.submit(sender.ipv4, submit.token.get() as u32, sequence, tasks);
    Some(Inside { packet, origin: Origin { from: sender.from, asked } })
}

pub(super) fn retrieve(pipeline: &Pipeline, sender: Sender, retrieve: &Retrieve, wait: Wait) -> Inside {
    let Wait { slot, generation, sequence } = wait;
    let asked = Asked::Retrieve { slot: slot.get(), generation: generation.get(), sequence: sequence.get() };
    let packet = pipeline.retrieve(sender.ipv4, retrieve.resources);
    Inside { packet, origin: Origin { from: sender.from, asked } }
}
