//! Runs the toy natively, in the kernel, in transcripts, in the simulator, behind a real switch, with metrics and configuration.
#![allow(clippy::unwrap_used, reason = "tests may")]

use midflight_control::{Config, EngineStatus, Snapshot, Surroundings};
use midflight_dataplane::program::Engine;
use midflight_dataplane::{Native, Out};
use midflight_echo::{Echo, EchoStatus, EchoTable, Stats, Verdict};
use midflight_host::SwitchBuilder;
use midflight_sim::{Actor, Birth, Context, Faults, Place, ProgramSwitch, Wake, World};
use midflight_spec::transcript::{AnyEngine, CheckedNative, Moment, Sending, Vocabulary, run};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::time::Duration;

fn datagram(number: u64) -> Vec<u8> {
    let mut bytes = vec![0; 32];
    bytes[..4].copy_from_slice(&[b'M', b'F', 4, 1]);
    bytes[24..].copy_from_slice(&number.to_be_bytes());
    bytes
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(bytes[24..32].try_into().unwrap())
}

fn at(host: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host], 7))
}

/// Two datagrams are numbered in place: the first returns to its sender, the second goes to the first's sender.
fn numbers_and_passes_on(engine: &mut dyn Engine<Program = Echo>) {
    let mut out = Out::new();
    for (expected, from, to) in [(5, at(1), at(1)), (6, at(2), at(1)), (7, at(1), at(2))] {
        let mut bytes = datagram(0);
        assert_eq!(engine.packet(0, from, &mut bytes, &mut out).unwrap(), Verdict::Forwarded);
        assert_eq!(out.all(&bytes).collect::<Vec<_>>(), [(to, &datagram(expected)[..])]);
    }
    assert_eq!(engine.packet(0, at(1), &mut [0; 3], &mut out).unwrap(), Verdict::Truncated);
    assert!(engine.order(&mut 70).unwrap());
    assert_eq!(engine.stats().number, 70);
    engine.check().unwrap();
}

#[test]
fn native() {
    numbers_and_passes_on(&mut Native::<Echo>::new(&5, 1, 1).unwrap());
    let error = Native::<Echo>::new(&0, 1, 1).unwrap_err();
    assert_eq!(error.to_string(), "the first number must not be 0");
}

/// In the kernel, called directly and through XDP. The third frame goes to a host other than its sender.
#[cfg(feature = "kernel")]
#[test]
fn kernel() {
    use midflight_dataplane::kernel::{Action, Arrival, Kernel};
    let mut kernel = match Kernel::<Echo>::new(&5, 1, 1, 0) {
        Err(missing) if missing.is_unavailable() => return eprintln!("SKIPPED: the toy in the kernel: {missing}"),
        loaded => loaded.unwrap(),
    };
    numbers_and_passes_on(&mut kernel);
    kernel.restart(&5, 1, 1).unwrap();
    kernel.serve(7700, &[[10, 0, 0, 9].into()]);
    // A length that is no multiple of four tests copying and checksumming the tail.
    let long = |number| [&datagram(number)[..], b"and more"].concat()[..39].to_vec();
    let mut by = |is_xdp: bool, host: u8| {
        let (frame, run) = (frame(host, 9, &long(0)), if is_xdp { Kernel::run_xdp } else { Kernel::run_tc });
        let departure = run(&mut kernel, 0, &Arrival::new(&frame)).unwrap();
        assert_eq!(departure.action, Action::Transmit);
        departure.frame
    };
    assert_eq!(by(true, 1), frame(9, 1, &long(5)));
    assert_eq!(by(true, 2), frame(9, 1, &long(6)), "it goes on to who sent the one before");
    assert_eq!(by(true, 1), frame(9, 2, &long(7)));
    assert_eq!(by(false, 2), frame(9, 1, &long(8)));
    assert_eq!(by(false, 2), frame(9, 2, &long(9)));
}

/// From or to the switch's port 7700, with a correct checksum.
#[cfg(feature = "kernel")]
fn frame(from: u8, to: u8, payload: &[u8]) -> Vec<u8> {
    let port = |host: u8| if host == 9 { 7700u16 } else { 7 };
    // The frames arrive on the loopback interface, so the switch has its address.
    let mac = |host: u8| if host == 9 { [0; 6] } else { [2, 0, 0, 0, 0, host] };
    let builder = etherparse::PacketBuilder::ethernet2(mac(from), mac(to))
        .ipv4([10, 0, 0, from], [10, 0, 0, to], 64)
        .udp(port(from), port(to));
    let mut frame = Vec::new();
    builder.write(&mut frame, payload).unwrap();
    frame
}

/// `1 says`: a datagram of host 1.
#[derive(Default)]
struct Words;

impl Vocabulary for Words {
    type Program = Echo;

    fn configure(&self, settings: &[(&str, &str)]) -> Result<u64, String> {
        settings.first().and_then(|(_, first)| first.parse().ok()).ok_or_else(|| "say: switch first=5".into())
    }
    fn ticks_every(_: &u64) -> Duration {
        Duration::from_secs(1)
    }
    fn declare(&mut self, _: &[&str]) -> Result<Option<()>, String> {
        Ok(None)
    }
    fn order(&self, words: &[&str]) -> Result<Option<u64>, String> {
        let ["next", number] = words else { return Ok(None) };
        number.parse().map(Some).map_err(|_| format!("{number:?} is no number"))
    }
    fn done(order: &u64) -> String {
        format!("goes on with {order}")
    }
    fn parse_sending(&mut self, line: &str, _: &Moment<'_, u64>) -> Result<Sending, String> {
        let host = line.strip_suffix(" says").and_then(|host| host.parse().ok()).ok_or("say: 1 says")?;
        Ok(Sending { from: at(host), datagram: datagram(0), counter: None, every: None })
    }
    fn learn(&mut self, _: &[u8]) {}
    fn read(&self, to: SocketAddr, sent: &[u8], _: Option<u64>, _: &Moment<'_, u64>) -> Vec<String> {
        vec![format!("-> {to} {}", number(sent))]
    }
    fn kind(_: &[u8]) -> &'static str {
        "A NUMBER"
    }
    fn stats(stats: &Stats) -> Vec<String> {
        vec![format!("next {}", stats.number)]
    }
    fn has_grown(before: &Stats, after: &Stats) -> bool {
        before.number != after.number
    }
}

const STORY: &str = "switch first=5
1 says
    forwarded
    -> 10.0.0.1:7 5
2 says
    forwarded
    -> 10.0.0.1:7 6
next 70
    goes on with 70
stats
    next 70
";

#[test]
fn transcript() {
    let mut start = |first: &u64, epoch, secret| -> AnyEngine<Words> {
        Box::new(CheckedNative::new(first, epoch, secret).unwrap())
    };
    assert_eq!(run::<Words>(STORY, &mut start).unwrap(), STORY);
}

struct Speaker {
    switch: SocketAddr,
    heard: Vec<u64>,
}

impl Actor for Speaker {
    fn start(&mut self, context: &mut Context<'_>) {
        context.send(self.switch, &datagram(0));
        context.wake_at(context.now() + 1_000_000);
    }
    fn datagram(&mut self, _: &mut Context<'_>, _: SocketAddr, bytes: &[u8]) {
        self.heard.push(number(bytes));
    }
    fn wake(&mut self, context: &mut Context<'_>, _: Wake) {
        self.start(context);
    }
}

#[test]
fn simulator() {
    let mut world = World::new(1, Faults::INSTANT);
    let switch = Box::new(|_: &mut Birth| -> Box<dyn Actor> {
        Box::new(ProgramSwitch::new(Native::<Echo>::new(&1, 1, 1).unwrap()))
    });
    let switch = world.add_actor(Place::Apart, switch);
    let address = world.address(switch);
    let speaker = move |_: &mut Birth| -> Box<dyn Actor> { Box::new(Speaker { switch: address, heard: Vec::new() }) };
    let speakers = [(); 2].map(|()| world.add_actor(Place::Apart, Box::new(speaker)));
    world.run(100_500_000, |_| false);
    let heard = speakers.map(|node| world.actor::<Speaker>(node).unwrap().heard.len());
    assert_eq!(heard.iter().sum::<usize>(), 202, "{heard:?}");
    let engine = world.actor::<ProgramSwitch<Native<Echo>>>(switch).unwrap().engine();
    assert_eq!(engine.stats().number, 203);
}

#[test]
fn a_switch_its_metrics_and_its_configuration() {
    let file = "listen = \"127.0.0.1:0\"\n[echo]\nfirst = 5\n";
    let config = Config::<EchoTable>::parse(file, Path::new("m.toml")).unwrap();
    let wrong = Config::<EchoTable>::parse("[echo]\nfirst = 0\n", Path::new("m.toml")).unwrap_err().to_string();
    assert_eq!(wrong, "m.toml: echo.first = 0: must be 1 to 1000000");

    let switch = SwitchBuilder::<Echo>::of(config.program.first).listen(config.switch.listen).start().unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut buffer = [0; 64];
    for expected in 5..8 {
        socket.send_to(&datagram(0), switch.local_addr()).unwrap();
        let length = socket.recv(&mut buffer).unwrap();
        assert_eq!(number(&buffer[..length]), expected);
    }
    assert_eq!(switch.order(90).unwrap(), 90);

    let stats = Native::<Echo>::new(&5, 1, 1).unwrap().stats();
    let (engine, shell) = (EngineStatus::in_process("user"), [].into());
    let around = Surroundings { listen: switch.local_addr(), engine, epoch: 1, uptime_ms: 0, shell };
    let text = Snapshot::new(around, &stats, EchoStatus { numbers: stats.number }).to_prometheus();
    for line in ["midflight_echo_numbers_total 5", "midflight_drops_total{reason=\"truncated\"} 0"] {
        assert!(text.lines().any(|shown| shown == line), "{line} in\n{text}");
    }
}
