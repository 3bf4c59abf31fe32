//! A client that breaks the rules: with valid cookies, it sends requests that no client should. None of them may change
//! data.

use super::run::SET;
use super::trial::{FaultKind, Trial};
use crate::check::Trial as _;
use crate::store::{Load, StoreEvent};
use crate::{Actor, Context, Place, Wake, World};
use midflight_endpoint::Nanos;
use midflight_wire::Header;
use midflight_wire::store::{Command, NO_SLOT, Operation, Request, Status, Write, key_hash};
use rand::RngExt;
use rand_pcg::Pcg64;
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::rc::Rc;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

/// Client ids are log indices: no log is so long.
const NO_CLIENT: u64 = 1 << 60;

#[derive(Debug)]
struct Rogue {
    load: Rc<Load>,
    switches: Vec<SocketAddr>,
    times: VecDeque<Nanos>,
    cookies: HashMap<SocketAddr, [u8; 8]>,
}

pub(super) fn add(trial: &Trial, world: &mut World, load: &Rc<Load>, switches: &[SocketAddr]) {
    for fault in &trial.faults {
        let FaultKind::Rogue(count) = fault.what else { continue };
        let (begin, end) = trial.times(fault);
        let every = (end - begin) / u64::from(count.max(1));
        let times: VecDeque<Nanos> = (0..u64::from(count)).map(|n| begin + n * every).collect();
        let (load, switches) = (Rc::clone(load), switches.to_vec());
        world.add_actor(
            Place::Apart,
            Box::new(move |_| {
                let (load, switches, times) = (Rc::clone(&load), switches.clone(), times.clone());
                Box::new(Rogue { load, switches, times, cookies: HashMap::new() })
            }),
        );
    }
}

impl Rogue {
    fn next(&self, context: &mut Context<'_>) {
        match self.times.front() {
            Some(at) => context.wake_at(*at),
            None => context.sleep(),
        }
    }
}

impl Actor for Rogue {
    fn start(&mut self, context: &mut Context<'_>) {
        self.next(context);
    }

    fn datagram(&mut self, context: &mut Context<'_>, from: SocketAddr, datagram: &[u8]) {
        let Ok((answer, _)) = Request::ref_from_prefix(datagram) else { return };
        if answer.status == Status::Cookie as u8
            && let Some(cookie) = answer.client.ip.first_chunk()
        {
            self.cookies.insert(from, *cookie);
        }
        let is_write = answer.header.operation == Operation::WriteReply as u8;
        if is_write && answer.status == Status::Done as u8 {
            crate::store::record(context, StoreEvent::Obeyed);
        }
    }

    fn wake(&mut self, context: &mut Context<'_>, _wake: Wake) {
        while self.times.pop_front_if(|at| *at <= context.now()).is_some() {
            let random = context.random();
            let switch = self.switches[random.random_range(0..self.switches.len())];
            let key = &self.load.keys[random.random_range(0..self.load.keys.len())];
            let cookie = self.cookies.get(&switch).copied().unwrap_or_default();
            let request = request(random, key.as_bytes(), cookie);
            context.send(switch, &request);
        }
        self.next(context);
    }
}

/// A READ with any hash, or a WRITE that must be refused for its hash, client or command.
fn request(random: &mut Pcg64, key: &[u8], cookie: [u8; 8]) -> Vec<u8> {
    let reads = random.random_bool(0.5);
    let operation = if reads { Operation::Read } else { Operation::Write };
    let right = key_hash(key);
    let mut request = Request {
        header: Header::new(operation, random.random(), random.random()),
        request: random.random::<u64>().into(),
        sid: (random.random_range(0..4_u64) << 32 | random.random_range(0..4_u64)).into(),
        seq: random.random::<u64>().into(),
        index: random.random_range(0..2_000_u64).into(),
        hash: if random.random_bool(0.3) { right } else { random.random() }.into(),
        set: SET.into(),
        key_length: (key.len() as u16).into(),
        replicas: random.random(),
        slot: if random.random_bool(0.5) { NO_SLOT } else { random.random_range(0..32) },
        flags: random.random_range(0..4),
        ..Request::new_zeroed()
    };
    request.client.ip[..8].copy_from_slice(&cookie);
    if reads {
        return [request.as_bytes(), key].concat();
    }
    let mut write = Write {
        client: random.random_range(NO_CLIENT..u64::MAX).into(),
        number: random.random::<u64>().into(),
        command: Command::Put as u8,
        ..Write::new_zeroed()
    };
    if random.random_bool(0.3) {
        write.command = random.random_range(6..=255);
    }
    [request.as_bytes(), write.as_bytes(), key, b"rogue"].concat()
}
