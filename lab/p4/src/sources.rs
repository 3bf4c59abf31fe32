//! The sources of the programs at build time.

use crate::P4Error;
use std::collections::BTreeMap;
use std::path::Path;
use twox_hash::XxHash3_64;

macro_rules! sources {
    ($($name:literal),* $(,)?) => { [$(($name, include_str!(concat!("../../../p4/", $name)))),*] };
}

/// The sources of all programs, by their path in `p4/`.
const SOURCES: &[(&str, &str)] = &sources![
    "answer.p4",
    "entry.p4",
    "forward.p4",
    "front.p4",
    "headers.p4",
    "metadata.p4",
    "published/entry.p4",
    "published/guard.p4",
    "published/kind.p4",
    "published/metadata.p4",
    "published/pointers.p4",
    "published/queue.p4",
    "published/route.p4",
    "roles.p4",
    "safe/accept.p4",
    "safe/count.p4",
    "safe/entry.p4",
    "safe/head.p4",
    "safe/metadata.p4",
    "safe/queue.p4",
    "safe/route.p4",
    "sizes.p4",
    "states.p4",
    "target/t2na.p4",
    "target/tna.p4",
    "target/tna_egress.p4",
    "target/tna_ingress.p4",
    "target/tna_no_egress.p4",
    "target/tofino.p4",
    "target/v1model.p4",
    "target/v1model_switch.p4",
    "tasks_published_t2na.p4",
    "tasks_published_tna.p4",
    "tasks_published_v1model.p4",
    "tasks_safe_t2na.p4",
    "tasks_safe_tna.p4",
    "tasks_safe_v1model.p4",
];

/// A change of a source, which tests must notice.
#[derive(Clone, Copy, Debug)]
pub struct Planted {
    /// The file's path in `p4/`.
    pub file: &'static str,
    /// A text that occurs in it.
    pub from: &'static str,
    /// Its replacement.
    pub to: &'static str,
}

pub(crate) fn unpack(planted: &[Planted], folder: &Path) -> Result<(), P4Error> {
    let failed = |path: &Path| P4Error::io(format!("write {}", path.display()));
    for (name, text) in SOURCES {
        let path = folder.join(name);
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent).map_err(failed(parent))?;
        let mut text = (*text).to_owned();
        for &Planted { from, to, .. } in planted.iter().filter(|planted| planted.file == *name) {
            if !text.contains(from) {
                return Err(P4Error::Planted { file: name, text: from });
            }
            text = text.replace(from, to);
        }
        std::fs::write(&path, text).map_err(failed(&path))?;
    }
    Ok(())
}

/// A hash of the code of a main file and all its includes: a report with another hash is stale. It ignores comments, line breaks,
/// and the number of the wire format's version, which takes no room in a switch.
pub(crate) fn hash(main: &str) -> u64 {
    let mut read = BTreeMap::new();
    include(main, &mut read);
    let texts = read.into_iter().flat_map(|(name, text)| [name, code(text)]);
    XxHash3_64::oneshot(texts.collect::<Vec<_>>().join("\n").as_bytes())
}

/// A source without its comments, with single spaces: a line for each directive, and one for the code between directives.
fn code(text: &str) -> String {
    let mut code = String::new();
    // A directive continues after a backslash, even with a comment: join lines first, like the preprocessor.
    for line in text.replace("\\\n", " ").lines() {
        let line = line.split("//").next().unwrap_or_default();
        let words = line.split_whitespace().collect::<Vec<_>>().join(" ");
        if words.starts_with("const bit<8> MF_VERSION =") {
            continue;
        }
        let is_directive = words.starts_with('#');
        let follows_one = code.rsplit('\n').next().is_none_or(|last| last.is_empty() || last.starts_with('#'));
        match (words.is_empty(), is_directive || follows_one) {
            (true, _) => continue,
            (_, true) if code.is_empty() => {}
            (_, true) => code.push('\n'),
            (_, false) => code.push(' '),
        }
        code.push_str(&words);
    }
    code
}

/// A source and all that it includes, by their paths.
fn include(name: &str, read: &mut BTreeMap<String, &'static str>) {
    let Some((_, text)) = SOURCES.iter().find(|(source, _)| *source == name) else { return };
    if read.insert(name.to_owned(), text).is_some() {
        return;
    }
    let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
    let included = text.lines().filter_map(|line| line.strip_prefix("#include \"")?.strip_suffix('"'));
    for path in included {
        // The tree has two levels: a file is in the same folder, or one above.
        let path = match path.strip_prefix("../") {
            Some(above) => above.to_owned(),
            None if folder.is_empty() => path.to_owned(),
            None => format!("{folder}/{path}"),
        };
        include(&path, read);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_breaks_of_lines_are_no_code() {
        let long = "// A table.\n#define F(a) a; \\\n    b\ntable t { key = { m.role: exact; } // it\n}\n#endif\nx\n";
        let short = "#define F(a) a; b\n\ntable t {\n    key = {\n        m.role: exact; }\n}\n// More.\n  #endif\nx";
        assert_eq!(code(long), "#define F(a) a; b\ntable t { key = { m.role: exact; } }\n#endif\nx");
        assert_eq!(code(short), code(long));
        assert_ne!(code("a b"), code("a c"));
        // A directive ends with its line.
        assert_ne!(code("#define F\nx"), code("#define F x"));
    }

    /// Cases that `code` does not handle.
    #[test]
    fn no_source_has_comments_of_another_kind_or_slashes_in_a_text() {
        for (name, text) in SOURCES {
            assert!(!text.contains("/*") && !text.contains("@pragma"), "{name}");
            let is_text = |line: &str| line.split("//").next().is_some_and(|code| code.matches('"').count() % 2 == 1);
            assert!(!text.lines().any(is_text), "{name}");
        }
    }

    /// Longer ones hide code in editors and reviews.
    #[test]
    fn no_line_of_a_program_has_more_than_120_columns() {
        for (name, text) in SOURCES {
            let long = text.lines().position(|line| line.chars().count() > 120);
            assert_eq!(long.map(|at| at + 1), None, "a line of p4/{name}");
        }
    }

    #[test]
    fn a_program_is_all_that_its_main_file_includes() {
        let mut read = BTreeMap::new();
        include("tasks_safe_t2na.p4", &mut read);
        let has = |name: &str| read.contains_key(name);
        assert!(
            ["target/t2na.p4", "target/tofino.p4", "metadata.p4", "states.p4", "safe/entry.p4", "entry.p4"]
                .into_iter()
                .all(has)
        );
        assert!(
            !["target/tna.p4", "target/v1model.p4", "published/queue.p4", "target/tna_egress.p4"].into_iter().any(has)
        );
        assert_ne!(hash("tasks_safe_t2na.p4"), hash("tasks_safe_tna.p4"));
    }
}
