//! Shrinks a trial: drops faults, clients, workers, operations, keys, the second switch, replicas, then network faults.

use super::trial::{Party, Trial};
use crate::check::{Fails, Net, Pass, attempt, drop_faults, forget};

pub(super) const PASSES: &[Pass<Trial>] = &[
    drop_faults,
    drop_clients,
    halve_work,
    drop_keys,
    drop_switch,
    drop_outsiders,
    drop_replicas,
    calm_network,
    shorten,
];

fn drop_clients(best: &mut Trial, fails: Fails<'_, Trial>) {
    for client in (0..best.clients.len()).rev() {
        attempt(best, fails, |smaller| {
            smaller.clients.remove(client);
            forget(smaller, Party::Client(client));
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
        forget(smaller, Party::Switch(1));
    });
}

fn drop_outsiders(best: &mut Trial, fails: Fails<'_, Trial>) {
    for outsider in (best.replicas..best.places()).rev() {
        attempt(best, fails, |smaller| {
            smaller.outsiders -= 1;
            forget(smaller, Party::Replica(outsider));
        });
    }
}

fn drop_replicas(best: &mut Trial, fails: Fails<'_, Trial>) {
    while best.replicas > 1 {
        let left = best.replicas - 2;
        let is_kept = attempt(best, fails, |smaller| {
            smaller.replicas = left;
            [left + 1, left].into_iter().for_each(|gone| forget(smaller, Party::Replica(gone)));
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
