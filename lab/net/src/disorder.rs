//! Links that lose some datagrams, and bring some twice, and some late, behind those that were sent after them.
//!
//! A filter sends some datagrams twice by the same interface. Others go through a class of HTB with so small a rate that they
//! wait there for some milliseconds, while the rest passes by. (netem does both, but is missing from many kernels.) What an XDP
//! program sends passes neither: with one at the switch, all this happens on the way from a host only.

use crate::filter::{DISORDER, DROP, ETHERTYPE, GO_ON, IPV4, IPV6, MEANT, NOT_MEANT, Step, bytecode, prepare};
use crate::iproute::{Batch, Tool};
use crate::{LabError, Loss};

/// Parts of all datagrams on each link, in each direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Disorder {
    /// Those that are lost.
    pub lost: Loss,
    /// Those that are sent twice.
    pub copied: Loss,
    /// Those that are late, by up to some 20 ms.
    pub late: Loss,
}

/// The rate of those that are late, and how many of them wait at most: the others are lost.
const SLOW_RATE: &str = "1mbit";
const SLOW_QUEUE: u32 = 8;
/// UDP, as a protocol of IP.
const UDP: u32 = 17;

/// From now on an interface of this namespace sends datagrams so.
pub(crate) fn begin(interface: &str, disorder: Disorder) -> Result<(), LabError> {
    let mut batch = Batch::new(Tool::Tc, "bring packets into disorder (CONFIG_NET_SCH_HTB, CONFIG_NET_ACT_MIRRED)");
    prepare(&mut batch, interface);
    let [copied, late] = [disorder.copied, disorder.late].map(|part| some_datagrams(part, MEANT, NOT_MEANT));
    let lost = some_datagrams(disorder.lost, DROP, GO_ON);
    let filter = format!("filter add dev {interface} egress pref {DISORDER} bpf");
    batch.line(format!("{filter} direct-action bytecode \"{lost}\""));
    batch.line(format!("{filter} bytecode \"{copied}\" action mirred egress mirror dev {interface}"));
    // What no filter puts into a class passes at once.
    batch.line(format!("qdisc add dev {interface} root handle 1: htb"));
    batch.line(format!("class add dev {interface} parent 1: classid 1:1 htb rate {SLOW_RATE} burst 1 cburst 1"));
    batch.line(format!("qdisc add dev {interface} parent 1:1 pfifo limit {SLOW_QUEUE}"));
    batch.line(format!("filter add dev {interface} parent 1: bpf bytecode \"{late}\" flowid 1:1"));
    batch.run(None)
}

/// Ends it.
pub(crate) fn end(interface: &str) {
    let mut batch = Batch::forced(Tool::Tc, "bring packets into order");
    batch.line(format!("filter delete dev {interface} egress pref {DISORDER}"));
    batch.line(format!("qdisc delete dev {interface} root"));
    // An error means that there was none.
    let _ = batch.run(None);
}

/// What to answer about this part of the datagrams of UDP, and about everything else. TCP is left alone: it hides what happens to
/// its segments.
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
