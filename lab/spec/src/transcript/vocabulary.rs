//! The language of a program's transcripts.

use midflight_dataplane::program::Program;
use std::net::SocketAddr;
use std::time::Duration;

/// The language of a program's transcripts: how commands are read, and how the datagrams of an engine are written. It also
/// remembers the participants.
pub trait Vocabulary: Default {
    /// The program.
    type Program: Program;

    /// `switch NAME=VALUE ...`: the configuration of a new switch.
    ///
    /// # Errors
    /// If a setting makes no sense.
    fn configure(&self, settings: &[(&str, &str)]) -> Result<ConfigOf<Self>, String>;

    /// The time between two ticks in `run`.
    fn ticks_every(config: &ConfigOf<Self>) -> Duration;

    /// A command that changes the participants and sends nothing; `None` if the command is not one.
    ///
    /// # Errors
    /// If it makes no sense.
    fn declare(&mut self, words: &[&str]) -> Result<Option<()>, String>;

    /// An order of the operator; `None` if the command is not one.
    ///
    /// # Errors
    /// If it makes no sense.
    fn order(&self, words: &[&str]) -> Result<Option<OrderOf<Self>>, String>;

    /// The line for an order that is done.
    fn done(order: &OrderOf<Self>) -> String;

    /// Any other command: a datagram that a participant sends.
    ///
    /// # Errors
    /// If it makes no sense.
    fn send(&mut self, line: &str, moment: &Moment<'_, ConfigOf<Self>>) -> Result<Sending, String>;

    /// Learns from a datagram of an engine what the engine chose at random.
    fn learn(&mut self, sent: &[u8]);

    /// A datagram that an engine sent, as lines. `answers`: the counter that an answer must repeat.
    fn read(
        &self,
        to: SocketAddr,
        sent: &[u8],
        answers: Option<u64>,
        moment: &Moment<'_, ConfigOf<Self>>,
    ) -> Vec<String>;

    /// One word for a datagram that answers a refused one.
    fn kind(sent: &[u8]) -> &'static str;

    /// The counters, as lines.
    fn stats(stats: &StatsOf<Self>) -> Vec<String>;

    /// Whether the switch keeps more state than before, which no refused datagram may cause.
    fn has_grown(before: &StatsOf<Self>, after: &StatsOf<Self>) -> bool;
}

/// The configuration of a vocabulary's program.
pub type ConfigOf<V> = <<V as Vocabulary>::Program as Program>::Config;
/// Its counters.
pub type StatsOf<V> = <<V as Vocabulary>::Program as Program>::Stats;
/// Its operator's orders.
pub type OrderOf<V> = <<V as Vocabulary>::Program as Program>::Order;

/// The state, at one moment, of the switch that packets go to.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a, C> {
    /// The epoch of the switch.
    pub epoch: u32,
    /// The secret that its cookies are made with.
    pub secret: u128,
    /// Its configuration.
    pub config: &'a C,
    /// Nanoseconds.
    pub now_ns: u64,
}

/// A datagram that a participant sends, once or in many variations.
#[derive(Debug)]
pub struct Sending {
    /// Its sender.
    pub from: SocketAddr,
    /// Its bytes.
    pub datagram: Vec<u8>,
    /// The counter that answers to it repeat, if it has one.
    pub counter: Option<u64>,
    /// If set, these variations are sent instead of the datagram.
    pub every: Option<Every>,
}

/// Variations of one datagram, to show that the switch refuses them all.
#[derive(Clone, Copy, Debug)]
pub enum Every {
    /// Cut off at each shorter length.
    Cut,
    /// With each other value of the byte at this offset.
    Byte(usize),
}
