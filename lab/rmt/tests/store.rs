//! The store program: its page, and the errors that would follow if a switch did not write its words in one pass.

mod common;

use common::page_shows;
use midflight_rmt::store::{Answer, Config, Did, Kind, NewSession, Passing, REPLICAS, Store};
use midflight_rmt::{Machine, Refusal, Target, Word};

const PAGE: &str = "printed/asic-store.md";
const HASH: u32 = 0;

fn build(config: Config) -> Store {
    Store::build(config, &Target::TOFINO_1).unwrap_or_else(|refusal| panic!("{refusal}"))
}

#[test]
fn the_page_shows_the_program() {
    let store = build(Config::FLAIR);
    page_shows(PAGE, "store: stages", &store.program().stages());
    page_shows(PAGE, "store: report", &store.program().report().to_string());
    page_shows(PAGE, "store: route", &store.program().entries("route").expect("a table"));
}

#[test]
fn there_is_room_for_32_sets_and_no_more() {
    build(Config::LARGEST);
    let refused = |sets, kgroup_bits| Store::build(Config { sets, kgroup_bits }, &Target::TOFINO_1);
    for (sets, kgroup_bits) in [(64, 12), (3, 4), (0, 4), (128, 1), (1, 0), (1, 15)] {
        assert!(matches!(refused(sets, kgroup_bits), Err(Refusal::Parameters { .. })), "{sets}, {kgroup_bits}");
    }
}

struct Switch {
    store: Store,
    machine: Machine,
}

fn passing(kind: Kind, now: u32) -> Passing {
    Passing {
        kind,
        place: 0,
        bits: 12,
        is_relaxed: false,
        avoids_leader: false,
        now,
        lot: 0,
        sid: 0,
        seq: 0,
        index: 0,
        hash: HASH,
        client_port: 7000,
        replicas: 0,
        slot: 0,
        status: 0,
        flags: 0,
    }
}

impl Switch {
    /// A session with one WRITE, closed by its WRITE_REPLY at index 15.
    fn with_a_session() -> Self {
        let store = build(Config::FLAIR);
        let mut switch = Self { machine: store.machine(), store };
        switch.session(1, 10, 100);
        assert_eq!(switch.take(&passing(Kind::Write, 0)).did, Did::Written);
        let reply = Passing { sid: 1, seq: 1, index: 15, replicas: 3, ..passing(Kind::WriteReply, 0) };
        assert_eq!(switch.take(&reply).did, Did::Closed);
        switch
    }

    fn session(&mut self, sid: u64, start: u64, until: u32) {
        let session = NewSession {
            place: 0,
            begins: true,
            is_idle: false,
            until,
            generation: sid as u32,
            sid,
            start,
            leader: 0,
            eligible: 3,
            matched: [start; REPLICAS],
        };
        _ = self.machine.pass(self.store.session(&session));
    }

    fn take(&mut self, packet: &Passing) -> Answer {
        let sent = self.machine.pass(self.store.passing(packet)).packet;
        self.store.answer(&sent).expect("an answer")
    }

    /// The controller writes a single word of a register.
    fn write(&mut self, name: &str, value: u32) {
        let register = self.store.program().register(name).expect("a register");
        self.machine.write(register, 0, Word::Low, value);
    }
}

/// A session's words, written one by one with the lease before the generation: a READ in between goes to a replica with the index of the
/// previous session, which may lack writes that another switch has passed since (R1). SESSION writes all in one pass.
#[test]
fn r1_a_session_that_is_written_word_by_word_shows_the_one_before() {
    let mut switch = Switch::with_a_session();
    switch.write("lease", 300);
    switch.write("sid_number", 2);
    switch.write("start", 20);
    let read = switch.take(&passing(Kind::Read, 200));
    assert_eq!((read.did, read.sid, read.index), (Did::Sent, 2, 15), "the session begins at 20");

    let mut switch = Switch::with_a_session();
    switch.session(2, 20, 300);
    let read = switch.take(&passing(Kind::Read, 200));
    assert_eq!((read.did, read.sid, read.seq, read.index), (Did::Sent, 2, 0, 20));
}

/// A key group marked with a session's generation but not its other words: SEQ and index of the previous session would count. Only a WRITE
/// sets the generation, and it writes all words; a READ writes nothing.
#[test]
fn r1_a_key_group_that_is_claimed_alone_shows_the_session_before() {
    let mut switch = Switch::with_a_session();
    switch.session(2, 20, 300);
    switch.write("group_generation", 2);
    let read = switch.take(&passing(Kind::Read, 200));
    assert_eq!((read.seq, read.index), (1, 15), "no WRITE has come, and the session begins at 20");

    let mut switch = Switch::with_a_session();
    switch.session(2, 20, 300);
    for _ in 0..2 {
        let read = switch.take(&passing(Kind::Read, 200));
        assert_eq!((read.seq, read.index), (0, 20));
    }
    let write = switch.take(&passing(Kind::Write, 200));
    assert_eq!((write.did, write.seq, write.index), (Did::Written, 1, 20));
    let old = Passing { sid: 1, seq: 1, index: 30, replicas: 3, ..passing(Kind::WriteReply, 200) };
    assert_eq!(switch.take(&old).did, Did::Passed, "the same SEQ of the session before closes nothing");
    assert_eq!(switch.take(&passing(Kind::Read, 200)).did, Did::LeaderOnly);
}

/// Times are serial numbers, like the papers' 48 bits of nanoseconds, which wrap every 78 hours. A lease that ended long ago would become
/// valid again (R4). The controller advances the ends of leases.
#[test]
fn r4_a_lease_that_is_over_does_not_run_again() {
    let later = 100u32.wrapping_add(1 << 31).wrapping_add(1);
    let mut switch = Switch::with_a_session();
    assert_eq!(switch.take(&passing(Kind::Read, 100)).did, Did::Refused);
    assert_eq!(switch.take(&passing(Kind::Read, later)).did, Did::Sent, "nobody has moved it on");

    let mut switch = Switch::with_a_session();
    _ = switch.machine.pass(switch.store.end(0, 1 << 30));
    assert_eq!(switch.take(&passing(Kind::Read, later)).did, Did::Refused);
}

/// R1: SEQ never wraps within a session.
#[test]
fn r1_the_last_seq_is_the_last() {
    let mut switch = Switch::with_a_session();
    switch.store.set_seq(&mut switch.machine, 0, u32::MAX - 1);
    let write = switch.take(&passing(Kind::Write, 0));
    assert_eq!((write.did, write.seq), (Did::Written, u32::MAX.into()));
    for kind in [Kind::Write, Kind::Read] {
        assert_eq!(switch.take(&passing(kind, 0)).did, Did::Refused, "{kind:?}");
    }
    let session = switch.store.session_of(&switch.machine, 0);
    assert_eq!((session.seq, switch.store.group_of(&switch.machine, 0, 0).seq), (u32::MAX, u32::MAX));
}
