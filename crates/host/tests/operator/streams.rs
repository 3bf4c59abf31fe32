//! N8: faulty streams, from a scripted controller.

use crate::world::{CLIENT, Operator, World, greet, secret, wait_until};
use midflight_cache::control::order::order;
use midflight_cache::control::{Role, TERM_MAX};
use midflight_dataplane::cache::{Rule, Selection};
use midflight_host::cache::control_stream::Secret;
use midflight_host::cache::control_stream::secret::{End, Opener, Sealer};
use midflight_wire::cache::control::{
    self, Ask, CONTROL_MAGIC, CONTROL_MAX, CONTROL_VERSION, ControlHead, ControlKind, ControlMessage, Set, SetNumber,
    Term,
};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;
use zerocopy::IntoBytes;

const TERM: Term = Term { number: 1, controller: 9 };

pub(crate) fn operator(controllers: &[IpAddr]) -> Operator {
    Operator::start(
        [0, u32::MAX, u32::MAX, 0],
        SocketAddr::from(([127, 60, 4, 1], 0)),
        (true, Selection::None),
        controllers,
    )
}

pub(crate) fn loopback() -> IpAddr {
    [127, 0, 0, 1].into()
}

pub(crate) struct Stream {
    stream: TcpStream,
    come: Vec<u8>,
    sealer: Sealer,
    opener: Opener,
}

impl Stream {
    pub(crate) fn new(operator: &Operator) -> Self {
        Self::with(operator, &secret()).unwrap()
    }

    /// A controller's stream with this secret; an error if it is closed at once.
    fn with(operator: &Operator, secret: &Secret) -> std::io::Result<Self> {
        let mut stream = TcpStream::connect(operator.keeper.local_addr()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let (sealer, opener) = greet(&mut stream, secret, End::Controller)?;
        Ok(Self { stream, come: Vec::new(), sealer, opener })
    }

    fn bytes(message: &ControlMessage) -> Vec<u8> {
        let mut bytes = Vec::new();
        control::write(message, &mut bytes);
        bytes
    }

    /// Seals bytes that need not be a message.
    fn sealed(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut sealed = Vec::new();
        assert!(self.sealer.seal(bytes, &mut sealed));
        sealed
    }

    fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    pub(crate) fn send(&mut self, message: &ControlMessage) {
        let sealed = self.sealed(&Self::bytes(message));
        self.write(&sealed);
    }

    pub(crate) fn answer(&mut self) -> Option<ControlMessage> {
        loop {
            if let Some((message, length)) = self.opener.open(&mut self.come).unwrap() {
                self.come.drain(..length);
                return Some(message);
            }
            let mut buffer = [0; 4096];
            match self.stream.read(&mut buffer) {
                Ok(0) => return None,
                Ok(length) => self.come.extend_from_slice(&buffer[..length]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("no answer: {error}"),
            }
        }
    }

    pub(crate) fn ask(&mut self, number: u64) -> ControlMessage {
        self.send(&ControlMessage::Ask(Ask { number, term: Some(TERM), inventory: None }));
        self.answer().expect("it is answered")
    }
}

fn incarnation(report: &ControlMessage) -> u64 {
    let ControlMessage::Report(report) = report else { panic!("{report:?} is no report") };
    report.incarnation
}

fn set(incarnation: u64, sequence: u32, rules: &[Rule]) -> ControlMessage {
    let orders = rules.iter().map(|rule| order(*rule)).collect();
    let number = SetNumber { loading: 1, sequence };
    ControlMessage::Set(Set { term: TERM, number, incarnation, orders, complete: false })
}

fn own_rack() -> Vec<Rule> {
    let here = SocketAddr::from(([127, 60, 4, 1], 9));
    vec![
        Rule::Own { rack: Some(0), selector: None },
        Rule::Rack { rack: 0, operator: Some(here), marker: 0 },
        Rule::Host { ip: CLIENT.into(), rack: 0, group: Some(0) },
    ]
}

/// A stream that breaks within a message loses nothing: the repeated SET is answered, and carried out once.
#[test]
fn n8_a_stream_that_breaks_within_a_message_loses_nothing() {
    let operator = operator(&[loopback()]);
    let mut first = Stream::new(&operator);
    let ask = ControlMessage::Ask(Ask { number: 1, term: Some(TERM), inventory: Some(1) });
    first.send(&ask);
    let Some(ControlMessage::Inventory(inventory)) = first.answer() else { panic!("no inventory") };
    let set = set(inventory.incarnation, 1, &own_rack());
    let sealed = first.sealed(&Stream::bytes(&set));
    first.write(&sealed[..sealed.len() - 1]);
    drop(first);
    assert_eq!(operator.keeper.report().messages.sets, 0);
    let mut second = Stream::new(&operator);
    for _ in 0..2 {
        second.send(&set);
        let Some(ControlMessage::Done(done)) = second.answer() else { panic!("not carried out") };
        assert!(done.refused.is_empty(), "{done:?}");
    }
    let report = operator.keeper.report();
    assert_eq!((report.messages.sets, report.messages.repeated, report.rules), (1, 1, 3));
}

/// Messages are reassembled from any fragments.
#[test]
fn messages_may_come_byte_by_byte_and_many_at_once() {
    let operator = operator(&[loopback()]);
    let mut stream = Stream::new(&operator);
    let ask = |number| Stream::bytes(&ControlMessage::Ask(Ask { number, term: None, inventory: None }));
    for byte in stream.sealed(&ask(1)) {
        stream.write(&[byte]);
    }
    let others: Vec<_> = (2..100).flat_map(|number| stream.sealed(&ask(number))).collect();
    stream.write(&others);
    for number in 1..100 {
        let Some(ControlMessage::Report(report)) = stream.answer() else { panic!("no report") };
        assert_eq!(report.number, number);
    }
}

#[test]
fn two_streams_of_one_controller_are_served() {
    let operator = operator(&[loopback()]);
    let (mut one, mut other) = (Stream::new(&operator), Stream::new(&operator));
    assert_eq!(incarnation(&one.ask(1)), incarnation(&other.ask(2)));
    assert_eq!(incarnation(&one.ask(3)), incarnation(&other.ask(4)));
}

#[test]
fn n8_streams_from_elsewhere_are_closed_and_counted() {
    let operator = operator(&[[127, 60, 5, 5].into()]);
    assert!(Stream::with(&operator, &secret()).is_err());
    wait_until("it is counted", || operator.keeper.report().streams.foreign == 1);
    assert_eq!(operator.keeper.report().messages.asked, 0);
}

#[test]
fn n8_bytes_that_are_no_message_close_the_stream() {
    let operator = operator(&[loopback()]);
    let head = |version, length: u32| ControlHead {
        magic: CONTROL_MAGIC.into(),
        version,
        kind: ControlKind::Ask as u8,
        reserved: 0.into(),
        length: length.into(),
    };
    let report = ControlMessage::Report(match Stream::new(&operator).ask(1) {
        ControlMessage::Report(report) => report,
        other => panic!("{other:?}"),
    });
    let bad = [
        vec![0xaa; 64],
        head(CONTROL_VERSION + 1, 0).as_bytes().to_vec(),
        head(CONTROL_VERSION, CONTROL_MAX + 1).as_bytes().to_vec(),
        // Only an operator sends this.
        Stream::bytes(&report),
    ];
    for (count, bytes) in (1..).zip(bad) {
        let mut stream = Stream::new(&operator);
        let sealed = stream.sealed(&bytes);
        stream.write(&sealed);
        assert!(stream.answer().is_none());
        wait_until("it is counted", || operator.keeper.report().streams.malformed == count);
    }
    Stream::new(&operator).ask(2);
}

/// A controller's dead streams do not block its new ones.
#[test]
fn n8_the_newest_streams_of_a_controller_are_served() {
    let operator = operator(&[loopback()]);
    let mut streams: Vec<_> = (0..64).map(|_| Stream::new(&operator)).collect();
    wait_until("the oldest are closed", || operator.keeper.report().streams.made_room == 60);
    assert!(streams[0].answer().is_none());
    streams[60..].iter_mut().for_each(|stream| drop(stream.ask(2)));
}

/// An operator that has lost its switch answers no more orders.
#[test]
fn n8_without_a_switch_no_order_is_answered() {
    let operator = operator(&[loopback()]);
    let mut stream = Stream::new(&operator);
    let incarnation = incarnation(&stream.ask(1));
    let Operator { switch, keeper, .. } = operator;
    drop(switch);
    stream.send(&set(incarnation, 1, &own_rack()));
    assert!(stream.answer().is_none());
    wait_until("it is counted", || keeper.report().streams.without_switch == 1);
}

/// A process at a controller's address without the secret, such as another user's, changes nothing: neither with an older version, nor with
/// another secret, nor with replayed bytes.
#[test]
fn n8_who_does_not_know_the_secret_changes_nothing() {
    let world = World::new();
    let controller = world.controller(|_| ());
    wait_until("the controller is active", || matches!(controller.report().status.role, Role::Active(_)));
    let operator = world.operator("tor-0");
    let report = || operator.keeper.report();
    let term = report().term;
    let largest = Term { number: TERM_MAX, controller: u64::MAX };
    let ask = ControlMessage::Ask(Ask { number: 1, term: Some(largest), inventory: None });

    let mut plain = TcpStream::connect(operator.keeper.local_addr()).unwrap();
    plain.write_all(&Stream::bytes(&ask)).unwrap();
    wait_until("it is no greeting", || report().streams.malformed == 1);
    assert!(Stream::with(operator, &Secret::new([8; 32])).is_err());
    wait_until("it is not proved", || report().streams.unproved == 1);
    let mut seen = Stream::new(operator);
    let copied = seen.sealed(&Stream::bytes(&ask));
    let mut copy = Stream::new(operator);
    copy.write(&copied);
    assert!(copy.answer().is_none());
    wait_until("a copy proves nothing", || report().streams.unproved == 2);

    let now = report();
    assert_eq!((now.term, now.messages.older_term), (term, 0));
    assert!(matches!(controller.report().status.role, Role::Active(_)));
    assert_eq!(controller.report().status.counters.refused, 0);
}

/// Otherwise one faulty controller with the secret would lock all later ones out.
#[test]
fn n8_a_term_that_cannot_be_is_not_followed() {
    let operator = operator(&[loopback()]);
    let mut stream = Stream::new(&operator);
    stream.ask(1);
    let largest = Term { number: TERM_MAX, controller: u64::MAX };
    stream.send(&ControlMessage::Ask(Ask { number: 2, term: Some(largest), inventory: None }));
    assert!(matches!(stream.answer(), Some(ControlMessage::Refused(_))));
    let report = operator.keeper.report();
    assert_eq!((report.term, report.messages.impossible_term), (TERM, 1));
    stream.ask(3);
}

/// A controller with another secret than an operator's counts that and continues with the others.
#[test]
fn n8_an_operator_with_another_secret_is_counted() {
    let world = World::new();
    let controller = world.controller_with(Secret::new([8; 32]), |_| ());
    wait_until("it is counted", || controller.report().streams.unproved > 0);
    assert_eq!(world.operator("tor-0").keeper.report().messages.asked, 0);
}

/// Unproved streams do not evict a controller's stream from the same address.
#[test]
fn n8_streams_that_are_not_proved_close_none_that_is() {
    let operator = operator(&[loopback()]);
    let mut stream = Stream::new(&operator);
    stream.ask(1);
    let mut quiet = Stream::new(&operator);
    std::thread::sleep(std::time::Duration::from_millis(150));
    let _silent: Vec<_> = (0..300).map(|_| TcpStream::connect(operator.keeper.local_addr()).unwrap()).collect();
    stream.ask(2);
    // It is proved before its first message.
    quiet.ask(3);
    assert_eq!(operator.keeper.report().streams.made_room, 0);
}
