//! Makes packets from the fields of a program, and from the controller's answers.

use super::AsicConfig;
use super::parser::{Asked, Origin};
use super::pipeline::Assigned;
use midflight_dataplane::Datagram;
use midflight_wire::tasks::{
    Assign, Assignment, Cancel, CancelAck, Cookie, Known, NoOp, Probe, ProbeAck, Reason, Register, Registered,
    Released, Reset, SlotName, SubmitAck, TaskInfo, Wait,
};
use midflight_wire::{Header, Version, counting, packet};
use std::net::SocketAddr;
use zerocopy::IntoBytes;
use zerocopy::byteorder::network_endian::U64;

/// A user id that no user has. In an entry, half of the token replaces the user, which must not be shown as one.
const NOBODY: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
pub(super) struct Deparser {
    epoch: u32,
}

impl Deparser {
    pub(super) fn new(epoch: u32) -> Self {
        Self { epoch }
    }

    pub(super) fn is_present(&self, header: &Header) -> bool {
        header.epoch.get() == self.epoch
    }

    /// `None` if it does not answer a SUBMIT.
    pub(super) fn submit_ack(&self, origin: &Origin, taken: u32, refused: u32) -> Option<Datagram> {
        let Asked::Submit { sequence, client, count, .. } = origin.asked else { return None };
        let reason = if refused == 0 { Reason::None } else { Reason::Full };
        let ack = SubmitAck {
            client: client.into(),
            taken: taken.into(),
            not_taken: refused.into(),
            reason: reason as u8,
            ..SubmitAck::new(self.epoch, sequence)
        };
        Some((origin.from, counting(&ack, count)))
    }

    /// `None` if it does not answer a RETRIEVE.
    pub(super) fn assign(&self, origin: &Origin, task: &Assigned) -> Option<Datagram> {
        let Wait { slot, generation, sequence } = wait(origin)?;
        let assignment = Assignment {
            token: u64::from(task.token).into(),
            slot,
            generation,
            sequence,
            waited_us: 0.into(),
            task: TaskInfo { attempt: task.info.attempt.saturating_add(1), ..task.info },
            uid: NOBODY.into(),
            jid: task.submission.into(),
            address: SocketAddr::from(task.address).into(),
            submission: task.submission.into(),
            index: task.index,
            reserved: [0; 3],
        };
        Some((origin.from, packet(&Assign::new(self.epoch, 0), &[assignment])))
    }

    /// `None` if it does not answer a RETRIEVE.
    pub(super) fn no_op(&self, origin: &Origin) -> Option<Datagram> {
        Some((origin.from, packet(&NoOp::new(self.epoch, 0), &[wait(origin)?])))
    }

    pub(super) fn registered(
        &self,
        to: SocketAddr,
        register: &Register,
        names: &[SlotName],
        reason: Reason,
        config: &AsicConfig,
    ) -> Datagram {
        let registered = Registered {
            executor: register.executor,
            first: register.first,
            lease_ms: config.lease_ms.into(),
            seen: to.into(),
            reason: reason as u8,
            poll_us: config.poll_us.into(),
            ..Registered::new(self.epoch, register.header.sequence.get())
        };
        (to, packet(&registered, names))
    }

    /// A RESET for the void waits of the packet with this counter; `None` if there are none.
    pub(super) fn reset(&self, to: SocketAddr, counter: U64, void: &[Wait]) -> Option<Datagram> {
        let reset = Reset { counter, ..Reset::new(self.epoch, 0) };
        (!void.is_empty()).then(|| (to, packet(&reset, void)))
    }

    /// A RESET without records: all slots are void. `is_known`: it answers an executor's question whether the switch lives, and the
    /// executor has named one of its slots.
    pub(super) fn reset_all(&self, to: SocketAddr, counter: U64, is_known: bool) -> Datagram {
        (to, counting(&Reset { counter, ..Reset::new(self.epoch, is_known.into()) }, 0))
    }

    /// `None` if no slot was released.
    pub(super) fn released(&self, to: SocketAddr, counter: U64, gone: &[SlotName]) -> Option<Datagram> {
        let released = Released { counter, ..Released::new(self.epoch, 0) };
        (!gone.is_empty()).then(|| (to, packet(&released, gone)))
    }

    pub(super) fn cookie(&self, to: SocketAddr, question: &Header, identity: U64, cookie: u64) -> Datagram {
        let sequence = question.sequence.get();
        (to, counting(&Cookie { identity, cookie: cookie.into(), ..Cookie::new(self.epoch, sequence) }, 0))
    }

    pub(super) fn probe_ack(&self, to: SocketAddr, probe: &Probe) -> Datagram {
        let ack = ProbeAck {
            client: probe.client,
            seen: to.into(),
            known: Known::NoRecord as u8,
            ..ProbeAck::new(self.epoch, probe.header.sequence.get())
        };
        (to, counting(&ack, probe.header.count))
    }

    pub(super) fn cancel_ack(&self, to: SocketAddr, cancel: &Cancel) -> Datagram {
        let ack = CancelAck { client: cancel.client, ..CancelAck::new(self.epoch, cancel.header.sequence.get()) };
        (to, counting(&ack, 0))
    }
}

pub(super) fn version(to: SocketAddr) -> Datagram {
    (to, Version::OURS.as_bytes().to_vec())
}

fn wait(origin: &Origin) -> Option<Wait> {
    let Asked::Retrieve { slot, generation, sequence } = origin.asked else { return None };
    Some(Wait { slot: slot.into(), generation: generation.into(), sequence: sequence.into() })
}
