//! A state as bytes: few, and equal for equal states.

use super::Subject;
use super::world::{Client, Executor, Fate, Setting, World};
use crate::{Crossing, Packet, To};

/// Writes seven bits per byte; small numbers of either sign take few bytes, as serial numbers may begin just before zero.
fn put(bytes: &mut Vec<u8>, value: u32) {
    let signed = value.cast_signed();
    let mut rest = (signed << 1 ^ signed >> 31).cast_unsigned();
    while rest > 0x7F {
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}

fn put_all(bytes: &mut Vec<u8>, values: &[u32]) {
    put(bytes, values.len() as u32);
    values.iter().for_each(|&value| put(bytes, value));
}

/// Reads numbers that `put` wrote.
struct Reader<'a>(std::slice::Iter<'a, u8>);

impl Reader<'_> {
    fn take(&mut self) -> u32 {
        let (mut value, mut shift) = (0, 0);
        for &byte in self.0.by_ref() {
            value |= u32::from(byte & 0x7F) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
        value >> 1 ^ (value & 1).wrapping_neg()
    }

    fn all(&mut self) -> Vec<u32> {
        (0..self.take()).map(|_| self.take()).collect()
    }
}

/// Destination of a packet between the pipelines; a dropped one does not get there.
fn number(to: To) -> u32 {
    match to {
        To::Port(port) => 2 + port,
        To::Recirculated => 1,
        _ => 0,
    }
}

fn place(number: u32) -> To {
    match number {
        0 => To::Requester,
        1 => To::Recirculated,
        port => To::Port(port - 2),
    }
}

fn packed(packet: &Packet) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_all(&mut bytes, packet.header());
    put_all(&mut bytes, packet.tail());
    bytes
}

/// Normalises a state: overwrites unread values, sorts packets.
pub(super) fn sort<S: Subject>(world: &mut World<'_, S>) {
    let World { setting, machine, flight, .. } = world;
    // Packets between the pipelines may read entries that the registers no longer count as live.
    if !setting.instance.halves {
        setting.subject.tidy(machine, flight);
    }
    if !setting.instance.fifo {
        flight.sort_by_cached_key(packed);
    }
}

pub(super) fn pack<S: Subject>(world: &mut World<'_, S>) -> Box<[u8]> {
    sort(world);
    let mut bytes = Vec::with_capacity(256);
    put_all(&mut bytes, world.machine.words());
    for Client { todo, sent, retries } in &world.clients {
        put_all(&mut bytes, todo);
        put_all(&mut bytes, sent);
        bytes.push(*retries);
    }
    for Executor { polls, waits } in &world.executors {
        bytes.push(polls << 1 | u8::from(*waits));
    }
    bytes.extend(world.fates.iter().map(|fate| match fate {
        Fate::Outside => 0,
        Fate::Assigned => 1,
        Fate::Accepted { moved } => 2 + u8::from(*moved),
    }));
    world.order.iter().for_each(|order| put_all(&mut bytes, order));
    bytes.push(world.drops);
    if let Some(net) = &world.net {
        net.pack(&mut bytes);
    }
    put(&mut bytes, world.between.len() as u32);
    for crossing in &world.between {
        put(&mut bytes, number(crossing.to()));
        put_all(&mut bytes, crossing.bridged());
        bytes.extend(packed(crossing.packet()));
    }
    world.flight.iter().for_each(|packet| bytes.extend(packed(packet)));
    bytes.into()
}

pub(super) fn unpack<'a, S: Subject>(setting: &'a Setting<S>, bytes: &[u8]) -> World<'a, S> {
    let mut world = World::new(setting);
    let mut reader = Reader(bytes.iter());
    world.machine.words_mut().copy_from_slice(&reader.all());
    for client in &mut world.clients {
        let (todo, sent) = (reader.all(), reader.all());
        *client = Client { todo, sent, retries: reader.0.next().copied().unwrap_or(0) };
    }
    for executor in &mut world.executors {
        let byte = reader.0.next().copied().unwrap_or(0);
        *executor = Executor { polls: byte >> 1, waits: byte & 1 == 1 };
    }
    for fate in &mut world.fates {
        *fate = match reader.0.next().copied().unwrap_or(0) {
            0 => Fate::Outside,
            1 => Fate::Assigned,
            byte => Fate::Accepted { moved: byte == 3 },
        };
    }
    world.order.iter_mut().for_each(|order| *order = reader.all());
    world.drops = reader.0.next().copied().unwrap_or(0);
    if let Some(net) = &mut world.net {
        net.unpack(&mut reader.0);
    }
    for _ in 0..reader.take() {
        let (to, bridged) = (place(reader.take()), reader.all());
        let (header, tail) = (reader.all(), reader.all());
        world.between.push(Crossing::of(to, Packet::of(header.into(), tail), bridged.into()));
    }
    while reader.0.len() > 0 {
        let (header, tail) = (reader.all(), reader.all());
        world.flight.push(Packet::of(header.into(), tail));
    }
    world
}
