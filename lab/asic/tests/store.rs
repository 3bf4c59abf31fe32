//! The asic engine of the store program: compared with the reference model on random input, and each listed difference in
//! `docs/internals/asic-store.md`.

use midflight_asic::store::{AsicStore, SEQ_MARK, UNIT_BITS};
use midflight_dataplane::Cookies;
use midflight_dataplane::Datagram;
use midflight_dataplane::program::Engine;
use midflight_dataplane::store::{NewSet, Outcome, Policy, ReplyCheck, SetOrder, Stats, StoreConfig, Verdict};
use midflight_spec::store::{Compared, interpret_by};
use midflight_spec::transcript::EngineExt;
use midflight_wire::packet;
use midflight_wire::store::{FLAG_DIRECT, Heartbeat, Hello, Operation, Packet, Replica, Request, Status, Write, parse};
use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64;
use std::net::SocketAddr;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

/// Compares all but the listed differences *weights*, *index*, *any replica*, *direct* and *refresh of SEQ 0*.
const COMPARED: Compared<'_> = Compared {
    policies: &[Policy::Random, Policy::LeaderAvoidance],
    reply_checks: &[ReplyCheck::Strict, ReplyCheck::Relaxed],
    is_given,
};

fn is_given(datagram: &[u8]) -> bool {
    let is_short = |index: u64| index <= u32::MAX.into();
    match parse(datagram) {
        Ok(Packet::WriteReply(reply, ..)) => is_short(reply.index.get()) && reply.seq.get() != 0,
        Ok(Packet::Heartbeat(beat, replicas)) => {
            beat.any_replica == 0
                && is_short(beat.start.get())
                && replicas.iter().all(|replica| is_short(replica.matched.get()))
        }
        _ => true,
    }
}

fn compare(input: &[u8], secret: u128) -> Result<Stats, String> {
    interpret_by(input, secret, COMPARED, |config| {
        AsicStore::new(config, secret, 0).expect("a pipeline has room for it")
    })
}

/// R1, R4, R7, as far as they concern the switch. Random inputs together cause every drop reason, and every outcome of a request.
#[test]
fn pipeline_does_what_the_model_says_and_inputs_reach_everything() {
    let mut random = Pcg64::seed_from_u64(1);
    let (mut reasons, mut events) = ([0; Verdict::COUNT], [0; 8]);
    for _ in 0..500 {
        let mut input = vec![0; random.random_range(0..4000)];
        random.fill_bytes(&mut input);
        let stats = compare(&input, 1).unwrap_or_else(|error| panic!("{error}"));
        reasons.iter_mut().zip(stats.reasons).for_each(|(sum, times)| *sum += times);
        for set in stats.sets {
            let counts = [set.to_followers, set.to_leader, set.leader_only, set.turned_back];
            let counts = counts.into_iter().chain([set.outdated, set.writes, set.closed, set.sessions]);
            events.iter_mut().zip(counts).for_each(|(sum, times)| *sum += times);
        }
    }
    for verdict in Verdict::ALL {
        assert!(reasons[*verdict as usize] > 0, "{verdict:?}");
    }
    assert!(events.iter().all(|&times| times > 50), "{events:?}");
}

const SET: u16 = 1;
const SECRET: u128 = 5;
const INCARNATION: u64 = 7;
const START: u64 = 10;
const LEASE: u64 = 150_000_000;
const NOW: u64 = 1_000_000_000;

fn replica(slot: u8) -> SocketAddr {
    ([10, 0, 0, slot + 1], 7001).into()
}

fn client() -> SocketAddr {
    ([10, 0, 1, 1], 7000).into()
}

struct Stage {
    engine: AsicStore,
    now: u64,
    /// Incarnation of the set, from the last STATE.
    incarnation: u64,
    /// A field of the HEARTBEATs that [`Stage::heartbeat`] sends.
    any_replica: bool,
    /// In the client's requests.
    flags: u8,
}

fn set(policy: Policy) -> NewSet {
    NewSet {
        number: SET,
        incarnation: INCARNATION,
        lease_ns: 0,
        kgroup_bits: 2,
        reply_check: ReplyCheck::Strict,
        policy,
        replicas: (0..3).map(replica).collect(),
    }
}

impl Stage {
    /// With a set without a session.
    fn new(policy: Policy) -> Self {
        let config = StoreConfig { sets: 1, kgroup_bits: 2, lease_ns: LEASE, ..StoreConfig::default() };
        let mut engine = AsicStore::new(&config, SECRET, UNIT_BITS).expect("it fits");
        engine.ask_order(&mut SetOrder::add(&set(policy)));
        Self { engine, now: NOW, incarnation: INCARNATION, any_replica: false, flags: 0 }
    }

    fn ask(&mut self, from: SocketAddr, datagram: &[u8]) -> (Verdict, Vec<Datagram>) {
        let said = self.engine.ask(self.now, from, datagram);
        assert_eq!(self.engine.check(), Ok(()));
        said
    }

    /// A HEARTBEAT of slot 0, with an echo of now. Slot 1 has weight 1 and slot 2 has `weight`; all have `matched`.
    fn heartbeat(&mut self, sid: u64, start: u64, matched: u64, weight: u8) -> Verdict {
        let beat = Heartbeat {
            incarnation: self.incarnation.into(),
            sid: sid.into(),
            start: start.into(),
            echo: self.now.into(),
            set: SET.into(),
            kgroup_bits: 2,
            any_replica: self.any_replica.into(),
            ..Heartbeat::new(0, 1)
        };
        let member = |slot, weight| {
            let address = replica(slot).into();
            Replica { address, weight, matched: matched.into(), reserved: [0; 3] }
        };
        let (verdict, sent) = self.ask(replica(0), &packet(&beat, &[member(0, 1), member(1, 1), member(2, weight)]));
        let Ok(Packet::State(state)) = parse(&sent[0].1) else { panic!("a HEARTBEAT is answered by STATE") };
        self.incarnation = state.incarnation.get();
        verdict
    }

    fn request(&mut self, operation: Operation) -> Result<(SocketAddr, Request), Verdict> {
        let mut request = Request { set: SET.into(), flags: self.flags, ..Request::new(operation) };
        let cookie = Cookies::new(SECRET, StoreConfig::default().cookie_ns).give(self.now, 0, client());
        request.client.ip[..8].copy_from_slice(&cookie.to_be_bytes());
        let write = if operation == Operation::Write { Write::new_zeroed().as_bytes().to_vec() } else { Vec::new() };
        let (verdict, sent) = self.ask(client(), &[request.as_bytes(), &write].concat());
        if verdict != Verdict::Forwarded {
            return Err(verdict);
        }
        let (to, bytes) = &sent[0];
        Ok((*to, Request::read_from_prefix(bytes).expect("a request").0))
    }

    fn close(&mut self, write: &Request, index: u64) {
        let mut reply = Request { index: index.into(), replicas: 7, slot: 0, ..*write };
        (reply.header.operation, reply.status) = (Operation::WriteReply as u8, Status::Done as u8);
        assert_eq!(self.ask(replica(0), reply.as_bytes()).0, Verdict::Forwarded);
    }

    fn closed(&self) -> u64 {
        self.engine.stats().sets[0].closed
    }
}

fn with_a_session(policy: Policy) -> Stage {
    let mut stage = Stage::new(policy);
    assert_eq!(stage.heartbeat(1, START, START, 1), Verdict::Ok);
    stage
}

/// How many of 300 READs each slot gets.
fn shares(stage: &mut Stage) -> [u32; 3] {
    let mut shares = [0; 3];
    for _ in 0..300 {
        let (_, read) = stage.request(Operation::Read).expect("a session");
        shares[usize::from(read.slot)] += 1;
    }
    shares
}

/// R6, difference *weights*.
#[test]
fn r6_weights_count_only_as_none_or_some() {
    let mut stage = with_a_session(Policy::LoadAware);
    assert_eq!(stage.heartbeat(1, START, START, 250), Verdict::Ok);
    assert!(shares(&mut stage).iter().all(|&share| (70..130).contains(&share)));
    assert_eq!(stage.heartbeat(1, START, START, 0), Verdict::Ok);
    assert_eq!(shares(&mut stage)[2], 0);
}

/// R6, difference *any replica*: the switch asks only replicas that it knows to be up to date.
#[test]
fn r6_a_read_for_any_replica_goes_to_a_consistent_one() {
    let mut stage = with_a_session(Policy::Random);
    stage.any_replica = true;
    assert_eq!(stage.heartbeat(1, START, START, 1), Verdict::Ok);
    assert!(shares(&mut stage).iter().all(|&share| share > 70));
    stage.request(Operation::Write).expect("a session");
    let (to, read) = stage.request(Operation::Read).expect("a session");
    assert_eq!((to, read.flags), (replica(0), 1), "the leader is asked");
}

/// R6, difference *direct*: all replies pass the switch, so it clears the flag of a READ.
#[test]
fn r6_no_read_is_answered_directly() {
    let mut stage = with_a_session(Policy::Random);
    let direct = NewSet { reply_check: ReplyCheck::Direct, ..set(Policy::Random) };
    let mut order = SetOrder::change(&direct);
    stage.engine.ask_order(&mut order);
    assert_eq!(order.outcome(), Outcome::Done);
    stage.flags = FLAG_DIRECT;
    for _ in 0..10 {
        let (_, read) = stage.request(Operation::Read).expect("a session");
        assert_eq!(read.flags, 0);
    }
}

/// R1, difference *seq*: inactive at the last one; a new session is requested long before.
#[test]
fn r1_a_session_ends_before_its_seq_wraps() {
    let mut stage = with_a_session(Policy::Random);
    stage.engine.set_seq(SET, u32::MAX - 1);
    let (_, write) = stage.request(Operation::Write).expect("one SEQ is left");
    assert_eq!(write.seq.get(), u64::from(u32::MAX));
    for operation in [Operation::Write, Operation::Read] {
        assert_eq!(stage.request(operation), Err(Verdict::Inactive));
    }

    let mut stage = with_a_session(Policy::Random);
    stage.engine.set_seq(SET, SEQ_MARK - 1);
    assert_eq!(stage.heartbeat(1, START, START, 1), Verdict::Ok);
    stage.request(Operation::Write).expect("it serves on");
    assert_eq!(stage.heartbeat(1, START, START, 1), Verdict::ForeignIncarnation, "as after a restart");
    assert_ne!(stage.incarnation, INCARNATION);
    assert_eq!(stage.request(Operation::Read), Err(Verdict::Inactive), "the old session is over");
    assert_eq!(stage.heartbeat(2, START + 5, START + 5, 1), Verdict::Ok);
    let (_, write) = stage.request(Operation::Write).expect("the new session");
    assert_eq!((write.sid.get(), write.seq.get(), write.index.get()), (2, 1, START + 5));
}

/// R1, difference *index*: an index with another upper half closes nothing, and requests a new session.
#[test]
fn r1_an_index_beyond_the_sessions_closes_nothing() {
    const BOUND: u64 = 1 << 32;
    let mut stage = Stage::new(Policy::Random);
    assert_eq!(stage.heartbeat(1, BOUND - 2, BOUND - 2, 1), Verdict::Ok);
    let (_, write) = stage.request(Operation::Write).expect("a session");
    stage.close(&write, BOUND - 1);
    assert_eq!(stage.closed(), 1);
    assert_eq!(stage.request(Operation::Read).expect("a session").1.index.get(), BOUND - 1);
    let (_, write) = stage.request(Operation::Write).expect("a session");
    stage.close(&write, BOUND);
    assert_eq!(stage.closed(), 1, "the group stays unstable");
    let (to, read) = stage.request(Operation::Read).expect("a session");
    assert_eq!((to, read.flags), (replica(0), 1), "so the leader is asked");
    assert_eq!(stage.heartbeat(1, BOUND - 2, BOUND, 1), Verdict::ForeignIncarnation);
    assert_eq!(stage.heartbeat(2, BOUND + 1, BOUND + 1, 1), Verdict::Ok);
    assert_eq!(stage.request(Operation::Read).expect("a session").1.index.get(), BOUND + 1);
}

/// Difference *refresh of SEQ 0*.
#[test]
fn r1_a_refresh_of_seq_0_closes_nothing() {
    let mut stage = with_a_session(Policy::Random);
    let (_, read) = stage.request(Operation::Read).expect("a session");
    stage.close(&read, START + 5);
    assert_eq!(stage.closed(), 0);
    assert_eq!(stage.request(Operation::Read).expect("a session").1.index.get(), START, "it was stable, and is");
}

/// R4, difference *units*: a lease ends early by less than a unit, and never late.
#[test]
fn r4_a_lease_ends_early_by_less_than_a_unit() {
    let unit = 1 << UNIT_BITS;
    for offset in [0, 1, unit / 2, unit - 1] {
        let mut stage = Stage::new(Policy::Random);
        stage.now += offset;
        assert_eq!(stage.heartbeat(1, START, START, 1), Verdict::Ok);
        stage.now += LEASE - unit;
        assert!(stage.request(Operation::Read).is_ok(), "{offset}");
        stage.now += unit;
        assert_eq!(stage.request(Operation::Read), Err(Verdict::Inactive), "{offset}");
    }
}

/// R4: an ended lease stays ended, even if nothing but ticks comes for long; also one of a former set at this place.
#[test]
fn r4_a_lease_that_is_over_stays_over() {
    let mut stage = with_a_session(Policy::Random);
    for _ in 0..12 {
        stage.now += 3_600_000_000_000;
        stage.engine.ask_tick(stage.now);
        assert_eq!(stage.request(Operation::Read), Err(Verdict::Inactive));
    }
    let mut stage = Stage::new(Policy::Random);
    stage.now = (1 << 31 << UNIT_BITS) + NOW;
    assert_eq!(
        stage.request(Operation::Read),
        Err(Verdict::Inactive),
        "a machine that has run for long starts a switch"
    );
}

/// R7, difference *size*.
#[test]
fn r7_more_key_groups_than_a_pipeline_holds_are_refused() {
    let new = |sets, kgroup_bits| {
        AsicStore::new(&StoreConfig { sets, kgroup_bits, ..StoreConfig::default() }, SECRET, UNIT_BITS)
    };
    for (sets, kgroup_bits) in [(32, 12), (64, 11), (8, 14), (1, 0)] {
        assert_eq!(new(sets, kgroup_bits).err(), None, "{sets}, {kgroup_bits}");
    }
    for (sets, kgroup_bits) in [(33, 12), (1, 15), (65, 2), (0, 2)] {
        let why = new(sets, kgroup_bits).err().unwrap_or_default();
        assert!(["sets", "kgroup_bits"].iter().all(|key| why.contains(key)), "{sets}, {kgroup_bits}: {why}");
    }
}

/// Without a session, the asic engine answers HELLO with STATE, like the soft engine.
#[test]
fn hello_is_answered_by_state() {
    let mut stage = Stage::new(Policy::Random);
    let hello = Hello { set: SET.into(), ..Hello::new(0, 1) };
    let (verdict, sent) = stage.ask(replica(1), hello.as_bytes());
    assert!(matches!(parse(&sent[0].1), Ok(Packet::State(state)) if state.incarnation.get() == INCARNATION));
    assert_eq!(verdict, Verdict::Ok);
}

/// An empty datagram is repeated: it has nothing to damage.
#[test]
fn an_empty_datagram_is_repeated() {
    for how in [0, 81, 255] {
        let (sets, noise, repeat) = ([0; 10], [239, 0, 0, 0], [219, 0, how]);
        let outcome = compare(&[&sets[..], &noise, &repeat].concat(), 0);
        assert_eq!(outcome.map(|stats| stats.reasons[Verdict::Truncated as usize]), Ok(2));
    }
}
