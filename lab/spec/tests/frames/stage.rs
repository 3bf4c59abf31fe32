//! A switch between a client and an executor: the test gives it frames and captures what leaves its interfaces.

use crate::capture::Port;
use crate::cookies::with_cookie;
use crate::datagrams::{EPOCH, operation, register, registered, retrieve, submit};
use crate::frame::{Flow, is_of_switch, read};
use crate::shells::{SECRET, Shells, TIME, config, counted, flow, handed_over, ip, lab, shells};
use midflight_dataplane::Verdict;
use midflight_dataplane::kernel::{Action, Arrival, Departure};
use midflight_net::{Lab, Place};
use midflight_wire::tasks::{Operation, SlotName};
use std::net::{IpAddr, SocketAddr};

/// Kernel programs in a lab's switch with interfaces to two hosts.
pub(crate) struct Stage<'a> {
    pub(crate) shells: Shells,
    pub(crate) lab: &'a Lab,
    pub(crate) near: Port,
    pub(crate) far: Port,
}

const FAR_MAC: [u8; 6] = [0x02, 0xfa, 0x11, 0x22, 0x33, 0x44];

pub(crate) fn on_a_stage(act: impl FnOnce(&mut Stage<'_>) + Send) {
    let Some(shells) = shells() else { return };
    let Some(lab) = lab(2) else { return };
    let mut all = Some((shells, act));
    lab.within(Place::Switch, || {
        let (shells, act) = all.take().unwrap();
        act(&mut Stage { shells, lab: &lab, near: Port::open("host0"), far: Port::open("host1") });
    })
    .unwrap();
}

pub(crate) fn on_stage(act: impl Fn(&mut Stage<'_>, bool) + Send + Sync) {
    on_a_stage(|stage| {
        for ipv4 in [true, false] {
            stage.shells.restart(&config(), EPOCH, SECRET).unwrap();
            stage.handed_over();
            stage.sent();
            act(stage, ipv4);
        }
    });
}

impl Stage<'_> {
    pub(crate) fn client(&self, ipv4: bool) -> Flow {
        Flow { to_mac: self.near.mac, ..flow(ipv4, 1) }
    }

    pub(crate) fn executor(&self, ipv4: bool, number: u16) -> Flow {
        Flow { from_mac: FAR_MAC, to_mac: self.far.mac, ..flow(ipv4, 100 + number) }
    }

    /// Gives TC a client's frame with its cookie, as if XDP had passed it on.
    pub(crate) fn by_tc(&mut self, flow: &Flow, datagram: &[u8]) -> Departure<Verdict> {
        self.tc(&flow.request(&with_cookie(flow.from, datagram.to_vec()))).0
    }

    /// Gives TC any frame on the client's link. Also returns what was counted.
    pub(crate) fn tc(&mut self, frame: &[u8]) -> (Departure<Verdict>, Vec<(&'static str, u64)>) {
        let arrival = Arrival { interface: self.near.index, ..Arrival::new(frame) };
        counted(&mut self.shells, |shells| shells.run_tc(TIME, &arrival).unwrap())
    }

    /// Gives XDP and, if it passes the frame, TC an executor's frame with its cookie. Returns the answer, if any.
    pub(crate) fn by_both(&mut self, flow: &Flow, datagram: &[u8]) -> Option<Vec<u8>> {
        let frame = flow.request(&with_cookie(flow.from, datagram.to_vec()));
        let arrival = Arrival { interface: self.far.index, ..Arrival::new(&frame) };
        let mut departure = self.shells.run_xdp(TIME, &arrival).unwrap();
        if departure.action == Action::Pass {
            departure = self.shells.run_tc(TIME, &arrival).unwrap();
        }
        assert_ne!(departure.action, Action::Pass);
        (departure.action == Action::Transmit).then(|| read(&departure.frame).1)
    }

    pub(crate) fn park(&mut self, flow: &Flow, executor: u64, slots: u8) -> Vec<SlotName> {
        let names = registered(&self.by_both(flow, &register(executor, slots)).unwrap());
        for name in &names {
            assert_eq!(self.by_both(flow, &retrieve(std::slice::from_ref(name), 1)), None);
        }
        names
    }

    /// Frames that left to the client and to the executor.
    pub(crate) fn sent(&self) -> [Vec<Vec<u8>>; 2] {
        [&self.near, &self.far].map(|port| {
            let ours = port.all(|seen| seen.outgoing && is_of_switch(&seen.frame));
            ours.into_iter().map(|seen| seen.frame).collect()
        })
    }

    /// Local address, peer, datagram.
    pub(crate) fn handed_over(&mut self) -> Vec<(Option<IpAddr>, SocketAddr, Vec<u8>)> {
        handed_over(&self.shells)
    }

    /// The client submits a task for a parked executor. The answer goes back, and the task to user space, with our
    /// address that the executor sends to, if its next hop was `learned`.
    pub(crate) fn assert_handed_over(&mut self, client: &Flow, executor: &Flow, learned: bool, sequence: u32) {
        let (departure, counts) = self.tc(&client.request(&with_cookie(client.from, submit(1, sequence, 1))));
        assert_eq!(counts, [("tc_taken", 1), ("tc_answered", 1), ("handed_over", 1)]);
        assert_eq!(operation(&read(&departure.frame).1), Operation::SubmitAck);
        let handed_over = self.handed_over();
        let [(own, to, datagram)] = &handed_over[..] else { panic!("{handed_over:?}") };
        assert_eq!((*own, *to), (learned.then_some(executor.to.ip()), executor.from));
        assert_eq!(operation(datagram), Operation::Assign);
        assert_eq!(self.sent(), [vec![], vec![]] as [Vec<Vec<u8>>; 2]);
    }

    pub(crate) fn ip(&self, arguments: &str) {
        ip(self.lab, arguments);
    }
}
