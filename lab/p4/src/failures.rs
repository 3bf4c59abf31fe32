//! Failures of a switch and their errors. Skipped where p4c, BMv2 or the rights for network namespaces are missing.

use crate::around::CLIENTS;
use crate::bmv2::{Bmv2, enter_a_new_namespace};
use crate::differential::macros;
use crate::frame::Host;
use crate::live::{Live, Options};
use crate::ports::{Port, ip, make_pair};
use crate::process::THRIFT_PORT;
use crate::random::entered;
use crate::thrift::Thrift;
use crate::tools::Bmv2Tools;
use crate::{P4Error, Program};
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// Runs on a separate thread, which may enter a network namespace.
fn skipping(act: impl FnOnce(&Bmv2Tools) -> Result<(), P4Error> + Send) {
    let act = || Bmv2Tools::find().and_then(|tools| act(&tools));
    let done = std::thread::scope(|scope| scope.spawn(act).join().expect("no panic"));
    match done {
        Err(error) if error.is_for_want_of_something() => midflight_net::testing::skip(error),
        done => done.expect("it is as it should be"),
    }
}

/// Runs with the safe program in a switch.
fn with_switch(act: impl FnOnce(Bmv2) -> Result<(), P4Error> + Send) {
    skipping(|tools| {
        let folder = tools.folder()?;
        let json = tools.compile(Program::Safe, &[], &macros(4, 4), folder.path())?;
        act(Bmv2::start(tools, Program::Safe, &json, &entered(4, 16, 0))?)
    });
}

fn options() -> Options {
    Options {
        program: Program::Safe,
        own: "10.0.0.254:7700".parse().expect("an address"),
        epoch: 7,
        interfaces: vec!["port0".into()],
        queue: 4,
        slots: 16,
    }
}

#[test]
fn a_killed_switch_is_named_at_once() {
    with_switch(|mut switch| {
        assert_eq!(switch.pass(CLIENTS, &[0; 60])?, [], "it lives");
        let killed = Instant::now();
        switch.process.kill();
        let error = switch.pass(CLIENTS, &[0; 60]).expect_err("it is dead").to_string();
        assert!(error.starts_with("simple_switch was ended by signal 9"), "{error}");
        assert!(killed.elapsed() < Duration::from_secs(2), "{:?}", killed.elapsed());
        Ok(())
    });
}

#[test]
fn a_switch_that_was_stopped_is_named_and_ends_with_us() {
    with_switch(|mut switch| {
        switch.patience = Duration::from_millis(200);
        switch.process.stop();
        let error = switch.pass(CLIENTS, &[0; 60]).expect_err("it hangs").to_string();
        assert!(error.starts_with("simple_switch sends nothing by port ") && error.contains("for 200ms"), "{error}");
        Ok(())
    });
}

/// In the order of the table in docs/internals/p4.md: an interface, the port, the entries, the process.
#[test]
fn what_is_not_as_it_should_be_has_a_name() {
    skipping(|tools| {
        enter_a_new_namespace()?;
        let start = || Live::start(tools, &options());
        let named = |live: Result<Live, P4Error>| live.expect_err("it cannot start").to_string();
        let error = named(start());
        assert!(error.starts_with("cannot find the interface port0"), "{error}");
        make_pair("port0", "far0")?;
        let forwarding = "/proc/sys/net/ipv4/conf/port0/forwarding";
        std::fs::write(forwarding, "1").map_err(P4Error::io("let the kernel forward"))?;
        let error = named(start());
        assert!(error.starts_with("the kernel forwards packets from port0"), "{error}");
        std::fs::write(forwarding, "0").map_err(P4Error::io("let the kernel forward"))?;

        let mut live = start()?;
        assert_eq!(live.check()?, [0; 4]);
        let error = named(start());
        assert!(error.starts_with("another process serves TCP port 9090"), "{error}");
        live.set_slot(3, Some((5, "10.0.0.1:4000".parse().expect("an address"), 1)))?;
        live.set_slot(3, Some((6, "10.0.0.1:4000".parse().expect("an address"), 1)))?;
        live.set_slot(4, None)?;
        live.check()?;
        let mut stranger = Thrift::connect(THRIFT_PORT, tools.patience.answering)?;
        stranger.clear("Pipe.look.look_up.slot")?;
        let error = live.check().expect_err("the slot is gone").to_string();
        assert!(error.starts_with("the switch's table Pipe.look.look_up.slot has 0 entries instead of 1"), "{error}");
        assert!(matches!(stranger.clear("no.such.table"), Err(P4Error::Thrift { .. })));
        Ok(())
    });
}

/// The switch's connections break a moment before its process is seen to have ended.
#[test]
fn a_call_to_a_switch_that_was_killed_says_so() {
    skipping(|tools| {
        enter_a_new_namespace()?;
        make_pair("port0", "far0")?;
        let mut live = Live::start(tools, &options())?;
        live.kill();
        let entry = Some((5, "10.0.0.1:4000".parse().expect("an address"), 1));
        let error = live.set_slot(3, entry).expect_err("it is dead").to_string();
        assert!(error.starts_with("simple_switch was ended by signal 9"), "{error}");
        Ok(())
    });
}

/// A REST with a task of level 1, as the switch itself sends it.
fn rest() -> Vec<u8> {
    let mut datagram = vec![0x4D, 0x46, 3, 201, 1];
    datagram.resize(24, 0);
    datagram.extend([0, 0, 0, 1, 0, 0, 0, 1]);
    datagram.resize(24 + 8 + 8 + 16 + 16, 0);
    datagram.extend([0, 0, 0, 9, 0, 0, 0, 1, 1]);
    datagram.resize(24 + 8 + 8 + 16 + 16 + 28, 0);
    datagram
}

/// As any user may.
fn bind(socket: &UdpSocket, link: &str) -> io::Result<()> {
    let (name, length) = (link.as_ptr().cast(), link.len() as libc::socklen_t);
    // SAFETY: a pointer to bytes that live as long as the call, with their number.
    let code = unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_BINDTODEVICE, name, length) };
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Any user of the machine may bind a socket to the recirculation port's link, whose packets the parser trusts.
#[test]
fn t11_what_a_user_sends_into_the_switchs_own_links_is_nothing() {
    skipping(|tools| {
        enter_a_new_namespace()?;
        make_pair("port0", "far0")?;
        ip(&["address", "add", "10.0.0.254/24", "dev", "port0"])?;
        let mut live = Live::start(tools, &options())?;
        let socket = UdpSocket::bind("0.0.0.0:0").map_err(P4Error::io("open a socket"))?;
        socket.set_broadcast(true).map_err(P4Error::io("send to all"))?;
        for link in ["mfloop7700", "mfcpu7700b"] {
            bind(&socket, link).map_err(P4Error::io("bind a socket to a link"))?;
            for to in ["10.0.0.1:7700", "224.0.0.9:7700", "255.255.255.255:7700"] {
                socket.send_to(&rest(), to).map_err(P4Error::io("send a datagram"))?;
            }
        }
        // After them, by the same link, a really recirculated packet.
        let host = Host { mac: [2, 0, 0, 0, 0, 1], ip: 0x0A00_0001, port: 4000 };
        Port::open(0, "mfloop7700")?.send(&host.to(([2, 0, 0, 0, 0, 2], 0x0A00_00FE, 7700), &rest()))?;
        let until = Instant::now() + Duration::from_secs(10);
        while live.check()? == [0; 4] {
            assert!(Instant::now() < until, "what goes round is lost");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(live.check()?, [1, 0, 0, 0], "tasks of a user were taken for the switch's own");
        Ok(())
    });
}
