//! Loads XDP and TC programs for tests. Loading takes a second, so tests reuse them.

use crate::datagrams::EPOCH;
use crate::frame::Flow;
use midflight_dataplane::kernel::{Departure, Kernel, SHELL_COUNTS};
use midflight_dataplane::program::SoftProgram;
use midflight_dataplane::{TasksConfig, TasksProgram, XdpMode};
use midflight_net::{Lab, Options, Place};
use midflight_spec::transcript::{KernelOnce, Spare};
use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::sync::LazyLock;

pub(crate) const TIME: u64 = 1_000_000_000;
pub(crate) const SECRET: u128 = 1;
pub(crate) const PORT: u16 = 7700;
pub(crate) const PEER_MAC: [u8; 6] = [0x02, 0x11, 0x22, 0x33, 0x44, 0x55];
pub(crate) const OWN_MAC: [u8; 6] = [0x02, 0xaa, 0xbb, 0xcc, 0xdd, 0xee];
/// Loopback's: TC accepts only frames to the MAC address of their interface.
pub(crate) const NO_MAC: [u8; 6] = [0; 6];

/// Programs with an empty queue; they serve [`own`].
pub(crate) type Shells = KernelOnce<TasksProgram>;

pub(crate) fn config() -> TasksConfig {
    TasksConfig { queue: 64, slots: 64, clients: 16, ..TasksConfig::default() }
}

fn largest() -> TasksConfig {
    TasksConfig { queue: 4096, slots: 4096, clients: 4096, ..TasksConfig::default() }
}

/// Prints on the terminal, past the tests' capture, that a test was skipped.
pub(crate) fn skip(why: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    std::io::stderr().write_all(format!("SKIPPED: {test}: {why}\n").as_bytes()).unwrap();
}

pub(crate) fn shells() -> Option<Shells> {
    shells_with(&config(), EPOCH, SECRET)
}

pub(crate) fn shells_with(config: &TasksConfig, epoch: u32, secret: u128) -> Option<Shells> {
    static SPARE: LazyLock<Spare<TasksProgram>> = LazyLock::new(Spare::default);
    let mut shells = match KernelOnce::new(&SPARE, &largest(), epoch, secret) {
        Err(missing) if missing.is_unavailable() => {
            skip(&missing.to_string());
            return None;
        }
        loaded => loaded.unwrap(),
    };
    shells.restart(config, epoch, secret).unwrap();
    shells.set_mode(XdpMode::Native, &[]);
    shells.serve(PORT, &[own(true).ip(), own(false).ip()]);
    Some(shells)
}

pub(crate) fn by_both(act: impl Fn(&mut Shells, bool)) {
    let Some(mut shells) = shells() else { return };
    [true, false].into_iter().for_each(|ipv4| act(&mut shells, ipv4));
}

pub(crate) fn lab(hosts: usize) -> Option<Lab> {
    match midflight_net::available() {
        Err(missing) => {
            skip(&missing.to_string());
            None
        }
        Ok(()) => Some(Lab::up(&Options::temporary(hosts)).unwrap()),
    }
}

pub(crate) fn ip(lab: &Lab, arguments: &str) {
    let status = lab.command(Place::Switch, "ip").args(arguments.split(' ')).status().unwrap();
    assert!(status.success(), "ip {arguments}");
}

/// Allows or forbids forwarding from the interface to the lab's first host; the kernel names next hops only where it is
/// allowed.
pub(crate) fn forward(lab: &Lab, ipv4: bool, may: bool) {
    let name = if ipv4 { "net.ipv4.conf.host0.forwarding" } else { "net.ipv6.conf.host0.forwarding" };
    let setting = format!("{name}={}", u8::from(may));
    assert!(lab.command(Place::Switch, "sysctl").args(["-qw", &setting]).status().unwrap().success());
}

/// The switch's address; no transcript uses it.
pub(crate) fn own(ipv4: bool) -> SocketAddr {
    if ipv4 { SocketAddr::from(([192, 0, 2, 1], PORT)) } else { format!("[2001:db8:ffff::1]:{PORT}").parse().unwrap() }
}

pub(crate) fn peer(ipv4: bool, number: u16) -> SocketAddr {
    let port = 40_000 + number;
    if ipv4 {
        SocketAddr::from(([192, 0, 2, 100], port))
    } else {
        format!("[2001:db8::ff:100]:{port}").parse().unwrap()
    }
}

pub(crate) fn flow(ipv4: bool, number: u16) -> Flow {
    Flow { from_mac: PEER_MAC, to_mac: OWN_MAC, tags: vec![], from: peer(ipv4, number), to: own(ipv4) }
}

/// What `act` made the programs count.
pub(crate) fn counted<P: SoftProgram>(
    kernel: &mut Kernel<P>,
    act: impl FnOnce(&mut Kernel<P>) -> Departure<P::Verdict>,
) -> (Departure<P::Verdict>, Vec<(&'static str, u64)>) {
    let before = kernel.shell_counts();
    let departure = act(kernel);
    let names = SHELL_COUNTS.iter().map(|&(name, _)| name);
    let differences = names.zip(kernel.shell_counts().into_iter().zip(before).map(|(after, before)| after - before));
    (departure, differences.filter(|&(_, difference)| difference != 0).collect())
}

/// What the programs newly left to user space: local address, peer, datagram.
pub(crate) fn handed_over<P: SoftProgram>(shells: &Kernel<P>) -> Vec<(Option<IpAddr>, SocketAddr, Vec<u8>)> {
    let mut all = Vec::new();
    let mut handover = shells.open_handover().unwrap();
    let mut before = None;
    while before != Some(all.len()) {
        before = Some(all.len());
        handover.drain(|own, to, datagram| all.push((own, to, datagram.to_vec())));
    }
    all
}
