//! Owned packets that tests build, compare and encode.

use midflight_wire::tasks::*;
use midflight_wire::*;
use zerocopy::IntoBytes;

/// Declares `Owned` for packets without records, with records of one type, and for SUBMIT, ASSIGN and COMPLETE.
macro_rules! owned {
    (plain: $($plain:ident)*; records: $($name:ident($record:ident))*) => {
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub(crate) enum Owned {
            $($plain($plain),)*
            $($name($name, Vec<$record>),)*
            /// With the appended arguments and their padding.
            Submit(Submit, Vec<TaskInfo>, Vec<u8>, Option<Preference>),
            /// Likewise.
            Assign(Assign, Vec<Assignment>, Vec<u8>),
            Complete(Complete, Vec<(Completion, Vec<u8>)>),
        }

        impl From<Packet<'_>> for Owned {
            fn from(packet: Packet<'_>) -> Self {
                match packet {
                    $(Packet::$plain(fixed) => Self::$plain(*fixed),)*
                    $(Packet::$name(fixed, records) => Self::$name(*fixed, records.to_vec()),)*
                    Packet::Submit(fixed, tasks, mut appendix, preference) => {
                        let appended = tasks.iter().map(|task| appendix.next_padded(task)).collect::<Vec<_>>().concat();
                        Self::Submit(*fixed, tasks.to_vec(), appended, preference.copied())
                    }
                    Packet::Assign(fixed, assignments, mut appendix) => {
                        let appended = assignments.iter().map(|a| appendix.next_padded(&a.task)).collect::<Vec<_>>();
                        Self::Assign(*fixed, assignments.to_vec(), appended.concat())
                    }
                    Packet::Complete(fixed, completions) => {
                        Self::Complete(*fixed, completions.map(|(c, result)| (*c, result.to_vec())).collect())
                    }
                }
            }
        }

        impl Owned {
            pub(crate) fn encode(&self) -> Vec<u8> {
                match self {
                    $(Self::$plain(fixed) => fixed.as_bytes().to_vec(),)*
                    $(Self::$name(fixed, records) => packet(fixed, records),)*
                    Self::Assign(fixed, assignments, appended) => [packet(fixed, assignments), appended.clone()].concat(),
                    Self::Submit(fixed, tasks, appended, preference) => {
                        let mut buffer = [packet(fixed, tasks), appended.clone()].concat();
                        if let Some(preference) = preference {
                            buffer.extend_from_slice(preference.as_bytes());
                        }
                        buffer
                    }
                    Self::Complete(fixed, completions) => {
                        let mut buffer = Vec::new();
                        let mut builder = Builder::new(&mut buffer, fixed);
                        builder.set_count(0);
                        for (completion, result) in completions {
                            assert!(builder.push_completion(completion, result), "no room for a completion");
                        }
                        buffer
                    }
                }
            }
        }
    };
}

owned! {
    plain: SubmitAck Register ProbeAck Cookie Version;
    records: Registered(SlotName) Reset(Wait) Retrieve(Wait) Keepalive(Wait)
        Release(Leave) Released(SlotName) CompleteAck(Completed) Probe(TaskName) Cancel(TaskName)
        CancelAck(Holder) NoOp(Wait) Stop(RunName)
}
