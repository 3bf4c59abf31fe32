//! The disk on real files and on small, full file systems.

use super::*;
use std::time::{Duration, Instant};

/// Removed at the end.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("mf-disk-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Retries, because a child that another test forks holds our locks until it calls exec.
fn take(place: &Place) -> Directory {
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        match Directory::take(&place.0) {
            Err(DiskError::InUse { .. }) if Instant::now() < end => std::thread::sleep(Duration::from_millis(5)),
            taken => return taken.unwrap(),
        }
    }
}

fn append(id: u64, file: File, bytes: &[u8]) -> Persist {
    Persist { id, changes: vec![Change::Append { file, bytes: bytes.to_vec() }] }
}

fn report(disk: &Disk) -> Report {
    disk.reports.recv_timeout(Duration::from_secs(10)).unwrap().unwrap()
}

fn wait_for(disk: &Disk, wanted: u64) {
    let end = Instant::now() + Duration::from_secs(10);
    while !matches!(report(disk), Report::Safe { id, .. } if id >= wanted) {
        assert!(Instant::now() < end);
    }
}

#[test]
fn what_is_written_is_read_again() {
    let place = Place::new("again");
    for fsync in [true, false] {
        let disk = Disk::start(take(&place), fsync, 0, || ()).unwrap();
        disk.write(append(1, File::Log(1), b"ab"));
        let changes = vec![
            Change::Append { file: File::Log(1), bytes: b"cd".to_vec() },
            Change::Replace { file: File::Snapshot(12), bytes: b"old".to_vec() },
            Change::Replace { file: File::Snapshot(12), bytes: b"new".to_vec() },
            Change::Replace { file: File::Log(2), bytes: b"x".to_vec() },
            Change::Append { file: File::Log(2), bytes: b"y".to_vec() },
            Change::Remove { file: File::Log(7) },
            Change::Replace { file: File::Identity, bytes: b"me".to_vec() },
            Change::Replace { file: File::Safe, bytes: b"2".to_vec() },
        ];
        disk.write(Persist { id: 2, changes });
        wait_for(&disk, 2);
        drop(disk);
        fs::write(place.0.join("log-3.new"), "unfinished").unwrap();
        fs::write(place.0.join("log-03"), "not ours").unwrap();
        let directory = take(&place);
        let expected: [(File, &[u8]); 5] = [
            (File::Identity, b"me"),
            (File::Log(1), b"abcd"),
            (File::Log(2), b"xy"),
            (File::Snapshot(12), b"new"),
            (File::Safe, b"2"),
        ];
        let expected: Vec<_> = expected.iter().map(|(file, bytes)| (*file, bytes.to_vec())).collect();
        assert_eq!(directory.read().unwrap(), expected);
        assert!(!place.0.join("log-3.new").exists() && place.0.join("log-03").exists());
        let disk = Disk::start(directory, fsync, 0, || ()).unwrap();
        let changes = expected.iter().map(|(file, _)| Change::Remove { file: *file }).collect();
        disk.write(Persist { id: 1, changes });
        wait_for(&disk, 1);
    }
}

#[test]
fn a_file_is_no_directory_and_the_error_says_so() {
    let place = Place::new("file");
    let file = place.0.join("data");
    fs::write(&file, "").unwrap();
    for path in [file.clone(), file.join("below")] {
        let error = Directory::take(&path).unwrap_err().to_string();
        assert!(error.contains("that is a file: name a directory"), "{error}");
    }
}

#[test]
fn two_processes_never_share_a_directory() {
    let place = Place::new("shared");
    let first = take(&place);
    let second = Directory::take(&place.0).unwrap_err();
    assert!(matches!(&second, DiskError::InUse { path } if *path == place.0), "{second}");
    let held = std::process::Command::new("flock").args(["-n", "-x"]).arg(&place.0).arg("true").status().unwrap();
    assert!(!held.success(), "another process does not get it either");
    drop(first);
    take(&place);
}

/// A file system of 1 MiB, unmounted at the end; `None` without root.
struct SmallDisk(Place);

impl SmallDisk {
    fn mount(name: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIPPED: a full disk needs root, to mount a small file system");
            return None;
        }
        let place = Place::new(name);
        let mut mount = std::process::Command::new("mount");
        let mounted = mount.args(["-t", "tmpfs", "-o", "size=1m", "midflight-test"]).arg(&place.0).status().unwrap();
        if !mounted.success() {
            eprintln!("SKIPPED: a full disk needs the right to mount a small file system");
            return None;
        }
        Some(Self(place))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(&self.0.0).status();
    }
}

#[test]
fn r5_a_full_disk_takes_what_the_reserve_is_for_and_all_again_when_there_is_room() {
    let Some(small) = SmallDisk::mount("full") else { return };
    let other = small.0.0.join("of-somebody-else");
    let disk = Disk::start(take(&small.0), true, 256 << 10, || ()).unwrap();
    disk.write(append(1, File::Log(1), &[1; 100_000]));
    wait_for(&disk, 1);
    // Fills the disk except for the reserve.
    let mut filler = fs::File::create(&other).unwrap();
    while filler.write_all(&[7; 4096]).is_ok() {}
    drop(filler);
    disk.write(append(2, File::Log(1), &[2; 100_000]));
    assert_eq!(report(&disk), Report::Room(false));
    wait_for(&disk, 2);
    disk.write(append(3, File::Log(1), &[3; 200_000]));
    assert!(disk.reports.recv_timeout(Duration::from_millis(300)).is_err(), "it waits for room");
    fs::remove_file(&other).unwrap();
    wait_for(&disk, 3);
    assert_eq!(report(&disk), Report::Room(true));
    drop(disk);
    let files = take(&small.0).read().unwrap();
    let expected: Vec<u8> = [vec![1; 100_000], vec![2; 100_000], vec![3; 200_000]].concat();
    assert!(files == [(File::Log(1), expected)], "nothing is there twice, or in part");
}

#[test]
fn r5_a_disk_with_room_again_says_so_though_writes_never_pause() {
    let Some(small) = SmallDisk::mount("busy") else { return };
    let other = small.0.0.join("of-somebody-else");
    fs::write(&other, vec![7; 700_000]).unwrap();
    let disk = Disk::start(take(&small.0), true, 256 << 10, || ()).unwrap();
    assert_eq!(report(&disk), Report::Room(false));
    fs::remove_file(&other).unwrap();
    let end = Instant::now() + Duration::from_secs(10);
    for id in 1.. {
        assert!(Instant::now() < end, "{id} batches were written");
        disk.write(Persist { id, changes: vec![Change::Replace { file: File::Safe, bytes: b"1".to_vec() }] });
        if report(&disk) == Report::Room(true) {
            break;
        }
    }
}

#[test]
fn a_disk_that_is_full_from_the_start_says_so_and_can_be_stopped() {
    let Some(small) = SmallDisk::mount("start") else { return };
    let disk = Disk::start(take(&small.0), true, 4 << 20, || ()).unwrap();
    assert_eq!(report(&disk), Report::Room(false));
    disk.write(append(1, File::Log(1), b"fits"));
    wait_for(&disk, 1);
    disk.write(append(2, File::Log(1), &[7; 2_000_000]));
    let error = disk.finish().unwrap_err().to_string();
    assert!(error.contains("log-1") && error.contains("free space"), "{error}");
    let files = take(&small.0).read().unwrap();
    assert_eq!(files, [(File::Log(1), b"fits".to_vec())]);
}
