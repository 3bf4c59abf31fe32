//! Classic BPF programs in `tc`'s notation, which needs no compiler. They run at the hosts' interfaces. In both directions a frame starts
//! with its Ethernet header.

use crate::iproute::Batch;

/// `TC_ACT_UNSPEC` and `TC_ACT_SHOT`, for a `direct-action` filter.
pub(crate) const GO_ON: u32 = u32::MAX;
pub(crate) const DROP: u32 = 2;
/// Results of a filter that only classifies.
pub(crate) const NOT_MEANT: u32 = 0;
pub(crate) const MEANT: u32 = u32::MAX;

/// Priorities of an interface's filters, lowest first.
pub(crate) const CUT: u32 = 1;
pub(crate) const LOSE: u32 = 2;
pub(crate) const DISORDER: u32 = 3;

/// Offsets in a frame.
pub(crate) const ETHERTYPE: u32 = 12;
pub(crate) const IPV4: u32 = 0x0800;
pub(crate) const IPV6: u32 = 0x86dd;
/// `SKF_AD_OFF + SKF_AD_RANDOM` of linux/filter.h: a random 32-bit number.
const RANDOM: u32 = 0xffff_f000 + 56;

/// Jumps count from the next instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Reads a byte, two or four at an offset.
    Byte(u32),
    Half(u32),
    Word(u32),
    Random,
    Jump(u32),
    /// (operand, jump if equal, jump if not)
    Equal(u32, u8, u8),
    AtLeast(u32, u8, u8),
    Answer(u32),
}

/// The number of instructions, then each one's code, jump if true, jump if false, operand.
pub(crate) fn bytecode(steps: &[Step]) -> String {
    let text = |step: &Step| match *step {
        Step::Word(at) => format!("32 0 0 {at}"),
        Step::Half(at) => format!("40 0 0 {at}"),
        Step::Byte(at) => format!("48 0 0 {at}"),
        Step::Random => format!("32 0 0 {RANDOM}"),
        Step::Jump(by) => format!("5 0 0 {by}"),
        Step::Equal(operand, yes, no) => format!("21 {yes} {no} {operand}"),
        Step::AtLeast(operand, yes, no) => format!("53 {yes} {no} {operand}"),
        Step::Answer(answer) => format!("6 0 0 {answer}"),
    };
    let steps: Vec<_> = std::iter::once(steps.len().to_string()).chain(steps.iter().map(text)).collect();
    steps.join(",")
}

pub(crate) fn prepare(batch: &mut Batch, interface: &str) {
    batch.line(format!("qdisc replace dev {interface} clsact"));
}
