//! A request as a command with arguments, and what it leads to.

use crate::reply::Reply;
use crate::request::{cost, integer};
use bytes::Bytes;
use futures_util::future::BoxFuture;

/// A command of a client.
#[derive(Clone, Debug)]
pub struct Call {
    /// In capitals.
    name: String,
    arguments: Vec<Bytes>,
}

/// What replies to a request. Nothing happens before `reply` is polled.
pub struct Task {
    /// The keys that the request concerns.
    pub keys: Vec<Bytes>,
    /// Whether it changes them.
    pub writes: bool,
    /// Its reply.
    pub reply: BoxFuture<'static, Reply>,
}

impl Call {
    pub(crate) fn of(request: Vec<Bytes>) -> Self {
        let mut arguments = request.into_iter();
        let name = arguments.next().unwrap_or_default();
        Self { name: String::from_utf8_lossy(&name).to_ascii_uppercase(), arguments: arguments.collect() }
    }

    /// The command in capitals.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What follows the command.
    #[must_use]
    pub fn arguments(&self) -> &[Bytes] {
        &self.arguments
    }

    pub(crate) fn cost(&self) -> usize {
        cost(&self.arguments)
    }

    /// Exactly `N` arguments.
    ///
    /// # Errors
    /// What to reply otherwise.
    pub fn exactly<const N: usize>(&self) -> Result<[Bytes; N], Reply> {
        match self.at_least()? {
            (arguments, []) => Ok(arguments),
            _ => Err(self.wrong_number()),
        }
    }

    /// The first `N` arguments, and the others.
    ///
    /// # Errors
    /// What to reply if there are fewer.
    pub fn at_least<const N: usize>(&self) -> Result<([Bytes; N], &[Bytes]), Reply> {
        let (first, rest) = self.arguments.split_at_checked(N).ok_or_else(|| self.wrong_number())?;
        Ok((first.to_vec().try_into().map_err(|_| self.wrong_number())?, rest))
    }

    /// Redis' reply to a wrong number of arguments.
    #[must_use]
    pub fn wrong_number(&self) -> Reply {
        Reply::error(format!("wrong number of arguments for '{}' command", self.name.to_ascii_lowercase()))
    }

    /// Redis' reply to a command that it does not know.
    pub(crate) fn unknown(&self) -> Reply {
        let name = self.name.to_ascii_lowercase();
        let name = shown(name.as_bytes());
        let arguments: String =
            self.arguments.iter().take(8).map(|argument| format!("'{}' ", shown(argument))).collect();
        Reply::error(format!("unknown command '{name}', with args beginning with: {arguments}"))
    }
}

/// The beginning of an argument, for an error.
pub(crate) fn shown(argument: &[u8]) -> impl std::fmt::Display {
    const SHOWN: usize = 64;
    argument[..argument.len().min(SHOWN)].escape_ascii()
}

/// A number in an argument.
///
/// # Errors
/// What to reply if it is not one.
pub fn number(argument: &[u8]) -> Result<i64, Reply> {
    integer(argument).ok_or_else(|| Reply::error("value is not an integer or out of range"))
}

impl Task {
    /// A request on keys.
    pub fn new(keys: impl Into<Vec<Bytes>>, writes: bool, reply: impl Future<Output = Reply> + Send + 'static) -> Self {
        Self { keys: keys.into(), writes, reply: Box::pin(reply) }
    }
}

impl Task {
    pub(crate) fn at_once(reply: Reply) -> Self {
        Self::new([], false, std::future::ready(reply))
    }
}

impl std::fmt::Debug for Task {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Task").field("keys", &self.keys).field("writes", &self.writes).finish_non_exhaustive()
    }
}
