//! Owned packets that tests build, compare and encode.

use midflight_wire::*;
use zerocopy::IntoBytes;

/// Declares `Owned` for packets without records, with records of one type, and for SUBMIT and COMPLETE.
macro_rules! owned {
    (plain: $($plain:ident)*; records: $($name:ident($record:ident))*) => {
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub(crate) enum Owned {
            $($plain($plain),)*
            $($name($name, Vec<$record>),)*
            Submit(Submit, Vec<TaskInfo>, Option<Preference>),
            Complete(Complete, Vec<(Completion, Vec<u8>)>),
        }

        impl From<Packet<'_>> for Owned {
            fn from(packet: Packet<'_>) -> Self {
                match packet {
                    $(Packet::$plain(fixed) => Self::$plain(*fixed),)*
                    $(Packet::$name(fixed, records) => Self::$name(*fixed, records.to_vec()),)*
                    Packet::Submit(fixed, tasks, preference) => {
                        Self::Submit(*fixed, tasks.to_vec(), preference.copied())
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
                    Self::Submit(fixed, tasks, preference) => {
                        let mut buffer = packet(fixed, tasks);
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
    records: Registered(SlotName) Reset(Wait) Retrieve(Wait) Assign(Assignment) Keepalive(Wait)
        Release(Leave) Released(SlotName) CompleteAck(Completed) Probe(TaskName) Cancel(TaskName)
        CancelAck(Holder) NoOp(Wait) Stop(RunName) Argument(Piece)
}
