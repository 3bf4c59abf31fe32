//! Golden packets, one for each operation and VERSION: the bytes that another implementation must read and write.
//! `UPDATE_GOLDEN=1 cargo test -p midflight-wire golden` regenerates them.

use crate::owned::Owned;
use midflight_wire::tasks::*;
use midflight_wire::*;
use std::fmt::Write as _;
use std::path::PathBuf;
use zerocopy::IntoBytes;

const EPOCH: u32 = 0xE9_0C_00_01;
const CLIENT: u64 = 0xC11E_0000_0000_0001;
const EXECUTOR: u64 = 0xE8EC_0000_0000_0002;
const PUBLIC_NAME: u64 = 0x9A3E_0000_0000_0003;
const CLIENTS_COOKIE: u64 = 0xC00C_1E00_0000_0004;
const EXECUTORS_COOKIE: u64 = 0xC00C_1E00_0000_0005;
/// Token of the client's first SUBMIT.
const TOKEN: u64 = 0x70CE_0000_0000_0006;
/// Proofs under `TOKEN`. `crates/tasks/src/proof.rs` checks them.
const COMPLETION_PROOFS: [u64; 2] = [0x35D5_9ADB_B1CC_300A, 0xF957_0910_5846_1BC1];
const ACKNOWLEDGEMENT_PROOFS: [u64; 2] = [0xD5B5_1EAA_6090_FDC5, 0x8FE7_2E69_3A5F_C8D3];
const STOP_PROOF: u64 = 0x6DA2_7115_4377_A02F;
/// The encrypted id 0xB10B of the second task's result.
const HIDDEN_ID: u64 = 0x1774_C2BB_B0B5_BAAC;
/// Counter of the executor's first packet to the switch.
const COUNTER: u64 = 0xC047_0000_0000_0100;

fn header(operation: Operation, count: u8, sequence: u32) -> Header {
    Header { count, ..Header::new(operation, EPOCH, sequence) }
}

fn address(text: &str) -> Address {
    Address::from(text.parse::<std::net::SocketAddr>().unwrap())
}

fn task(tid: u32, priority: u8) -> TaskInfo {
    let mut argument = [0; 16];
    argument[..5].copy_from_slice(b"hello");
    TaskInfo {
        tid: tid.into(),
        function: 0x0102_0304.into(),
        priority,
        resources: 0b0000_0101,
        argument_length: 5,
        attempt: 0,
        argument,
    }
}

fn task_with_appended(tid: u32) -> TaskInfo {
    let appended = Appended { length: 17.into(), reserved: [0; 14] };
    TaskInfo { argument_length: APPENDED, argument: zerocopy::transmute!(appended), ..task(tid, 8) }
}

fn task_by_reference(tid: u32) -> TaskInfo {
    let blob = BlobRef { id: 0xB10B.into(), length: 1_000_000.into(), port: 4243.into(), reserved: 0.into() };
    TaskInfo { argument_length: BY_REFERENCE, argument: zerocopy::transmute!(blob), ..task(tid, 8) }
}

fn slot(number: u32) -> SlotName {
    SlotName { slot: number.into(), generation: (0x6E00 + number).into() }
}

fn first_wait() -> Wait {
    slot(100).wait(1)
}

fn ninth_wait() -> Wait {
    slot(101).wait(9)
}

fn leave(wait: Wait, done: u8) -> Leave {
    Leave { slot: wait.slot, generation: wait.generation, sequence: wait.sequence, done, reserved: [0; 3] }
}

fn samples() -> Vec<(&'static str, &'static str, Owned)> {
    use Operation as Op;
    let r3 = [0; 3];
    vec![
        (
            "submit",
            "A client's first SUBMIT, again, with its cookie: job 7 of user 1000, three tasks: with an argument inside, appended, and by reference. For 50 ms they wait for place 1234.",
            Owned::Submit(
                Submit {
                    header: Header { epoch: 0.into(), ..header(Op::Submit, 3, 1) },
                    client: CLIENT.into(),
                    cookie: CLIENTS_COOKIE.into(),
                    token: TOKEN.into(),
                    uid: 1000.into(),
                    jid: 7.into(),
                },
                vec![task(0, 1), task_with_appended(1), task_by_reference(2)],
                b"seventeen letters\0\0\0\0\0\0\0".to_vec(),
                Some(Preference { place: 0x4d2.into(), patience_ms: 50.into() }),
            ),
        ),
        (
            "submit_ack",
            "The queue had room for the first two tasks only.",
            Owned::SubmitAck(SubmitAck {
                header: header(Op::SubmitAck, 3, 1),
                client: CLIENT.into(),
                taken: 0b011.into(),
                not_taken: 0b100.into(),
                reason: Reason::Full as u8,
                reserved: r3,
                room: 0.into(),
            }),
        ),
        (
            "register",
            "An executor wants two slots, its local numbers 4 and 5, with the resources 0 and 2, at place 1234.",
            Owned::Register(Register {
                header: Header { epoch: 0.into(), ..header(Op::Register, 2, 1) },
                executor: EXECUTOR.into(),
                cookie: EXECUTORS_COOKIE.into(),
                first: 4.into(),
                resources: 0b0000_0101,
                kind: SlotKind::Ordinary as u8,
                counter: 0.into(),
                places: [1234.into(), 0.into()],
            }),
        ),
        (
            "registered",
            "It got them: slots 100 and 101, with a lease of one second.",
            Owned::Registered(
                Registered {
                    header: header(Op::Registered, 2, 1),
                    executor: EXECUTOR.into(),
                    first: 4.into(),
                    lease_ms: 1000.into(),
                    seen: address("192.0.2.9:40000"),
                    reason: Reason::None as u8,
                    reserved: 0,
                    poll_us: 0.into(),
                },
                vec![slot(100), slot(101)],
            ),
        ),
        (
            "reset",
            "An answer to the KEEPALIVE: the first wait of slot 100 is void.",
            Owned::Reset(Reset { header: header(Op::Reset, 1, 0), counter: (COUNTER + 1).into() }, vec![first_wait()]),
        ),
        (
            "retrieve",
            "Slot 100 waits for the first time; slot 101 is done with its eighth task.",
            Owned::Retrieve(
                Retrieve {
                    header: header(Op::Retrieve, 2, 0),
                    counter: COUNTER.into(),
                    resources: 0b0000_0101,
                    ahead: 0,
                    reserved: [0; 6],
                },
                vec![first_wait(), ninth_wait()],
            ),
        ),
        (
            "assign",
            "Slot 100 gets the second task of the SUBMIT, which waited for 250 us, with its argument.",
            Owned::Assign(
                Assign { header: header(Op::Assign, 1, 0) },
                vec![Assignment {
                    token: TOKEN.into(),
                    slot: 100.into(),
                    generation: 0x6E64.into(),
                    sequence: 1.into(),
                    waited_us: 250.into(),
                    task: TaskInfo { attempt: 1, ..task_with_appended(1) },
                    uid: 1000.into(),
                    jid: 7.into(),
                    address: address("[2001:db8::1]:50000"),
                    submission: 1.into(),
                    index: 1,
                    reserved: r3,
                }],
                b"seventeen letters\0\0\0\0\0\0\0".to_vec(),
            ),
        ),
        (
            "keepalive",
            "Slots 100 and 101 run what their waits were given.",
            Owned::Keepalive(
                Keepalive { header: header(Op::Keepalive, 2, 0), counter: (COUNTER + 1).into() },
                vec![first_wait(), ninth_wait()],
            ),
        ),
        (
            "release",
            "Slot 100 is done and leaves; slot 101 leaves and gives back what its ninth wait was given.",
            Owned::Release(
                Release { header: header(Op::Release, 2, 0), counter: (COUNTER + 2).into() },
                vec![leave(first_wait(), 1), leave(ninth_wait(), 0)],
            ),
        ),
        (
            "released",
            "Both are forgotten.",
            Owned::Released(
                Released { header: header(Op::Released, 2, 0), counter: (COUNTER + 2).into() },
                vec![slot(100), slot(101)],
            ),
        ),
        (
            "complete",
            "The first task returned \"world\", padded to eight bytes; the second one's result is by reference.",
            Owned::Complete(
                Complete { header: header(Op::Complete, 2, 0), executor: PUBLIC_NAME.into() },
                vec![completion(0, 0, b"world"), completion(1, 1, hidden_result().as_bytes())],
            ),
        ),
        (
            "complete_ack",
            "The first result is here, the second is being fetched.",
            Owned::CompleteAck(
                CompleteAck { header: header(Op::CompleteAck, 2, 0) },
                [AckState::Done, AckState::Fetching]
                    .iter()
                    .enumerate()
                    .map(|(index, state)| Completed {
                        proof: ACKNOWLEDGEMENT_PROOFS[index].into(),
                        submission: 1.into(),
                        index: index as u8,
                        attempt: 1,
                        state: *state as u8,
                        reserved: 0,
                    })
                    .collect(),
            ),
        ),
        (
            "probe",
            "Does the switch still have both tasks?",
            Owned::Probe(
                Probe { header: header(Op::Probe, 2, 77), client: CLIENT.into(), cookie: CLIENTS_COOKIE.into() },
                vec![TaskName::new(1, 0), TaskName::new(1, 1)],
            ),
        ),
        (
            "probe_ack",
            "The second one only.",
            Owned::ProbeAck(ProbeAck {
                header: header(Op::ProbeAck, 2, 77),
                client: CLIENT.into(),
                seen: address("192.0.2.7:50000"),
                room: 131_071.into(),
                open: 0b10.into(),
                known: Known::Yes as u8,
                reserved: r3,
            }),
        ),
        (
            "cancel",
            "Do not run the two tasks.",
            Owned::Cancel(
                Cancel { header: header(Op::Cancel, 2, 2), client: CLIENT.into(), cookie: CLIENTS_COOKIE.into() },
                vec![TaskName::new(1, 0), TaskName::new(1, 1)],
            ),
        ),
        (
            "cancel_ack",
            "The second one will not run; an executor has the first one.",
            Owned::CancelAck(
                CancelAck {
                    header: header(Op::CancelAck, 1, 2),
                    client: CLIENT.into(),
                    taken_out: 0b10.into(),
                    reason: Reason::None as u8,
                    reserved: r3,
                },
                vec![Holder { executor: address("192.0.2.9:40000"), index: 0, reserved: r3 }],
            ),
        ),
        (
            "no_op",
            "There is no task for the ninth wait of slot 101: it asks again.",
            Owned::NoOp(NoOp { header: header(Op::NoOp, 1, 0) }, vec![ninth_wait()]),
        ),
        (
            "cookie",
            "What the first SUBMIT was told when it came without a cookie.",
            Owned::Cookie(Cookie {
                header: header(Op::Cookie, 0, 1),
                identity: CLIENT.into(),
                cookie: CLIENTS_COOKIE.into(),
            }),
        ),
        (
            "stop",
            "The client asks that executor to stop it.",
            Owned::Stop(Stop { header: header(Op::Stop, 1, 0) }, vec![RunName::new(STOP_PROOF, 1, 0)]),
        ),
        ("version", "The sender speaks version 4.", Owned::Version(Version::OURS)),
    ]
}

fn hidden_result() -> BlobRef {
    BlobRef { id: HIDDEN_ID.into(), length: 1_000_000.into(), port: 4243.into(), reserved: 0.into() }
}

fn completion(index: u8, by_reference: u8, result: &[u8]) -> (Completion, Vec<u8>) {
    let completion = Completion {
        proof: COMPLETION_PROOFS[usize::from(index)].into(),
        ran_ns: 5_000_000.into(),
        submission: 1.into(),
        waited_us: 250.into(),
        held_us: 3.into(),
        result_length: (result.len() as u16).into(),
        index,
        attempt: 1,
        status: Status::Ok as u8,
        by_reference,
        reserved: 0.into(),
    };
    (completion, result.to_vec())
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{name}.hex"))
}

/// A comment line, then lines of 16 bytes.
fn to_text(comment: &str, bytes: &[u8]) -> String {
    let mut text = format!("# {comment}\n");
    for line in bytes.chunks(16) {
        let bytes: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(text, "{}", bytes.join(" ")).unwrap();
    }
    text
}

#[test]
fn golden_every_operation_has_one() {
    let operations: Vec<u8> = samples().iter().map(|(_, _, packet)| packet.encode()[3]).collect();
    let all: Vec<u8> = Operation::ALL.iter().map(|operation| *operation as u8).chain([VERSION_OPERATION]).collect();
    assert_eq!(operations, all);
    let entries = std::fs::read_dir(path("tasks/submit").parent().unwrap()).unwrap();
    let files = entries.filter(|entry| entry.as_ref().unwrap().path().is_file()).count();
    assert_eq!(files, all.len(), "tests/golden/tasks holds a file that no test reads");
}

/// Compares a file with these bytes. With `UPDATE_GOLDEN`, writes it first.
pub(crate) fn assert_golden(name: &str, comment: &str, bytes: &[u8]) {
    let text = to_text(comment, bytes);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path(name), &text).unwrap();
    }
    let kept = std::fs::read_to_string(path(name)).unwrap();
    assert_eq!(text, kept, "{name}: the format has changed; if it was meant to, raise VERSION and `make golden`");
}

#[test]
fn golden_packets_are_written_and_read() {
    for (name, comment, packet) in samples() {
        let bytes = packet.encode();
        assert_golden(&format!("tasks/{name}"), comment, &bytes);
        let read = parse(&bytes).unwrap_or_else(|reject| panic!("{name}: {reject}"));
        assert_eq!(Owned::from(read), packet, "{name}");
    }
}
