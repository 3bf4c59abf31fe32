use midflight_dataplane::program::Program;
use std::net::SocketAddr;
use std::time::Duration;

/// The language of a program's transcripts: parses commands, prints an engine's datagrams, and remembers the
/// participants.
pub trait Vocabulary: Default {
    /// The program.
    type Program: Program;

    /// Parses `switch NAME=VALUE ...`.
    ///
    /// # Errors
    /// If a setting is invalid.
    fn configure(&self, settings: &[(&str, &str)]) -> Result<ConfigOf<Self>, String>;

    /// Time between two ticks in `run`.
    fn ticks_every(config: &ConfigOf<Self>) -> Duration;

    /// A command that changes the participants and sends nothing; `None` if it is another one.
    ///
    /// # Errors
    /// If it is invalid.
    fn declare(&mut self, words: &[&str]) -> Result<Option<()>, String>;

    /// An operator's order; `None` if the command is another one.
    ///
    /// # Errors
    /// If it is invalid.
    fn order(&self, words: &[&str]) -> Result<Option<OrderOf<Self>>, String>;

    /// The line for a completed order.
    fn done(order: &OrderOf<Self>) -> String;

    /// Any other command: a datagram from a participant.
    ///
    /// # Errors
    /// If it is invalid.
    fn parse_sending(&mut self, line: &str, moment: &Moment<'_, ConfigOf<Self>>) -> Result<Sending, String>;

    /// Learns an engine's random choices from its datagram.
    fn learn(&mut self, sent: &[u8]);

    /// Prints an engine's datagram. `answers`: the counter that an answer must repeat.
    fn read(
        &self,
        to: SocketAddr,
        sent: &[u8],
        answers: Option<u64>,
        moment: &Moment<'_, ConfigOf<Self>>,
    ) -> Vec<String>;

    /// One word for the answer to a refused datagram.
    fn kind(sent: &[u8]) -> &'static str;

    /// The counters, as lines.
    fn stats(stats: &StatsOf<Self>) -> Vec<String>;

    /// Whether the switch keeps more state than before; a refused datagram must not cause that.
    fn has_grown(before: &StatsOf<Self>, after: &StatsOf<Self>) -> bool;
}

/// The configuration of a vocabulary's program.
pub type ConfigOf<V> = <<V as Vocabulary>::Program as Program>::Config;
/// Its counters.
pub type StatsOf<V> = <<V as Vocabulary>::Program as Program>::Stats;
/// Its operator's orders.
pub type OrderOf<V> = <<V as Vocabulary>::Program as Program>::Order;

/// State of the current switch.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a, C> {
    /// Its epoch.
    pub epoch: u32,
    /// Its cookie secret.
    pub secret: u128,
    /// Its configuration.
    pub config: &'a C,
    /// Nanoseconds.
    pub now_ns: u64,
}

/// A participant's datagram, sent once or in variations.
#[derive(Debug)]
pub struct Sending {
    /// Source address.
    pub from: SocketAddr,
    /// Payload.
    pub datagram: Vec<u8>,
    /// The counter that answers repeat, if it has one.
    pub counter: Option<u64>,
    /// Variations to send instead of the datagram.
    pub every: Option<Every>,
}

/// Variations of one datagram, all of which the switch must refuse.
#[derive(Clone, Copy, Debug)]
pub enum Every {
    /// Every shorter length.
    Cut,
    /// Every other value of the byte at this offset.
    Byte(usize),
}
