//! Packets that claim to come from the switch, an executor or the client. Guesses likely numbers of slots and submissions, and uses random
//! values where the protocol does.

use crate::attack::forge::{Forge, task};
use midflight_wire::tasks::{
    AckState, Assign, Assignment, Cancel, CancelAck, Complete, CompleteAck, Completed, Completion, Cookie, Keepalive,
    Known, Leave, LeaveHow, NoOp, Operation, Probe, ProbeAck, Reason, Register, Registered, Release, Released, Reset,
    Retrieve, RunName, SLOT_PLACES, SlotKind, SlotName, Status, Stop, SubmitAck, TaskName,
};
use midflight_wire::{Address, Header};
use rand::RngExt;

/// No function of a campaign returns this: a caller that gets it was deceived.
pub(in crate::attack) const FORGED: &[u8] = b"forged";

/// Half of them in the switch's epoch, half in another.
fn header_of_any_epoch(forge: &mut Forge, operation: Operation) -> Header {
    if forge.one_in(2) { forge.header(operation) } else { forge.header_of_another_epoch(operation) }
}

pub(super) fn reset_all(forge: &mut Forge) {
    let fixed = Reset { header: header_of_any_epoch(forge, Operation::Reset), counter: forge.name().into() };
    forge.write(&fixed);
    forge.pose_as_switch_to_executor();
}

pub(super) fn reset_named(forge: &mut Forge) {
    let fixed = Reset { header: header_of_any_epoch(forge, Operation::Reset), counter: forge.name().into() };
    let waits = std::array::from_fn::<_, 32, _>(|_| forge.wait());
    forge.write_all(&fixed, &waits);
    forge.pose_as_switch_to_executor();
}

fn slot_name(forge: &mut Forge) -> SlotName {
    SlotName { slot: forge.slot().into(), generation: forge.number().into() }
}

pub(super) fn registered(forge: &mut Forge) {
    let fixed = Registered {
        header: header_of_any_epoch(forge, Operation::Registered),
        executor: forge.name().into(),
        first: 0.into(),
        lease_ms: 1.into(),
        seen: Address::from(forge.known.own),
        reason: Reason::None as u8,
        reserved: 0,
        poll_us: 1.into(),
    };
    let names = std::array::from_fn::<_, 32, _>(|_| slot_name(forge));
    forge.write_all(&fixed, &names);
    forge.pose_as_switch_to_executor();
}

pub(super) fn assign(forge: &mut Forge) {
    let fixed = Assign { header: header_of_any_epoch(forge, Operation::Assign) };
    let client = forge.client();
    let assignments = std::array::from_fn::<_, 13, _>(|_| {
        let wait = forge.wait();
        Assignment {
            token: forge.name().into(),
            slot: wait.slot,
            generation: wait.generation,
            sequence: wait.sequence,
            waited_us: 0.into(),
            task: task(0),
            uid: 0.into(),
            jid: 0.into(),
            address: client.into(),
            submission: forge.submission().into(),
            index: 0,
            reserved: [0; 3],
        }
    });
    forge.write_all(&fixed, &assignments);
    forge.pose_as_switch_to_executor();
}

pub(super) fn released(forge: &mut Forge) {
    let fixed = Released { header: header_of_any_epoch(forge, Operation::Released), counter: forge.name().into() };
    let names = std::array::from_fn::<_, 32, _>(|_| slot_name(forge));
    forge.write_all(&fixed, &names);
    forge.pose_as_switch_to_executor();
}

pub(super) fn no_op(forge: &mut Forge) {
    let fixed = NoOp { header: header_of_any_epoch(forge, Operation::NoOp) };
    let waits = std::array::from_fn::<_, 13, _>(|_| forge.wait());
    forge.write_all(&fixed, &waits);
    forge.pose_as_switch_to_executor();
}

fn cookie(forge: &mut Forge) {
    let header = header_of_any_epoch(forge, Operation::Cookie);
    let fixed = Cookie { header, identity: forge.name().into(), cookie: forge.name().into() };
    forge.write(&fixed);
}

pub(super) fn cookie_to_executor(forge: &mut Forge) {
    cookie(forge);
    forge.pose_as_switch_to_executor();
}

pub(super) fn cookie_to_client(forge: &mut Forge) {
    cookie(forge);
    forge.pose_as_switch_to_client();
}

pub(super) fn submit_ack(forge: &mut Forge) {
    let taken = forge.number();
    let fixed = SubmitAck {
        header: header_of_any_epoch(forge, Operation::SubmitAck),
        client: forge.name().into(),
        taken: taken.into(),
        not_taken: (!taken).into(),
        reason: Reason::Full as u8,
        reserved: [0; 3],
        room: 0.into(),
    };
    forge.write(&fixed).set_count(32);
    forge.pose_as_switch_to_client();
}

pub(super) fn probe_ack(forge: &mut Forge) {
    let fixed = ProbeAck {
        header: header_of_any_epoch(forge, Operation::ProbeAck),
        client: forge.name().into(),
        seen: Address::from(forge.known.own),
        room: 0.into(),
        open: 0.into(),
        known: [Known::No, Known::Yes, Known::NoRecord][forge.random.random_range(0..3)] as u8,
        reserved: [0; 3],
    };
    let count = forge.random.random_range(0..=32);
    forge.write(&fixed).set_count(count);
    forge.pose_as_switch_to_client();
}

pub(super) fn cancel_ack(forge: &mut Forge) {
    let fixed = CancelAck {
        header: header_of_any_epoch(forge, Operation::CancelAck),
        client: forge.name().into(),
        taken_out: u32::MAX.into(),
        reason: Reason::None as u8,
        reserved: [0; 3],
    };
    forge.write(&fixed).set_count(32);
    forge.pose_as_switch_to_client();
}

pub(super) fn complete(forge: &mut Forge) {
    let fixed = Complete { header: header_of_any_epoch(forge, Operation::Complete), executor: forge.name().into() };
    let completions = std::array::from_fn::<_, 16, _>(|_| completion(forge));
    let mut packet = forge.write(&fixed);
    for completion in &completions {
        // They fit.
        let _ = packet.push_completion(completion, FORGED);
    }
    (forge.out.from, forge.out.to) = (forge.executor(), forge.client());
}

fn completion(forge: &mut Forge) -> Completion {
    Completion {
        proof: forge.name().into(),
        ran_ns: 1.into(),
        submission: forge.submission().into(),
        waited_us: 0.into(),
        held_us: 0.into(),
        result_length: (FORGED.len() as u16).into(),
        index: forge.random.random_range(0..32),
        attempt: 1,
        status: Status::Ok as u8,
        by_reference: 0,
        reserved: 0.into(),
    }
}

pub(super) fn complete_ack(forge: &mut Forge) {
    let fixed = CompleteAck { header: header_of_any_epoch(forge, Operation::CompleteAck) };
    let completed = std::array::from_fn::<_, 32, _>(|_| Completed {
        proof: forge.name().into(),
        submission: forge.submission().into(),
        index: forge.random.random_range(0..32),
        attempt: 1,
        state: AckState::Done as u8,
        reserved: 0,
    });
    forge.write_all(&fixed, &completed);
    (forge.out.from, forge.out.to) = (forge.client(), forge.executor());
}

pub(super) fn stop(forge: &mut Forge) {
    let fixed = Stop { header: header_of_any_epoch(forge, Operation::Stop) };
    let names = std::array::from_fn::<_, 32, _>(|index| {
        RunName::new(forge.name(), forge.submission(), index as u8) // the client's tasks, if the guess is right
    });
    forge.write_all(&fixed, &names);
    (forge.out.from, forge.out.to) = (forge.client(), forge.executor());
}

pub(super) fn retrieve(forge: &mut Forge) {
    let (header, counter) = (header_of_any_epoch(forge, Operation::Retrieve), forge.name().into());
    let waits = std::array::from_fn::<_, 13, _>(|_| forge.wait());
    let ahead = u8::from(forge.one_in(2));
    forge.write_all(&Retrieve { header, counter, resources: 0xFF, ahead, reserved: [0; 6] }, &waits);
    forge.out.from = forge.executor();
}

pub(super) fn keepalive(forge: &mut Forge) {
    let (header, counter) = (header_of_any_epoch(forge, Operation::Keepalive), forge.name().into());
    let waits = std::array::from_fn::<_, 32, _>(|_| forge.wait());
    forge.write_all(&Keepalive { header, counter }, &waits);
    forge.out.from = forge.executor();
}

pub(super) fn release(forge: &mut Forge) {
    write_release(forge, 13);
    forge.out.from = forge.executor();
}

pub(super) fn write_release(forge: &mut Forge, slots: usize) {
    let (header, counter) = (header_of_any_epoch(forge, Operation::Release), forge.name().into());
    let leave = |forge: &mut Forge| {
        let wait = forge.wait();
        let (slot, generation, sequence) = (wait.slot, wait.generation, wait.sequence);
        Leave {
            slot,
            generation,
            sequence,
            done: forge.random.random_range(0..=LeaveHow::Stays as u8),
            reserved: [0; 3],
        }
    };
    let leaves: Vec<_> = (0..slots).map(|_| leave(forge)).collect();
    forge.write_all(&Release { header, counter }, &leaves);
}

pub(super) fn register(forge: &mut Forge) {
    let fixed = Register {
        header: forge.header(Operation::Register),
        executor: forge.name().into(),
        cookie: forge.name().into(),
        first: 0.into(),
        resources: 0,
        kind: SlotKind::Ordinary as u8,
        counter: 0.into(),
        places: [0.into(); SLOT_PLACES],
    };
    forge.write(&fixed).set_count(32);
    forge.out.from = forge.executor();
}

pub(super) fn as_client(forge: &mut Forge) {
    let (client, guess) = (forge.name(), forge.name());
    let name = TaskName { submission: forge.submission().into(), index: 0, reserved: [0; 3] };
    match forge.count % 3 {
        0 => {
            let sequence = forge.submission();
            forge.submit(client, guess, sequence, 32);
        }
        1 => {
            let header = forge.header(Operation::Cancel);
            forge.write_all(&Cancel { header, client: client.into(), cookie: guess.into() }, &[name; 32]);
        }
        _ => {
            let header = forge.header(Operation::Probe);
            forge.write_all(&Probe { header, client: client.into(), cookie: guess.into() }, &[name; 32]);
        }
    }
    forge.out.from = forge.client();
}
