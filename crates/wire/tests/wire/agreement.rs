//! The format stands in three places: this crate, `wire.h` with `tasks_wire.h`, and `docs/wire.md`. They say the same.

use midflight_wire::*;
use std::collections::BTreeMap;
use std::fmt::{Debug, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// Structure → its size and its fields' (name, offset, size), in order.
type Layouts = BTreeMap<String, (usize, Vec<(String, usize, usize)>)>;
/// Name → number, of constants and codes.
type Numbers = BTreeMap<String, u64>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

fn header() -> String {
    read("dataplane/include/midflight/wire.h") + &read("dataplane/include/midflight/tasks_wire.h")
}

/// `SubmitAck` → `submit_ack`.
fn snake(name: &str) -> String {
    let mut snake = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(c.to_lowercase());
    }
    snake
}

fn rust_layouts() -> Layouts {
    structures()
        .into_iter()
        .map(|(name, size, fields)| {
            let fields = fields.into_iter().map(|f| (f.name.to_owned(), f.offset, f.size)).collect();
            (format!("mf_{}", snake(name)), (size, fields))
        })
        .collect()
}

fn rust_numbers() -> Numbers {
    fn codes<T: Debug + Copy>(prefix: &str, all: &[T], number: impl Fn(T) -> u8) -> Vec<(String, u64)> {
        all.iter()
            .map(|code| {
                (format!("MF_{prefix}_{}", snake(&format!("{code:?}")).to_uppercase()), u64::from(number(*code)))
            })
            .collect()
    }
    let constants = [
        ("MF_MAGIC", u64::from(MAGIC)),
        ("MF_VERSION", u64::from(VERSION)),
        ("MF_PACKET_MAX", PACKET_MAX as u64),
        ("MF_SUBMIT_MAX", SUBMIT_MAX as u64),
        ("MF_SLOTS_MAX", SLOTS_MAX as u64),
        ("MF_REGISTER_MAX", REGISTER_MAX as u64),
        ("MF_CANCEL_MAX", CANCEL_MAX as u64),
        ("MF_PROBE_MAX", PROBE_MAX as u64),
        ("MF_COMPLETE_MAX", COMPLETE_MAX as u64),
        ("MF_ARGUMENT_MAX", ARGUMENT_MAX as u64),
        ("MF_RESULT_MAX", RESULT_MAX as u64),
        ("MF_WINDOW", u64::from(WINDOW)),
        ("MF_LEVELS", u64::from(LEVELS)),
        ("MF_BY_REFERENCE", u64::from(BY_REFERENCE)),
        ("MF_BLOB_MAX", u64::from(BLOB_MAX)),
        ("MF_OP_VERSION", u64::from(VERSION_OPERATION)),
    ];
    let mut numbers: Numbers = constants.map(|(name, value)| (name.to_owned(), value)).into();
    numbers.extend(codes("OP", Operation::ALL, |c| c as u8));
    numbers.extend(codes("REASON", Reason::ALL, |c| c as u8));
    numbers.extend(codes("STATUS", Status::ALL, |c| c as u8));
    numbers.extend(codes("ACK", AckState::ALL, |c| c as u8));
    numbers.extend(codes("KNOWN", Known::ALL, |c| c as u8));
    numbers
}

/// What the C compiler makes of the headers, for the names that Rust has.
fn c_output(flags: &[&str]) -> String {
    let mut program = String::from(
        "#include <stddef.h>\n#include <stdio.h>\n#include \"midflight/tasks_verdict.h\"\n#include \"midflight/tasks_wire.h\"\nint main(void) {\n",
    );
    for (structure, (_, fields)) in rust_layouts() {
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
    for name in rust_numbers().keys() {
        writeln!(program, "printf(\"number {name} %llu\\n\", (unsigned long long){name});").unwrap();
    }
    program.push_str("#define X(name, class, text) printf(\"verdict %s %s %s\\n\", #name, #class, text);\n");
    program.push_str("MF_COMMON_VERDICTS(X)\nMF_TASKS_VERDICTS(X)\nreturn 0; }\n");

    let directory = format!("agreement-{}-{}", std::process::id(), flags.concat());
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

struct C {
    layouts: Layouts,
    numbers: Numbers,
    verdicts: Vec<Verdict>,
}

/// A row of the lists in `verdict.h` and `tasks_verdict.h`.
struct Verdict {
    name: String,
    class: String,
    text: String,
}

/// Compiled once for all tests.
fn c() -> &'static C {
    static C: LazyLock<C> = LazyLock::new(|| compile(&[]));
    &C
}

fn compile(flags: &[&str]) -> C {
    let mut c = C { layouts: Layouts::new(), numbers: Numbers::new(), verdicts: Vec::new() };
    for line in c_output(flags).lines() {
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

/// The cells of each row of the first table behind the line that starts with `after`.
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

fn docs_numbers(page: &str) -> Numbers {
    let mut numbers = Numbers::new();
    for row in table_after(page, "## Constants") {
        numbers.insert(row[0].trim_matches('`').to_owned(), row[1].parse().unwrap());
    }
    let codes = [
        ("## Operations", "OP"),
        ("### Reasons", "REASON"),
        ("### Statuses", "STATUS"),
        ("### Acknowledgements", "ACK"),
        ("### Knowledge", "KNOWN"),
    ];
    for (heading, prefix) in codes {
        for row in table_after(page, heading) {
            numbers.insert(format!("MF_{prefix}_{}", link_text(&row[1])), row[0].parse().unwrap());
        }
    }
    numbers
}

#[test]
fn rust_and_c_agree_on_every_field() {
    assert_eq!(rust_layouts(), c().layouts);
}

/// The kernel's build lays structures out by their integers' own alignment, the others without holes. COMPLETE is no
/// switch's, and what stands between its records is of any multiple of four bytes.
#[test]
fn both_builds_of_the_core_agree_on_every_field() {
    let mut of_kernel = compile(&["-D__bpf__", "-Wno-unused-variable"]).layouts;
    of_kernel.insert("mf_completion".into(), c().layouts["mf_completion"].clone());
    assert_eq!(of_kernel, c().layouts);
}

#[test]
fn docs_agree_on_every_field() {
    assert_eq!(docs_layouts(&read("docs/wire.md")), rust_layouts());
}

#[test]
fn rust_and_c_agree_on_every_number() {
    assert_eq!(rust_numbers(), c().numbers);
}

#[test]
fn docs_agree_on_every_number() {
    assert_eq!(docs_numbers(&read("docs/wire.md")), rust_numbers());
}

#[test]
fn rust_has_every_structure_and_constant_of_c() {
    let header = header();
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let structures: Vec<String> = header
        .lines()
        .filter(|line| line.starts_with("struct ") && line.ends_with('{'))
        .map(|line| words(line).iter().rev().nth(1).unwrap().clone())
        .collect();
    let rust: Vec<String> = rust_layouts().into_keys().collect();
    let mut sorted = structures.clone();
    sorted.sort();
    assert_eq!(sorted, rust);

    let numbers = rust_numbers();
    for line in header.lines().filter(|line| line.starts_with("#define MF_") && !line.contains('(')) {
        let words = words(line);
        let is_number = words.get(2).is_some_and(|value| value.starts_with(|c: char| c.is_ascii_digit()));
        assert!(!is_number || numbers.contains_key(&words[1]), "Rust lacks {}", words[1]);
    }
    for word in header.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')) {
        let is_code =
            ["MF_REASON_", "MF_STATUS_", "MF_ACK_", "MF_KNOWN_"].iter().any(|prefix| word.starts_with(prefix));
        assert!(!is_code || numbers.contains_key(word), "Rust lacks {word}");
    }
    let operations = header.lines().filter(|line| line.trim_start().starts_with("X(")).count();
    assert_eq!(operations, Operation::ALL.len());
}

#[test]
fn every_byte_has_a_name_and_every_integer_is_aligned() {
    for (structure, (size, fields)) in rust_layouts() {
        let mut end = 0;
        for (field, offset, size) in fields {
            assert_eq!(offset, end, "{structure}.{field} does not follow on the field before");
            let alignment = if matches!(size, 2 | 4 | 8) { size } else { 1 };
            assert_eq!(offset % alignment, 0, "{structure}.{field} is not aligned");
            end = offset + size;
        }
        assert_eq!(end, size, "{structure} has bytes without a name");
        assert_eq!(size % 4, 0, "{structure}: records keep the alignment of 32 bits");
    }
}

#[test]
fn docs_and_header_agree_on_who_sends_what() {
    let header = header();
    for row in table_after(&read("docs/wire.md"), "## Operations") {
        let [_, operation, from_to, ..] = row.as_slice() else { panic!("{row:?}") };
        let structure = format!("struct MF_WIRE mf_{} {{", link_text(operation).to_lowercase());
        let (before, _) = header.split_once(&structure).unwrap_or_else(|| panic!("no {structure}"));
        let comment = &before[before.rfind("/*").unwrap()..];
        let in_c = comment.trim_start_matches("/* ").replace("->", "→");
        assert!(in_c.starts_with(from_to.as_str()), "{operation}: {from_to} in docs, {in_c:?} in wire.h");
    }
}

/// The bounds of `count`, tried on the parser, are those of the table. VERSION counts nothing.
#[test]
fn docs_and_parser_agree_on_what_a_packet_counts() {
    for row in table_after(&read("docs/wire.md"), "## Operations") {
        let Some(operation) = Operation::from_number(row[0].parse().unwrap()) else {
            assert_eq!((link_text(&row[1]), row[3].as_str()), ("VERSION", "—"));
            continue;
        };
        let (low, high) = row[3].split_once('–').unwrap_or((&row[3], &row[3]));
        let documented: Vec<u8> = (low.parse().unwrap()..=high.parse().unwrap()).collect();
        let mut packet = Header::new(operation, 0, 0);
        let taken: Vec<u8> = (0..=255)
            .filter(|count| {
                packet.count = *count;
                parse(zerocopy::IntoBytes::as_bytes(&packet)).err() != Some(Reject::BadCount)
            })
            .collect();
        assert_eq!(taken, documented, "{}", row[1]);
    }
}

#[test]
fn docs_agree_on_every_verdict() {
    let page = read("docs/wire.md");
    let documented: Vec<(String, String)> =
        table_after(&page, "## Verdicts").into_iter().map(|row| (row[0].clone(), row[2].clone())).collect();
    let of_c = c().verdicts.iter().map(|verdict| (verdict.name.clone(), verdict.text.clone()));
    assert_eq!(documented, of_c.collect::<Vec<_>>());
}

#[test]
fn docs_agree_on_which_verdicts_speak_of_a_whole_datagram() {
    let rows = table_after(&read("docs/wire.md"), "## Verdicts");
    let documented: Vec<_> = rows.iter().map(|row| row[1].as_str()).collect();
    let classes = c().verdicts.iter().map(|verdict| match verdict.class.as_str() {
        "TAKEN" => "—",
        "REFUSED" => "all",
        _ => "one",
    });
    assert_eq!(documented, classes.collect::<Vec<_>>());
}

#[test]
fn troubleshooting_has_every_verdict() {
    let page = read("docs/troubleshooting.md");
    let explained: Vec<String> =
        table_after(&page, "## Verdicts").iter().map(|row| row[0].trim_matches('`').to_uppercase()).collect();
    let verdicts: Vec<String> = c().verdicts.iter().map(|verdict| verdict.name.clone()).collect();
    assert_eq!(explained, verdicts);
}

/// What Rust rejects bears the name of a verdict; BAD_RESULT speaks of COMPLETE, which no switch reads.
#[test]
fn rejects_are_named_as_verdicts() {
    let verdicts: Vec<String> = c().verdicts.iter().map(|verdict| verdict.name.to_lowercase()).collect();
    for reject in [
        Reject::Truncated,
        Reject::Trailing,
        Reject::BadMagic,
        Reject::BadVersion(1),
        Reject::UnknownKey,
        Reject::UnknownOperation,
        Reject::BadCount,
        Reject::BadPriority,
        Reject::BadArgument,
    ] {
        assert!(verdicts.contains(&reject.to_string()), "{reject}");
    }
}
