//! Commands that concern the connection only.

use crate::call::{Call, number, shown};
use crate::reply::{Reply, Version};
use bytes::Bytes;

/// Bytes of a client's name.
const NAME_MAX: usize = 256;

/// What a connection has set.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) version: Version,
    id: i64,
    name: Bytes,
    /// No more requests are read.
    pub(crate) is_over: bool,
}

impl Session {
    pub(crate) fn new(id: i64) -> Self {
        Self { version: Version::default(), id, name: Bytes::new(), is_over: false }
    }

    /// `None` if it is another command.
    pub(crate) fn reply(&mut self, call: &Call) -> Option<Reply> {
        self.run(call).map(|done| done.unwrap_or_else(|error| error))
    }

    fn run(&mut self, call: &Call) -> Option<Result<Reply, Reply>> {
        Some(match call.name() {
            "PING" => match call.arguments() {
                [] => Ok(Reply::Simple("PONG")),
                [text] => Ok(Reply::Bulk(text.clone())),
                _ => Err(call.wrong_number()),
            },
            "ECHO" => call.exactly().map(|[text]| Reply::Bulk(text)),
            "HELLO" => self.hello(call.arguments()),
            "AUTH" => Err(Reply::error(
                "AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?",
            )),
            "SELECT" => call.exactly().and_then(|[database]| match number(&database)? {
                0 => Ok(Reply::OK),
                _ => Err(Reply::error("DB index is out of range")),
            }),
            "CLIENT" => self.client(call),
            "COMMAND" => Ok(command(call.arguments())),
            "CONFIG" => config(call),
            "CLUSTER" | "READONLY" | "READWRITE" => Err(Reply::error("This instance has cluster support disabled")),
            // Some clients ask before they begin.
            "INFO" => Ok(Reply::text(concat!(
                "# Server\r\nmidflight_version:",
                env!("CARGO_PKG_VERSION"),
                "\r\nredis_mode:standalone\r\n"
            ))),
            // The body of what a web page sends could have commands.
            "POST" | "HOST:" => {
                self.is_over = true;
                Err(Reply::error("this is no HTTP server"))
            }
            "RESET" => {
                (self.version, self.name) = (Version::default(), Bytes::new());
                Ok(Reply::Simple("RESET"))
            }
            "QUIT" => {
                self.is_over = true;
                Ok(Reply::OK)
            }
            _ => return None,
        })
    }

    fn hello(&mut self, arguments: &[Bytes]) -> Result<Reply, Reply> {
        let (version, mut rest) = match arguments {
            [] => (self.version, arguments),
            [version, rest @ ..] => match number(version) {
                Ok(2) => (Version::Two, rest),
                Ok(3) => (Version::Three, rest),
                Ok(_) => return Err(Reply::Error("NOPROTO unsupported protocol version".into())),
                Err(_) => return Err(Reply::error("Protocol version is not an integer or out of range")),
            },
        };
        let mut name = None;
        while let [option, behind @ ..] = rest {
            rest = match behind {
                [given, behind @ ..] if option.eq_ignore_ascii_case(b"SETNAME") => {
                    name = Some(named(given)?);
                    behind
                }
                [_, _, ..] if option.eq_ignore_ascii_case(b"AUTH") => {
                    return Err(Reply::Error("WRONGPASS invalid username-password pair or user is disabled.".into()));
                }
                _ => return Err(Reply::error(format!("Syntax error in HELLO option '{}'", shown(option)))),
            };
        }
        self.version = version;
        self.name = name.unwrap_or_else(|| self.name.clone());
        let pair = |name: &str, reply| (Reply::text(name), reply);
        Ok(Reply::Map(vec![
            pair("server", Reply::text("midflight")),
            pair("version", Reply::text(env!("CARGO_PKG_VERSION"))),
            pair("proto", Reply::Integer(if version == Version::Two { 2 } else { 3 })),
            pair("id", Reply::Integer(self.id)),
            pair("mode", Reply::text("standalone")),
            pair("role", Reply::text("master")),
            pair("modules", Reply::Array(Vec::new())),
        ]))
    }

    fn client(&mut self, call: &Call) -> Result<Reply, Reply> {
        let ([what], arguments) = call.at_least()?;
        match (what.to_ascii_uppercase().as_slice(), arguments) {
            (b"ID", []) => Ok(Reply::Integer(self.id)),
            (b"GETNAME", []) if self.name.is_empty() => Ok(Reply::Null),
            (b"GETNAME", []) => Ok(Reply::Bulk(self.name.clone())),
            (b"SETNAME", [name]) => {
                self.name = named(name)?;
                Ok(Reply::OK)
            }
            (b"SETINFO", [_, _]) | (b"NO-EVICT" | b"NO-TOUCH", [_]) => Ok(Reply::OK),
            _ => Err(unknown_subcommand("CLIENT", &what)),
        }
    }
}

fn named(name: &Bytes) -> Result<Bytes, Reply> {
    if name.len() > NAME_MAX {
        return Err(Reply::error(format!("a client's name has at most {NAME_MAX} bytes")));
    }
    if name.iter().all(u8::is_ascii_graphic) {
        return Ok(name.clone());
    }
    Err(Reply::error("Client names cannot contain spaces, newlines or special characters."))
}

/// Clients ask at their start, to complete what is typed; with nothing to complete they go on.
fn command(arguments: &[Bytes]) -> Reply {
    match arguments.first() {
        Some(what) if what.eq_ignore_ascii_case(b"COUNT") => Reply::Integer(0),
        Some(what) if what.eq_ignore_ascii_case(b"DOCS") => Reply::Map(Vec::new()),
        _ => Reply::Array(Vec::new()),
    }
}

/// Nothing is configured through a client.
fn config(call: &Call) -> Result<Reply, Reply> {
    let ([what], _) = call.at_least()?;
    if what.eq_ignore_ascii_case(b"GET") {
        return Ok(Reply::Map(Vec::new()));
    }
    Err(unknown_subcommand("CONFIG", &what))
}

fn unknown_subcommand(command: &str, what: &Bytes) -> Reply {
    Reply::error(format!("unknown subcommand '{}'. Try {command} HELP.", shown(what)))
}
