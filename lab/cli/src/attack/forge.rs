//! What an off-path attacker knows, and how it forges packets.

use super::datagram::{Datagram, Flaw};
use super::listener::Heard;
use midflight_tasks::functions::{NOOP, function_id};
use midflight_wire::tasks::{Operation, Submit, TaskInfo, Wait};
use midflight_wire::{Builder, Header};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use zerocopy::{Immutable, IntoBytes};

/// No executor has it: tasks that need it stay in the queue.
pub(super) const NOBODY_HAS: u8 = 0b1000_0000;
/// The switch numbers slots from 0.
const SLOTS_GUESSED: u32 = 128;
/// Clients may start anywhere, but some start low.
const SUBMISSIONS_GUESSED: u32 = 8192;

/// All addresses, and the switch's responses to public requests; no identity and no cookie but its own.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) switch: SocketAddr,
    pub(super) clients: Vec<SocketAddr>,
    pub(super) executors: Vec<SocketAddr>,
    pub(super) own: SocketAddr,
    /// A host outside the cluster.
    pub(super) bystander: SocketAddr,
    pub(super) epoch: u32,
}

#[derive(Debug)]
pub(super) struct Forge {
    pub(super) random: Pcg32,
    pub(super) known: Known,
    pub(super) heard: Heard,
    pub(super) out: Datagram,
    /// Packets built before this one.
    pub(super) count: u64,
}

impl Forge {
    pub(super) fn new(known: Known, heard: Heard, seed: u64) -> Self {
        let out = Datagram::new(known.own, known.switch);
        Self { random: Pcg32::seed_from_u64(seed), known, heard, out, count: 0 }
    }

    pub(super) fn begin(&mut self) {
        self.out.payload.clear();
        self.out.flaw = Flaw::None;
        self.count += 1;
        (self.out.from, self.out.to) = (self.known.own, self.known.switch);
    }

    pub(super) fn pose_as_switch_to_executor(&mut self) {
        (self.out.from, self.out.to) = (self.known.switch, self.executor());
    }

    pub(super) fn pose_as_switch_to_client(&mut self) {
        (self.out.from, self.out.to) = (self.known.switch, self.client());
    }

    pub(super) fn executor(&mut self) -> SocketAddr {
        self.known.executors[self.random.random_range(0..self.known.executors.len())]
    }

    pub(super) fn client(&mut self) -> SocketAddr {
        self.known.clients[self.random.random_range(0..self.known.clients.len())]
    }

    pub(super) fn somebody(&mut self) -> SocketAddr {
        // From networks that the lab does not route.
        let ip: IpAddr = match self.known.switch {
            SocketAddr::V4(_) => Ipv4Addr::from(0x0B00_0000 | self.random.random_range(1..1 << 24)).into(),
            SocketAddr::V6(_) => Ipv6Addr::from(0x2001_0db8 << 96 | self.random.random_range(1..1 << 96)).into(),
        };
        SocketAddr::new(ip, self.port())
    }

    pub(super) fn neighbour(&self, last: u8) -> IpAddr {
        match self.known.own.ip() {
            IpAddr::V4(own) => {
                let [a, b, c, _] = own.octets();
                Ipv4Addr::new(a, b, c, last).into()
            }
            IpAddr::V6(own) => (own.to_bits() & !0xff | u128::from(last)).to_be_bytes().into(),
        }
    }

    pub(super) fn port(&mut self) -> u16 {
        self.random.random_range(1024..u16::MAX)
    }

    pub(super) fn number(&mut self) -> u32 {
        self.random.random()
    }

    pub(super) fn name(&mut self) -> u64 {
        self.random.random()
    }

    pub(super) fn one_in(&mut self, of: u32) -> bool {
        self.random.random_ratio(1, of)
    }

    /// A header with the switch's epoch and a sequence that a client or executor may use.
    pub(super) fn header(&mut self, operation: Operation) -> Header {
        let sequence = if self.one_in(2) { self.submission() } else { self.number() };
        Header::new(operation, self.known.epoch, sequence)
    }

    /// As `header`, but with another epoch.
    pub(super) fn header_of_another_epoch(&mut self, operation: Operation) -> Header {
        Header { epoch: self.number().max(1).into(), ..self.header(operation) }
    }

    pub(super) fn slot(&mut self) -> u32 {
        self.random.random_range(0..SLOTS_GUESSED)
    }

    pub(super) fn submission(&mut self) -> u32 {
        self.random.random_range(0..SUBMISSIONS_GUESSED)
    }

    /// Exists, but the generation is almost surely wrong.
    pub(super) fn wait(&mut self) -> Wait {
        Wait { slot: self.slot().into(), generation: self.number().into(), sequence: self.submission().into() }
    }

    pub(super) fn write<F: IntoBytes + Immutable>(&mut self, fixed: &F) -> Builder<'_> {
        Builder::new(&mut self.out.payload, fixed)
    }

    pub(super) fn write_all<F: IntoBytes + Immutable, R: IntoBytes + Immutable>(&mut self, fixed: &F, records: &[R]) {
        let mut builder = self.write(fixed);
        records.iter().for_each(|record| builder.push(record));
    }

    /// A SUBMIT of tasks that no executor can run.
    pub(super) fn submit(&mut self, client: u64, cookie: u64, sequence: u32, tasks: usize) {
        let header = Header::new(Operation::Submit, self.known.epoch, sequence);
        let (uid, jid, client, cookie) = (self.number().into(), 1.into(), client.into(), cookie.into());
        let fixed = Submit { header, client, cookie, token: self.name().into(), uid, jid };
        self.write_all(&fixed, &vec![task(NOBODY_HAS); tasks]);
    }
}

/// A task without an argument.
pub(super) fn task(resources: u8) -> TaskInfo {
    TaskInfo { function: function_id(NOOP).into(), resources, ..TaskInfo::PLAIN }
}
