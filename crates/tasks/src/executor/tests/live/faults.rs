//! Faults and attacks.

use super::network::{Datagram, NO_FAULTS, Network, NetworkFaults};
use super::*;

/// Packets that an attacker forges, with or without the secrets.
#[derive(Clone, Copy, Debug)]
pub(super) enum Forged {
    ResetOfAll,
    Reset,
    Registered { room: u32, poll_us: u16 },
    Cookie,
    Assign,
    Released,
    NoOp,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    /// An address changes to this switch, or to none.
    Moved {
        address: u8,
        to: Option<usize>,
    },
    /// A switch loses its state.
    Restarted {
        index: usize,
        polled: bool,
    },
    Full {
        index: usize,
        room: u32,
    },
    /// A switch drops the slots without a task, as if idle for long.
    Forgotten {
        index: usize,
    },
    Network(NetworkFaults),
    /// The executor's address changes.
    Roamed {
        to: u8,
    },
    Tasks {
        index: usize,
        tasks: u32,
    },
    /// An earlier packet is repeated, to the executor or to a switch.
    Replayed {
        nth: usize,
    },
    /// The executor gets a recent packet with one byte changed.
    Tampered {
        nth: usize,
        at: usize,
        flip: u8,
    },
    Forged {
        what: Forged,
        nth: usize,
        knows: bool,
        random: u64,
    },
    Time {
        ms: u64,
    },
}

fn forged() -> impl Strategy<Value = Forged> {
    prop_oneof![
        Just(Forged::ResetOfAll),
        Just(Forged::Reset),
        (0u32..5, prop::sample::select(vec![0, 60_000]))
            .prop_map(|(room, poll_us)| Forged::Registered { room, poll_us }),
        Just(Forged::Cookie),
        Just(Forged::Assign),
        Just(Forged::Released),
        Just(Forged::NoOp),
    ]
}

pub(super) fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        4 => (1u8..3, prop::option::weighted(0.7, 0usize..3)).prop_map(|(address, to)| Fault::Moved { address, to }),
        1 => (0usize..3, any::<bool>()).prop_map(|(index, polled)| Fault::Restarted { index, polled }),
        1 => (0usize..3, 0u32..60).prop_map(|(index, room)| Fault::Full { index, room }),
        1 => (0usize..3).prop_map(|index| Fault::Forgotten { index }),
        2 => (0u32..100, 0u64..2_000).prop_map(|(loss, ms)| Fault::Network(NetworkFaults { loss, delay_max: ms * MS })),
        1 => Just(Fault::Network(NO_FAULTS)),
        1 => (1u8..4).prop_map(|to| Fault::Roamed { to }),
        2 => (0usize..3, 0u32..200).prop_map(|(index, tasks)| Fault::Tasks { index, tasks }),
        6 => any::<usize>().prop_map(|nth| Fault::Replayed { nth }),
        2 => (any::<usize>(), 4usize..200, 1u8..).prop_map(|(nth, at, flip)| Fault::Tampered { nth, at, flip }),
        6 => (forged(), any::<usize>(), any::<bool>(), any::<u64>())
            .prop_map(|(what, nth, knows, random)| Fault::Forged { what, nth, knows, random }),
        8 => prop_oneof![0u64..20, 0u64..3_000].prop_map(|ms| Fault::Time { ms }),
    ]
}

/// Network faults only, with tasks between.
pub(super) fn of_the_network() -> impl Strategy<Value = Fault> {
    prop_oneof![
        2 => (0u32..60, 0u64..20).prop_map(|(loss, ms)| Fault::Network(NetworkFaults { loss, delay_max: ms * MS })),
        1 => Just(Fault::Network(NO_FAULTS)),
        1 => (1u8..4).prop_map(|to| Fault::Roamed { to }),
        4 => (10u32..100).prop_map(|tasks| Fault::Tasks { index: 0, tasks }),
        4 => any::<usize>().prop_map(|nth| Fault::Replayed { nth }),
        4 => (0u64..40).prop_map(|ms| Fault::Time { ms }),
    ]
}

impl Network {
    pub(super) fn suffer(&mut self, fault: Fault) {
        match fault {
            Fault::Moved { address, to: Some(index) } => _ = self.at.insert(switch(address), index),
            Fault::Moved { address, to: None } => _ = self.at.remove(&switch(address)),
            Fault::Restarted { index, polled } => self.switches[index] = self.switches[index].started_anew(polled),
            Fault::Full { index, room } => self.switches[index].room = room,
            Fault::Forgotten { index } => self.switches[index].forget_idle(),
            Fault::Network(loss) => self.network_faults = loss,
            Fault::Roamed { to } => self.here = client(to),
            Fault::Tasks { index, tasks } => self.switches[index].tasks += tasks,
            Fault::Replayed { nth } => self.replay(nth),
            Fault::Tampered { nth, at, flip } => self.tamper(nth, at, flip),
            Fault::Forged { what, nth, knows, random } => self.forge(what, nth, knows, random),
            Fault::Time { ms } => self.run(ms * MS),
        }
    }

    fn replay(&mut self, nth: usize) {
        if !self.remembered.is_empty() {
            let datagram = self.remembered[nth % self.remembered.len()].clone();
            self.arrive(&datagram);
        }
    }

    fn tamper(&mut self, nth: usize, at: usize, flip: u8) {
        let to_executor = |datagram: &&Datagram| datagram.from.port() == switch(1).port();
        let mut all = self.remembered.iter().filter(to_executor).rev();
        let Some(datagram) = all.nth(nth % 50) else { return };
        let mut bytes = datagram.bytes.clone();
        let at = at % bytes.len();
        bytes[at] ^= flip;
        // Recovery takes several leases, so a forged long lease would delay it.
        if !matches!(parse(&bytes), Ok(Packet::Registered(fixed, _)) if u64::from(fixed.lease_ms.get()) > LEASE / MS) {
            self.arrive(&Datagram { bytes, to: self.here, ..*datagram });
        }
    }

    fn forge(&mut self, what: Forged, nth: usize, knows: bool, random: u64) {
        let slots = self.executor.slots.locals().len();
        let local = (nth % slots) as u32;
        let Some(slot) = self.executor.slots.get(local) else { return };
        let true_wait = numbers(&slot.wait());
        let wait = if knows { true_wait } else { (true_wait.0, random as u32, true_wait.2) };
        let counter = if knows { self.executor.link.next_counter() - random % 70 } else { random };
        let epoch = if random.is_multiple_of(3) { random as u32 } else { self.executor.link.epoch() };
        let name = (wait.0, wait.1);
        let asked = |datagram: &Datagram| match parse(&datagram.bytes) {
            Ok(Packet::Register(request)) => Some(*request),
            _ => None,
        };
        let Some(mut request) = self.remembered.iter().rev().find_map(asked) else { return };
        request.executor = if knows { request.executor } else { random.into() };
        let bytes = match what {
            Forged::ResetOfAll => reset(random as u32 % 8, counter, &[]),
            Forged::Reset => reset(epoch, counter, &[wait]),
            Forged::Registered { room, poll_us } => {
                let names: Vec<_> = (0..room).map(|n| (wait.0 + n, wait.1)).collect();
                answer_with(&request, epoch.max(1), &names, LEASE, poll_us)
            }
            Forged::Cookie => cookie(request.header.sequence.get(), request.executor.get(), random),
            Forged::Assign => {
                let given = Assignment { slot: wait.0.into(), ..assignment(0, wait.1, wait.2, random as u8) };
                assign(epoch, &[given])
            }
            Forged::Released => released(epoch, counter, &[name]),
            Forged::NoOp => no_op(epoch, &[wait]),
        };
        self.arrive(&Datagram { from: self.executor.switch(), to: self.here, bytes });
    }
}
