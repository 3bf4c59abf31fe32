//! Arguments that clients push before their tasks arrive. Anyone can send them, so few are kept, for a short time, with a share per source
//! address. The others are fetched when their tasks arrive.

use midflight_tasks::blob::{TAG_BYTES, argument_name, open_argument};
use midflight_wire::{BlobRef, Host};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Arguments kept, in total and per source address (T14).
const KEPT_MAX: usize = 64;
const SHARE: usize = 16;
/// A task that waits longer is not alone and gains little.
const KEPT_FOR: Duration = Duration::from_secs(1);

/// Pushed arguments whose tasks have not arrived, and counts of the others.
#[derive(Debug, Default)]
pub(super) struct CameAlong {
    /// Oldest first.
    kept: VecDeque<Kept>,
    pub(super) used: u64,
    pub(super) unused: u64,
    pub(super) forged: u64,
}

#[derive(Debug)]
struct Kept {
    came: Instant,
    client: SocketAddr,
    name: u64,
    tag: [u8; TAG_BYTES],
    argument: Vec<u8>,
}

impl CameAlong {
    /// Keeps an argument if there is room. Older ones stay, because their tasks probably arrive first.
    pub(super) fn keep(
        &mut self,
        now: Instant,
        client: SocketAddr,
        name: u64,
        tag: [u8; TAG_BYTES],
        argument: Vec<u8>,
    ) {
        self.expire(now);
        let source = Host::of(client.ip());
        let of_the_source = self.kept.iter().filter(|kept| Host::of(kept.client.ip()) == source).count();
        if self.kept.len() >= KEPT_MAX || of_the_source >= SHARE || self.place(client, name).is_some() {
            self.unused += 1;
            return;
        }
        self.kept.push_back(Kept { came: now, client, name, tag, argument });
    }

    /// The argument of a task, if pushed and genuine. Returned once.
    pub(super) fn take(&mut self, now: Instant, client: SocketAddr, blob: &BlobRef) -> Option<Vec<u8>> {
        self.expire(now);
        if self.kept.is_empty() {
            return None; // avoids computing names where clients push nothing
        }
        let mut kept = self.kept.remove(self.place(client, argument_name(blob))?)?;
        let has_length = kept.argument.len() == blob.length.get() as usize;
        if !has_length || !open_argument(blob, &kept.tag, &mut kept.argument) {
            self.forged += 1;
            return None;
        }
        self.used += 1;
        Some(kept.argument)
    }

    fn expire(&mut self, now: Instant) {
        while self.kept.front().is_some_and(|kept| now.duration_since(kept.came) > KEPT_FOR) {
            self.kept.pop_front();
            self.unused += 1;
        }
    }

    fn place(&self, client: SocketAddr, name: u64) -> Option<usize> {
        self.kept.iter().position(|kept| kept.client == client && kept.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use midflight_tasks::blob::seal_argument;

    fn host(number: u8) -> SocketAddr {
        ([10, 0, 0, number], 70).into()
    }

    fn blob(id: u64, length: u32) -> BlobRef {
        BlobRef { id: id.into(), length: length.into(), port: 9.into(), at: 2.into() }
    }

    fn keep(along: &mut CameAlong, now: Instant, client: SocketAddr, blob: &BlobRef, argument: &[u8]) {
        let mut sealed = argument.to_vec();
        let tag = seal_argument(blob, &mut sealed);
        along.keep(now, client, argument_name(blob), tag, sealed);
    }

    fn counts(along: &CameAlong) -> (usize, u64, u64, u64) {
        (along.kept.len(), along.used, along.unused, along.forged)
    }

    #[test]
    fn an_argument_is_taken_once_and_only_under_its_own_reference() {
        let (mut along, now) = (CameAlong::default(), Instant::now());
        keep(&mut along, now, host(1), &blob(7, 20), &[1; 20]);
        assert_eq!(along.take(now, host(2), &blob(7, 20)), None, "of another client");
        assert_eq!(along.take(now, SocketAddr::new(host(1).ip(), 71), &blob(7, 20)), None, "of another process there");
        assert_eq!(along.take(now, host(1), &blob(8, 20)), None, "of another pack");
        assert_eq!(along.take(now, host(1), &blob(7, 19)), None, "another length");
        assert_eq!(along.take(now, host(1), &BlobRef { at: 3.into(), ..blob(7, 20) }), None, "at another place");
        assert_eq!(along.take(now, host(1), &blob(7, 20)), Some(vec![1; 20]));
        assert_eq!(along.take(now, host(1), &blob(7, 20)), None);
        assert_eq!(counts(&along), (0, 1, 0, 0));
    }

    /// A process that gets an executor's old port receives that executor's arguments. It can replay them to another executor from the
    /// client's address, but not change them.
    #[test]
    fn t13_who_has_seen_an_argument_can_repeat_and_not_change_it() {
        let (mut along, now, blob) = (CameAlong::default(), Instant::now(), blob(7, 20));
        let mut sealed = vec![1; 20];
        let (name, tag) = (argument_name(&blob), seal_argument(&blob, &mut sealed));
        let changed: Vec<u8> = sealed.iter().map(|byte| byte ^ 1).collect();
        let forgeries = [
            (tag, vec![1; 20]),
            (tag, changed),
            ([0; TAG_BYTES], sealed.clone()),
            (tag, sealed[..19].to_vec()),
            (tag, vec![]),
        ];
        for (tag, forged) in forgeries {
            along.keep(now, host(1), name, tag, forged.clone());
            assert_eq!(along.take(now, host(1), &blob), None, "{forged:?}");
        }
        assert_eq!(counts(&along), (0, 0, 0, 5));
        along.keep(now, host(1), name, tag, sealed);
        assert_eq!(along.take(now, host(1), &blob), Some(vec![1; 20]));
    }

    #[test]
    fn a_copy_takes_no_room_and_changes_nothing() {
        let (mut along, now) = (CameAlong::default(), Instant::now());
        (1..=3).for_each(|byte| keep(&mut along, now, host(1), &blob(7, 17), &[byte; 17]));
        assert_eq!(counts(&along), (1, 0, 2, 0));
        assert_eq!(along.take(now, host(1), &blob(7, 17)), Some(vec![1; 17]));
    }

    /// Tasks arrive in order of submission, so the arguments pushed first are needed first.
    #[test]
    fn t14_a_source_has_a_share_and_what_came_first_stays() {
        let (mut along, now) = (CameAlong::default(), Instant::now());
        (0..100).for_each(|id| keep(&mut along, now, host(2), &blob(id, 17), &[2; 17]));
        assert_eq!(counts(&along), (SHARE, 0, 100 - SHARE as u64, 0));
        assert!((0..SHARE as u64).all(|id| along.take(now, host(2), &blob(id, 17)).is_some()));
        for number in 0..100 {
            keep(&mut along, now, host(number), &blob(0, 17), &[3; 17]);
        }
        assert_eq!(along.kept.len(), KEPT_MAX);
    }

    #[test]
    fn t14_addresses_of_one_network_of_ipv6_are_one_source() {
        let (mut along, now) = (CameAlong::default(), Instant::now());
        for number in 0..100 {
            let client = SocketAddr::from(([0x2001, 0xdb8, 0, 0, 0, 0, 0, number], 70));
            keep(&mut along, now, client, &blob(0, 17), &[1; 17]);
        }
        assert_eq!(along.kept.len(), SHARE);
        keep(&mut along, now, SocketAddr::from(([0x2001, 0xdb8, 0, 1, 0, 0, 0, 1], 70)), &blob(0, 17), &[1; 17]);
        assert_eq!(along.kept.len(), SHARE + 1);
    }

    #[test]
    fn what_no_task_takes_makes_room_after_a_second() {
        let (mut along, now) = (CameAlong::default(), Instant::now());
        (0..100).for_each(|id| keep(&mut along, now, host(1), &blob(id, 17), &[1; 17]));
        keep(&mut along, now + KEPT_FOR, host(1), &blob(200, 17), &[1; 17]);
        assert_eq!(along.take(now, host(1), &blob(200, 17)), None, "no room yet");
        let later = now + KEPT_FOR + Duration::from_nanos(1);
        assert_eq!(along.take(later, host(1), &blob(0, 17)), None, "too late for its task");
        assert_eq!(counts(&along), (0, 0, 101, 0));
        keep(&mut along, later, host(1), &blob(200, 17), &[1; 17]);
        assert!(along.take(later, host(1), &blob(200, 17)).is_some());
    }
}
