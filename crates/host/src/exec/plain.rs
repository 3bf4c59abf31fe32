//! Command lines for which a shell would only find the program and execute it. They are executed without one, which halves what a
//! short command costs. Whenever in doubt, the shell gets the line.

use midflight_tasks::functions::ExecRequest;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Words that shells execute themselves, or read as syntax: of POSIX, dash, bash and BusyBox.
const OF_SHELLS: &str = "\
    . : [ alias bg bind break builtin caller case cd chdir command compgen complete compopt continue coproc \
    declare dirs disown do done echo elif else enable esac eval exec exit export false fc fg fi for function \
    getopts hash help history if in jobs kill let local logout mapfile popd printf pushd pwd read readarray \
    readonly return select set shift shopt source suspend test then time times trap true type typeset ulimit umask \
    unalias unset until wait while";

/// What a shell would set `PWD` to, here in this process; `None` if it would leave it as it is.
static WORKING_DIRECTORY: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    let inherited = std::env::var_os("PWD").map(PathBuf::from);
    let place = |path: &Path| path.metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()));
    let is_right = inherited.is_some_and(|path| path.is_absolute() && place(&path) == place(Path::new(".")));
    if is_right { None } else { std::env::current_dir().ok() }
});

/// Whether this process's environment changes what a shell would execute: functions that bash exports, a `PATH` with dash's
/// `%func`.
static NEEDS_SHELL: LazyLock<bool> = LazyLock::new(|| {
    let changes = |name: &OsStr, value: &OsStr| {
        name.as_bytes().starts_with(b"BASH_FUNC_") || (name == "PATH" && value.as_bytes().contains(&b'%'))
    };
    std::env::vars_os().any(|(name, value)| changes(&name, &value)) || std::env::var_os("PATH").is_none()
});

/// A program, its arguments, and what `PWD` is to be.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plain<'a> {
    pub(super) words: Vec<&'a OsStr>,
    pub(super) working_directory: Option<OsString>,
}

/// What a request executes, if no shell is needed for it.
pub(super) fn plain(request: &ExecRequest) -> Option<Plain<'_>> {
    let words = words(&request.command_line)?;
    let says = |variable: &[u8]| request.environment.iter().any(|(name, _)| name == variable);
    let functions = request.environment.iter().any(|(name, _)| name.starts_with(b"BASH_FUNC_"));
    if *NEEDS_SHELL || functions || says(b"PATH") || says(b"PWD") {
        return None;
    }
    let working_directory = match &request.directory {
        // A shell writes it without symbolic links. Where that fails, starting fails too, and says why.
        Some(directory) => Some(std::fs::canonicalize(OsStr::from_bytes(directory)).ok()?),
        None => WORKING_DIRECTORY.clone(),
    };
    Some(Plain { words, working_directory: working_directory.map(PathBuf::into_os_string) })
}

/// The words of a line that has nothing in it but words, blanks between them, and a program in front.
fn words(line: &[u8]) -> Option<Vec<&OsStr>> {
    if !line.iter().all(|&byte| is_ordinary(byte) || is_blank(byte)) {
        return None;
    }
    let words: Vec<_> =
        line.split(|&byte| is_blank(byte)).filter(|word| !word.is_empty()).map(OsStr::from_bytes).collect();
    let program = words.first()?.as_bytes();
    let is_of_shells = || OF_SHELLS.split(' ').any(|word| word.as_bytes() == program);
    // A word with `=` in front is an assignment.
    (!program.contains(&b'=') && !is_of_shells()).then_some(words)
}

/// Bytes that no shell gives a meaning, in whatever place.
fn is_ordinary(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-./,:+@%=".contains(&byte)
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &str) -> Option<Vec<&str>> {
        words(line.as_bytes()).map(|words| words.into_iter().map(|word| word.to_str().unwrap()).collect())
    }

    #[test]
    fn plain_lines_are_split_at_blanks() {
        assert_eq!(split("gzip -9 a.txt").unwrap(), ["gzip", "-9", "a.txt"]);
        assert_eq!(split(" \t./x.sh  --of=a,b:c \t 50%\t").unwrap(), ["./x.sh", "--of=a,b:c", "50%"]);
    }

    #[test]
    fn what_has_a_meaning_for_a_shell_is_for_the_shell() {
        for byte in 0..=u8::MAX {
            let line = [b"gzip a".as_slice(), &[byte], b"b"].concat();
            let ordinary = byte.is_ascii_alphanumeric() || b"_-./,:+@%= \t".contains(&byte);
            assert_eq!(words(&line).is_some(), ordinary, "{byte:#x}");
        }
        for line in ["", "  ", "A=1", "A=1 gzip a", "echo a", "cd /tmp", ". ./x", "[ a = b ]", "time gzip a"] {
            assert_eq!(split(line), None, "{line}");
        }
    }

    #[test]
    fn variables_that_a_shell_would_heed_need_one() {
        let request = |name: &str| ExecRequest {
            environment: vec![(name.as_bytes().to_vec(), b"x".to_vec())],
            ..ExecRequest::new("gzip a")
        };
        assert!(plain(&request("COLOUR")).is_some());
        for name in ["PATH", "PWD", "BASH_FUNC_gzip%%"] {
            assert_eq!(plain(&request(name)), None, "{name}");
        }
    }
}
