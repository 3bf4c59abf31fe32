//! `midflight store backup` and `restore`.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{CommandOutput, Store, assert_error, run};
use midflight_host::store::StoreClient;
use midflight_host::store::backup::{BackupReader, Record};
use std::collections::BTreeMap;
use std::fs::{metadata, read, write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

fn backup(store: &Store, file: &str) -> CommandOutput {
    run(&["store", "backup", file, "--config", &store.config])
}

fn restore(store: &Store, file: &str) -> CommandOutput {
    run(&["store", "restore", file, "--config", &store.config])
}

#[test]
fn r1_a_backup_is_of_one_moment_and_its_restore_is_the_same() {
    let store = Store::start("backup");
    for n in 0..50 {
        assert_eq!(store.cli(&["put", &format!("key {n}"), &"x".repeat(n * 100)]).0, Some(0));
    }
    assert_eq!(store.cli(&["put", "expires", "soon", "--ttl", "1h"]).0, Some(0));
    assert_eq!(store.cli(&["put", "--escaped", "\\x00\\xff\\n", "\\x00"]).0, Some(0));
    let file = store.directory.path("backup");
    let said = backup(&store, &file);
    assert_eq!((said.code, said.stdout.as_str()), (Some(0), "52 keys\n"), "{said:?}");
    assert_eq!(metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_error(&backup(&store, &file), 1, &["there is such a file"]);
    let (precious, other) = (store.directory.write("precious", "precious"), store.directory.path("other"));
    std::os::unix::fs::symlink(&precious, format!("{other}.part")).unwrap();
    assert_eq!(backup(&store, &other).code, Some(0));
    assert_eq!(read(&precious).unwrap(), b"precious", "what a planted link names is not written");
    assert_error(&restore(&store, &file), 1, &["has keys already"]);

    let other = Store::start("backup-other");
    let said = restore(&other, &file);
    assert_eq!((said.code, said.stdout.as_str()), (Some(0), "52 keys\n"), "{said:?}");
    assert_eq!(other.cli(&["scan", "--count"]), (Some(0), "52\n".into()));
    assert_eq!(other.cli(&["get", "key 32"]), (Some(0), format!("{}\n", "x".repeat(3_200))));
    assert_eq!(other.cli(&["get", "--escaped", "\\x00\\xff\\n"]), (Some(0), "\\x00\n".into()));
    let (_, left) = other.cli(&["ttl", "expires"]);
    assert!(left.starts_with("359"), "{left}");
}

/// A counter is raised, and then another: at each moment they differ by at most one.
#[test]
fn r1_a_backup_is_of_one_moment_though_clients_write() {
    let store = Store::start("backup-moment");
    let client = StoreClient::builder().switches(store.addresses.clone()).connect().unwrap();
    let raise = || {
        client.incr("first", 1).unwrap();
        client.incr("second", 1).unwrap();
    };
    raise();
    let is_over = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _ends = Ends(is_over);
        scope.spawn(|| {
            while !is_over.load(Relaxed) {
                raise();
            }
        });
        for number in 0..5 {
            let (_, acknowledged) = store.cli(&["get", "second"]);
            let file = store.directory.path(&format!("backup-{number}"));
            let said = backup(&store, &file);
            assert_eq!(said.code, Some(0), "{said:?}");
            let values = BackupReader::open(Path::new(&file)).unwrap().map(|record| {
                let Record { key, value, .. } = record.unwrap();
                (key, String::from_utf8(value).unwrap().parse::<i64>().unwrap())
            });
            let values: BTreeMap<_, _> = values.collect();
            let (first, second) = (values[&b"first"[..]], values[&b"second"[..]]);
            let acknowledged: i64 = acknowledged.trim().parse().unwrap();
            assert!(second >= acknowledged && (0..=1).contains(&(first - second)), "{first}, {second}, {acknowledged}");
        }
    });
}

/// Also after a failure, or the writer would go on for ever.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

#[test]
fn r7_what_is_no_whole_backup_is_named_and_nothing_is_written() {
    let store = Store::start("backup-bad");
    assert_eq!(store.cli(&["put", "key", "value"]).0, Some(0));
    let file = store.directory.path("backup");
    assert_eq!(backup(&store, &file).code, Some(0));
    let (whole, bad) = (read(&file).unwrap(), store.directory.path("bad"));
    let mut damaged = whole.clone();
    damaged[35] ^= 1;
    for (bytes, why) in [
        (&whole[..whole.len() - 1], "it ends after 1 keys: the file was cut"),
        (&whole[..30], "it ends after 0 keys"),
        (&damaged, "its bytes are not those that were written"),
        (&[&whole[..], b"x"].concat(), "its bytes are not those that were written"),
        (b"short", "it is no backup of a store"),
        (&[b'x'; 100], "it is no backup of a store"),
    ] {
        write(&bad, bytes).unwrap();
        assert_error(&restore(&store, &bad), 1, &["cannot be restored", why]);
    }
    assert_error(&restore(&store, "/nowhere/at-all"), 1, &["cannot be restored", "No such file"]);
    assert_error(&backup(&store, "/nowhere/at-all"), 1, &["/nowhere/at-all", "No such file"]);
}
