//! An engine driven by frames: each datagram becomes a frame for XDP and, if XDP passes it, for TC. Answers are read
//! from what leaves on a real interface.

use crate::capture::Port;
use crate::frame::{Flow, is_of_switch, read};
use crate::shells::{PEER_MAC, Shells, handed_over, own, shells_with};
use crate::stand_in::StandIns;
use midflight_dataplane::kernel::{Action, Arrival, Departure, KernelTasks};
use midflight_dataplane::program::{Called, Engine};
use midflight_dataplane::{Datagram, Out, Purge, Stats, TasksConfig, TasksProgram, Verdict, Which};
use midflight_wire::PACKET_MAX;
use midflight_wire::tasks::{APPENDED, Operation, Submit, TaskInfo};
use std::net::SocketAddr;
use std::rc::Rc;
use zerocopy::FromBytes;

pub(crate) struct FrameEngine {
    shells: Shells,
    port: Rc<Port>,
    stand_ins: StandIns,
    /// Datagrams handled by XDP, TC, user space.
    pub(crate) taken: [u64; 3],
}

impl FrameEngine {
    /// `port`: where answers that are copies leave. `ipv4`: the frames' version for transcripts of IPv4.
    pub(crate) fn new(config: &TasksConfig, epoch: u32, secret: u128, port: &Rc<Port>, ipv4: bool) -> Self {
        let shells = shells_with(config, epoch, secret).expect("there were some before");
        handed_over(&shells); // from an earlier test
        Self { shells, port: Rc::clone(port), stand_ins: StandIns::new(config, secret, ipv4), taken: [0; 3] }
    }

    fn flow(&self, from: SocketAddr) -> Flow {
        let from = self.stand_ins.address(from);
        Flow { from_mac: PEER_MAC, to_mac: self.port.mac, tags: vec![], to: own(from.is_ipv4()), from }
    }

    /// New frames on the interface, in the order of the core's answers: TC sends the last one first.
    fn left(&self) -> Vec<Vec<u8>> {
        let mut frames: Vec<_> =
            self.port.all(|seen| is_of_switch(&seen.frame)).into_iter().map(|seen| seen.frame).collect();
        frames.reverse();
        frames
    }

    /// Handles what the kernel programs leave to user space.
    fn call(&mut self, now_ns: u64, from: SocketAddr, datagram: &[u8]) -> (Verdict, Vec<Datagram>) {
        let (from, mut out) = (self.flow(from).from, Out::new());
        let verdict = KernelTasks::packet(&mut self.shells, now_ns, from, datagram, &mut out).unwrap();
        (verdict, self.of_originals(now_ns, &out))
    }

    /// The COOKIE that the process's socket must send by the kernel's routes.
    fn cookie_handed_over(&self, now_ns: u64, flow: &Flow) -> Vec<Datagram> {
        assert!(self.left().is_empty(), "a frame may be forged");
        let sent = handed_over(&self.shells).into_iter().map(|(own, to, datagram)| {
            assert_eq!(own, Some(flow.to.ip()));
            self.stand_ins.original(now_ns, to, datagram)
        });
        sent.collect()
    }

    fn of_originals(&self, now_ns: u64, out: &Out) -> Vec<Datagram> {
        out.iter().map(|(to, bytes)| self.stand_ins.original(now_ns, to, bytes.to_vec())).collect()
    }
}

impl FrameEngine {
    fn by_frames(&mut self, now_ns: u64, from: SocketAddr, datagram: &[u8]) -> (Verdict, Vec<Datagram>) {
        let (flow, datagram) = (self.flow(from), self.stand_ins.datagram(now_ns, from, datagram));
        let frame = flow.request(&datagram);
        let arrival = Arrival { interface: self.port.index, ..Arrival::new(&frame) };
        let mut departure = self.shells.run_xdp(now_ns, &arrival).unwrap();
        let mut shell = 0;
        if departure.action == Action::Pass {
            let untouched = Departure { action: Action::Pass, frame: frame.clone(), asked: None };
            assert_eq!(departure, untouched, "what XDP passes on, it does not touch");
            shell = 1;
            departure = self.shells.run_tc(now_ns, &arrival).unwrap();
        }
        if departure.action == Action::Pass {
            assert!(datagram.len() > PACKET_MAX, "only what is too long is left to user space");
            self.taken[2] += 1;
            return self.call(now_ns, from, &datagram);
        }
        self.taken[shell] += 1;
        let (asked, verdict) = departure.asked.expect("the core was asked");
        assert_eq!(without_notes(asked), without_notes(datagram));
        // If the sender's next hop is known, XDP sends the cookie there.
        if verdict == Verdict::NoCookie && departure.action != Action::Transmit {
            return (verdict, self.cookie_handed_over(now_ns, &flow));
        }
        let mut frames = self.left();
        if departure.action == Action::Transmit {
            assert_eq!(read(&departure.frame).0, flow.back(), "the frame itself goes back");
            frames.insert(0, departure.frame);
        }
        assert!(shell == 1 || frames.len() <= 1, "XDP sends one frame at most");
        let sent = frames.iter().map(|frame| {
            let (back, payload) = read(frame);
            assert_eq!((back.from, back.from_mac, back.to_mac), (flow.to, flow.to_mac, flow.from_mac));
            self.stand_ins.original(now_ns, back.to, payload)
        });
        let sent = sent.collect();
        assert!(handed_over(&self.shells).is_empty(), "only cookies are left to user space");
        for name in ["hand_over_failed", "send_failed", "asserted", "passed_contended"] {
            assert_eq!(self.shells.shell_count(name), 0, "{name}");
        }
        (verdict, sent)
    }
}

impl Engine for FrameEngine {
    type Program = TasksProgram;

    fn packet(&mut self, now_ns: u64, from: SocketAddr, datagram: &mut [u8], out: &mut Out) -> Called<Verdict> {
        let (verdict, sent) = self.by_frames(now_ns, from, datagram);
        out.owe(&sent)?;
        Ok(verdict)
    }

    fn tick(&mut self, now_ns: u64, out: &mut Out) -> Called<u32> {
        let looked = self.shells.tick(now_ns, out).unwrap();
        let sent = self.of_originals(now_ns, out);
        out.owe(&sent)?;
        Ok(looked)
    }

    fn order(&mut self, purge: &mut Purge) -> Called<bool> {
        let mut here = Purge::new(match purge.which() {
            Which::Address(ip) => Which::Address(self.stand_ins.ip(ip)),
            other => other,
        });
        while !self.shells.order(&mut here).unwrap() {}
        purge.count(here.purged());
        Ok(true)
    }

    fn stats(&self) -> Stats {
        self.shells.stats()
    }

    fn check(&self) -> Result<(), String> {
        self.shells.check()
    }
}

/// A SUBMIT without what the core notes in it: four reserved bytes of each appended argument's record.
fn without_notes(mut datagram: Vec<u8>) -> Vec<u8> {
    if let Ok((submit, rest)) = Submit::mut_from_prefix(&mut datagram)
        && submit.header.operation == Operation::Submit as u8
        && let Ok((tasks, _)) = <[TaskInfo]>::mut_from_prefix_with_elems(rest, submit.header.count.into())
    {
        let appended = tasks.iter_mut().filter(|task| task.argument_length == APPENDED);
        appended.for_each(|task| task.argument[4..8].fill(0));
    }
    datagram
}
