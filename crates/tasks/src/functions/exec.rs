//! Arguments and results of `exec` and `command`.

use std::ops::Range;
use std::time::Duration;

/// Longest command line, and longest `NAME=value`, in bytes: Linux accepts 128 KiB as one argument, including a final NUL.
pub const COMMAND_LINE_MAX: usize = (128 << 10) - 1;
/// Longest directory name in bytes: Linux's PATH_MAX without the final NUL.
pub const DIRECTORY_MAX: usize = 4095;
/// Variables of one request.
pub const VARIABLES_MAX: usize = 4096;
/// Bytes of all names and values of one request. Linux accepts 2 MiB in all, with the executor's own environment.
pub const ENVIRONMENT_MAX: usize = 1 << 20;

const REQUEST_FORMAT: u8 = 1;

/// Why a request is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExecRequestError {
    /// Exceeds [`COMMAND_LINE_MAX`].
    #[error("a command line of {0} bytes exceeds {COMMAND_LINE_MAX}: put it into a script, and run that")]
    CommandLineTooLong(usize),
    /// Exceeds [`DIRECTORY_MAX`].
    #[error("a directory's name of {0} bytes exceeds {DIRECTORY_MAX}: name a directory by a shorter path")]
    DirectoryTooLong(usize),
    /// A variable without a name, or with `=` in its name.
    #[error("{0:?} is no name of a variable: it needs one, without '='")]
    VariableName(String),
    /// Exceeds [`COMMAND_LINE_MAX`].
    #[error("variable {0} with its value exceeds {COMMAND_LINE_MAX} bytes: write the value to a file")]
    VariableTooLong(String),
    /// Exceeds [`VARIABLES_MAX`].
    #[error("{0} variables exceed {VARIABLES_MAX}: leave some out")]
    TooManyVariables(usize),
    /// Exceeds [`ENVIRONMENT_MAX`].
    #[error("variables of {0} bytes exceed {ENVIRONMENT_MAX}: write some values to files")]
    EnvironmentTooLong(usize),
    /// Linux cannot pass a NUL byte.
    #[error("{0} has a NUL byte: remove it")]
    Nul(&'static str),
    /// A timeout of 0 permits no command.
    #[error("a timeout of 0: leave it out for none")]
    NoTime,
    /// The bytes are not an encoded request.
    #[error("the argument is no request that this executor understands: client and executor must be of one version")]
    Malformed,
}

/// Argument of [`super::COMMAND`]. Encoded as (integers in network byte order):
///
/// | field | bits |
/// |---|---|
/// | 1, the number of this format | 8 |
/// | timeout in nanoseconds, 0 for none | 64 |
/// | command line, directory (empty for none): the length of each, then its bytes | 32 + … |
/// | number of variables | 32 |
/// | name and value of each variable: the length of each, then its bytes | 32 + … |
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecRequest {
    /// Command line for `/bin/sh -c`.
    pub command_line: Vec<u8>,
    /// Working directory. Default: the executor's.
    pub directory: Option<Vec<u8>>,
    /// Variables added to the executor's environment; they replace variables of the same name.
    pub environment: Vec<(Vec<u8>, Vec<u8>)>,
    /// Time after which the executor kills the command's process group. Default: unlimited.
    pub timeout: Option<Duration>,
}

impl ExecRequest {
    /// A command without directory, variables and timeout.
    #[must_use]
    pub fn new(command_line: impl Into<Vec<u8>>) -> Self {
        Self { command_line: command_line.into(), ..Self::default() }
    }

    /// Checks every bound.
    ///
    /// # Errors
    /// The first violation.
    pub fn check(&self) -> Result<(), ExecRequestError> {
        use ExecRequestError as E;
        let Self { command_line, directory, environment, timeout } = self;
        if command_line.len() > COMMAND_LINE_MAX {
            return Err(E::CommandLineTooLong(command_line.len()));
        }
        if command_line.contains(&0) {
            return Err(E::Nul("the command line"));
        }
        let directory = directory.as_deref().unwrap_or_default();
        if directory.len() > DIRECTORY_MAX {
            return Err(E::DirectoryTooLong(directory.len()));
        }
        if directory.contains(&0) {
            return Err(E::Nul("the directory's name"));
        }
        if *timeout == Some(Duration::ZERO) {
            return Err(E::NoTime);
        }
        if environment.len() > VARIABLES_MAX {
            return Err(E::TooManyVariables(environment.len()));
        }
        let bytes: usize = environment.iter().map(|(name, value)| name.len() + value.len()).sum();
        if bytes > ENVIRONMENT_MAX {
            return Err(E::EnvironmentTooLong(bytes));
        }
        environment.iter().try_for_each(|(name, value)| check_variable(name, value))
    }

    /// Encodes it as an argument.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn encode(&self) -> Result<Vec<u8>, ExecRequestError> {
        self.check()?;
        let mut bytes = vec![REQUEST_FORMAT];
        bytes.extend_from_slice(&self.timeout.map_or(0, nanoseconds).to_be_bytes());
        put(&mut bytes, &self.command_line);
        put(&mut bytes, self.directory.as_deref().unwrap_or_default());
        bytes.extend_from_slice(&(self.environment.len() as u32).to_be_bytes());
        for (name, value) in &self.environment {
            put(&mut bytes, name);
            put(&mut bytes, value);
        }
        Ok(bytes)
    }

    /// Decodes an argument.
    ///
    /// # Errors
    /// If the bytes are malformed, or as [`Self::check`].
    pub fn decode(bytes: &[u8]) -> Result<Self, ExecRequestError> {
        let request = Self::take(bytes).ok_or(ExecRequestError::Malformed)?;
        request.check()?;
        Ok(request)
    }

    fn take(mut bytes: &[u8]) -> Option<Self> {
        let bytes = &mut bytes;
        if take_array::<1>(bytes)? != [REQUEST_FORMAT] {
            return None;
        }
        let timeout = u64::from_be_bytes(take_array(bytes)?);
        let (command_line, directory) = (take_bytes(bytes)?.to_vec(), take_bytes(bytes)?.to_vec());
        let variables = u32::from_be_bytes(take_array(bytes)?) as usize;
        if variables > VARIABLES_MAX {
            return None;
        }
        let mut environment = Vec::with_capacity(variables);
        for _ in 0..variables {
            environment.push((take_bytes(bytes)?.to_vec(), take_bytes(bytes)?.to_vec()));
        }
        bytes.is_empty().then(|| Self {
            command_line,
            directory: Some(directory).filter(|directory| !directory.is_empty()),
            environment,
            timeout: Some(Duration::from_nanos(timeout)).filter(|timeout| !timeout.is_zero()),
        })
    }
}

fn check_variable(name: &[u8], value: &[u8]) -> Result<(), ExecRequestError> {
    let lossy = || String::from_utf8_lossy(name).into_owned();
    if name.is_empty() || name.contains(&b'=') {
        return Err(ExecRequestError::VariableName(lossy()));
    }
    if name.contains(&0) || value.contains(&0) {
        return Err(ExecRequestError::Nul("a variable"));
    }
    if name.len() + value.len() + 1 > COMMAND_LINE_MAX {
        return Err(ExecRequestError::VariableTooLong(lossy()));
    }
    Ok(())
}

/// Flag of a result: the timeout ended the command.
const TIMED_OUT: u8 = 1;
const FIXED_BYTES: usize = 28;

/// The outcome of a command. Encoded as (integers in network byte order):
///
/// | field | bits |
/// |---|---|
/// | exit code, or 128 + the signal | 32 |
/// | signal that ended the shell, 0 for none | 8 |
/// | flags: 1 if the timeout ended it | 8 |
/// | length of the host's name | 16 |
/// | start, in nanoseconds since 1970 | 64 |
/// | run time in nanoseconds | 64 |
/// | length of stdout | 32 |
/// | the host's name, stdout, stderr | … |
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecResult {
    /// Exit code, or 128 + the signal. A shell whose last command was killed exits with such a code too; [`Self::signal`]
    /// distinguishes them.
    pub code: i32,
    /// Signal that ended the shell itself.
    pub signal: Option<u8>,
    /// Whether the timeout ended it.
    pub timed_out: bool,
    /// Host name of the executor; at most 255 bytes.
    pub host: String,
    /// Start: time since 1970 by the executor's clock.
    pub started: Duration,
    /// Time until the outputs were closed and the shell had exited.
    pub run_time: Duration,
    /// The whole stdout.
    pub stdout: Vec<u8>,
    /// The whole stderr.
    pub stderr: Vec<u8>,
}

impl ExecResult {
    /// Bound of the bytes before stdout.
    pub const HEAD_MAX: usize = FIXED_BYTES + HOST_MAX;

    /// Encodes it as a result.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = self.encode_head(u32::try_from(self.stdout.len()).unwrap_or(u32::MAX));
        bytes.extend_from_slice(&self.stdout);
        bytes.extend_from_slice(&self.stderr);
        bytes
    }

    /// Encodes the part before the outputs, for this length of stdout.
    #[must_use]
    pub fn encode_head(&self, stdout_bytes: u32) -> Vec<u8> {
        let host = named(&self.host);
        let mut bytes = Vec::with_capacity(FIXED_BYTES + host.len() + self.stdout.len() + self.stderr.len());
        bytes.extend_from_slice(&self.code.to_be_bytes());
        bytes.push(self.signal.unwrap_or(0));
        bytes.push(if self.timed_out { TIMED_OUT } else { 0 });
        bytes.extend_from_slice(&(host.len() as u16).to_be_bytes());
        bytes.extend_from_slice(&nanoseconds(self.started).to_be_bytes());
        bytes.extend_from_slice(&nanoseconds(self.run_time).to_be_bytes());
        bytes.extend_from_slice(&stdout_bytes.to_be_bytes());
        bytes.extend_from_slice(host.as_bytes());
        bytes
    }

    /// Decodes a result; `None` if it is malformed.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (mut result, stdout) = Self::decode_head(bytes)?;
        result.stdout = bytes.get(stdout.clone())?.to_vec();
        result.stderr = bytes.get(stdout.end..)?.to_vec();
        Some(result)
    }

    /// Decodes the part before the outputs, from the first [`Self::HEAD_MAX`] bytes of a result (or all, if fewer). Returns the
    /// result without outputs, and the range of stdout in the encoded result, which stderr follows: large outputs can be read in
    /// pieces.
    #[must_use]
    pub fn decode_head(mut bytes: &[u8]) -> Option<(Self, Range<usize>)> {
        let bytes = &mut bytes;
        let code = i32::from_be_bytes(take_array(bytes)?);
        let [signal, flags] = take_array(bytes)?;
        let host_bytes = usize::from(u16::from_be_bytes(take_array(bytes)?));
        let started = Duration::from_nanos(u64::from_be_bytes(take_array(bytes)?));
        let run_time = Duration::from_nanos(u64::from_be_bytes(take_array(bytes)?));
        let stdout_bytes = u32::from_be_bytes(take_array(bytes)?) as usize;
        if host_bytes > HOST_MAX || flags & !TIMED_OUT != 0 {
            return None;
        }
        let host = named(std::str::from_utf8(bytes.get(..host_bytes)?).ok()?);
        let signal = Some(signal).filter(|&signal| signal != 0);
        let begin = FIXED_BYTES + host_bytes;
        let result =
            Self { code, signal, timed_out: flags & TIMED_OUT != 0, host, started, run_time, ..Self::default() };
        Some((result, begin..begin + stdout_bytes))
    }
}

const HOST_MAX: usize = 255;

/// One word, because host names appear in log lines and on terminals.
fn named(host: &str) -> String {
    let plain = host.chars().map(|c| if c.is_control() || c.is_whitespace() { '?' } else { c });
    let plain: String = plain.collect();
    plain[..plain.floor_char_boundary(HOST_MAX)].to_owned()
}

/// 64 bits hold 584 years.
fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The callers checked that the length fits 32 bits.
fn put(bytes: &mut Vec<u8>, field: &[u8]) {
    bytes.extend_from_slice(&(field.len() as u32).to_be_bytes());
    bytes.extend_from_slice(field);
}

fn take_array<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (array, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*array)
}

fn take_bytes<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = u32::from_be_bytes(take_array(bytes)?) as usize;
    let (field, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(field)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn request() -> ExecRequest {
        ExecRequest {
            command_line: b"echo $A; pwd".to_vec(),
            directory: Some(b"/tmp".to_vec()),
            environment: vec![(b"A".to_vec(), b"1 2".to_vec()), (b"EMPTY".to_vec(), Vec::new())],
            timeout: Some(Duration::from_millis(1500)),
        }
    }

    fn result() -> ExecResult {
        ExecResult {
            code: 137,
            signal: Some(9),
            timed_out: true,
            host: "worker-7".to_owned(),
            started: Duration::from_nanos(1_700_000_000_123_456_789),
            run_time: Duration::from_millis(20),
            stdout: b"out".to_vec(),
            stderr: b"err".to_vec(),
        }
    }

    #[test]
    fn a_request_is_decoded_as_it_was() {
        for request in [request(), ExecRequest::new("true"), ExecRequest::new("")] {
            assert_eq!(ExecRequest::decode(&request.encode().unwrap()), Ok(request));
        }
    }

    #[test]
    fn a_request_that_is_cut_or_continued_is_malformed() {
        let bytes = request().encode().unwrap();
        for length in 0..bytes.len() {
            assert_eq!(ExecRequest::decode(&bytes[..length]), Err(ExecRequestError::Malformed), "{length}");
        }
        assert_eq!(ExecRequest::decode(&[&bytes[..], b"x"].concat()), Err(ExecRequestError::Malformed));
    }

    #[test]
    fn what_linux_does_not_take_is_refused() {
        use ExecRequestError as E;
        let variable = |name: &[u8], value: Vec<u8>| ExecRequest {
            environment: vec![(name.to_vec(), value)],
            ..ExecRequest::new("true")
        };
        let many = |count, bytes| ExecRequest {
            environment: vec![(b"A".to_vec(), vec![b'a'; bytes]); count],
            ..ExecRequest::new("true")
        };
        let directory = |name: Vec<u8>| ExecRequest { directory: Some(name), ..ExecRequest::new("true") };
        let longest = ExecRequest::new(vec![b'a'; COMMAND_LINE_MAX]);
        assert!(longest.check().is_ok());
        for (request, error) in [
            (ExecRequest::new(vec![b'a'; 200 << 10]), E::CommandLineTooLong(200 << 10)),
            (ExecRequest::new("a\0b"), E::Nul("the command line")),
            (directory(vec![b'a'; 4096]), E::DirectoryTooLong(4096)),
            (directory(b"a\0".to_vec()), E::Nul("the directory's name")),
            (ExecRequest { timeout: Some(Duration::ZERO), ..ExecRequest::new("true") }, E::NoTime),
            (variable(b"", Vec::new()), E::VariableName(String::new())),
            (variable(b"A=", Vec::new()), E::VariableName("A=".to_owned())),
            (variable(b"A", b"\0".to_vec()), E::Nul("a variable")),
            (variable(b"A", vec![b'a'; COMMAND_LINE_MAX - 1]), E::VariableTooLong("A".to_owned())),
            (many(VARIABLES_MAX + 1, 1), E::TooManyVariables(VARIABLES_MAX + 1)),
            (many(16, 1 << 16), E::EnvironmentTooLong(16 * ((1 << 16) + 1))),
        ] {
            assert_eq!(request.encode(), Err(error));
        }
    }

    #[test]
    fn a_result_is_decoded_as_it_was() {
        for result in [result(), ExecResult::default()] {
            assert_eq!(ExecResult::decode(&result.encode()), Some(result));
        }
        let forged = ExecResult { host: "a\t0\n2\t\x1b[2J".to_owned(), ..ExecResult::default() };
        let mut bytes = forged.encode();
        let begin = bytes.len() - forged.host.len();
        bytes[begin..].copy_from_slice(forged.host.as_bytes());
        assert_eq!(ExecResult::decode(&bytes).unwrap().host, "a?0?2??[2J", "it would be a line of a joblog");
        let long = ExecResult { host: "ä".repeat(200), ..ExecResult::default() };
        assert_eq!(
            ExecResult::decode(&long.encode()).map(|result| result.host.len()),
            Some(254),
            "cut between characters"
        );
    }

    #[test]
    fn the_head_of_a_result_says_where_the_outputs_are() {
        let bytes = result().encode();
        let (head, stdout) = ExecResult::decode_head(&bytes[..36]).unwrap();
        assert_eq!(head, ExecResult { stdout: Vec::new(), stderr: Vec::new(), ..result() });
        assert_eq!((&bytes[stdout.clone()], &bytes[stdout.end..]), (&b"out"[..], &b"err"[..]));
    }

    proptest! {
        #[test]
        fn no_bytes_break_the_decoders(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = ExecRequest::decode(&bytes);
            let _ = ExecResult::decode(&bytes);
        }
    }
}
