//! Links that lose, duplicate and reorder datagrams.
//!
//! A filter sends some datagrams twice. Others pass through an HTB class with so low a rate that they are delayed by some milliseconds and
//! arrive out of order. (netem does both, but many kernels lack it.) Packets sent by an XDP program pass neither. If the switch runs one,
//! only the direction from a host is disordered.

use crate::filter::{DISORDER, DROP, ETHERTYPE, GO_ON, IPV4, IPV6, MEANT, NOT_MEANT, Step, bytecode, prepare};
use crate::iproute::{Batch, Tool};
use crate::{LabError, Loss};

/// Fraction of UDP datagrams affected, per link and direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Disorder {
    /// Lost.
    pub lost: Loss,
    /// Sent twice.
    pub copied: Loss,
    /// Delayed, by up to about 20 ms.
    pub late: Loss,
}

/// Datagrams that exceed the queue are lost.
const SLOW_RATE: &str = "1mbit";
const SLOW_QUEUE: u32 = 8;
const UDP: u32 = 17;

pub(crate) fn begin(interface: &str, disorder: Disorder) -> Result<(), LabError> {
    let mut batch = Batch::new(Tool::Tc, "bring packets into disorder (CONFIG_NET_SCH_HTB, CONFIG_NET_ACT_MIRRED)");
    prepare(&mut batch, interface);
    let [copied, late] = [disorder.copied, disorder.late].map(|part| some_datagrams(part, MEANT, NOT_MEANT));
    let lost = some_datagrams(disorder.lost, DROP, GO_ON);
    let filter = format!("filter add dev {interface} egress pref {DISORDER} bpf");
    batch.line(format!("{filter} direct-action bytecode \"{lost}\""));
    batch.line(format!("{filter} bytecode \"{copied}\" action mirred egress mirror dev {interface}"));
    // What no filter classifies passes without delay.
    batch.line(format!("qdisc add dev {interface} root handle 1: htb"));
    batch.line(format!("class add dev {interface} parent 1: classid 1:1 htb rate {SLOW_RATE} burst 1 cburst 1"));
    batch.line(format!("qdisc add dev {interface} parent 1:1 pfifo limit {SLOW_QUEUE}"));
    batch.line(format!("filter add dev {interface} parent 1: bpf bytecode \"{late}\" flowid 1:1"));
    batch.run(None)
}

pub(crate) fn end(interface: &str) {
    let mut batch = Batch::forced(Tool::Tc, "bring packets into order");
    batch.line(format!("filter delete dev {interface} egress pref {DISORDER}"));
    batch.line(format!("qdisc delete dev {interface} root"));
    // An error means that there was no disorder.
    let _ = batch.run(None);
}

/// Ignores TCP, which hides the effect.
fn some_datagrams(part: Loss, chosen: u32, other: u32) -> String {
    use Step::{Answer, AtLeast, Byte, Equal, Half, Jump, Random};
    bytecode(&[
        Half(ETHERTYPE),
        Equal(IPV4, 0, 2),
        Byte(23),
        Jump(2),
        Equal(IPV6, 0, 5),
        Byte(20),
        Equal(UDP, 0, 3),
        Random,
        AtLeast(part.threshold(), 1, 0),
        Answer(chosen),
        Answer(other),
    ])
}
