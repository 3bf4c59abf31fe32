//! Command lines from arguments, by GNU parallel's replacement strings.

use super::JOBS_MAX;
use anyhow::Result;
use midflight_terminal::usage;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Template {
    /// If empty, the arguments are the command.
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(Vec<u8>),
    /// One argument, or all. A negative position counts from the end.
    Value(Option<isize>, Form),
    /// `{#}`: command number, from 1.
    Sequence,
    /// `{%}`: slot number, from 1.
    Slot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Whole,
    /// `{.}`
    NoExtension,
    /// `{/}`
    Base,
    /// `{//}`
    Directory,
    /// `{/.}`
    BaseNoExtension,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Values<'a> {
    pub arguments: &'a [Vec<u8>],
    pub sequence: u64,
    pub slot: u32,
}

impl Template {
    /// Without a place for an argument, all arguments follow it.
    pub(super) fn parse(words: &[OsString]) -> Result<Self> {
        let text = words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>().join(&b' ');
        let mut parts = Vec::new();
        let mut rest = &text[..];
        let mut plain = Vec::new();
        let find = |text: &[u8], wanted| text.iter().position(|&byte| byte == wanted);
        while let Some(at) = find(rest, b'{') {
            plain.extend_from_slice(&rest[..at]);
            rest = &rest[at..];
            let end = find(rest, b'}').unwrap_or(0);
            let inner = rest.get(1..end).and_then(|inner| std::str::from_utf8(inner).ok());
            let Some(part) = placeholder(inner.unwrap_or("no placeholder"))? else {
                plain.push(b'{');
                rest = &rest[1..];
                continue;
            };
            if !plain.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut plain)));
            }
            parts.push(part);
            rest = &rest[end + 1..];
        }
        plain.extend_from_slice(rest);
        if !plain.is_empty() {
            let is_last = parts.is_empty();
            plain.extend(is_last.then_some(b' '));
            parts.push(Part::Text(plain));
            if is_last {
                parts.push(Part::Value(None, Form::Whole));
            }
        }
        Ok(Self { parts })
    }

    /// Whether it uses slot numbers.
    pub(super) fn has_slot(&self) -> bool {
        self.parts.contains(&Part::Slot)
    }

    /// The command for each slot; empty without a slot number.
    pub(super) fn in_each_slot(&self, values: Values<'_>) -> impl Iterator<Item = Vec<u8>> {
        let slots = if self.has_slot() { JOBS_MAX } else { 0 };
        (1..=slots).filter_map(move |slot| self.expand(Values { slot, ..values }).ok())
    }

    /// Fails if a position exceeds the `width` arguments per command.
    pub(super) fn check(&self, width: usize) -> Result<()> {
        let places = self.parts.iter().filter_map(|part| if let Part::Value(place, _) = part { *place } else { None });
        match places.into_iter().find(|&place| index(place, width).is_none()) {
            Some(place) => Err(usage::error(missing(place, width))),
            None => Ok(()),
        }
    }

    /// An error names the position without an argument.
    pub(super) fn expand(&self, values: Values<'_>) -> Result<Vec<u8>, String> {
        let arguments = values.arguments;
        if self.parts.is_empty() {
            return Ok(arguments.join(&b' '));
        }
        let mut text = Vec::new();
        for part in &self.parts {
            match part {
                Part::Text(plain) => text.extend_from_slice(plain),
                Part::Value(None, form) => {
                    for (at, argument) in arguments.iter().enumerate() {
                        if at > 0 {
                            text.push(b' ');
                        }
                        quote(form.of(argument), &mut text);
                    }
                }
                Part::Value(Some(place), form) => {
                    let at = index(*place, arguments.len()).ok_or_else(|| short(*place, arguments.len()))?;
                    quote(form.of(&arguments[at]), &mut text);
                }
                Part::Sequence => text.extend_from_slice(values.sequence.to_string().as_bytes()),
                Part::Slot => text.extend_from_slice(values.slot.to_string().as_bytes()),
            }
        }
        Ok(text)
    }
}

fn missing(place: isize, width: usize) -> String {
    let arguments = if width == 1 { "argument" } else { "arguments" };
    format!("there is no argument for {{{place}}}: a command has {width} {arguments}; see --colsep and :::")
}

/// Only columns can differ between commands.
fn short(place: isize, width: usize) -> String {
    let columns = if width == 1 { "column" } else { "columns" };
    format!("there is no column for {{{place}}}: it has {width} {columns}")
}

/// From 1, or from -1 backwards.
fn index(place: isize, width: usize) -> Option<usize> {
    let at = if place > 0 { place.unsigned_abs() - 1 } else { width.checked_sub(place.unsigned_abs())? };
    (at < width).then_some(at)
}

/// Parses the text between braces. Other text, such as `{print}`, is the shell's. An invalid replacement string is an error.
fn placeholder(inner: &str) -> Result<Option<Part>> {
    let part = match inner {
        "#" => return Ok(Some(Part::Sequence)),
        "%" => return Ok(Some(Part::Slot)),
        other => other,
    };
    let digits = part.len() - part.trim_start_matches('-').trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (place, form) = part.split_at(digits);
    let form = match form {
        "" => Some(Form::Whole),
        "." => Some(Form::NoExtension),
        "/" => Some(Form::Base),
        "//" => Some(Form::Directory),
        "/." => Some(Form::BaseNoExtension),
        _ => None,
    };
    let place = if place.is_empty() { Some(None) } else { place.parse().ok().filter(|&place| place != 0).map(Some) };
    if let (Some(place), Some(form)) = (place, form) {
        return Ok(Some(Part::Value(place, form)));
    }
    let looks_like_one = inner.chars().all(|c| c.is_ascii_digit() || "./#%+".contains(c))
        && !inner.ends_with(|c: char| c.is_ascii_digit() && inner.contains(".."));
    if looks_like_one {
        let known = "{} {.} {/} {//} {/.} {#} {%}, and {1} {1.} {1/} {1//} {1/.}, {-1} from the end";
        return Err(usage::error(format!("{{{inner}}} is no replacement string; there are {known}")));
    }
    Ok(None)
}

impl Form {
    fn of(self, argument: &[u8]) -> &[u8] {
        match self {
            Self::Whole => argument,
            Self::NoExtension => without_extension(argument),
            Self::Base => base(argument),
            Self::Directory => directory(argument),
            Self::BaseNoExtension => without_extension(base(argument)),
        }
    }
}

fn without_extension(path: &[u8]) -> &[u8] {
    match path.iter().rposition(|&byte| byte == b'.' || byte == b'/') {
        Some(at) if path[at] == b'.' && at + 1 < path.len() => &path[..at],
        _ => path,
    }
}

fn base(path: &[u8]) -> &[u8] {
    path.iter().rposition(|&byte| byte == b'/').map_or(path, |at| &path[at + 1..])
}

/// As dirname(1).
fn directory(path: &[u8]) -> &[u8] {
    let trim = |path: &'_ [u8]| path.iter().rposition(|&byte| byte != b'/').map_or(0, |last| last + 1);
    let name = &path[..trim(path)];
    if name.is_empty() {
        return if path.is_empty() { b"." } else { b"/" };
    }
    match name.iter().rposition(|&byte| byte == b'/') {
        None => b".",
        Some(at) => {
            let above = &name[..trim(&name[..at])];
            if above.is_empty() { b"/" } else { above }
        }
    }
}

/// Quotes with single quotes; a single quote itself becomes `'\''`.
fn quote(text: &[u8], quoted: &mut Vec<u8>) {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./:,+=@%".contains(byte);
    if !text.is_empty() && text.iter().all(plain) {
        quoted.extend_from_slice(text);
        return;
    }
    quoted.push(b'\'');
    for &byte in text {
        match byte {
            b'\'' => quoted.extend_from_slice(b"'\\''"),
            _ => quoted.push(byte),
        }
    }
    quoted.push(b'\'');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(text: &str) -> Template {
        Template::parse(&[text.into()]).unwrap()
    }

    fn expand(text: &str, arguments: &[&str]) -> String {
        let arguments: Vec<_> = arguments.iter().map(|argument| argument.as_bytes().to_vec()).collect();
        let template = if text.is_empty() { Template::parse(&[]).unwrap() } else { template(text) };
        let values = Values { arguments: &arguments, sequence: 7, slot: 2 };
        template.expand(values).map_or_else(|error| error, |text| String::from_utf8(text).unwrap())
    }

    #[test]
    fn each_form_of_a_path() {
        let forms = "{} {.} {/} {//} {/.}";
        assert_eq!(expand(forms, &["a/b.c/d.tar.gz"]), "a/b.c/d.tar.gz a/b.c/d.tar d.tar.gz a/b.c d.tar");
        assert_eq!(expand(forms, &["a.d/b"]), "a.d/b a.d/b b a.d b");
        assert_eq!(expand(forms, &["b"]), "b b b . b");
        assert_eq!(expand("{//}", &["/b"]), "/");
        assert_eq!(expand("{//}", &["a//b/"]), "a");
        assert_eq!(expand("{#} of {%}", &["b"]), "7 of 2", "no argument is put behind");
    }

    #[test]
    fn arguments_by_their_places() {
        assert_eq!(expand("{2} {1} {-1} {2/.}", &["a", "x/b.c"]), "x/b.c a x/b.c b");
        assert_eq!(expand("{}", &["a", "b c"]), "a 'b c'");
        assert!(expand("{3}", &["a", "b"]).contains("no column for {3}: it has 2 columns"));
        assert!(template("{2}").check(1).is_err() && template("{2} {-2}").check(2).is_ok());
    }

    #[test]
    fn the_shells_braces_stay_and_what_looks_like_ours_is_refused() {
        let shell = "awk '{print $1}' {a,b} ${HOME} {1..3} {";
        assert_eq!(expand(&format!("{shell} {{}}"), &["x"]), format!("{shell} x"));
        for text in ["{..}", "{0}", "{1+}", "{//.}", "{##}"] {
            let error = Template::parse(&[text.into()]).unwrap_err();
            assert!(
                error.is::<usage::UsageError>() && error.to_string().contains("there are {} {.}"),
                "{text}: {error}"
            );
        }
    }
}
