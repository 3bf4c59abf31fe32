//! A lab connects its hosts, runs commands and leaves no trace. Needs root and iproute2; otherwise prints SKIPPED.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{about, ask, lab, received_of};
use midflight_net::testing::{labs_work, skip, traces_of};
use midflight_net::{HOSTS_MAX, Lab, LabError, Loss, Options, Place, SWITCH_IPV4, SWITCH_IPV6};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, UdpSocket};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

fn socket(lab: &Lab, place: Place, address: IpAddr) -> UdpSocket {
    lab.within(place, || UdpSocket::bind((address, 0)).unwrap()).unwrap()
}

fn speak(asking: &UdpSocket, asked: &UdpSocket) {
    let to = asked.local_addr().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut buffer = [0; 16];
            asked.set_read_timeout(Some(common::PATIENCE)).unwrap();
            let (length, from) = asked.recv_from(&mut buffer).unwrap();
            asked.send_to(&buffer[..length], from).unwrap();
        });
        let (said, from) = ask(asking, to, b"hello").unwrap_or_else(|| panic!("no answer from {to}"));
        assert_eq!((said.as_slice(), from), (&b"hello"[..], to));
    });
}

#[test]
fn hosts_reach_each_other_and_the_switch_in_both_families() {
    let Some(lab) = lab(3) else { return };
    let (first, last) = (lab.host(0).unwrap(), lab.host(2).unwrap());
    for (here, there) in [(first.ipv4.into(), last.ipv4.into()), (first.ipv6.into(), last.ipv6.into())] {
        speak(&socket(&lab, Place::Host(0), here), &socket(&lab, Place::Host(2), there));
    }
    for (host, number) in lab.hosts().iter().zip(0..) {
        for (here, switch) in [(host.ipv4.into(), SWITCH_IPV4.into()), (host.ipv6.into(), SWITCH_IPV6.into())] {
            speak(&socket(&lab, Place::Host(number), here), &socket(&lab, Place::Switch, switch));
        }
    }
    let loopback = socket(&lab, Place::Host(1), [127, 0, 0, 1].into());
    speak(&loopback, &socket(&lab, Place::Host(1), [127, 0, 0, 1].into()));
}

/// Two racks of two hosts: each host reaches all hosts and switches, and traffic between racks passes the rack's switch.
#[test]
fn hosts_of_racks_reach_each_other_through_their_switches() {
    if !labs_work() {
        return;
    }
    let lab = Lab::up(&Options::temporary(4).racks(2)).unwrap();
    let at = |place| match place {
        Place::Switch => [IpAddr::from(SWITCH_IPV4), SWITCH_IPV6.into()],
        place => lab.at(place).unwrap().map(|host| [host.ipv4.into(), host.ipv6.into()]).unwrap(),
    };
    let others = [Place::Switch, Place::Rack(0), Place::Rack(1), Place::Host(1), Place::Host(2), Place::Host(3)];
    for (other, family) in others.into_iter().flat_map(|other| [(other, 0), (other, 1)]) {
        speak(&socket(&lab, Place::Host(0), at(Place::Host(0))[family]), &socket(&lab, other, at(other)[family]));
    }
    speak(&socket(&lab, Place::Rack(0), at(Place::Rack(0))[0]), &socket(&lab, Place::Rack(1), at(Place::Rack(1))[0]));
    assert_eq!(lab.interfaces(), ["rack0", "rack1"]);
    assert_eq!(lab.interfaces_of(Place::Rack(1)), ["eth0", "host2", "host3"]);
    assert_eq!(lab.interfaces_of(Place::Host(3)), ["eth0"]);
    let output = lab.command(Place::Host(0), "ip").args(["route", "get", "10.77.1.2"]).output().unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains("via 10.77.0.1"), "through the rack's switch");
    let name = lab.name().to_owned();
    assert_eq!(Lab::open(&name).unwrap().racks(), lab.racks());
    lab.renew_link(3).unwrap();
    speak(&socket(&lab, Place::Host(0), at(Place::Host(0))[0]), &socket(&lab, Place::Host(3), at(Place::Host(3))[0]));
    assert!(lab.within(Place::Rack(2), || ()).is_err_and(|error| error.to_string().contains("rack0 to rack1")));
    lab.down().unwrap();
    assert_eq!(traces_of(&name), Vec::<String>::new());
    assert!(matches!(Lab::up(&Options::temporary(2).racks(3)), Err(LabError::Racks { racks: 3, hosts: 2 })));
}

/// The kernel drops packets sent by an interface without a queue.
#[test]
fn every_interface_of_a_lab_that_is_up_has_its_queue() {
    for _ in 0..5 {
        let Some(lab) = lab(3) else { return };
        for place in [Place::Switch, Place::Host(0), Place::Host(1), Place::Host(2)] {
            // Lists all interfaces: a query for a single one would make the kernel attach its queue.
            let output = lab.command(place, "ip").args(["-oneline", "link", "show"]).output().unwrap();
            let said = String::from_utf8(output.stdout).unwrap();
            let of_links = said.lines().filter(|line| line.contains('@'));
            assert!(of_links.clone().count() > 0, "{said}");
            for line in of_links {
                assert!(line.contains(" state UP ") && !line.contains(" qdisc noop "), "{place}: {line}");
            }
        }
    }
}

#[test]
fn a_link_that_was_made_again_is_another_and_works() {
    let Some(lab) = lab(2) else { return };
    let index =
        || lab.command(Place::Switch, "ip").args(["-oneline", "link", "show", "host1"]).output().unwrap().stdout;
    let before = index();
    lab.renew_link(1).unwrap();
    assert_ne!(index().split(|&byte| byte == b':').next(), before.split(|&byte| byte == b':').next());
    let (first, last) = (lab.host(0).unwrap(), lab.host(1).unwrap());
    for (here, there) in [(first.ipv4.into(), last.ipv4.into()), (first.ipv6.into(), last.ipv6.into())] {
        speak(&socket(&lab, Place::Host(0), here), &socket(&lab, Place::Host(1), there));
    }
    assert!(matches!(lab.renew_link(2), Err(LabError::NoSuchPlace { .. })));
}

#[test]
fn a_lab_that_is_dropped_leaves_nothing() {
    let Some(lab) = lab(HOSTS_MAX) else { return };
    let name = lab.name().to_owned();
    assert_eq!(traces_of(&name).len(), HOSTS_MAX + 2, "the hosts, the switch and the record");
    assert_eq!((lab.hosts().len(), lab.interfaces().len()), (HOSTS_MAX, HOSTS_MAX));
    drop(lab);
    assert_eq!(traces_of(&name), Vec::<String>::new());
    assert!(matches!(Lab::open(&name), Err(LabError::NotFound(_))));
    assert!(matches!(Lab::remove(&name), Err(LabError::NotFound(_))));
    assert_eq!(traces_of(&name), Vec::<String>::new());
}

#[test]
fn a_lab_that_is_kept_can_be_opened_and_taken_down() {
    let Some(mut made) = lab(2) else { return };
    made.keep();
    let (name, hosts) = (made.name().to_owned(), made.hosts().to_vec());
    drop(made);
    assert!(matches!(Lab::up(&Options::new(&name, 1)), Err(LabError::Exists(_))));
    assert!(Lab::names().unwrap().contains(&name));
    drop(Lab::open(&name).unwrap());
    let opened = Lab::open(&name).unwrap();
    assert_eq!((opened.hosts(), opened.loss()), (hosts.as_slice(), Loss::NONE));
    opened.down().unwrap();
    assert_eq!(traces_of(&name), Vec::<String>::new());
}

#[test]
fn a_command_runs_in_its_namespace_and_its_exit_code_comes_back() {
    let Some(lab) = lab(2) else { return };
    assert_eq!(lab.command(Place::Host(0), "sh").args(["-c", "exit 7"]).status().unwrap().code(), Some(7));
    let output = lab.command(Place::Host(1), "ip").args(["-br", "address"]).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("10.77.1.2/24") && said.contains("fd77:1:1::2/64"), "{said}");
    assert!(lab.within(Place::Host(2), || ()).is_err_and(|error| error.to_string().contains("host0 to host1")));
}

#[test]
fn processes_inside_end_with_their_lab() {
    let Some(lab) = lab(1) else { return };
    let asked = lab.command(Place::Host(0), "sleep").arg("1000").spawn().unwrap();
    let deaf = "trap '' TERM; echo ready; while :; do sleep 1; done";
    let mut deaf = lab.command(Place::Switch, "sh").args(["-c", deaf]).stdout(Stdio::piped()).spawn().unwrap();
    BufReader::new(deaf.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
    let mut outside = Command::new("sleep").arg("1000").spawn().unwrap();
    lab.down().unwrap();
    for (mut child, signal) in [(asked, 15), (deaf, 9)] {
        assert_eq!(child.wait().unwrap().signal(), Some(signal));
    }
    assert_eq!(outside.try_wait().unwrap(), None);
    outside.kill().unwrap();
    outside.wait().unwrap();
}

#[test]
fn what_was_cut_off_is_no_lab_and_is_removed_first() {
    if !labs_work() {
        return;
    }
    let options = Options::temporary(1);
    let (name, leftovers) = (&options.name, ["switch", "host0", "host5"]);
    let cut_off = || {
        for place in leftovers {
            assert!(
                Command::new("ip").args(["netns", "add", &format!("mf-{name}-{place}")]).status().unwrap().success()
            );
        }
        // As if `ip netns add` was killed: the file exists, but no namespace is bound to it.
        std::fs::write(format!("/var/run/netns/mf-{name}-host6"), "").unwrap();
    };
    cut_off();
    assert!(matches!(Lab::open(name), Err(LabError::Incomplete(_))));
    assert!(Lab::names().unwrap().contains(name));
    Lab::remove(name).unwrap();
    assert_eq!(traces_of(name), Vec::<String>::new());
    cut_off();
    let lab = Lab::up(&options).unwrap();
    assert_eq!(traces_of(name).len(), 3, "{:?}", traces_of(name));
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(mounts.contains(" /sys/fs/bpf bpf "), "a switch in a lab could not keep its queue: {mounts}");
    lab.down().unwrap();
    assert_eq!(traces_of(name), Vec::<String>::new());
}

#[test]
fn setting_up_that_is_interrupted_is_undone() {
    if !labs_work() {
        return;
    }
    let options = Options::temporary(3);
    // The flag is checked between steps, first after the namespaces exist.
    let result = Lab::up_unless(&options, &AtomicBool::new(true));
    assert!(matches!(result, Err(LabError::Interrupted(_))), "{result:?}");
    assert_eq!(traces_of(&options.name), Vec::<String>::new());
}

#[test]
fn one_at_a_time_sets_up_a_lab() {
    if !labs_work() {
        return;
    }
    let options = Options::temporary(8);
    let results = std::thread::scope(|scope| {
        let threads = [(); 4].map(|()| scope.spawn(|| Lab::up(&options)));
        threads.map(|thread| thread.join().unwrap())
    });
    let refused = results.iter().filter(|result| matches!(result, Err(LabError::Exists(_)))).count();
    assert_eq!((results.iter().flatten().count(), refused), (1, 3), "{results:?}");
}

#[test]
fn without_privileges_the_error_says_what_to_do() {
    // Capabilities are per thread.
    let unprivileged = std::thread::spawn(|| {
        let mut ours = capabilities(None).unwrap();
        ours.effective -= CapabilitySet::NET_ADMIN;
        set_capabilities(None, ours).unwrap();
        [Lab::up(&Options::temporary(1)).map(drop), Lab::remove("a"), midflight_net::available()]
    });
    for result in unprivileged.join().unwrap() {
        let error = result.unwrap_err();
        assert!(matches!(error, LabError::Privilege), "{error}");
        assert!(error.to_string().contains("root") && error.to_string().contains("sudo"), "{error}");
    }
}

#[test]
fn a_link_loses_about_as_much_as_it_was_told() {
    const SENT: u32 = 20_000;
    if !labs_work() {
        return;
    }
    let lab = match Lab::up(&Options::temporary(2).loss("10%".parse().unwrap())) {
        Err(why @ LabError::NoLoss { .. }) => return skip(why),
        lab => lab.unwrap(),
    };
    assert_eq!(Lab::open(lab.name()).unwrap().loss(), lab.loss());
    let sender = socket(&lab, Place::Host(0), lab.hosts()[0].ipv4.into());
    for (place, address, part) in
        [(Place::Switch, IpAddr::from(SWITCH_IPV4), 0.9), (Place::Host(1), lab.hosts()[1].ipv4.into(), 0.81)]
    {
        let receiver = socket(&lab, place, address);
        let got = received_of(SENT, &sender, &receiver, receiver.local_addr().unwrap());
        assert!(about(part, got, SENT), "{got} of {SENT} came to {place}");
    }
}
