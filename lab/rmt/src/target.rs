//! Resources of a switch.

/// Budgets of a target.
///
/// Tofino 1's are from its public documents (Intel's P4 compiler, open-p4studio; the RMT paper, Bosshart et al. 2013) and from that
/// compiler's refusals. Tofino 2's are from the same compiler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Name in the report.
    pub name: &'static str,
    /// Physical stages, each shared by ingress and egress.
    pub stages: usize,
    /// Containers of 8, 16 and 32 bits, shared by ingress and egress.
    pub containers: [u32; 3],
    /// Logical tables per stage; each has one gateway.
    pub tables: u32,
    /// Instruction words per stage: one for each action of each table.
    pub instructions: u32,
    /// Stateful ALUs per stage.
    pub stateful_alus: u32,
    /// SRAM blocks of 16 KB per stage.
    pub sram_blocks: u32,
    /// Map RAMs per stage. Each block of a register needs one, so not all blocks can be registers.
    pub map_rams: u32,
    /// Parts of a stage's memories, each with equally many map RAMs and stateful ALUs. A register fits into one of them.
    pub memory_parts: u32,
    /// SRAM blocks of one register at most, including its spare one.
    pub register_blocks: u32,
    /// TCAM blocks per stage, of 512 entries of 44 bits.
    pub tcam_blocks: u32,
    /// Bits that a gateway reads.
    pub gateway_bits: u32,
    /// Bits that a gateway compares by less-than.
    pub gateway_order_bits: u32,
    /// Bits of a range key.
    pub range_bits: u32,
    /// Fields of the packet that a stateful ALU takes, without the index.
    pub stateful_inputs: usize,
    /// Bytes that a mirrored copy carries.
    pub mirror_bytes: u32,
}

impl Target {
    /// The switch of the papers.
    pub const TOFINO_1: Self = Self {
        name: "Tofino 1",
        stages: 12,
        containers: [64, 96, 64],
        tables: 16,
        instructions: 32,
        stateful_alus: 4,
        sram_blocks: 80,
        map_rams: 48,
        memory_parts: 1,
        register_blocks: 36,
        tcam_blocks: 24,
        gateway_bits: 44,
        gateway_order_bits: 12,
        range_bits: 20,
        stateful_inputs: 2,
        mirror_bytes: 32,
    };

    /// Its successor, which according to the thesis on Bolt (chapter 4) can have a queue of a million entries.
    ///
    /// It has more stages, each with the same memories, but in two halves: no bus connects the lower rows to the upper ones (Intel's
    /// compiler and assembler: `isMemoryCoreSplit`, `SUPPORT_OVERFLOW_BUS`). Only containers count that an ALU may write in any way, as all
    /// of Tofino 1's; 16, 24 and 16 more take whole values only ("mocha"), and as many exist between stages only ("dark"). The programs do
    /// not use its stateful ALUs' wider words and four comparators.
    pub const TOFINO_2: Self = Self {
        name: "Tofino 2",
        stages: 20,
        containers: [48, 72, 48],
        memory_parts: 2,
        register_blocks: 24,
        ..Self::TOFINO_1
    };

    /// All targets.
    pub const ALL: [Self; 2] = [Self::TOFINO_1, Self::TOFINO_2];

    /// Bits that number the cells of the longest register of such words, with a power of two of cells: one of its blocks is spare.
    #[must_use]
    pub fn register_index_bits(&self, word_bits: u32) -> u32 {
        ((self.register_blocks - 1) * Self::SRAM_BLOCK_BITS / word_bits).ilog2()
    }

    /// Stateful ALUs and map RAMs of each part of a stage's memories.
    pub(crate) fn parts(&self) -> Vec<(u32, u32)> {
        let part = (self.stateful_alus / self.memory_parts, self.map_rams / self.memory_parts);
        vec![part; self.memory_parts as usize]
    }

    /// Bits of an SRAM block: 16 KB.
    pub(crate) const SRAM_BLOCK_BITS: u32 = 16 * 1024 * 8;
}
