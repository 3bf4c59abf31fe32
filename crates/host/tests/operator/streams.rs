//! N8: streams with anything wrong in them. A scripted controller over real streams.

use crate::world::{CLIENT, Operator, wait_until};
use midflight_control::replicas::order::order;
use midflight_dataplane::replicas::{Rule, Selection};
use midflight_wire::replicas::control::{
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

/// One end of a stream.
pub(crate) struct Stream(TcpStream, Vec<u8>);

impl Stream {
    pub(crate) fn new(operator: &Operator) -> Self {
        let stream = TcpStream::connect(operator.keeper.local_addr()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Self(stream, Vec::new())
    }

    fn bytes(message: &ControlMessage) -> Vec<u8> {
        let mut bytes = Vec::new();
        control::write(message, &mut bytes);
        bytes
    }

    /// The next answer; `None`: it is closed.
    pub(crate) fn answer(&mut self) -> Option<ControlMessage> {
        loop {
            if let Some((message, length)) = control::parse(&self.1).unwrap() {
                self.1.drain(..length);
                return Some(message);
            }
            let mut buffer = [0; 4096];
            match self.0.read(&mut buffer) {
                Ok(0) => return None,
                Ok(length) => self.1.extend_from_slice(&buffer[..length]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("no answer: {error}"),
            }
        }
    }

    pub(crate) fn ask(&mut self, number: u64) -> ControlMessage {
        let ask = ControlMessage::Ask(Ask { number, term: Some(TERM), inventory: None });
        self.0.write_all(&Self::bytes(&ask)).unwrap();
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

/// A stream that breaks in the middle of a message loses nothing: the same SET again is answered, and carried out once.
#[test]
fn n8_a_stream_that_breaks_within_a_message_loses_nothing() {
    let operator = operator(&[loopback()]);
    let mut first = Stream::new(&operator);
    let ask = ControlMessage::Ask(Ask { number: 1, term: Some(TERM), inventory: Some(1) });
    first.0.write_all(&Stream::bytes(&ask)).unwrap();
    let Some(ControlMessage::Inventory(inventory)) = first.answer() else { panic!("no inventory") };
    let set = Stream::bytes(&set(inventory.incarnation, 1, &own_rack()));
    first.0.write_all(&set[..set.len() - 1]).unwrap();
    drop(first);
    assert_eq!(operator.keeper.report().messages.sets, 0);
    let mut second = Stream::new(&operator);
    for _ in 0..2 {
        second.0.write_all(&set).unwrap();
        let Some(ControlMessage::Done(done)) = second.answer() else { panic!("not carried out") };
        assert!(done.refused.is_empty(), "{done:?}");
    }
    let report = operator.keeper.report();
    assert_eq!((report.messages.sets, report.messages.repeated, report.rules), (1, 1, 3));
}

/// What is cut anywhere is put together again.
#[test]
fn messages_may_come_byte_by_byte_and_many_at_once() {
    let operator = operator(&[loopback()]);
    let mut stream = Stream::new(&operator);
    let ask = |number| Stream::bytes(&ControlMessage::Ask(Ask { number, term: None, inventory: None }));
    for byte in ask(1) {
        stream.0.write_all(&[byte]).unwrap();
    }
    stream.0.write_all(&(2..100).flat_map(ask).collect::<Vec<_>>()).unwrap();
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
    let mut stream = Stream::new(&operator);
    assert!(stream.answer().is_none());
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
        // What only an operator says.
        Stream::bytes(&report),
    ];
    for (count, bytes) in (1..).zip(bad) {
        let mut stream = Stream::new(&operator);
        stream.0.write_all(&bytes).unwrap();
        assert!(stream.answer().is_none());
        wait_until("it is counted", || operator.keeper.report().streams.malformed == count);
    }
    Stream::new(&operator).ask(2);
}

/// A controller whose streams have died unseen is not kept out by them.
#[test]
fn n8_the_newest_streams_of_a_controller_are_served() {
    let operator = operator(&[loopback()]);
    let mut streams: Vec<_> = (0..64).map(|_| Stream::new(&operator)).collect();
    streams.last_mut().unwrap().ask(1);
    wait_until("the oldest are closed", || operator.keeper.report().streams.made_room == 60);
    assert!(streams[0].answer().is_none());
    streams[60..].iter_mut().for_each(|stream| drop(stream.ask(2)));
}

/// An operator that has lost its switch answers nothing more.
#[test]
fn n8_without_a_switch_no_order_is_answered() {
    let operator = operator(&[loopback()]);
    let mut stream = Stream::new(&operator);
    let incarnation = incarnation(&stream.ask(1));
    let Operator { switch, keeper, .. } = operator;
    drop(switch);
    stream.0.write_all(&Stream::bytes(&set(incarnation, 1, &own_rack()))).unwrap();
    assert!(stream.answer().is_none());
    wait_until("it is counted", || keeper.report().streams.without_switch == 1);
}
