//! Properties of every selector under any input: N8, and no starvation.

#![allow(clippy::unwrap_used, reason = "tests may")]

use midflight_cache::select::{Algorithm, Candidates, Choice, Selector, Server, Status};
use midflight_endpoint::{MS, Nanos, SECOND};
use proptest::collection::vec;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use std::collections::{BTreeMap, VecDeque};

const SERVERS: u16 = 6;

/// Input to a selector, including implausible values.
#[derive(Clone, Debug)]
enum Event {
    Request { candidates: Vec<u16>, random: u64 },
    Answer { server: u16, took: Nanos, status: Option<(u16, u32, u16)> },
    Expiry { server: u16 },
}

fn event() -> impl Strategy<Value = Event> {
    let request = (proptest::sample::subsequence((0..SERVERS).collect::<Vec<_>>(), 1..=6), any::<u64>())
        .prop_map(|(candidates, random)| Event::Request { candidates, random });
    // Two servers more than exist.
    let server = || 0..SERVERS + 2;
    let took = prop_oneof![Just(0), 1..100 * MS, any::<Nanos>()];
    let queue = prop_oneof![0_u16..20, Just(u16::MAX), any::<u16>()];
    let service = prop_oneof![1_u32..20_000, Just(0), any::<u32>()];
    let status = proptest::option::of((queue, service, any::<u16>()));
    let answer = (server(), took, status).prop_map(|(server, took, status)| Event::Answer { server, took, status });
    prop_oneof![4 => request, 4 => answer, 1 => server().prop_map(|server| Event::Expiry { server })]
}

fn status((queue, service_us, sequence): (u16, u32, u16)) -> Status {
    Status { queue, service_us, sequence }
}

fn candidates(servers: &[u16]) -> Candidates {
    Candidates::new(&servers.iter().copied().map(Server).collect::<Vec<_>>()).unwrap()
}

/// Sends a request as soon as allowed.
fn send(selector: &mut dyn Selector, now: &mut Nanos, candidates: &Candidates, random: u64) -> Server {
    loop {
        match selector.choose(*now, candidates, random) {
            Choice::Send(server) => return server,
            Choice::Wait(until) => {
                assert!(until > *now && until <= *now + SECOND, "a wait of {} ns", until.wrapping_sub(*now));
                *now = until;
            }
        }
    }
}

/// Applies the events, one every `step`, with checks. Returns the time after them.
fn live(selector: &mut dyn Selector, events: &[Event], step: Nanos) -> Nanos {
    let mut now = 3 * SECOND;
    let mut outstanding = BTreeMap::<u16, u32>::new();
    for event in events {
        now += step;
        match event {
            Event::Request { candidates: servers, random } => match selector.choose(now, &candidates(servers), *random)
            {
                Choice::Send(server) => {
                    assert!(servers.contains(&server.0), "{server:?} is no candidate of {servers:?}");
                    *outstanding.entry(server.0).or_default() += 1;
                }
                Choice::Wait(until) => assert!(until > now && until <= now + SECOND),
            },
            Event::Answer { server, took, status: said } => {
                selector.answered(now, Server(*server), *took, said.map(status));
                less(&mut outstanding, *server);
            }
            Event::Expiry { server } => {
                selector.expired(now, Server(*server));
                less(&mut outstanding, *server);
            }
        }
        for server in 0..SERVERS + 2 {
            assert_eq!(selector.outstanding(Server(server)), outstanding.get(&server).copied().unwrap_or(0));
        }
    }
    now
}

fn less(outstanding: &mut BTreeMap<u16, u32>, server: u16) {
    let count = outstanding.entry(server).or_default();
    *count = count.saturating_sub(1);
}

/// Requests every `gap` to servers that answer after 1 to 3 ms. Returns the number for each server.
fn calm(selector: &mut dyn Selector, start: Nanos, requests: usize, gap: Nanos, seed: u64) -> Vec<usize> {
    let mut random = Pcg64::seed_from_u64(seed);
    let all = candidates(&(0..SERVERS).collect::<Vec<_>>());
    let mut chosen = vec![0; usize::from(SERVERS)];
    let mut under_way = VecDeque::<(Nanos, Server, Nanos)>::new();
    let (mut now, mut sequence) = (start, 0_u16);
    for _ in 0..requests {
        now += gap;
        while let Some(&(done, server, took)) = under_way.front().filter(|(done, _, _)| *done <= now) {
            under_way.pop_front();
            sequence = sequence.wrapping_add(1);
            let queue = selector.outstanding(server) as u16 / 4;
            selector.answered(done, server, took, Some(status((queue, (took / 1_000) as u32, sequence))));
        }
        let server = send(selector, &mut now, &all, random.random());
        chosen[usize::from(server.0)] += 1;
        let took = random.random_range(MS..3 * MS);
        let place = under_way.partition_point(|(done, _, _)| *done <= now + took);
        under_way.insert(place, (now + took, server, took));
    }
    chosen
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn n3_n8_only_candidates_are_chosen_and_no_count_is_negative(events in vec(event(), 0..400), step in 0..5 * MS) {
        for algorithm in Algorithm::ALL {
            let mut selector = algorithm.selector(SERVERS, 7);
            live(selector.as_mut(), &events, step);
        }
    }

    #[test]
    fn n8_after_garbage_every_server_is_chosen_again(events in vec(event(), 0..400), step in 0..5 * MS, seed: u64) {
        for algorithm in Algorithm::ALL {
            let mut selector = algorithm.selector(SERVERS, 7);
            let now = live(selector.as_mut(), &events, step);
            // The remaining answers never come.
            for server in (0..SERVERS).map(Server) {
                (0..selector.outstanding(server)).for_each(|_| selector.expired(now, server));
            }
            // A response that took a minute decays most slowly: by e every 10 s, so it takes 100 s to fall to some milliseconds.
            let chosen = calm(selector.as_mut(), now, 3_000, 50 * MS, seed);
            prop_assert!(chosen.iter().all(|&count| count > 0), "{algorithm}: {chosen:?}");
        }
    }
}

#[test]
fn equal_servers_all_get_their_share() {
    for algorithm in Algorithm::ALL {
        for gap in [MS / 10, MS, 10 * MS] {
            let mut selector = algorithm.selector(SERVERS, 1);
            let chosen = calm(selector.as_mut(), SECOND, 6_000, gap, 1);
            // Selectors that use response times avoid a server for a while after a slow response.
            assert!(chosen.iter().all(|&count| count >= 250), "{algorithm}, one each {gap} ns: {chosen:?}");
        }
    }
}

#[test]
fn a_run_is_repeated_exactly() {
    for algorithm in Algorithm::ALL {
        let run = || calm(algorithm.selector(SERVERS, 3).as_mut(), SECOND, 2_000, MS / 4, 9);
        assert_eq!(run(), run(), "{algorithm}");
    }
}
