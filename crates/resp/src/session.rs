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
    is_authenticated: bool,
    /// No more requests are read.
    pub(crate) is_over: bool,
}

impl Session {
    pub(crate) fn new(id: i64) -> Self {
        Self { version: Version::default(), id, name: Bytes::new(), is_authenticated: false, is_over: false }
    }

    /// Whether a command concerns the connection only.
    pub(crate) fn has(name: &str) -> bool {
        matches!(
            name,
            "PING"
                | "ECHO"
                | "HELLO"
                | "AUTH"
                | "SELECT"
                | "CLIENT"
                | "COMMAND"
                | "CONFIG"
                | "CLUSTER"
                | "READONLY"
                | "READWRITE"
                | "INFO"
                | "RESET"
                | "QUIT"
        ) || is_http(name)
    }

    /// `None` if the service has to reply.
    pub(crate) fn reply(&mut self, call: &Call, password: Option<&[u8]>) -> Option<Reply> {
        self.run(call, password).map(|done| done.unwrap_or_else(|error| error))
    }

    fn run(&mut self, call: &Call, password: Option<&[u8]>) -> Option<Result<Reply, Reply>> {
        let needs_no_password = matches!(call.name(), "AUTH" | "HELLO" | "QUIT" | "RESET") || is_http(call.name());
        if password.is_some() && !self.is_authenticated && !needs_no_password {
            return Some(Err(Reply::Error("NOAUTH Authentication required.".into())));
        }
        Some(match call.name() {
            "PING" => match call.arguments() {
                [] => Ok(Reply::Simple("PONG")),
                [text] => Ok(Reply::Bulk(text.clone())),
                _ => Err(call.wrong_number()),
            },
            "ECHO" => call.exactly().map(|[text]| Reply::Bulk(text)),
            "HELLO" => self.hello(call.arguments(), password),
            "AUTH" => match call.arguments() {
                [_] if password.is_none() => Err(Reply::error(
                    "AUTH <password> called without any password configured for the default user. Are you sure your \
                     configuration is correct?",
                )),
                [given] => self.authenticate(b"default", given, password),
                [user, given] => self.authenticate(user, given, password),
                _ => Err(call.wrong_number()),
            },
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
            name if is_http(name) => {
                self.is_over = true;
                Err(Reply::error("this is no HTTP server"))
            }
            "RESET" => {
                *self = Self::new(self.id);
                Ok(Reply::Simple("RESET"))
            }
            "QUIT" => {
                self.is_over = true;
                Ok(Reply::OK)
            }
            _ => return None,
        })
    }

    fn authenticate(&mut self, user: &[u8], given: &[u8], password: Option<&[u8]>) -> Result<Reply, Reply> {
        if user != b"default" || !password.is_none_or(|password| is_equal(given, password)) {
            return Err(Reply::Error("WRONGPASS invalid username-password pair or user is disabled.".into()));
        }
        self.is_authenticated = true;
        Ok(Reply::OK)
    }

    fn hello(&mut self, arguments: &[Bytes], password: Option<&[u8]>) -> Result<Reply, Reply> {
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
                [user, given, behind @ ..] if option.eq_ignore_ascii_case(b"AUTH") => {
                    self.authenticate(user, given, password)?;
                    behind
                }
                _ => return Err(Reply::error(format!("Syntax error in HELLO option '{}'", shown(option)))),
            };
        }
        if password.is_some() && !self.is_authenticated {
            return Err(Reply::Error(
                "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> \
                 option can be used to authenticate the client and select the RESP protocol version at the same time"
                    .into(),
            ));
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

fn is_http(name: &str) -> bool {
    name == "POST" || name.starts_with("HOST:")
}

/// Takes as long whatever the difference is, unless the lengths differ.
fn is_equal(given: &[u8], password: &[u8]) -> bool {
    let differing = given.iter().zip(password).fold(0, |differing, (one, other)| differing | (one ^ other));
    given.len() == password.len() && differing == 0
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
