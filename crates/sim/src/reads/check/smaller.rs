//! Makes a trial smaller: drops faults, clients, workers, operations, keys, the second switch, replicas, then faults of the network.

use super::trial::{Party, Trial, What};
use crate::check::{Fails, Net, Pass, attempt, drop_from};

/// In the order in which they are tried.
pub(super) const PASSES: &[Pass<Trial>] =
    &[drop_faults, drop_clients, halve_work, drop_keys, drop_switch, drop_replicas, calm_network, shorten];

fn drop_faults(best: &mut Trial, fails: Fails<'_, Trial>) {
    drop_from(best, fails, |trial| &mut trial.faults);
}

fn drop_clients(best: &mut Trial, fails: Fails<'_, Trial>) {
    for client in (0..best.clients.len()).rev() {
        attempt(best, fails, |smaller| {
            smaller.clients.remove(client);
            forget(smaller, |party| match party {
                Party::Client(n) if n == client => None,
                Party::Client(n) => Some(Party::Client(n - usize::from(n > client))),
                other => Some(other),
            });
        });
    }
}

fn halve_work(best: &mut Trial, fails: Fails<'_, Trial>) {
    for client in 0..best.clients.len() {
        while attempt(best, fails, |smaller| {
            smaller.clients[client].workers = smaller.clients[client].workers.div_ceil(2)
        }) {}
        while attempt(best, fails, |smaller| smaller.clients[client].operations /= 2) {}
    }
}

fn drop_keys(best: &mut Trial, fails: Fails<'_, Trial>) {
    while attempt(best, fails, |smaller| smaller.set.keys = smaller.set.keys.div_ceil(2)) {}
}

fn drop_switch(best: &mut Trial, fails: Fails<'_, Trial>) {
    attempt(best, fails, |smaller| {
        smaller.switches = 1;
        forget(smaller, |party| (party != Party::Switch(1)).then_some(party));
    });
}

fn drop_replicas(best: &mut Trial, fails: Fails<'_, Trial>) {
    while best.replicas > 1 {
        let left = best.replicas - 2;
        let is_kept = attempt(best, fails, |smaller| {
            smaller.replicas = left;
            forget(smaller, |party| match party {
                Party::Replica(n) if n >= left => None,
                other => Some(other),
            });
        });
        if !is_kept {
            break;
        }
    }
}

fn calm_network(best: &mut Trial, fails: Fails<'_, Trial>) {
    attempt(best, fails, |smaller| smaller.network = Net::KIND);
    attempt(best, fails, |smaller| smaller.network.loss = 0.0);
    attempt(best, fails, |smaller| smaller.network.duplication = 0.0);
    attempt(best, fails, |smaller| smaller.network.reordering = 0.0);
}

fn shorten(best: &mut Trial, fails: Fails<'_, Trial>) {
    for fault in 0..best.faults.len() {
        while attempt(best, fails, |smaller| smaller.faults[fault].for_ms /= 2) {}
    }
    while attempt(best, fails, |smaller| smaller.heal_ms = smaller.heal_ms * 3 / 4) {}
}

/// Removes parties from faults, or gives them other places.
fn forget(trial: &mut Trial, place: impl Fn(Party) -> Option<Party>) {
    trial.faults.retain_mut(|fault| match &mut fault.what {
        What::Crash(party) | What::Pause(party) | What::Drift { party, .. } | What::Late { party, .. } => {
            place(*party).map(|new| *party = new).is_some()
        }
        What::Partition { from, to, .. } => {
            for side in [&mut *from, &mut *to] {
                *side = side.iter().filter_map(|party| place(*party)).collect();
            }
            !from.is_empty() && !to.is_empty()
        }
        What::Wipe(replica) | What::SlowDisk { replica, .. } | What::Transfer(replica) => {
            place(Party::Replica(*replica)).is_some()
        }
        What::PowerCut | What::Burst(_) | What::Flush => true,
    });
}
