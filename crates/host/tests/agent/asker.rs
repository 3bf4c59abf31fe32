//! Clients of an agent: by datagram, byte for byte, and by stream.

use crate::PATIENCE;
use midflight_wire::cache::backend::{BackendAnswer, BackendRequest, parse_answer, write_answer, write_request};
use midflight_wire::cache::{Ends, Kind, Netrs, NetrsRequest, Packet, ServerStatus, parse};
use socket2::{Domain, Socket, Type};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Back {
    Answered(ServerStatus, Vec<u8>),
    Refused,
}

impl Back {
    pub(crate) fn status(&self) -> ServerStatus {
        if let Self::Answered(status, _) = self { *status } else { panic!("{self:?}") }
    }
}

pub(crate) fn bytes_of(answer: &BackendAnswer<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_answer(answer, &mut bytes);
    bytes
}

pub(crate) fn bytes_of_request(request: &BackendRequest<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_request(request, &mut bytes);
    bytes
}

pub(crate) fn get(key: &str) -> BackendRequest<'_> {
    BackendRequest::Get { key: key.as_bytes() }
}

pub(crate) fn set<'a>(key: &'a str, value: &'a [u8]) -> BackendRequest<'a> {
    BackendRequest::Set { key: key.as_bytes(), value, flags: 0, expires_s: 0 }
}

pub(crate) struct Asker {
    socket: UdpSocket,
    agent: SocketAddr,
    cookie: u64,
    number: u64,
}

impl Asker {
    pub(crate) fn new(agent: SocketAddr) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut asker = Self { socket, agent, cookie: 0, number: 0 };
        let number = asker.send(&[]);
        let datagram = asker.receive();
        let Ok(Packet::Cookie(_, ends)) = parse(&datagram) else { panic!("{datagram:02x?}") };
        assert_eq!(ends.request.get(), number);
        asker.cookie = u64::from_be_bytes(ends.client.ip[..8].try_into().unwrap());
        asker
    }

    pub(crate) fn send(&mut self, asked: &[u8]) -> u64 {
        self.number += 1;
        let mut ends = Ends { server: self.agent.into(), request: self.number.into(), ..Ends::new_zeroed() };
        ends.client.ip[..8].copy_from_slice(&self.cookie.to_be_bytes());
        let request = NetrsRequest { start: Netrs::for_server(Kind::Direct), group: [0; 3] };
        self.socket.send_to(&[request.as_bytes(), ends.as_bytes(), asked].concat(), self.agent).unwrap();
        self.number
    }

    fn receive(&self) -> Vec<u8> {
        let mut buffer = vec![0; 2_048];
        let length = self.socket.recv(&mut buffer).expect("an answer");
        buffer.truncate(length);
        buffer
    }

    pub(crate) fn answer(&self) -> (u64, Back) {
        let datagram = self.receive();
        let Ok(Packet::Response(Kind::Direct, _, status, ends, bytes)) = parse(&datagram) else {
            panic!("{datagram:02x?}")
        };
        let back = if status.is_empty() {
            assert!(bytes.is_empty());
            Back::Refused
        } else {
            Back::Answered(ServerStatus::read_from_bytes(status).unwrap(), bytes.to_vec())
        };
        (ends.request.get(), back)
    }

    pub(crate) fn ask_bytes(&mut self, asked: &[u8]) -> Back {
        let number = self.send(asked);
        let (answered, back) = self.answer();
        assert_eq!(answered, number);
        back
    }

    pub(crate) fn ask(&mut self, request: &BackendRequest<'_>) -> Back {
        self.ask_bytes(&bytes_of_request(request))
    }

    pub(crate) fn get(&mut self, key: &str) -> Vec<u8> {
        match self.ask(&get(key)) {
            Back::Answered(_, bytes) => bytes,
            Back::Refused => panic!("{key} is refused"),
        }
    }
}

pub(crate) struct Stream {
    pub(crate) tcp: TcpStream,
    come: Vec<u8>,
}

impl Stream {
    pub(crate) fn connect(agent: SocketAddr) -> Self {
        let tcp = TcpStream::connect(agent).unwrap();
        tcp.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { tcp, come: Vec::new() }
    }

    /// Small kernel buffers: an agent that writes a long value blocks until it is read.
    pub(crate) fn connect_narrowly(agent: SocketAddr) -> Self {
        let socket = Socket::new(Domain::for_address(agent), Type::STREAM, None).unwrap();
        socket.set_recv_buffer_size(4_096).unwrap();
        socket.set_tcp_mss(536).unwrap();
        socket.connect(&agent.into()).unwrap();
        let tcp = TcpStream::from(socket);
        tcp.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { tcp, come: Vec::new() }
    }

    pub(crate) fn send(&mut self, request: &BackendRequest<'_>) {
        self.tcp.write_all(&bytes_of_request(request)).unwrap();
    }

    pub(crate) fn answer(&mut self) -> Vec<u8> {
        loop {
            if let Some((_, length)) = parse_answer(&self.come).unwrap() {
                return self.come.drain(..length).collect();
            }
            let mut part = [0; 64 << 10];
            let length = self.tcp.read(&mut part).expect("an answer");
            assert!(length > 0, "closed");
            self.come.extend_from_slice(&part[..length]);
        }
    }

    pub(crate) fn ask(&mut self, request: &BackendRequest<'_>) -> Vec<u8> {
        self.send(request);
        self.answer()
    }

    pub(crate) fn refusal(&mut self, request: &BackendRequest<'_>) -> String {
        let bytes = self.ask(request);
        match parse_answer(&bytes).unwrap() {
            Some((BackendAnswer::Refused { why }, _)) => why.to_owned(),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn is_closed(&mut self) -> bool {
        assert!(self.come.is_empty());
        // If our bytes were unread, the kernel reports the close as an error.
        self.tcp.read(&mut [0]).map_or(true, |length| length == 0)
    }
}
