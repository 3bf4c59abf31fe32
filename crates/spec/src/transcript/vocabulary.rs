//! What a program's stories are written in.

use midflight_dataplane::program::Program;
use std::net::SocketAddr;
use std::time::Duration;

/// The words of a program's stories: commands, and how what an engine sends is written down. It also remembers who takes part.
pub trait Vocabulary: Default {
    /// The program.
    type Program: Program;

    /// `switch NAME=VALUE ...`: the configuration of a new switch.
    ///
    /// # Errors
    /// Where a setting makes no sense.
    fn configure(&self, settings: &[(&str, &str)]) -> Result<ConfigOf<Self>, String>;

    /// How far apart ticks are in `run`.
    fn ticks_every(config: &ConfigOf<Self>) -> Duration;

    /// A command that changes who takes part, and sends nothing; `None` where it is not one.
    ///
    /// # Errors
    /// Where it makes no sense.
    fn declare(&mut self, words: &[&str]) -> Result<Option<()>, String>;

    /// A command of the operator; `None` where it is not one.
    ///
    /// # Errors
    /// Where it makes no sense.
    fn order(&self, words: &[&str]) -> Result<Option<OrderOf<Self>>, String>;

    /// What a line says of an order that is done.
    fn done(order: &OrderOf<Self>) -> String;

    /// Any other command: a datagram that somebody sends.
    ///
    /// # Errors
    /// Where it makes no sense.
    fn send(&mut self, line: &str, moment: &Moment<'_, ConfigOf<Self>>) -> Result<Sending, String>;

    /// Learns what an engine chose at random, from what it sends.
    fn learn(&mut self, sent: &[u8]);

    /// A datagram that an engine sent, as lines. `answers`: the number that an answer to the datagram repeats.
    fn read(
        &self,
        to: SocketAddr,
        sent: &[u8],
        answers: Option<u64>,
        moment: &Moment<'_, ConfigOf<Self>>,
    ) -> Vec<String>;

    /// In a word, a datagram that answers one that was refused.
    fn kind(sent: &[u8]) -> &'static str;

    /// What was counted, as lines.
    fn stats(stats: &StatsOf<Self>) -> Vec<String>;

    /// Whether more is held now than before: what no refused datagram may cause.
    fn has_grown(before: &StatsOf<Self>, after: &StatsOf<Self>) -> bool;
}

/// The configuration of a vocabulary's program.
pub type ConfigOf<V> = <<V as Vocabulary>::Program as Program>::Config;
/// What it counts.
pub type StatsOf<V> = <<V as Vocabulary>::Program as Program>::Stats;
/// Its operator's orders.
pub type OrderOf<V> = <<V as Vocabulary>::Program as Program>::Order;

/// A moment of a story, at the switch to which packets go.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a, C> {
    /// Of the switch.
    pub epoch: u32,
    /// Of the switch.
    pub secret: u128,
    /// Of the switch.
    pub config: &'a C,
    /// Nanoseconds.
    pub now_ns: u64,
}

/// A datagram that somebody sends, once or in many variations.
#[derive(Debug)]
pub struct Sending {
    /// Its sender.
    pub from: SocketAddr,
    /// Its bytes.
    pub datagram: Vec<u8>,
    /// A number that answers to it repeat, if it carries one.
    pub counter: Option<u64>,
    /// Instead of the datagram.
    pub every: Option<Every>,
}

/// Variations of one datagram, to show that none of them does harm.
#[derive(Clone, Copy, Debug)]
pub enum Every {
    /// Each shorter length.
    Cut,
    /// Each value of the byte at this offset but the right one.
    Byte(usize),
}
