//! A toy program: numbers each datagram in place and forwards it to the sender of the previous one. It shows all that another program adds
//! to the project; its test runs it in every environment.
#![allow(missing_docs, reason = "a toy")]

use midflight_control::config::ProgramTable;
use midflight_control::file::Table;
use midflight_control::metrics::{ProgramStatus, counter};
use midflight_dataplane::program::{Bound, Clock, ConfigError, Program};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug)]
pub struct Echo;

midflight_dataplane::verdicts! { Verdict {} }

#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Stats {
    packets: [u64; 2],
    verdicts: [u64; Verdict::COUNT],
    pub number: u64,
}

/// The configuration sets the first number, an order the next one.
impl Program for Echo {
    const NAME: &'static str = "echo";
    const CLOCK: Clock = Clock::CountsSuspension;
    const OPERATIONS: &'static [&'static str] = &["version", "echo"];
    type Config = u64;
    type Survey = ();
    type Verdict = Verdict;
    type Stats = Stats;
    type Order = u64;

    fn violated(_: &u64) -> ConfigError {
        ConfigError("the first number must not be 0".into())
    }
    fn bounds(first: &u64) -> Vec<(&'static str, Bound)> {
        vec![("first", Bound::Count(*first as u32))]
    }
    fn ticks(_: &u64) -> u32 {
        1
    }
    fn packets(stats: &Stats) -> &[u64] {
        &stats.packets
    }
    fn verdicts(stats: &Stats) -> &[u64] {
        &stats.verdicts
    }
    fn is_for_anybody(_: &[u8]) -> bool {
        false
    }
}

midflight_dataplane::soft_program!(
    Echo,
    "echo",
    "MIDFLIGHT_LAYOUT_ECHO",
    mf_echo_size,
    mf_echo_init,
    mf_echo_packet,
    mf_echo_tick,
    mf_echo_order,
    mf_echo_owes_more,
    mf_echo_stats,
    mf_echo_check
);

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EchoTable {
    pub first: u64,
}

impl ProgramTable for EchoTable {
    const NAME: &'static str = "echo";
    const DEFAULT_TOML: &'static str = "[echo]\n# The first number.\nfirst = 1\n";

    fn read(table: Table<'_>) -> Result<Self, toml::de::Error> {
        table.rest()
    }
    fn validate(&self) -> Result<(), String> {
        midflight_control::file::within("echo.first", self.first, 1..=1_000_000)
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EchoStatus {
    pub numbers: u64,
}

impl ProgramStatus for EchoStatus {
    type Program = Echo;

    fn counts(&self) -> Vec<(String, u64)> {
        vec![("numbers".to_owned(), self.numbers)]
    }

    fn encode(&self, encoder: &mut prometheus_client::encoding::DescriptorEncoder<'_>) -> std::fmt::Result {
        counter(encoder, "numbers", "Numbers given", self.numbers)
    }
}
