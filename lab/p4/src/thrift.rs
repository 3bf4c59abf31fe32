//! The few needed calls of BMv2's Thrift interface, in Thrift's binary protocol.

use crate::P4Error;
use std::io::{BufReader, BufWriter, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Thrift's type codes.
const STOP: u8 = 0;
const BOOL: u8 = 2;
const DOUBLE: u8 = 4;
const BYTE: u8 = 3;
const I16: u8 = 6;
const I32: u8 = 8;
const I64: u8 = 10;
const STRING: u8 = 11;
const STRUCT: u8 = 12;
const MAP: u8 = 13;
const SET: u8 = 14;
const LIST: u8 = 15;
const VERSION_1: u32 = 0x8001_0000;
const CALL: u32 = 1;
const EXCEPTION: u32 = 3;
/// The longest string or list of an answer: more than a register of all entries, or a compiled program, has.
const LONGEST: u32 = 1 << 24;

/// One part of a table's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// Exactly these bytes.
    Exact(Vec<u8>),
    /// The leading bits of these bytes, of this number.
    Prefix(Vec<u8>, i32),
}

#[derive(Debug, Default)]
struct Answered {
    /// A number, or a list of them.
    numbers: Vec<u32>,
    text: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Thrift {
    from: BufReader<TcpStream>,
    to: BufWriter<TcpStream>,
    calls: u32,
    patience: Duration,
}

fn failed(what: impl Into<String>) -> P4Error {
    P4Error::Thrift { what: what.into() }
}

#[derive(Default)]
struct Arguments(Vec<u8>);

impl Arguments {
    /// The first argument of all calls: a simple switch's only context.
    fn new() -> Self {
        Self::default().number(1, 0)
    }

    fn field(mut self, kind: u8, id: u16) -> Self {
        self.0.push(kind);
        self.0.extend(id.to_be_bytes());
        self
    }

    fn number(self, id: u16, value: i32) -> Self {
        let mut arguments = self.field(I32, id);
        arguments.0.extend(value.to_be_bytes());
        arguments
    }

    fn long(self, id: u16, value: i64) -> Self {
        let mut arguments = self.field(I64, id);
        arguments.0.extend(value.to_be_bytes());
        arguments
    }

    fn bytes(self, id: u16, value: &[u8]) -> Self {
        let mut arguments = self.field(STRING, id);
        arguments.push(value);
        arguments
    }

    fn push(&mut self, value: &[u8]) {
        self.0.extend((value.len() as u32).to_be_bytes());
        self.0.extend(value);
    }

    fn strings(self, id: u16, values: &[Vec<u8>]) -> Self {
        let mut arguments = self.field(LIST, id);
        arguments.0.push(STRING);
        arguments.0.extend((values.len() as u32).to_be_bytes());
        values.iter().for_each(|value| arguments.push(value));
        arguments
    }

    fn keys(self, id: u16, keys: &[Key]) -> Self {
        let mut arguments = self.field(LIST, id);
        arguments.0.push(STRUCT);
        arguments.0.extend((keys.len() as u32).to_be_bytes());
        for key in keys {
            arguments = match key {
                Key::Exact(bytes) => arguments.number(1, 0).field(STRUCT, 2).bytes(1, bytes),
                Key::Prefix(bytes, bits) => arguments.number(1, 1).field(STRUCT, 3).bytes(1, bytes).number(2, *bits),
            };
            arguments.0.extend([STOP, STOP]);
        }
        arguments
    }

    fn no_options(self, id: u16) -> Self {
        let mut arguments = self.field(STRUCT, id);
        arguments.0.push(STOP);
        arguments
    }
}

impl Thrift {
    /// Connects to a switch on this machine, with this timeout per answer.
    ///
    /// # Errors
    /// If nothing listens there.
    pub(crate) fn connect(port: u16, patience: Duration) -> Result<Self, P4Error> {
        let to = SocketAddr::from(([127, 0, 0, 1], port));
        let stream = TcpStream::connect(to).map_err(|error| failed(format!("cannot connect to {to}: {error}")))?;
        let set = stream.set_read_timeout(Some(patience)).and_then(|()| stream.set_nodelay(true));
        set.map_err(|error| failed(error.to_string()))?;
        let from = stream.try_clone().map_err(|error| failed(error.to_string()))?;
        Ok(Self { from: BufReader::new(from), to: BufWriter::new(stream), calls: 0, patience })
    }

    /// Adds an entry to a table, and returns its handle.
    ///
    /// # Errors
    /// If the table has no such key or action, or no room.
    pub(crate) fn add(&mut self, table: &str, keys: &[Key], action: &str, data: &[Vec<u8>]) -> Result<u32, P4Error> {
        let arguments = Arguments::new().bytes(2, table.as_bytes()).keys(3, keys).bytes(4, action.as_bytes());
        self.number_of("bm_mt_add_entry", arguments.strings(5, data).no_options(6))
    }

    /// Removes an entry from a table.
    ///
    /// # Errors
    /// If the table has no such entry.
    pub(crate) fn remove(&mut self, table: &str, handle: u32) -> Result<(), P4Error> {
        let arguments = Arguments::new().bytes(2, table.as_bytes()).number(3, handle.cast_signed());
        self.call("bm_mt_delete_entry", arguments).map(drop)
    }

    /// The number of entries in a table.
    ///
    /// # Errors
    /// If there is no such table.
    pub(crate) fn entries(&mut self, table: &str) -> Result<u32, P4Error> {
        self.number_of("bm_mt_get_num_entries", Arguments::new().bytes(2, table.as_bytes()))
    }

    #[cfg(all(test, feature = "compare"))]
    pub(crate) fn clear(&mut self, table: &str) -> Result<(), P4Error> {
        let arguments = Arguments::new().bytes(2, table.as_bytes()).field(BOOL, 3);
        let arguments = Arguments([arguments.0, vec![1]].concat());
        self.call("bm_mt_clear_entries", arguments).map(drop)
    }

    /// The compiled program that the switch runs.
    ///
    /// # Errors
    /// If the connection failed.
    pub(crate) fn program(&mut self) -> Result<Vec<u8>, P4Error> {
        Ok(self.call("bm_get_config", Arguments::default())?.text)
    }

    /// Sets how many packets may wait for each port.
    ///
    /// # Errors
    /// If the switch is not a simple_switch.
    pub(crate) fn set_queues(&mut self, packets: i32) -> Result<(), P4Error> {
        let arguments = Arguments::default().number(1, packets);
        self.call_of("simple_switch", "set_all_egress_queue_depths", arguments).map(drop)
    }

    /// Sets a table's action for packets without an entry.
    ///
    /// # Errors
    /// If the table has no such action.
    pub(crate) fn set_default(&mut self, table: &str, action: &str, data: &[Vec<u8>]) -> Result<(), P4Error> {
        let arguments = Arguments::new().bytes(2, table.as_bytes()).bytes(3, action.as_bytes());
        self.call("bm_mt_set_default_action", arguments.strings(4, data)).map(drop)
    }

    /// Sets the port for the copies of a mirror session.
    ///
    /// # Errors
    /// If the switch is not a simple_switch.
    pub(crate) fn mirror(&mut self, session: i32, port: u16) -> Result<(), P4Error> {
        let mut arguments = Arguments::default().number(1, session).field(STRUCT, 2).number(1, port.into());
        arguments.0.push(STOP);
        self.call_of("simple_switch", "mirroring_session_add", arguments).map(drop)
    }

    /// Writes a cell of a register.
    ///
    /// # Errors
    /// If there is no such cell.
    pub(crate) fn write(&mut self, register: &str, cell: u32, value: u32) -> Result<(), P4Error> {
        let arguments = Arguments::new().bytes(2, register.as_bytes()).number(3, cell.cast_signed());
        self.call("bm_register_write", arguments.long(4, value.into())).map(drop)
    }

    /// All cells of a register.
    ///
    /// # Errors
    /// If there is no such register.
    pub(crate) fn read(&mut self, register: &str) -> Result<Vec<u32>, P4Error> {
        Ok(self.call("bm_register_read_all", Arguments::new().bytes(2, register.as_bytes()))?.numbers)
    }

    /// A call that returns a number.
    fn number_of(&mut self, name: &str, arguments: Arguments) -> Result<u32, P4Error> {
        let numbers = self.call(name, arguments)?.numbers;
        numbers.first().copied().ok_or_else(|| failed(format!("{name}: an answer without a number")))
    }

    fn call(&mut self, name: &str, arguments: Arguments) -> Result<Answered, P4Error> {
        self.call_of("standard", name, arguments)
    }

    fn call_of(&mut self, service: &str, name: &str, arguments: Arguments) -> Result<Answered, P4Error> {
        self.calls += 1;
        let full = format!("{service}:{name}");
        let mut message = Arguments::default();
        message.0.extend((VERSION_1 | CALL).to_be_bytes());
        message.push(full.as_bytes());
        message.0.extend(self.calls.to_be_bytes());
        message.0.extend(arguments.0);
        message.0.push(STOP);
        let sent = self.to.write_all(&message.0).and_then(|()| self.to.flush());
        sent.map_err(|error| failed(format!("{name}: {error}")))?;
        self.answer(name)
    }

    fn answer(&mut self, name: &str) -> Result<Answered, P4Error> {
        let kind = self.number()?;
        self.skip(STRING)?;
        self.number()?;
        if kind & 0xFF == EXCEPTION {
            return Err(failed(format!("{name}: this BMv2 does not know the call")));
        }
        let mut answered = Answered::default();
        loop {
            let [kind] = self.take()?;
            if kind == STOP {
                return Ok(answered);
            }
            let id = u16::from_be_bytes(self.take()?);
            match (id, kind) {
                (0, LIST) => answered.numbers = self.longs()?,
                (0, I32) => answered.numbers = vec![self.number()?],
                (0, I64) => answered.numbers = vec![i64::from_be_bytes(self.take()?) as u32],
                (0, STRING) => answered.text = self.text()?,
                (0, _) => self.skip(kind)?,
                _ => return Err(failed(format!("{name}: refused with code {}", self.code()?))),
            }
        }
    }

    /// The code of an exception, its only field. The exception and the answer end after it.
    fn code(&mut self) -> Result<u32, P4Error> {
        let [kind] = self.take()?;
        let code = if kind == I32 {
            self.take::<2>()?;
            let code = self.number()?;
            self.take::<1>()?;
            code
        } else {
            0
        };
        self.take::<1>()?;
        Ok(code)
    }

    fn longs(&mut self) -> Result<Vec<u32>, P4Error> {
        let [kind] = self.take()?;
        let count = self.bounded()?;
        if kind != I64 {
            return Err(failed("a register is a list of 64-bit numbers"));
        }
        (0..count).map(|_| Ok(i64::from_be_bytes(self.take()?) as u32)).collect()
    }

    fn text(&mut self) -> Result<Vec<u8>, P4Error> {
        let mut text = vec![0; self.bounded()? as usize];
        self.fill(&mut text)?;
        Ok(text)
    }

    fn skip(&mut self, kind: u8) -> Result<(), P4Error> {
        match kind {
            BOOL | BYTE => self.take::<1>().map(drop),
            I16 => self.take::<2>().map(drop),
            I32 => self.take::<4>().map(drop),
            I64 | DOUBLE => self.take::<8>().map(drop),
            STRING => (0..self.bounded()?).try_for_each(|_| self.take::<1>().map(drop)),
            STRUCT | MAP | SET | LIST => Err(failed("an answer of a type that no call has")),
            _ => Err(failed(format!("type {kind}, which Thrift does not have"))),
        }
    }

    fn bounded(&mut self) -> Result<u32, P4Error> {
        let length = self.number()?;
        if length > LONGEST { Err(failed(format!("an answer of {length} parts"))) } else { Ok(length) }
    }

    fn number(&mut self) -> Result<u32, P4Error> {
        Ok(u32::from_be_bytes(self.take()?))
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], P4Error> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), P4Error> {
        self.from.read_exact(bytes).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                failed(format!("the switch has not answered for {:?}: it hangs, or was stopped", self.patience))
            }
            _ => failed(format!("the switch does not answer: {error}")),
        })
    }
}
