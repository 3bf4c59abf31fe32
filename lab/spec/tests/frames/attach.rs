//! The kernel programs on interfaces: attached, found, pinned, taken over, detached.

use crate::shells::{config, ip, shells, skip};
use midflight_dataplane::XdpMode;
use midflight_dataplane::kernel::{Found, KernelError, KernelTasks, NOW, Place};
use midflight_dataplane::program::Engine;
use midflight_dataplane::{Out, TasksConfig, Verdict};
use midflight_dataplane::{TasksProgram, kernel};
use midflight_net::{Lab, Place as At};
use midflight_wire::packet;
use midflight_wire::tasks::{Packet, Submit, TaskInfo, parse};
use std::ffi::CStr;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

type KernelEngine = kernel::KernelEngine<TasksProgram>;

/// `None` (with a message) without privileges or without arenas in the kernel.
fn lab(hosts: usize) -> Option<Lab> {
    shells().and_then(|_| crate::shells::lab(hosts))
}

/// Unique among the tests that pin.
fn port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    20_000 + (std::process::id() % 2_000) as u16 * 16 + NEXT.fetch_add(1, Ordering::Relaxed)
}

fn place(interfaces: &[&str]) -> Place {
    Place {
        listen: SocketAddr::from(([0, 0, 0, 0], port())),
        interfaces: interfaces.iter().map(|&name| name.to_owned()).collect(),
        mode: XdpMode::Native,
        keep: false,
        fresh: false,
    }
}

fn start_with(lab: &Lab, at: At, config: &TasksConfig, place: &Place) -> Result<KernelEngine, KernelError> {
    lab.within(at, || in_its_turn(|| KernelEngine::start(config, place, 7, 8))).unwrap()
}

/// A pinned arena is mapped at its old address. Waits while another test of this process has one there; a process of
/// its own has no other.
fn in_its_turn(mut start: impl FnMut() -> Result<KernelEngine, KernelError>) -> Result<KernelEngine, KernelError> {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        match start() {
            Err(KernelError::Io { source, .. })
                if source.kind() == ErrorKind::AlreadyExists && Instant::now() < end =>
            {
                std::thread::sleep(Duration::from_millis(20));
            }
            started => return started,
        }
    }
}

fn start(lab: &Lab, place: &Place) -> Result<KernelEngine, KernelError> {
    start_with(lab, At::Switch, &config(), place)
}

fn refused(lab: &Lab, at: At, place: &Place) -> String {
    start_with(lab, at, &config(), place).unwrap_err().to_string()
}

fn link(lab: &Lab, interface: &str) -> String {
    let output = lab.command(At::Switch, "ip").args(["-details", "link", "show", interface]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// The mode of the attached XDP program, and the number of TCX programs at ingress.
fn programs(lab: &Lab, interface: &str) -> (Option<&'static str>, u32) {
    let said = link(lab, interface);
    let mode = match said.split_whitespace().find(|word| word.starts_with("xdp")) {
        Some("xdp") => Some("native"),
        Some("xdpgeneric") => Some("generic"),
        Some(other) => panic!("{other}"),
        None => None,
    };
    let index: i32 = said.split(':').next().unwrap().trim().parse().unwrap();
    let count = lab.within(At::Switch, || {
        let mut query = libbpf_sys::bpf_prog_query_opts {
            sz: size_of::<libbpf_sys::bpf_prog_query_opts>() as libbpf_sys::size_t,
            ..Default::default()
        };
        // SAFETY: it only asks for the number.
        unsafe {
            assert_eq!(libbpf_sys::bpf_prog_query_opts(index, libbpf_sys::BPF_TCX_INGRESS, &raw mut query), 0);
            query.__bindgen_anon_1.count
        }
    });
    (mode, count.unwrap())
}

fn pins(place: &Place) -> Vec<String> {
    let directory = Path::new("/sys/fs/bpf/midflight").join(place.listen.port().to_string());
    let mut names: Vec<_> = std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

struct Cleanup(u16);

impl Drop for Cleanup {
    fn drop(&mut self) {
        let _ = kernel::detach(self.0);
    }
}

fn kept(interfaces: &[&str]) -> (Place, Cleanup) {
    let place = Place { keep: true, ..place(interfaces) };
    let cleanup = Cleanup(place.listen.port());
    (place, cleanup)
}

fn submit(engine: &mut KernelEngine, sequence: u32) {
    let from = SocketAddr::from(([10, 0, 0, 1], 7000));
    let mut out = Out::new();
    let mut send = |cookie: u64, out: &mut Out| {
        let fixed = Submit { client: 1.into(), cookie: cookie.into(), ..Submit::new(0, sequence) };
        let datagram = packet(&fixed, &[TaskInfo::PLAIN]);
        engine.kernel_mut().packet(NOW, from, &datagram, out).unwrap()
    };
    if send(0, &mut out) == Verdict::NoCookie {
        let (_, answer) = out.iter().next().unwrap();
        let Ok(Packet::Cookie(given)) = parse(answer) else { panic!("not a COOKIE") };
        let cookie = given.cookie.get();
        assert_eq!(send(cookie, &mut out), Verdict::Ok);
    }
}

fn queued(engine: &mut KernelEngine) -> u32 {
    engine.kernel().check().unwrap();
    engine.kernel().stats().queued.iter().sum()
}

#[test]
fn both_shells_are_attached_and_go_without_a_trace() {
    let Some(lab) = lab(2) else { return };
    let place = place(&["host0", "host1", "host0"]);
    let engine = start(&lab, &place).unwrap();
    assert_eq!(engine.interfaces(), ["host0", "host1"]);
    assert_eq!((engine.found(), engine.lost_interface()), (Found::Nothing, None));
    for interface in ["host0", "host1"] {
        assert_eq!(programs(&lab, interface), (Some("native"), 1));
    }
    drop(engine);
    for interface in ["host0", "host1"] {
        assert_eq!(programs(&lab, interface), (None, 0));
    }
    assert_eq!(pins(&place), [""; 0]);
}

#[test]
fn generic_mode_is_never_taken_silently() {
    let Some(lab) = lab(1) else { return };
    let native = place(&["lo"]);
    let error = refused(&lab, At::Switch, &native);
    assert!(error.starts_with("interface lo takes no XDP program in native mode: "), "{error}");
    assert!(error.contains("--mode generic") && !error.contains('\n'), "{error}");
    assert_eq!(programs(&lab, "lo"), (None, 0));
    for interface in ["lo", "host0"] {
        let generic = Place { mode: XdpMode::Generic, ..place(&[interface]) };
        let _engine = start(&lab, &generic).unwrap();
        assert_eq!(programs(&lab, interface), (Some("generic"), 1));
    }
}

#[test]
fn an_interface_that_is_missing_or_down_is_refused_before_anything_is_attached() {
    let Some(lab) = lab(2) else { return };
    let error = refused(&lab, At::Switch, &place(&["host0", "host7"]));
    assert_eq!(error, "there is no interface host7: `ip link` lists what there is");
    ip(&lab, "link set host1 down");
    let error = refused(&lab, At::Switch, &place(&["host0", "host1"]));
    assert_eq!(error, "interface host1 is down: `ip link set host1 up` first");
    assert_eq!(refused(&lab, At::Switch, &place(&[])), KernelError::NoInterfaces.to_string());
    assert_eq!(programs(&lab, "host0"), (None, 0));
}

#[test]
fn an_interface_that_answers_do_not_fit_is_refused() {
    let Some(lab) = lab(1) else { return };
    ip(&lab, "link set host0 mtu 1279");
    let error = refused(&lab, At::Switch, &place(&["host0"]));
    assert!(
        error.starts_with("interface host0 has an MTU of 1279, and answers take up to 1280: `ip link set"),
        "{error}"
    );
    ip(&lab, "link set host0 mtu 1280");
    start(&lab, &place(&["host0"])).unwrap();
    let add = ["tuntap", "add", "dev", "tunnel", "mode", "tun"];
    if !lab.command(At::Switch, "ip").args(add).status().unwrap().success() {
        return skip("no kernel module for tunnels");
    }
    ip(&lab, "link set tunnel up");
    let error = refused(&lab, At::Switch, &place(&["tunnel"]));
    assert!(error.starts_with("interface tunnel is no Ethernet interface"), "{error}");
}

#[test]
fn a_foreign_program_is_named_and_left_alone() {
    let Some(lab) = lab(2) else { return };
    let program = pass_all(c"somebody_elses");
    let index: i32 = link(&lab, "host1").split(':').next().unwrap().parse().unwrap();
    // SAFETY: no options; it only takes numbers.
    let attach = || unsafe { libbpf_sys::bpf_xdp_attach(index, program.as_raw_fd(), 0, std::ptr::null()) };
    assert_eq!(lab.within(At::Switch, attach).unwrap(), 0);
    for mode in [XdpMode::Native, XdpMode::Generic] {
        let error = refused(&lab, At::Switch, &Place { mode, ..place(&["host0", "host1"]) });
        assert!(error.starts_with("interface host1 runs another XDP program, somebody_elses (id "), "{error}");
        assert!(error.contains("ip link set host1 xdp off"), "{error}");
    }
    assert!(link(&lab, "host1").contains("name somebody_elses"));
    assert_eq!(programs(&lab, "host0"), (None, 0));
}

/// `return XDP_PASS`
fn pass_all(name: &CStr) -> OwnedFd {
    const MOVE_XDP_PASS_TO_R0: u64 = 0xb7 | 2 << 32;
    const EXIT: u64 = 0x95;
    let instructions = [MOVE_XDP_PASS_TO_R0, EXIT];
    // SAFETY: the name and the instructions outlive the call; the descriptor is new.
    unsafe {
        let kind = libbpf_sys::BPF_PROG_TYPE_XDP;
        let program = instructions.as_ptr().cast();
        let fd = libbpf_sys::bpf_prog_load(kind, name.as_ptr(), c"MIT".as_ptr(), program, 2, std::ptr::null_mut());
        assert!(fd >= 0, "{fd}");
        OwnedFd::from_raw_fd(fd)
    }
}

#[test]
fn a_second_switch_on_an_interface_is_refused() {
    let Some(lab) = lab(2) else { return };
    let _first = start(&lab, &place(&["host0"])).unwrap();
    let error = refused(&lab, At::Switch, &place(&["host1", "host0"]));
    assert!(error.starts_with("interface host0 is served by another midflight switch"), "{error}");
    assert_eq!(programs(&lab, "host1"), (None, 0));
}

#[test]
fn t1_a_kept_queue_is_taken_over_with_its_tasks_and_its_epoch() {
    let Some(lab) = lab(2) else { return };
    let (place, _cleanup) = kept(&["host0"]);
    let mut first = start(&lab, &place).unwrap();
    submit(&mut first, 1);
    assert_eq!(first.kernel().epoch(), 7);
    let index = link(&lab, "host0").split(':').next().unwrap().to_owned();
    assert_eq!(pins(&place), ["arena", "handover", &format!("tc-{index}"), &format!("xdp-{index}")]);
    drop(first);
    assert_eq!(programs(&lab, "host0"), (Some("native"), 1), "the programs go on");
    let other = Place { interfaces: vec!["host0".into(), "host1".into()], mode: XdpMode::Generic, ..place.clone() };
    let again = lab.within(At::Switch, || in_its_turn(|| KernelEngine::start(&config(), &other, 9, 9))).unwrap();
    let mut again = again.unwrap();
    assert_eq!((again.found(), again.kernel().epoch(), queued(&mut again)), (Found::TakenOver, 7, 1));
    submit(&mut again, 2);
    assert_eq!(queued(&mut again), 2);
    assert_eq!(programs(&lab, "host0"), (Some("generic"), 1), "in the mode that is asked for now");
    assert_eq!(programs(&lab, "host1"), (Some("generic"), 1));
    drop(again);
    let last = start(&lab, &Place { interfaces: vec!["host1".into()], mode: XdpMode::Generic, ..place.clone() });
    assert_eq!(queued(&mut last.unwrap()), 2);
    assert_eq!(programs(&lab, "host0"), (None, 0), "an interface that is not served any more is let go");
}

#[test]
fn a_kept_queue_of_other_bounds_or_elsewhere_is_refused() {
    let Some(lab) = lab(1) else { return };
    let (place, _cleanup) = kept(&["host0"]);
    drop(start(&lab, &place).unwrap());
    let larger = TasksConfig { queue: 65, ..config() };
    let error = start_with(&lab, At::Switch, &larger, &place).unwrap_err().to_string();
    assert!(error.contains("its tasks.queue is 64, and 65 is asked for; --fresh"), "{error}");
    let longer = TasksConfig { lease_ns: 2_000_000_000, ..config() };
    let error = start_with(&lab, At::Switch, &longer, &place).unwrap_err().to_string();
    assert!(error.contains("its tasks.lease is 1000 ms, and 2000 ms is asked for"), "{error}");
    let lo = Place { interfaces: vec!["lo".into()], ..place.clone() };
    assert!(refused(&lab, At::Host(0), &lo).contains("it serves another network namespace"));
    assert_eq!(programs(&lab, "host0"), (Some("native"), 1), "what is kept goes on");
    let fresh = Place { fresh: true, ..place.clone() };
    let mut engine = start_with(&lab, At::Switch, &larger, &fresh).unwrap();
    assert_eq!((engine.found(), queued(&mut engine)), (Found::ThrownAway, 0));
}

#[test]
fn a_start_that_does_not_keep_replaces_what_was_kept() {
    let Some(lab) = lab(1) else { return };
    let (place, _cleanup) = kept(&["host0"]);
    submit(&mut start(&lab, &place).unwrap(), 1);
    let other = Place { listen: ([0, 0, 0, 0], port()).into(), ..place.clone() };
    let error = refused(&lab, At::Switch, &Place { keep: false, ..other });
    let expected = format!("interface host0 keeps the queue of a switch on port {}", place.listen.port());
    assert!(error.starts_with(&expected), "{error}");
    let mut engine = start(&lab, &Place { keep: false, ..place.clone() }).unwrap();
    assert_eq!((engine.found(), queued(&mut engine)), (Found::ThrownAway, 0));
    assert_eq!(pins(&place), [""; 0]);
    drop(engine);
    assert_eq!(programs(&lab, "host0"), (None, 0));
}

#[test]
fn what_is_kept_serves_on_where_another_mode_is_refused() {
    let Some(lab) = lab(1) else { return };
    let (native, _cleanup) = kept(&["host0", "lo"]);
    let generic = Place { mode: XdpMode::Generic, ..native.clone() };
    submit(&mut start(&lab, &generic).unwrap(), 1);
    let error = refused(&lab, At::Switch, &native);
    assert!(error.starts_with("interface lo takes no XDP program in native mode"), "{error}");
    assert_eq!((programs(&lab, "host0"), programs(&lab, "lo")), ((Some("native"), 1), (Some("generic"), 1)));
    assert_eq!(pins(&native).len(), 2 + 4, "maps, and two links to each");
    let mut again = start(&lab, &generic).unwrap();
    assert_eq!((again.found(), queued(&mut again)), (Found::TakenOver, 1));
    assert_eq!((programs(&lab, "host0"), programs(&lab, "lo")), ((Some("generic"), 1), (Some("generic"), 1)));
}

#[test]
fn what_is_kept_elsewhere_is_left_alone() {
    let Some(lab) = lab(1) else { return };
    let (place, _cleanup) = kept(&["host0"]);
    submit(&mut start(&lab, &place).unwrap(), 1);
    let there = Place { interfaces: vec!["lo".into()], keep: false, mode: XdpMode::Generic, ..place.clone() };
    let engine = start_with(&lab, At::Host(0), &config(), &there).unwrap();
    assert_eq!(engine.found(), Found::Nothing);
    assert_eq!(programs(&lab, "host0"), (Some("native"), 1));
    drop(engine);
    assert_eq!(queued(&mut start(&lab, &place).unwrap()), 1);
    // The removed interface is no longer served.
    assert!(lab.command(At::Switch, "ip").args(["link", "delete", "host0"]).status().unwrap().success());
    assert_eq!(start_with(&lab, At::Host(0), &config(), &there).unwrap().found(), Found::ThrownAway);
    assert_eq!(pins(&place), [""; 0]);
}

#[test]
fn who_may_not_see_what_root_keeps_can_serve_all_the_same() {
    let Some(lab) = lab(2) else { return };
    let (kept, _cleanup) = kept(&["host0"]);
    drop(start(&lab, &kept).unwrap());
    let other = place(&["host1"]);
    // For the file system this thread is another user from now on; for BPF and network it is not.
    let start = || {
        // SAFETY: it only takes a number, and speaks of this thread.
        unsafe { libc::setfsuid(65_534) };
        (KernelEngine::start(&config(), &other, 7, 8), KernelEngine::start(&config(), &kept, 7, 8))
    };
    let (engine, kept_engine) = lab.within(At::Switch, start).unwrap();
    assert_eq!(engine.unwrap().found(), Found::Nothing);
    let error = kept_engine.unwrap_err().to_string();
    assert!(error.contains("this user may not write to /sys/fs/bpf; start as root"), "{error}");
}

#[test]
fn what_is_kept_has_one_process_at_a_time() {
    let Some(lab) = lab(2) else { return };
    let (place, _cleanup) = kept(&["host0"]);
    let _engine = start(&lab, &place).unwrap();
    let error = refused(&lab, At::Switch, &Place { interfaces: vec!["host1".into()], ..place.clone() });
    assert!(error.starts_with(&format!("the kept switch of port {} has a process", place.listen.port())), "{error}");
    assert!(matches!(kernel::detach(place.listen.port()), Err(KernelError::InUse(_))));
}

#[test]
fn detach_leaves_nothing_and_says_whether_there_was_anything() {
    let Some(lab) = lab(1) else { return };
    let (place, _cleanup) = kept(&["host0"]);
    drop(start(&lab, &place).unwrap());
    assert!(kernel::detach(place.listen.port()).unwrap());
    assert_eq!((programs(&lab, "host0"), pins(&place)), ((None, 0), vec![]));
    assert!(!kernel::detach(place.listen.port()).unwrap());
}

#[test]
fn a_start_that_fails_keeps_nothing() {
    let Some(lab) = lab(1) else { return };
    let (place, _cleanup) = kept(&["host0", "lo"]);
    let error = refused(&lab, At::Switch, &place);
    assert!(error.starts_with("interface lo takes no XDP program"), "{error}");
    assert_eq!((programs(&lab, "host0"), pins(&place)), ((None, 0), vec![]));
}

#[test]
fn an_interface_that_goes_away_is_noticed_and_its_pins_do_no_harm() {
    let Some(lab) = lab(2) else { return };
    let (place, _cleanup) = kept(&["host0", "host1"]);
    let engine = start(&lab, &place).unwrap();
    ip(&lab, "link delete host1");
    assert_eq!(engine.lost_interface(), Some("host1"));
    drop(engine);
    assert!(refused(&lab, At::Switch, &place).starts_with("there is no interface host1"));
    let rest = Place { interfaces: vec!["host0".into()], ..place.clone() };
    assert_eq!(start(&lab, &rest).unwrap().found(), Found::TakenOver);
    assert_eq!(pins(&place).len(), 4, "maps, and the links to host0");
}

#[test]
fn addresses_that_come_are_served() {
    let Some(lab) = lab(1) else { return };
    let mut engine = start(&lab, &place(&["host0"])).unwrap();
    let refresh = |engine: &mut KernelEngine| lab.within(At::Switch, || engine.refresh_addresses()).unwrap().unwrap();
    assert_eq!(refresh(&mut engine), 0);
    for last in 1..=70 {
        ip(&lab, &format!("address add 10.99.0.{last}/32 dev lo"));
    }
    // Its own two IPv4 addresses and these, of which 64 fit; it does not listen on IPv6.
    assert_eq!(refresh(&mut engine), 72 - 64);
}

#[test]
fn an_arena_that_does_not_fit_is_refused_with_what_to_lower() {
    let error = KernelTasks::new(&config(), 1, 1, 1 << 40).unwrap_err().to_string();
    assert!(error.contains(" MiB of memory") && error.contains("lower tasks.queue"), "{error}");
}
