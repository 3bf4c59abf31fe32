//! Shrinks a trial: drops faults, clients, servers, work, operators, then network faults.

use super::trial::{Party, Trial};
use crate::check::{Fails, Net, Pass, attempt, drop_faults, forget};

pub(super) const PASSES: &[Pass<Trial>] =
    &[drop_faults, drop_clients, halve_work, drop_servers, drop_operators, fewer_groups, calm_network, shorten];

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
        while attempt(best, fails, |smaller| smaller.clients[client].reads /= 2) {}
    }
}

fn drop_servers(best: &mut Trial, fails: Fails<'_, Trial>) {
    for server in (0..best.servers.len()).rev() {
        attempt(best, fails, |smaller| {
            smaller.servers.remove(server);
            smaller.replicas = smaller.replicas.min(smaller.servers.len());
            forget(smaller, Party::Server(server));
        });
    }
}

fn drop_operators(best: &mut Trial, fails: Fails<'_, Trial>) {
    for operator in (0..best.operators()).rev() {
        attempt(best, fails, |smaller| {
            let count = if operator < smaller.racks { &mut smaller.racks } else { &mut smaller.uppers };
            *count = count.saturating_sub(1);
            forget(smaller, Party::Operator(operator));
            forget(smaller, Party::Selector(operator));
        });
    }
    attempt(best, fails, |smaller| {
        smaller.controllers = smaller.controllers.saturating_sub(1);
        forget(smaller, Party::Controller(smaller.controllers));
    });
    attempt(best, fails, |smaller| smaller.has_streams = false);
    attempt(best, fails, |smaller| smaller.limit = 0);
    attempt(best, fails, |smaller| smaller.is_tree = false);
}

fn fewer_groups(best: &mut Trial, fails: Fails<'_, Trial>) {
    while attempt(best, fails, |smaller| smaller.groups = smaller.groups.div_ceil(2)) {}
    attempt(best, fails, |smaller| smaller.replicas = 1);
    attempt(best, fails, |smaller| smaller.is_by_rack = true);
    attempt(best, fails, |smaller| smaller.cost_us = 0);
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
