//! The founding state of a new store's replica.

use crate::clock;
use crate::disk::{Directory, Disk};
use crate::error::Error;
use midflight_endpoint::{Change, Durable, Persist};
use midflight_store::replica::{Replica, ReplicaConfig};
use std::fmt::Display;
use std::path::Path;

const FIRST: u64 = 1;

/// Writes the founding state of a new store's replica, durable unless `fsync` is off. `config` has the disk numbers drawn for all founding
/// members. Removes what an earlier attempt left, which may be partial or for other members.
///
/// # Errors
///
/// If the directory is unusable, or has more than a founding state, which a client may rely on.
pub fn found(config: ReplicaConfig, data: &Path, fsync: bool) -> Result<(), Error> {
    let failed = |why: &dyn Display| Error::Replica(format!("{}: {why}", data.display()));
    let directory = Directory::take(data).map_err(|error| Error::Replica(error.to_string()))?;
    let files = directory.read().map_err(|error| Error::Replica(error.to_string()))?;
    let (now, left) = (clock::now_counting_suspension(), files.iter().map(|&(file, _)| file).collect::<Vec<_>>());
    let before = Replica::new(config.clone(), files, now).map_err(|error| failed(&error))?.status(now);
    if before.term > FIRST || before.last_index > FIRST {
        return Err(failed(&"this replica has run, and its store has never begun: move its data away"));
    }
    let mut replica = Replica::new(config, Vec::new(), now).map_err(|error| failed(&error))?;
    let disk = Disk::start(directory, fsync, 0, || ())?;
    disk.write(Persist { id: 0, changes: left.into_iter().map(|file| Change::Remove { file }).collect() });
    while let Some(batch) = replica.poll_persist() {
        disk.write(batch);
    }
    disk.finish().map_err(|error| Error::Replica(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use midflight_store::replica::Member;
    use std::net::SocketAddr;
    use std::time::{Duration, Instant};

    fn config(members: u64) -> ReplicaConfig {
        let member = |id: u64| {
            let at = |port| SocketAddr::from(([127, 0, 0, id as u8], port));
            Member { id, slot: id as u8 - 1, address: at(7000), links: at(7001) }
        };
        let switches = vec![SocketAddr::from(([127, 0, 0, 1], 7700))];
        let config = ReplicaConfig::new(42, 3, 1, (1..=members).map(member).collect(), switches, 7);
        ReplicaConfig { founds: true, founders: (1..=members).map(|id| (id, 70 + id)).collect(), ..config }
    }

    fn members(data: &Path) -> usize {
        wait_until_free(data);
        let files = Directory::take(data).unwrap().read().unwrap();
        let config = ReplicaConfig { founds: false, ..config(5) };
        Replica::new(config, files, 1).unwrap().status(1).members.len()
    }

    /// Waits, because a child that another test forks holds our locks until it calls exec.
    fn wait_until_free(data: &Path) {
        let end = Instant::now() + Duration::from_secs(10);
        while data.exists() && Directory::take(data).is_err() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn found_again(members: u64, data: &Path, fsync: bool) {
        wait_until_free(data);
        found(config(members), data, fsync).unwrap();
    }

    #[test]
    fn r2_what_is_left_of_an_earlier_try_goes() {
        let directory = std::env::temp_dir().join(format!("mf-found-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        for fsync in [true, false] {
            found_again(3, &directory, fsync);
            assert_eq!(members(&directory), 3);
            found_again(5, &directory, fsync);
            assert_eq!(members(&directory), 5, "of the members that are asked for now");
            std::fs::remove_file(directory.join("log-1")).unwrap();
            std::fs::write(directory.join("snapshot-1"), "").unwrap();
            found_again(3, &directory, fsync);
            assert_eq!(members(&directory), 3, "a part of a first state");
        }
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
