//! Classic BPF programs in the notation of `tc`, which look at frames at the hosts' interfaces.
//!
//! They are what `tc` takes without a compiler. A frame begins with its Ethernet header in either direction.

use crate::iproute::Batch;

/// What a filter answers, where its answer is what happens to the packet (`direct-action`): the next filter decides, or it is
/// dropped (`TC_ACT_UNSPEC`, `TC_ACT_SHOT`).
pub(crate) const GO_ON: u32 = u32::MAX;
pub(crate) const DROP: u32 = 2;
/// What a filter answers that only chooses: this packet is not meant, or it is.
pub(crate) const NOT_MEANT: u32 = 0;
pub(crate) const MEANT: u32 = u32::MAX;

/// Which of the filters of an interface are asked first: those that cut it, lose packets, bring them into disorder.
pub(crate) const CUT: u32 = 1;
pub(crate) const LOSE: u32 = 2;
pub(crate) const DISORDER: u32 = 3;

/// Offsets in a frame.
pub(crate) const ETHERTYPE: u32 = 12;
pub(crate) const IPV4: u32 = 0x0800;
pub(crate) const IPV6: u32 = 0x86dd;
/// `SKF_AD_OFF + SKF_AD_RANDOM` of linux/filter.h: a random number of 32 bits.
const RANDOM: u32 = 0xffff_f000 + 56;

/// An instruction; jumps are counted from the next one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Reads a byte, two or four at an offset.
    Byte(u32),
    Half(u32),
    Word(u32),
    /// Draws a random number.
    Random,
    Jump(u32),
    /// (operand, jump if it is that, jump if not)
    Equal(u32, u8, u8),
    AtLeast(u32, u8, u8),
    Answer(u32),
}

/// The number of instructions, then code, jump if true, jump if false and operand of each.
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

/// Lets an interface have filters, if it has none yet.
pub(crate) fn prepare(batch: &mut Batch, interface: &str) {
    batch.line(format!("qdisc replace dev {interface} clsact"));
}
