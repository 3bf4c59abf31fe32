//! N8: an operator lies to its controller over real streams. Each lie is counted by name, and the others work normally.

use crate::world::{World, greet, secret, wait_until};
use midflight_cache::control::keeper::Load;
use midflight_cache::control::{Parts, Role, RuleKeeper};
use midflight_dataplane::cache::{Outcome, Rule};
use midflight_host::cache::control_stream::secret::End;
use midflight_host::clock;
use midflight_wire::cache::control::{self, Ask, ControlMessage, Done, SetNumber, TERM_MAX, Term};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

/// Claims to have carried out everything.
struct Nothing;

impl Parts for Nothing {
    fn set(&mut self, _: Rule) -> Outcome {
        Outcome::Done
    }
    fn request_counts(&self, _: u16) -> [u64; 4] {
        [0; 4]
    }
    fn load(&self) -> Load {
        Load::default()
    }
    fn set_replica_group(&mut self, _: u32, _: &[SocketAddr]) -> Outcome {
        Outcome::Done
    }
    fn set_selectors(&mut self, _: u32) {}
}

/// Replaces an answer by a lie.
fn lie(number: usize, answer: ControlMessage) -> Vec<ControlMessage> {
    match (number % 6, answer) {
        // RSNode ids that were never assigned, and labels of other groups.
        (_, ControlMessage::Inventory(mut inventory)) => {
            inventory.rsnodes = (1..50).map(|id| (id, None)).collect();
            inventory.labels = vec![(0, 77), (9, 78)];
            vec![ControlMessage::Inventory(inventory)]
        }
        // A refusal of orders that it was not given.
        (_, ControlMessage::Done(mut done)) => {
            done.refused.push((u16::MAX, 200));
            vec![ControlMessage::Done(done)]
        }
        (0, ControlMessage::Report(mut report)) => {
            report.term = Term { number: TERM_MAX, controller: 1 };
            vec![ControlMessage::Report(report)]
        }
        (1, ControlMessage::Report(mut report)) => {
            report.counts = vec![(0, [7; 4]), (9_999, [u64::MAX; 4])];
            vec![ControlMessage::Report(report)]
        }
        (2, ControlMessage::Report(mut report)) => {
            report.at_ns = 0;
            vec![ControlMessage::Report(report)]
        }
        // An unsolicited answer, and messages that only a controller sends.
        (3, ControlMessage::Report(report)) => {
            let (incarnation, term) = (report.incarnation, report.term);
            let number = SetNumber { loading: 9, sequence: 9 };
            let done = Done { incarnation, term, number, selector: None, refused: Vec::new() };
            let ask = Ask { number: 1, term: None, inventory: None };
            vec![ControlMessage::Done(done), ControlMessage::Ask(ask), ControlMessage::Report(report)]
        }
        (_, answer) => vec![answer],
    }
}

fn talk(mut stream: TcpStream, keeper: &mut RuleKeeper, said: &mut usize) {
    let (mut come, mut buffer) = (Vec::new(), [0; 4096]);
    let Ok((mut sealer, mut opener)) = greet(&mut stream, &secret(), End::Keeper) else { return };
    while let Ok(length @ 1..) = stream.read(&mut buffer) {
        come.extend_from_slice(&buffer[..length]);
        while let Some((message, length)) = opener.open(&mut come).unwrap() {
            come.drain(..length);
            let answer = keeper.handle(clock::now(), &message, &mut Nothing).unwrap();
            let mut bytes = Vec::new();
            *said += 1;
            if (*said).is_multiple_of(40) {
                assert!(sealer.seal(b"HTTP/1.1 200 OK\r\n\r\n", &mut bytes));
            }
            for message in lie(*said - 1, answer) {
                let mut plain = Vec::new();
                control::write(&message, &mut plain);
                assert!(sealer.seal(&plain, &mut bytes));
            }
            let _ = stream.write_all(&bytes);
        }
    }
}

/// The liar's control address; it lies until the process ends. It claims to have no selector: a lying RSNode would lose requests
/// undetectably.
fn liar() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut keeper, mut said) = (RuleKeeper::new(77, None), 0);
        while let Ok((stream, _)) = listener.accept() {
            talk(stream, &mut keeper, &mut said);
        }
    });
    address
}

#[test]
fn n8_what_a_lying_operator_says_is_counted_and_costs_the_others_nothing() {
    let mut world = World::new();
    world.redirect("core-0", liar());
    let controller = world.controller(|config| config.window = 100_000_000);
    wait_until("the group has its RSNode", || controller.report().status.labels[0].is_some());
    let mut client = world.client();
    let before = world.selected("tor-0");
    wait_until("each lie is counted", || {
        assert!(client.read(5).iter().all(Result::is_ok), "{:?}", controller.report());
        let report = controller.report();
        let counters = report.status.counters;
        let lies = [
            counters.impossible_terms,
            counters.statistics_foreign,
            counters.statistics_backwards,
            counters.stale,
            counters.foreign,
            report.streams.malformed,
        ];
        lies.iter().all(|&count| count > 0)
    });
    let status = controller.report().status;
    assert!(matches!(status.role, Role::Active(_)) && status.counters.steps_down == 0, "{status:?}");
    let name = |operator: usize| world.network.topology().operators()[operator].id.clone();
    let dead: Vec<_> = (0..3).filter(|&operator| !status.operators[operator].is_alive).map(name).collect();
    assert!(dead.iter().all(|dead| dead == "core-0"), "{dead:?}");
    assert!(status.labels[0].is_some() && world.selected("tor-0") > before, "{status:?}");
}
