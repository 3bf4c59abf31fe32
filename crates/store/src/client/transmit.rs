use super::requests::{Body, Kind};
use super::{Client, Operation};
use midflight_endpoint::Nanos;
use midflight_endpoint::requests::Request;
use midflight_wire::store::{
    self as wire, Command, FLAG_DIRECT, FLAG_EXISTS, FLAG_PIECE, FLAG_SCAN, FLAG_UNSERVED, NO_SLOT,
};
use rand::Rng;
use std::net::SocketAddr;
use zerocopy::{FromZeros, IntoBytes};

impl Client {
    pub(super) fn transmit(&mut self, now: Nanos, buffer: &mut Vec<u8>) -> Option<SocketAddr> {
        self.begin_parts(now);
        loop {
            if let Some(number) = self.requests.next_ready() {
                return self.send(now, number, buffer);
            }
            let is_held = now < self.switches.held_until();
            if is_held || !(self.begin_read() || self.begin_write(now)) {
                return None;
            }
        }
    }

    /// Begins what the operations on large values need next.
    fn begin_parts(&mut self, now: Nanos) {
        while let Some((of, part)) = self.large.next() {
            let number = self.enqueue(now, part);
            self.large.began(number, of);
        }
    }

    fn begin_read(&mut self) -> bool {
        let next = self.reads.admit(|read| self.requests.is_open(read));
        next.inspect(|&read| self.requests.make_ready(read)).is_some()
    }

    fn begin_write(&mut self, now: Nanos) -> bool {
        let may_open = now >= self.may_open_from || !self.lanes.any_open();
        let Some(&number) = self.writes.front() else { return false };
        if let Some(request) = self.requests.get_mut(number) {
            let Some(lane) = self.lanes.take(number, may_open) else { return false };
            request.body.lane = Some(lane);
            match self.lanes.id(lane) {
                Some(_) => self.send_in_lane(number, lane),
                None => self.open_id(lane, now),
            }
        }
        self.writes.pop_front();
        true
    }

    pub(super) fn send_in_lane(&mut self, write: u64, lane: usize) {
        let number = self.lanes.next_number(lane);
        if let Some(request) = self.requests.get_mut(write) {
            request.body.number = number;
        }
        self.requests.make_ready(write);
    }

    pub(super) fn put_back(&mut self, write: u64) {
        let lane = self.requests.get_mut(write).and_then(|request| request.body.lane.take());
        if let Some(lane) = lane {
            self.lanes.release(lane);
        }
        self.writes.push_front(write);
    }

    /// Requests a client id. The key group is random, so that openings do not all write to the same one.
    pub(super) fn open_id(&mut self, lane: usize, now: Nanos) {
        let (hash, number) = (self.secrets.next_u32(), self.secrets.next_u64());
        let opening = Body { kind: Kind::Open, hash, number, lane: Some(lane), ..Body::default() };
        let number = self.requests.insert(now.saturating_add(self.config.timeout), opening, &mut self.secrets);
        self.lanes.opening(lane, number);
        self.requests.make_ready(number);
    }

    /// Whether a request asks for a direct reply. It may only if the switch offers them.
    fn asks_direct(&mut self, now: Nanos, number: u64) -> bool {
        let requests = &self.requests;
        let may_ask =
            requests.get(number).is_some_and(|request| request.transmissions() == 0 && !request.body.is_write());
        may_ask && self.switches.offers_direct() && self.direct.asks(now, number, |read| requests.is_open(read))
    }

    fn send(&mut self, now: Nanos, number: u64, buffer: &mut Vec<u8>) -> Option<SocketAddr> {
        let timeout = self.timeout_of(number);
        let (switch, address, cookie) = self.switches.current();
        let asks_direct = self.asks_direct(now, number);
        let request = self.requests.get_mut(number)?;
        request.body.asked_direct = asks_direct.then_some(switch).or(request.body.asked_direct);
        let mut fixed = first_part(request, cookie);
        fixed.flags |= if self.switches.is_unserved(now) { FLAG_UNSERVED } else { 0 };
        fixed.request = number.into();
        fixed.set = self.config.set.into();
        let client = request.body.lane.and_then(|lane| self.lanes.id(lane));
        write_packet(&fixed, &request.body, client, buffer);
        self.counters.sent += 1;
        self.counters.repeated += u64::from(request.transmissions() > 0);
        (request.body.switch, request.body.cookie) = (switch, cookie);
        self.requests.mark_sent(now, number, timeout);
        Some(address)
    }
}

fn first_part(request: &Request<Body>, cookie: u64) -> wire::Request {
    let operation = if request.body.is_write() { wire::Operation::Write } else { wire::Operation::Read };
    let mut fixed = wire::Request::new(operation);
    fixed.header.sequence = request.transmissions().into();
    fixed.hash = request.body.hash.into();
    fixed.client.ip[..8].copy_from_slice(&cookie.to_be_bytes());
    fixed.slot = NO_SLOT;
    if let Kind::Operation(operation) = &request.body.kind {
        fixed.key_length = (operation.key().len() as u16).into(); // `submit` checked the length
        fixed.flags = match operation {
            Operation::Exists { .. } => FLAG_EXISTS,
            Operation::Scan { .. } => FLAG_SCAN,
            Operation::Piece { .. } => FLAG_PIECE,
            _ => 0,
        };
    }
    // Only the first time: if direct replies are lost, repeats must get through.
    if request.body.asked_direct.is_some() && request.transmissions() == 0 {
        fixed.flags |= FLAG_DIRECT;
    }
    fixed
}

fn write_packet(fixed: &wire::Request, body: &Body, client: Option<u64>, buffer: &mut Vec<u8>) {
    buffer.clear();
    buffer.extend_from_slice(fixed.as_bytes());
    let mut write = wire::Write::new_zeroed();
    write.number = body.number.into();
    let operation = match &body.kind {
        Kind::Open => {
            write.command = Command::Open.into();
            buffer.extend_from_slice(write.as_bytes());
            return;
        }
        Kind::Operation(operation) => operation,
    };
    if let Some(command) = operation.command() {
        write.command = command.into();
        write.client = client.unwrap_or(0).into();
        write.expected_length = (operation.expected_length() as u32).into();
        buffer.extend_from_slice(write.as_bytes());
    }
    buffer.extend_from_slice(operation.key());
    operation.write_arguments(buffer);
}
