//! Each format is described in this crate, in C headers and in the docs. These tests compare the three.

use crate::formats::{Format, Layouts, Numbers, formats, with_header};
use midflight_wire::{Field, Header};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

fn header(format: &Format) -> String {
    format.headers.iter().map(|header| read(&format!("dataplane/include/midflight/{header}"))).collect()
}

/// Output of the compiled headers for the names that Rust has.
fn c_output(format: &Format, flags: &[&str]) -> String {
    let mut program = String::from("#include <stddef.h>\n#include <stdio.h>\n");
    for header in format.headers.iter().chain([&format.verdict_header]) {
        writeln!(program, "#include \"midflight/{header}\"").unwrap();
    }
    program.push_str("int main(void) {\n");
    for (structure, (_, fields)) in &format.layouts {
        writeln!(program, "printf(\"struct {structure} %zu\\n\", sizeof(struct {structure}));").unwrap();
        for (field, ..) in fields {
            writeln!(
                program,
                "printf(\"field {structure} {field} %zu %zu\\n\", offsetof(struct {structure}, {field}), \
                 sizeof(((struct {structure} *)0)->{field}));"
            )
            .unwrap();
        }
    }
    for name in format.numbers.keys() {
        writeln!(program, "printf(\"number {name} %llu\\n\", (unsigned long long){name});").unwrap();
    }
    program.push_str("#define X(name, class, text) printf(\"verdict %s %s %s\\n\", #name, #class, text);\n");
    writeln!(program, "{}\nreturn 0; }}", format.verdict_lists).unwrap();

    let directory = format!("agreement-{}-{}-{}", std::process::id(), format.name, flags.concat());
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(directory);
    std::fs::create_dir_all(&directory).unwrap();
    let (source, binary) = (directory.join("layout.c"), directory.join("layout"));
    std::fs::write(&source, program).unwrap();
    let compiled = Command::new(std::env::var_os("CC").unwrap_or("cc".into()))
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror"])
        .args(flags)
        .arg("-I")
        .arg(root().join("dataplane/include"))
        .arg(&source)
        .arg("-o")
        .arg(&binary)
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let output = Command::new(&binary).output().unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    String::from_utf8(output.stdout).unwrap()
}

pub(crate) struct C {
    layouts: Layouts,
    numbers: Numbers,
    verdicts: Vec<Verdict>,
}

/// A row of the lists in `verdict.h` and a program's header.
struct Verdict {
    name: String,
    class: String,
    text: String,
}

pub(crate) fn compile(format: &Format, flags: &[&str]) -> C {
    let mut c = C { layouts: Layouts::new(), numbers: Numbers::new(), verdicts: Vec::new() };
    for line in c_output(format, flags).lines() {
        match line.split(' ').collect::<Vec<_>>().as_slice() {
            ["struct", structure, size] => {
                c.layouts.insert((*structure).to_owned(), (size.parse().unwrap(), Vec::new()));
            }
            ["field", structure, field, offset, size] => {
                let fields = &mut c.layouts.get_mut(*structure).unwrap().1;
                fields.push(((*field).to_owned(), offset.parse().unwrap(), size.parse().unwrap()));
            }
            ["number", name, value] => {
                c.numbers.insert((*name).to_owned(), value.parse().unwrap());
            }
            ["verdict", name, class, text @ ..] => {
                let [name, class] = [name, class].map(|&word| word.to_owned());
                c.verdicts.push(Verdict { name, class, text: text.join(" ") });
            }
            other => panic!("{other:?}"),
        }
    }
    c
}

/// Cells of the first table after the line that starts with `after`.
pub(crate) fn table_after(page: &str, after: &str) -> Vec<Vec<String>> {
    let lines = page.lines().skip_while(|line| !line.starts_with(after));
    let rows: Vec<Vec<String>> = lines
        .skip_while(|line| !line.starts_with('|'))
        .take_while(|line| line.starts_with('|'))
        .skip(2) // heading and rule
        .map(|line| line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect())
        .collect();
    assert!(!rows.is_empty(), "no table behind {after:?}");
    rows
}

/// The page of streams has a table for each structure whose name begins with `prefix`.
pub(crate) fn assert_page_has(prefix: &str, structures: &[(&str, usize, Vec<Field>)]) {
    let page = read("docs/cache-wire.md");
    let documented = page.lines().filter(|line| line.starts_with(&format!("**`{prefix}"))).count();
    assert_eq!(documented, structures.len());
    for (name, size, fields) in structures {
        let rows = table_after(&page, &format!("**`{name}`**, {size} bytes"));
        let rows: Vec<_> = rows.iter().map(|row| (row[0].clone(), row[1].clone(), row[2].clone())).collect();
        let ours = fields.iter().map(|f| (f.offset.to_string(), f.size.to_string(), format!("`{}`", f.name)));
        assert_eq!(rows, ours.collect::<Vec<_>>(), "{name}");
    }
}

/// A stream may deliver a message in pieces, and the next one with it. `length` is that of what was read.
pub(crate) fn assert_read_as_a_whole(name: &str, message: &[u8], length: impl Fn(&[u8]) -> Option<usize>) {
    for part in 0..message.len() {
        assert_eq!(length(&message[..part]), None, "{name}: {part} bytes");
    }
    assert_eq!(length(&[message, b"the next one"].concat()), Some(message.len()), "{name}");
}

fn docs_layouts(page: &str) -> Layouts {
    let mut layouts = Layouts::new();
    for line in page.lines().filter(|line| line.starts_with("`mf_")) {
        let (structure, rest) = line[1..].split_once("`, ").unwrap();
        let size = rest.split(' ').next().unwrap().parse().unwrap();
        let fields = table_after(page, line)
            .into_iter()
            .map(|row| {
                let [offset, size, field, meaning] = row.as_slice() else { panic!("{structure}: {row:?}") };
                assert!(!meaning.is_empty(), "{structure}.{field} has no meaning");
                (field.trim_matches('`').to_owned(), offset.parse().unwrap(), size.parse().unwrap())
            })
            .collect();
        layouts.insert(structure.to_owned(), (size, fields));
    }
    layouts
}

/// `[SUBMIT](#submit)` → `SUBMIT`.
pub(crate) fn link_text(cell: &str) -> &str {
    cell.trim_start_matches('[').split(']').next().unwrap()
}

fn docs_numbers(format: &Format) -> Numbers {
    let (page, mut numbers) = (read(format.page), Numbers::new());
    for row in table_after(&page, "## Constants") {
        numbers.insert(row[0].trim_matches('`').to_owned(), row[1].parse().unwrap());
    }
    for (heading, prefix) in format.codes {
        for row in table_after(&page, heading) {
            numbers.insert(format!("MF_{prefix}_{}", link_text(&row[1])), row[0].parse().unwrap());
        }
    }
    numbers
}

#[test]
fn rust_and_c_agree_on_every_field() {
    for format in formats() {
        assert_eq!(format.layouts, format.c().layouts);
    }
}

/// The kernel build aligns integers naturally; the other packs structures. Switches never read COMPLETE, whose records follow
/// each other at multiples of four bytes.
#[test]
fn both_builds_of_the_core_agree_on_every_field() {
    for format in formats() {
        let mut of_kernel = compile(format, &["-D__bpf__", "-Wno-unused-variable"]).layouts;
        if let Some(completion) = format.layouts.get("mf_completion") {
            of_kernel.insert("mf_completion".into(), completion.clone());
        }
        assert_eq!(of_kernel, format.c().layouts);
    }
}

#[test]
fn docs_agree_on_every_field() {
    for format in formats() {
        assert_eq!(docs_layouts(&read(format.page)), format.layouts);
    }
}

#[test]
fn rust_and_c_agree_on_every_number() {
    for format in formats() {
        assert_eq!(format.numbers, format.c().numbers);
    }
}

#[test]
fn docs_agree_on_every_number() {
    for format in formats() {
        assert_eq!(docs_numbers(format), format.numbers);
    }
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

#[test]
fn rust_has_every_structure_of_c() {
    for format in formats() {
        let header = header(format);
        let mut structures: Vec<&str> = header
            .lines()
            .filter(|line| line.starts_with("struct ") && line.ends_with('{'))
            .map(|line| words(line).into_iter().rev().nth(1).unwrap())
            .collect();
        structures.sort_unstable();
        assert!(format.layouts.keys().eq(&structures), "{structures:?}");
    }
}

#[test]
fn rust_has_every_constant_and_code_of_c() {
    for format in formats() {
        let header = header(format);
        for line in header.lines().filter(|line| line.starts_with("#define MF_") && !line.contains('(')) {
            let words = words(line);
            let is_number = words.get(2).is_some_and(|value| value.starts_with(|c: char| c.is_ascii_digit()));
            assert!(!is_number || format.numbers.contains_key(words[1]), "Rust lacks {}", words[1]);
        }
        for word in header.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')) {
            let is_of = |prefix: &str| {
                let rest = word.strip_prefix("MF_").and_then(|word| word.strip_prefix(prefix));
                rest.is_some_and(|rest| rest.starts_with('_') && rest.len() > 1 && rest != "_END")
            };
            let is_code = format.codes.iter().any(|(_, prefix)| is_of(prefix));
            assert!(!is_code || format.numbers.contains_key(word), "Rust lacks {word}");
        }
        let operations = header.lines().filter(|line| line.trim_start().starts_with("X(")).count();
        assert_eq!(operations, format.operations);
    }
}

#[test]
fn every_byte_has_a_name_and_every_integer_is_aligned() {
    for (structure, (size, fields)) in with_header().flat_map(|(format, _)| &format.layouts) {
        let mut end = 0;
        for &(ref field, offset, size) in fields {
            assert_eq!(offset, end, "{structure}.{field} does not follow on the field before");
            let alignment = if matches!(size, 2 | 4 | 8) { size } else { 1 };
            assert_eq!(offset % alignment, 0, "{structure}.{field} is not aligned");
            end = offset + size;
        }
        assert_eq!(end, *size, "{structure} has bytes without a name");
        assert_eq!(size % 4, 0, "{structure}: records keep the alignment of 32 bits");
    }
}

/// Requests and replies share a structure, whose comment does not name the parties.
#[test]
fn docs_and_header_agree_on_who_sends_what() {
    for (format, _) in with_header() {
        let header = header(format);
        for row in table_after(&read(format.page), "## Operations") {
            let [_, operation, from_to, ..] = row.as_slice() else { panic!("{row:?}") };
            let structure = format!("struct MF_WIRE mf_{} {{", link_text(operation).to_lowercase());
            let Some((before, _)) = header.split_once(&structure).filter(|_| !operation.contains("#request")) else {
                assert!(operation.contains("#request"), "no {structure}");
                continue;
            };
            let comment = &before[before.rfind("/*").unwrap()..];
            let in_c = comment.trim_start_matches("/* ").replace("->", "→");
            assert!(in_c.starts_with(from_to.as_str()), "{operation}: {from_to} in docs, {in_c:?} in C");
        }
    }
}

/// Compares the parser's bounds of `count` with the table. VERSION has no count.
#[test]
fn docs_and_parser_agree_on_what_a_packet_counts() {
    for (format, has_bad_count) in with_header() {
        for row in table_after(&read(format.page), "## Operations") {
            let operation: u8 = row[0].parse().unwrap();
            if operation == midflight_wire::VERSION_OPERATION {
                assert_eq!((link_text(&row[1]), row[3].as_str()), ("VERSION", "—"));
                continue;
            }
            let (low, high) = row[3].split_once('–').unwrap_or((&row[3], &row[3]));
            let documented: Vec<u8> = (low.parse().unwrap()..=high.parse().unwrap()).collect();
            let mut packet = Header::new(operation, 0, 0);
            let taken: Vec<u8> = (0..=255)
                .filter(|count| {
                    packet.count = *count;
                    !has_bad_count(zerocopy::IntoBytes::as_bytes(&packet))
                })
                .collect();
            assert_eq!(taken, documented, "{}", row[1]);
        }
    }
}

#[test]
fn docs_agree_on_every_verdict() {
    for format in formats() {
        let documented = table_after(&read(format.page), "## Verdicts");
        let documented = documented.iter().map(|row| (row[0].as_str(), row[1].as_str(), row[2].as_str()));
        let of_c = format.c().verdicts.iter().map(|verdict| {
            let of = match verdict.class.as_str() {
                "TAKEN" => "—",
                "REFUSED" => "all",
                _ => "one",
            };
            (verdict.name.as_str(), of, verdict.text.as_str())
        });
        assert_eq!(documented.collect::<Vec<_>>(), of_c.collect::<Vec<_>>());
    }
}

#[test]
fn troubleshooting_has_every_verdict() {
    let page = read("docs/troubleshooting.md");
    for format in formats() {
        let explained: Vec<String> = table_after(&page, format.troubleshooting)
            .iter()
            .map(|row| row[0].trim_matches('`').to_uppercase())
            .collect();
        let verdicts: Vec<String> = format.c().verdicts.iter().map(|verdict| verdict.name.clone()).collect();
        assert_eq!(explained, verdicts);
    }
}

#[test]
fn rejects_are_named_as_verdicts() {
    for format in formats() {
        let verdicts: Vec<String> = format.c().verdicts.iter().map(|verdict| verdict.name.to_lowercase()).collect();
        for reject in &format.rejects {
            assert!(verdicts.contains(reject), "{reject}");
        }
    }
}
