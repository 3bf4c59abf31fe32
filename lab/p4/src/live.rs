//! A running BMv2 switch at a machine's interfaces, for its controller: `docs/internals/p4.md`, "As an engine".

use crate::frame::{CPU, IP, MF, RECIRCULATION, UDP, answer, byte, word16, word32};
use crate::ports::{Port, ip, make_pair, remove_pair};
use crate::process::{Process, check_free};
use crate::tables::{Start, Tables, Via};
use crate::tools::Bmv2Tools;
use crate::{P4Error, Program};
use midflight_net::ethtool;
use rustix::event::epoll;
use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The port of the other end of the recirculation port's link.
const RETURN: u16 = 69;
/// A MAC address that begins with the number of a port that does not exist, 255.
const NOWHERE: &str = "02:ff:00:00:00:00";
/// Packets that may wait for a port: a recirculated packet without room is a lost task.
const WAITING_MAX: i32 = 65_536;
/// Most interfaces: their port numbers must be below the recirculation port's.
pub const INTERFACES_MAX: usize = RECIRCULATION as usize;
/// Capacity for next hops: `ROUTES` of `p4/sizes.p4`.
pub const NEXT_HOPS_MAX: usize = 1_024;

/// Options of a switch.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program to run.
    pub program: Program,
    /// The address that it serves.
    pub own: SocketAddrV4,
    /// Not 0.
    pub epoch: u32,
    /// Its ports, from number 0 on.
    pub interfaces: Vec<String>,
    /// Tasks of each of the four levels: a power of two, at least 2.
    pub queue: u32,
    /// Executor slots: a power of two.
    pub slots: u32,
}

/// A packet for the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Ingress port.
    port: u16,
    frame: Vec<u8>,
    length: usize,
}

/// What came by the CPU port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Came {
    /// A packet for the controller.
    Question(Question),
    /// Another frame.
    Foreign,
    /// Nothing now.
    Nothing,
}

/// The next hop to a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextHop {
    /// Egress port.
    pub port: u16,
    /// MAC address of the host or its router.
    pub mac: [u8; 6],
}

/// A running switch. It ends when this is dropped.
#[derive(Debug)]
pub struct Live {
    process: Process,
    tables: Tables,
    cpu: Port,
    /// Readable when there is a packet for the controller, and when the process has ended.
    descriptor: OwnedFd,
    macs: Vec<[u8; 6]>,
    /// Handles of entries.
    slots: HashMap<u32, u32>,
    next_hops: HashMap<Ipv4Addr, u32>,
    _pairs: Pairs,
}

/// The veth pairs of one switch, named after its UDP port; removed on drop.
#[derive(Debug)]
struct Pairs {
    cpu: [String; 2],
    round: [String; 2],
}

impl Pairs {
    fn make(port: u16) -> Result<Self, P4Error> {
        let named = |what: &str| [format!("mf{what}{port}"), format!("mf{what}{port}b")];
        let pairs = Self { cpu: named("cpu"), round: named("loop") };
        for [near, far] in [&pairs.cpu, &pairs.round] {
            make_pair(near, far)?;
        }
        // In frames from the kernel the first two bytes would be a port's number: this one does not exist.
        ip(&["link", "set", &pairs.cpu[1], "address", NOWHERE])?;
        for end in pairs.cpu.iter().chain(&pairs.round) {
            ethtool::single_frames(end)?;
        }
        Ok(pairs)
    }
}

impl Drop for Pairs {
    fn drop(&mut self) {
        // The next start on this port removes what remains.
        for [near, _] in [&self.cpu, &self.round] {
            let _ = remove_pair(near);
        }
    }
}

impl Question {
    /// A frame of the CPU port, if it has a complete IPv4 datagram for this UDP port.
    fn read(sent: &[u8], to: u16) -> Option<Self> {
        let (port, frame) = sent.split_first_chunk::<2>()?;
        let (ip_length, length) = (usize::from(word16(frame, IP + 2)), usize::from(word16(frame, UDP + 4)));
        let is_udp = word16(frame, IP - 2) == 0x0800 && byte(frame, IP) == 0x45 && byte(frame, IP + 9) == 17;
        let is_whole = length >= MF - UDP && ip_length >= UDP - IP + length && frame.len() >= UDP + length;
        let is_ours = is_udp && is_whole && word16(frame, UDP + 2) == to;
        is_ours.then(|| Self { port: u16::from_be_bytes(*port), frame: frame.to_vec(), length: length - (MF - UDP) })
    }

    /// Its sender.
    #[must_use]
    pub fn from(&self) -> SocketAddrV4 {
        SocketAddrV4::new(Ipv4Addr::from(word32(&self.frame, IP + 12)), word16(&self.frame, UDP))
    }

    /// The port and MAC address that it came from.
    #[must_use]
    pub fn came_from(&self) -> NextHop {
        NextHop { port: self.port, mac: std::array::from_fn(|at| byte(&self.frame, 6 + at)) }
    }

    /// Its payload.
    #[must_use]
    pub fn datagram(&self) -> &[u8] {
        self.frame.get(MF..MF + self.length).unwrap_or_default()
    }
}

impl Live {
    /// Compiles the program and starts the switch, in the network namespace of this thread. It also ends with this thread.
    ///
    /// # Errors
    /// If an interface, a right or the program's place is missing, or another switch runs here; [`P4Error::Interrupted`] once the tools'
    /// flag is set.
    pub fn start(tools: &Bmv2Tools, options: &Options) -> Result<Self, P4Error> {
        let Options { program, own, epoch, interfaces, queue, .. } = options;
        // Before anything of another switch is touched.
        check_free()?;
        let macs = interfaces.iter().map(|name| prepare(name)).collect::<Result<_, _>>()?;
        // The switch has read it when this returns, so no file remains later, however this process ends.
        let folder = tools.folder()?;
        let json = tools.compile(*program, &[], &macros(options), folder.path())?;
        let compiled = std::fs::read(&json).map_err(P4Error::io("read the compiled program"))?;
        let pairs = Pairs::make(own.port())?;
        let cpu = Port::open(CPU, &pairs.cpu[1])?;
        let [near, far] = &pairs.round;
        let inside = [(RECIRCULATION, near.as_str()), (RETURN, far), (CPU, &pairs.cpu[0])];
        let outside = (0..).zip(interfaces.iter().map(String::as_str));
        let (process, thrift) = Process::start(tools, &json, &outside.chain(inside).collect::<Vec<_>>())?;
        let mut tables = Tables::new(*program, thrift);
        tables.check_begin(&compiled)?;
        tables.set_queues(WAITING_MAX)?;
        tables.begin(&Start { own: u32::from(*own.ip()), epoch: *epoch, room: *queue, serial: 0 })?;
        let descriptor =
            either(process.descriptor(), cpu.descriptor()).map_err(P4Error::io("make an epoll descriptor"))?;
        Ok(Self {
            process,
            tables,
            cpu,
            descriptor,
            macs,
            slots: HashMap::new(),
            next_hops: HashMap::new(),
            _pairs: pairs,
        })
    }

    /// Readable when there is a packet for the controller, and when the switch has ended.
    #[must_use]
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    /// The next packet for the controller, which serves this UDP port.
    ///
    /// # Errors
    /// If the switch has ended.
    pub fn next(&mut self, port: u16) -> Result<Came, P4Error> {
        match self.cpu.next()? {
            Some(sent) => Ok(Question::read(&sent, port).map_or(Came::Foreign, Came::Question)),
            None => self.process.check().map(|()| Came::Nothing),
        }
    }

    /// Sends an answer back to where its question came from.
    ///
    /// # Errors
    /// If the CPU port takes no frame.
    pub fn answer(&self, question: &Question, datagram: &[u8]) -> Result<(), P4Error> {
        let frame = answer(&question.frame, datagram);
        self.cpu.send(&[&question.port.to_be_bytes()[..], &frame].concat())
    }

    /// Replaces a slot's entry by this generation, address and counter; `None` only removes it.
    ///
    /// # Errors
    /// If the switch does not answer, or has no room.
    pub fn set_slot(&mut self, number: u32, entry: Option<(u32, SocketAddrV4, u32)>) -> Result<(), P4Error> {
        if let Some(handle) = self.slots.remove(&number) {
            self.process.or_its_end(self.tables.remove_slot(handle))?;
        }
        if let Some((generation, address, counter)) = entry {
            let address = (u32::from(*address.ip()), address.port());
            let added = self.tables.add_slot([number, generation], address, counter);
            self.slots.insert(number, self.process.or_its_end(added)?);
        }
        Ok(())
    }

    /// Sets the next hop of a host; `None`: its packets are dropped.
    ///
    /// # Errors
    /// If the switch does not answer, or has no room.
    pub fn set_next_hop(&mut self, host: Ipv4Addr, next: Option<NextHop>) -> Result<(), P4Error> {
        if let Some(handle) = self.next_hops.remove(&host) {
            self.process.or_its_end(self.tables.remove_route(handle))?;
        }
        if let Some(NextHop { port, mac }) = next
            && let Some(&from) = self.macs.get(usize::from(port))
        {
            let added = self.tables.add_route((u32::from(host), 32), Via { port, to: mac, from });
            self.next_hops.insert(host, self.process.or_its_end(added)?);
        }
        Ok(())
    }

    #[cfg(all(test, feature = "compare"))]
    pub(crate) fn kill(&mut self) {
        self.process.kill();
    }

    /// Checks that the switch still runs and its tables have this process's entries. Returns the number of queued tasks of each level.
    ///
    /// # Errors
    /// Describes the first failure.
    pub fn check(&mut self) -> Result<[u32; 4], P4Error> {
        self.process.check()?;
        let checked = self.tables.check().and_then(|()| self.tables.queued());
        self.process.or_its_end(checked)
    }
}

/// Makes an interface a port.
fn prepare(interface: &str) -> Result<[u8; 6], P4Error> {
    let mac = ethtool::mac_address(interface)?;
    let forwards = std::fs::read_to_string(format!("/proc/sys/net/ipv4/conf/{interface}/forwarding"));
    let forwards = forwards.map_err(P4Error::io(format!("read whether the kernel forwards from {interface}")))?;
    if forwards.trim() != "0" {
        return Err(P4Error::Forwards { interface: interface.to_owned() });
    }
    ethtool::single_frames(interface)?;
    Ok(mac)
}

fn macros(options: &Options) -> Vec<String> {
    let (cell_bits, slot_bits) = ((4 * options.queue).ilog2(), options.slots.ilog2());
    vec![
        format!("CELL_BITS={cell_bits}"),
        format!("SLOT_BITS={slot_bits}"),
        format!("MF_UDP_PORT={}", options.own.port()),
        format!("RETURN_PORT={RETURN}"),
    ]
}

/// A descriptor that is readable when one of these is.
fn either(one: BorrowedFd<'_>, other: BorrowedFd<'_>) -> std::io::Result<OwnedFd> {
    let both = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for fd in [one, other] {
        epoll::add(&both, fd, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
    }
    Ok(both)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Host;

    fn question(datagram: &[u8]) -> Vec<u8> {
        let host = Host { mac: [2, 0, 0, 0, 0, 1], ip: 0x0A00_0001, port: 4000 };
        let frame = host.to(([2, 0, 0, 0, 0, 2], 0x0A00_0002, 7700), datagram);
        [&[0, 1][..], &frame].concat()
    }

    #[test]
    fn a_question_says_from_where_it_came() {
        let read = Question::read(&question(b"hello"), 7700).expect("whole");
        assert_eq!((read.datagram(), read.from().to_string().as_str()), (&b"hello"[..], "10.0.0.1:4000"));
        assert_eq!(read.came_from(), NextHop { port: 1, mac: [2, 0, 0, 0, 0, 1] });
    }

    /// T11: truncated, padded and foreign frames are no questions, or yield only their own bytes.
    #[test]
    fn t11_cut_and_foreign_frames_are_no_questions() {
        let sent = question(b"hello");
        for cut in 0..sent.len() {
            assert_eq!(Question::read(&sent[..cut], 7700), None, "{cut}");
        }
        let padded = [&sent[..], &[0; 9]].concat();
        assert_eq!(Question::read(&padded, 7700).expect("whole").datagram(), b"hello");
        assert_eq!(Question::read(&sent, 7701), None);
        for (at, to) in [(2 + IP - 2, 0x86), (2 + IP, 0x46), (2 + IP + 9, 6), (2 + UDP + 4, 0xFF), (2 + UDP + 5, 7)] {
            let mut foreign = sent.clone();
            foreign[at] = to;
            assert_eq!(Question::read(&foreign, 7700), None, "{at}");
        }
    }
}
