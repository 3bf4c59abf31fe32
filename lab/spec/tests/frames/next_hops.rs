//! The next hop cache: from which packets it learns an executor's next hop; no other sender can change it.

use crate::datagrams::{EPOCH, operation, register, registered, retrieve, submit};
use crate::frame::{Flow, bytes, read};
use crate::shells::{OWN_MAC, PEER_MAC, SECRET, TIME, config, flow};
use crate::stage::{Stage, on_a_stage, on_stage};
use midflight_dataplane::kernel::Action;
use midflight_dataplane::{Out, TasksConfig, Verdict};
use midflight_wire::tasks::{Operation, SlotName};
use std::net::{IpAddr, SocketAddr};

/// Two slots of one socket retrieve by different paths: the executor has moved, and its older next hop is forgotten.
#[test]
fn an_executor_who_moves_is_followed() {
    on_stage(|stage, ipv4| {
        let before = stage.executor(ipv4, 1);
        let names = stage.park(&before, 5, 1);
        let after = Flow { from_mac: PEER_MAC, to_mac: OWN_MAC, ..before };
        assert_eq!(stage.by_both(&after, &retrieve(&names, 1)), None, "a repeat");
        stage.by_tc(&stage.client(ipv4), &submit(1, 1, 1));
        assert_eq!(read(&stage.sent()[1][0]).0, after.back());
    });
}

/// A forger of an executor's address that does not know its slots' names gets none of its tasks.
#[test]
fn t13_a_forger_teaches_no_next_hop() {
    on_stage(|stage, ipv4| {
        let executor = stage.executor(ipv4, 1);
        let names = stage.park(&executor, 5, 1);
        let forger = Flow { from_mac: PEER_MAC, ..executor.clone() };
        let guessed = SlotName { slot: names[0].slot, generation: (names[0].generation.get() ^ 1).into() };
        assert_eq!(operation(&stage.by_both(&forger, &retrieve(&[guessed], 2)).unwrap()), Operation::Reset);
        let mut of_another_epoch = retrieve(&names, 2);
        of_another_epoch[8] ^= 1;
        assert_eq!(operation(&stage.by_both(&forger, &of_another_epoch).unwrap()), Operation::Reset);
        assert_eq!(stage.by_both(&forger, &retrieve(&names, 2)[..24]), None, "cut off");
        stage.by_tc(&stage.client(ipv4), &submit(1, 1, 1));
        assert_eq!(read(&stage.sent()[1][0]).0, executor.back());
    });
}

/// A forger can reach the process's socket with a fragment: the cache does not change. Only the executor itself removes
/// its entry through the socket.
#[test]
fn t13_a_forger_makes_no_next_hop_forgotten() {
    on_stage(|stage, ipv4| {
        let executor = stage.executor(ipv4, 1);
        let names = stage.park(&executor, 5, 1);
        let guessed = SlotName { slot: names[0].slot, generation: (names[0].generation.get() ^ 1).into() };
        let (good, mut of_another_epoch) = (retrieve(&names, 1), retrieve(&names, 1));
        of_another_epoch[8] ^= 1;
        let mut out = Out::new();
        for forged in [&retrieve(&[guessed], 2)[..], &of_another_epoch, &good[..32], &good[..24]] {
            stage.shells.packet(TIME, executor.from, forged, &mut out).unwrap();
            assert_eq!(stage.shells.own_address(executor.from), Some(executor.to.ip()));
        }
        stage.shells.packet(TIME, executor.from, &good, &mut out).unwrap();
        assert_eq!(stage.shells.own_address(executor.from), None);
    });
}

/// A RETRIEVE replayed from another MAC address gets no task and does not change the executor's next hop.
#[test]
fn t13_a_copy_teaches_no_next_hop() {
    on_stage(|stage, ipv4| {
        let executor = stage.executor(ipv4, 1);
        let names = registered(&stage.by_both(&executor, &register(5, 1)).unwrap());
        let copies = [1, 1].map(|sequence| retrieve(&names, sequence));
        for datagram in &copies {
            assert_eq!(stage.by_both(&executor, datagram), None);
        }
        let elsewhere = Flow { from_mac: PEER_MAC, ..executor.clone() };
        let near = Flow { to_mac: stage.near.mac, ..elsewhere.clone() };
        for copy in &copies {
            assert_eq!(stage.by_both(&elsewhere, copy), None);
            assert_eq!(stage.by_tc(&near, copy).action, Action::Drop);
            stage.shells.packet(TIME, executor.from, copy, &mut Out::new()).unwrap();
            assert_eq!(stage.shells.own_address(executor.from), Some(executor.to.ip()));
        }
        assert_eq!(stage.shells.stats().reasons[Verdict::Replayed as usize], 6);
        stage.by_tc(&stage.client(ipv4), &submit(1, 1, 1));
        assert_eq!(read(&stage.sent()[1][0]).0, executor.back());
    });
}

/// Enough executors that several share a place in the cache, each with a parked slot.
fn park_many(stage: &mut Stage<'_>) -> (Vec<Flow>, Vec<SlotName>) {
    let many = TasksConfig { queue: 4096, slots: 4096, clients: 16, ..config() };
    stage.shells.restart(&many, EPOCH, SECRET).unwrap();
    let executor = |number: u16| {
        let from = SocketAddr::from(([198, 51, 100, (number % 200) as u8], 1000 + number));
        let mac = [0x02, 0, 0, 0, (number >> 8) as u8, number as u8];
        Flow { from, from_mac: mac, to_mac: stage.far.mac, ..flow(true, 0) }
    };
    let all: Vec<_> = (0..2_000).map(executor).collect();
    let names = all.iter().zip(1_000..).map(|(flow, executor)| stage.park(flow, executor, 1)[0]).collect();
    (all, names)
}

#[test]
fn a_next_hop_is_only_ever_that_of_its_executor() {
    on_a_stage(|stage| {
        let (all, _) = park_many(stage);
        let client = stage.client(true);
        for sequence in 1..=63 {
            stage.by_tc(&client, &submit(1, sequence, 32));
        }
        let mut reached = stage.sent()[1].iter().map(|frame| read(frame).0).collect::<Vec<_>>();
        reached.sort_by_key(|flow| flow.to.port());
        assert_eq!(stage.shells.shell_count("handed_over"), 0);
        assert_eq!(reached.len(), 2_000);
        assert!(reached.iter().zip(&all).all(|(reached, executor)| *reached == executor.back()));
    });
}

/// A next hop is learned again after an earlier place has become free: it must not be in both places.
#[test]
fn a_next_hop_that_is_forgotten_is_forgotten_everywhere() {
    on_a_stage(|stage| {
        let (all, names) = park_many(stage);
        let mut out = Out::new();
        let mut forget = |stage: &mut Stage<'_>, number: usize, counter| {
            let datagram = retrieve(&names[number..=number], counter);
            stage.shells.packet(TIME, all[number].from, &datagram, &mut out).unwrap();
        };
        (0..all.len()).step_by(2).for_each(|number| forget(stage, number, 2));
        for number in (1..all.len()).step_by(2) {
            assert_eq!(stage.by_both(&all[number], &retrieve(&names[number..=number], 2)), None, "a repeat");
            forget(stage, number, 3);
        }
        assert_eq!(all.iter().filter(|flow| stage.shells.own_address(flow.from).is_some()).count(), 0);
    });
}

/// A sender cannot choose addresses that evict others from the cache: neither addresses whose parts cancel out in the
/// hash, nor addresses that collide under another salt.
#[test]
fn t13_places_in_the_cache_cannot_be_chosen() {
    on_a_stage(|stage| {
        let known = |stage: &mut Stage<'_>, addresses: &[SocketAddr]| {
            let room_for_one_source = TasksConfig { slots: 128, ..config() };
            stage.shells.restart(&room_for_one_source, EPOCH, SECRET).unwrap();
            let executor = |from: SocketAddr| Flow { from, ..stage.executor(from.is_ipv4(), 0) };
            let flows: Vec<_> = addresses.iter().map(|&from| executor(from)).collect();
            for (number, flow) in flows.iter().enumerate() {
                stage.park(flow, 1_000 + number as u64, 1);
            }
            flows.iter().filter(|flow| stage.shells.own_address(flow.from) == Some(flow.to.ip())).count()
        };
        let by_sum = |step: u32| {
            let of = |port: u16| {
                let low = 0x0123_4567_89ab_cdef_u64.wrapping_sub(u64::from(port.swap_bytes()) << step);
                let ip = [0x2001_0db8_0000_0007_u64.to_be_bytes(), low.to_le_bytes()].concat();
                SocketAddr::new(bytes::<16>(&ip, 0).into(), port)
            };
            (4_000..4_064).map(of).collect::<Vec<_>>()
        };
        for step in [0, 16] {
            assert_eq!(known(stage, &by_sum(step)), 64, "in steps of 2^{step}");
        }
        // The highest bits of one half of the address could cancel those of the other.
        let by_halves = (0..64_u8).map(|number| {
            let mut ip = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 7, 1, 2, 3, 4, 5, 6, 7, 8];
            ip[7] ^= number >> 3 << 5;
            ip[15] ^= (number & 7) << 5;
            SocketAddr::new(ip.into(), 4_000)
        });
        assert_eq!(known(stage, &by_halves.collect::<Vec<_>>()), 64);
        for salt in [0, 1, u64::MAX] {
            let all = (0..=u32::MAX).map(|number| SocketAddr::from(((0x0b00_0000 | number).to_be_bytes(), 4_000)));
            let neighbours: Vec<_> = all.filter(|&address| place_by(salt, address) == 0).take(64).collect();
            assert_eq!(known(stage, &neighbours), 64, "salt {salt}");
        }
    });
}

/// `hop_hash` of `dataplane/xdp/next_hops.h` with a guessed salt, for IPv4.
fn place_by(salt: u64, address: SocketAddr) -> u64 {
    let IpAddr::V4(ip) = address.ip() else { panic!("{address}") };
    let low = u64::from(u32::from_le_bytes(ip.octets())) << 32 | 0xffff_0000;
    let odd = salt | 1;
    let high = salt.wrapping_mul(odd);
    let high = (high ^ high >> 32).wrapping_mul(odd);
    let port = u64::from(address.port().swap_bytes()).wrapping_mul(odd.wrapping_add(2));
    high.wrapping_add(low).wrapping_add(port).wrapping_mul(odd) >> 50
}
