//! From the input's lines to command lines.

use anyhow::{Context, Result, ensure};
use midflight_terminal::usage;
use std::io::{IsTerminal, Read};
use std::path::Path;
use std::time::Duration;

/// A command with its line in the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CommandLine {
    /// From 1.
    pub number: usize,
    /// What `/bin/sh -c` gets.
    pub text: Vec<u8>,
}

/// Reads all input: a file, or stdin for `None` and "-".
pub(super) fn read(file: Option<&Path>) -> Result<Vec<u8>> {
    let mut input = Vec::new();
    match file.filter(|file| *file != Path::new("-")) {
        Some(file) => {
            input = std::fs::read(file).map_err(|error| {
                usage::error(format!("cannot read {}: {error}; give a file of lines, or - for stdin", file.display()))
            })?;
        }
        None => {
            if std::io::stdin().is_terminal() {
                eprintln!("midflight: reading lines from the terminal; Ctrl-D ends them");
            }
            std::io::stdin().lock().read_to_end(&mut input).context("cannot read the standard input")?;
        }
    }
    Ok(input)
}

/// One command for each line that is not empty: the line itself, or the template with the line in the place of `{}`
/// (or behind it), quoted for the shell.
pub(super) fn commands(input: &[u8], template: &[String]) -> Result<Vec<CommandLine>> {
    let template = template.join(" ");
    let lines = (1..).zip(input.split(|&byte| byte == b'\n'));
    let lines = lines.map(|(number, line)| (number, line.strip_suffix(b"\r").unwrap_or(line)));
    lines.filter(|(_, line)| !line.is_empty()).map(|(number, line)| command(number, line, &template)).collect()
}

fn command(number: usize, line: &[u8], template: &str) -> Result<CommandLine> {
    let nul = line.contains(&0);
    ensure!(!nul, usage::error(format!("input line {number} holds a NUL byte: command lines cannot")));
    if template.is_empty() {
        return Ok(CommandLine { number, text: line.to_vec() });
    }
    let line = quote(line);
    let mut parts = template.split("{}");
    let mut text = parts.next().unwrap_or_default().as_bytes().to_vec();
    let mut places = 0;
    for part in parts {
        text.extend_from_slice(&line);
        text.extend_from_slice(part.as_bytes());
        places += 1;
    }
    if places == 0 {
        text.push(b' ');
        text.extend_from_slice(&line);
    }
    Ok(CommandLine { number, text })
}

/// The same command under timeout(1), which ends it and all it started; it exits with 124 then.
pub(super) fn within(command: &[u8], timeout: Duration) -> Vec<u8> {
    let mut text = format!("exec timeout -k 1 {} /bin/sh -c ", timeout.as_secs_f64()).into_bytes();
    text.extend_from_slice(&quote(command));
    text
}

/// In single quotes; a single quote itself as `'\''`.
fn quote(text: &[u8]) -> Vec<u8> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./:,+=@%".contains(byte);
    if !text.is_empty() && text.iter().all(plain) {
        return text.to_vec();
    }
    let mut quoted = vec![b'\''];
    for &byte in text {
        match byte {
            b'\'' => quoted.extend_from_slice(b"'\\''"),
            _ => quoted.push(byte),
        }
    }
    quoted.push(b'\'');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(input: &str, template: &[&str]) -> Vec<String> {
        let template: Vec<_> = template.iter().map(ToString::to_string).collect();
        let commands = commands(input.as_bytes(), &template).unwrap();
        commands.into_iter().map(|c| format!("{}:{}", c.number, String::from_utf8(c.text).unwrap())).collect()
    }

    #[test]
    fn lines_are_commands_and_keep_their_numbers() {
        assert_eq!(texts("echo a\n\necho b | wc\r\n", &[]), ["1:echo a", "3:echo b | wc"]);
    }

    #[test]
    fn a_template_takes_the_line_at_each_place_or_behind_it() {
        assert_eq!(texts("a\nb c\n", &["cp", "{}", "{}.bak"]), ["1:cp a a.bak", "2:cp 'b c' 'b c'.bak"]);
        assert_eq!(texts("it's\n", &["echo"]), ["1:echo 'it'\\''s'"]);
    }

    #[test]
    fn a_nul_byte_is_refused_with_its_line() {
        let error = commands(b"true\nec\0ho\n", &[]).unwrap_err().to_string();
        assert!(error.contains("line 2"), "{error}");
    }

    #[test]
    fn a_timeout_wraps_the_whole_command() {
        let text = within(b"sleep 5 | cat", Duration::from_millis(1500));
        assert_eq!(String::from_utf8(text).unwrap(), "exec timeout -k 1 1.5 /bin/sh -c 'sleep 5 | cat'");
    }
}
