//! `--results`: outputs in GNU parallel's tree: DIR/1/VALUE/2/VALUE/stdout.

use super::captured::{Captured, Stream};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// The longest name in most file systems.
const NAME_MAX: usize = 255;

#[derive(Debug)]
pub(super) struct Results {
    root: PathBuf,
}

impl Results {
    pub(super) fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    fn directory(&self, arguments: &[Vec<u8>], sequence: u64) -> PathBuf {
        let mut path = self.root.clone();
        for (place, argument) in (1..).zip(arguments) {
            let name = escaped(argument);
            path.push(place.to_string());
            path.push(if name.len() <= NAME_MAX { OsString::from_vec(name) } else { format!("seq-{sequence}").into() });
        }
        path
    }

    /// # Errors
    /// Names the file that could not be written, and why.
    pub(super) fn write(&self, arguments: &[Vec<u8>], sequence: u64, captured: &Captured) -> Result<(), String> {
        let directory = self.directory(arguments, sequence);
        let write = || {
            midflight_files::create_directory(&directory)?;
            captured.copy(Stream::Stdout, &mut midflight_files::create(&directory.join("stdout"))?)?;
            captured.copy(Stream::Stderr, &mut midflight_files::create(&directory.join("stderr"))?)?;
            midflight_files::write(&directory.join("seq"), sequence.to_string())
        };
        write().map_err(|error| {
            // Remove a partial result. An error means that the file does not exist.
            for name in ["stdout", "stderr", "seq"] {
                let _ = std::fs::remove_file(directory.join(name));
            }
            format!("its output cannot be kept in {}: {error}", directory.display())
        })
    }
}

/// An argument as a file name, escaped as GNU parallel does. The names `.` and `..` get a suffix.
fn escaped(argument: &[u8]) -> Vec<u8> {
    let mut name = Vec::with_capacity(argument.len());
    for &byte in argument {
        match byte {
            b'\\' => name.extend_from_slice(b"\\\\"),
            b'/' => name.extend_from_slice(b"\\_"),
            b'\t' => name.extend_from_slice(b"\\t"),
            0 => name.extend_from_slice(b"\\0"),
            byte => name.push(byte),
        }
    }
    if [&b""[..], b".", b".."].contains(&&name[..]) {
        name.push(b'\\');
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_parallels_and_no_argument_leaves_it() {
        let results = Results::new(Path::new("out"));
        let directory = |arguments: &[&str]| {
            let arguments: Vec<_> = arguments.iter().map(|argument| argument.as_bytes().to_vec()).collect();
            results.directory(&arguments, 7).to_str().unwrap().to_owned()
        };
        assert_eq!(directory(&["a", "b c"]), "out/1/a/2/b c");
        assert_eq!(directory(&["/etc/\\x\t"]), "out/1/\\_etc\\_\\\\x\\t");
        assert_eq!(directory(&["..", "", "."]), "out/1/..\\/2/\\/3/.\\");
        assert_eq!(directory(&[&"x".repeat(300)]), "out/1/seq-7");
    }
}
