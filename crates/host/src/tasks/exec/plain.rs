//! Command lines that need no shell and run without one, at half the cost. In doubt, the shell gets the line.

use midflight_tasks::functions::ExecRequest;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Builtins and reserved words of POSIX, dash, bash and BusyBox.
const OF_SHELLS: &str = "\
    . : [ alias bg bind break builtin caller case cd chdir command compgen complete compopt continue coproc \
    declare dirs disown do done echo elif else enable esac eval exec exit export false fc fg fi for function \
    getopts hash help history if in jobs kill let local logout mapfile popd printf pushd pwd read readarray \
    readonly return select set shift shopt source suspend test then time times trap true type typeset ulimit umask \
    unalias unset until wait while";

/// Whether a shell would change or interpret this process's environment, such as a `PATH` with dash's `%func`, or none.
static NEEDS_SHELL: LazyLock<bool> = LazyLock::new(|| {
    let path = std::env::var_os("PATH");
    let heeds_path = path.is_none_or(|path| path.as_bytes().contains(&b'%'));
    heeds_path || std::env::vars_os().any(|(name, _)| is_of_shells(name.as_bytes()))
});

/// Whether a shell would set the variable, or drop it for an invalid name such as that of a bash function.
fn is_of_shells(variable: &[u8]) -> bool {
    let is_name = variable.iter().all(|&byte| byte.is_ascii_alphanumeric() || byte == b'_');
    !is_name || variable.first().is_none_or(u8::is_ascii_digit) || variable == b"PPID"
}

/// The `PWD` that a shell would set in a directory; `None` if the inherited one is right.
fn working_directory(directory: &Path) -> std::io::Result<Option<OsString>> {
    let place = |path: &Path| path.metadata().map(|metadata| (metadata.dev(), metadata.ino()));
    let here = place(directory)?;
    let inherited = std::env::var_os("PWD").map(PathBuf::from);
    let is_right = inherited.is_some_and(|path| path.is_absolute() && place(&path).is_ok_and(|there| there == here));
    if is_right { Ok(None) } else { directory.canonicalize().map(|path| Some(path.into_os_string())) }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plain<'a> {
    pub(super) words: Vec<&'a OsStr>,
    pub(super) working_directory: Option<OsString>,
}

pub(super) fn plain(request: &ExecRequest) -> Option<Plain<'_>> {
    let words = words(&request.command_line)?;
    let needs_shell = |name: &[u8]| is_of_shells(name) || name == b"PATH" || name == b"PWD";
    if *NEEDS_SHELL || request.environment.iter().any(|(name, _)| needs_shell(name)) {
        return None;
    }
    let directory = request.directory.as_ref().map_or(Path::new("."), |path| Path::new(OsStr::from_bytes(path)));
    // If the directory does not exist, the start fails too and says why.
    Some(Plain { words, working_directory: working_directory(directory).ok()? })
}

/// The words of a line that consists of ordinary words and blanks.
fn words(line: &[u8]) -> Option<Vec<&OsStr>> {
    if !line.iter().all(|&byte| is_ordinary(byte) || is_blank(byte)) {
        return None;
    }
    let words: Vec<_> =
        line.split(|&byte| is_blank(byte)).filter(|word| !word.is_empty()).map(OsStr::from_bytes).collect();
    let program = words.first()?.as_bytes();
    let is_builtin = || OF_SHELLS.split(' ').any(|word| word.as_bytes() == program);
    // `NAME=` would be an assignment, `%` a job.
    (!program.contains(&b'=') && !program.starts_with(b"%") && !is_builtin()).then_some(words)
}

/// Bytes without a meaning for shells, except `=` and `%` in the first word.
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
        for line in
            ["", "  ", "A=1", "A=1 gzip a", "%", "%1 a", "echo a", "cd /tmp", ". ./x", "[ a = b ]", "time gzip a"]
        {
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
        for name in ["PATH", "PWD", "BASH_FUNC_gzip%%", "A.B", "1A", "", "PPID"] {
            assert_eq!(plain(&request(name)), None, "{name}");
        }
    }
}
