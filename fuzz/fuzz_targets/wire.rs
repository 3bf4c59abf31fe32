//! Random datagrams: parser and C core accept the same ones, an accepted one can be built again, and no response is longer than
//! the datagram.
#![no_main]

use libfuzzer_sys::fuzz_target;
use midflight_dataplane::program::{Class, Verdict as _};
use midflight_dataplane::{TasksConfig, TasksProgram, Verdict};
use midflight_spec::transcript::{CheckedNative, EngineExt};
use midflight_wire::tasks::{Packet, parse};
use midflight_wire::{Builder, PACKET_MAX, Reject, Version, packet};
use std::net::SocketAddr;
use zerocopy::IntoBytes;

fuzz_target!(|datagram: &[u8]| {
    let packet = parse(datagram);
    if let (Ok(packet), true) = (&packet, datagram.len() <= PACKET_MAX) {
        let again = rebuild(packet);
        // A COMPLETE is built with zeros as padding.
        let is_padded = matches!(packet, Packet::Complete(..));
        assert!(again == datagram || is_padded && again.len() == datagram.len() && parse(&again).is_ok());
    }
    let config = TasksConfig { queue: 40, slots: 70, clients: 2, ..TasksConfig::default() };
    let mut core = CheckedNative::<TasksProgram>::new(&config, 1, 1).expect("within its bounds");
    let from = SocketAddr::from(([10, 0, 0, 1], 1));
    let (verdict, sent) = core.ask(1, from, datagram);
    let is_refused = verdict.class() == Class::Refused && !matches!(verdict, Verdict::NoCookie | Verdict::ForeignEpoch);
    match packet {
        Ok(_) => assert!(!is_refused || verdict == Verdict::NotForSwitch && sent.is_empty(), "{verdict:?}"),
        Err(Reject::BadVersion(_)) => {
            assert_eq!(verdict, Verdict::BadVersion);
            assert!(sent.iter().map(|(_, answer)| answer.as_slice()).eq([Version::OURS.as_bytes()]), "{sent:02x?}");
        }
        Err(_) => assert!(is_refused && sent.is_empty(), "{verdict:?}, {sent:02x?}"),
    }
    // This switch has no records, so every sender is unknown (T13).
    for (to, answer) in sent {
        assert!(parse(&answer).is_ok(), "{answer:02x?}");
        assert!(to == from && answer.len() <= datagram.len(), "to {to}: {answer:02x?}");
    }
});

fn rebuild(read: &Packet<'_>) -> Vec<u8> {
    match read {
        Packet::Submit(fixed, tasks, appendix, preference) => {
            let mut appendix = *appendix;
            let mut buffer = packet(*fixed, tasks);
            tasks.iter().for_each(|task| buffer.extend_from_slice(appendix.next_padded(task)));
            preference.inspect(|it| buffer.extend_from_slice(it.as_bytes()));
            buffer
        }
        Packet::SubmitAck(fixed) => fixed.as_bytes().to_vec(),
        Packet::Register(fixed) => fixed.as_bytes().to_vec(),
        Packet::Registered(fixed, slots) => packet(*fixed, slots),
        Packet::Reset(fixed, slots) => packet(*fixed, slots),
        Packet::Retrieve(fixed, waits) => packet(*fixed, waits),
        Packet::Assign(fixed, assignments, appendix) => {
            let mut appendix = *appendix;
            let mut buffer = packet(*fixed, assignments);
            assignments.iter().for_each(|a| buffer.extend_from_slice(appendix.next_padded(&a.task)));
            buffer
        }
        Packet::Keepalive(fixed, slots) => packet(*fixed, slots),
        Packet::Release(fixed, leaves) => packet(*fixed, leaves),
        Packet::Released(fixed, slots) => packet(*fixed, slots),
        Packet::Complete(fixed, completions) => {
            let mut buffer = Vec::new();
            let mut builder = Builder::new(&mut buffer, *fixed);
            builder.set_count(0);
            for (completion, result) in *completions {
                assert!(builder.push_completion(completion, result), "what fitted a datagram fits again");
            }
            buffer
        }
        Packet::CompleteAck(fixed, completed) => packet(*fixed, completed),
        Packet::Probe(fixed, names) => packet(*fixed, names),
        Packet::ProbeAck(fixed) => fixed.as_bytes().to_vec(),
        Packet::Cancel(fixed, names) => packet(*fixed, names),
        Packet::CancelAck(fixed, holders) => packet(*fixed, holders),
        Packet::NoOp(fixed, waits) => packet(*fixed, waits),
        Packet::Cookie(fixed) => fixed.as_bytes().to_vec(),
        Packet::Stop(fixed, names) => packet(*fixed, names),
        Packet::Version(fixed) => fixed.as_bytes().to_vec(),
    }
}
