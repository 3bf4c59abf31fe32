//! After the last fault the network must recover within stated times; then all counters must add up.

use super::rules::*;
use super::run::{CacheSubject, TIMEOUT};
use super::trial::Party;
use crate::cache::{Ask, nodes};
use crate::check::{Checked, Subject, holds};
use crate::{Action, NodeId};
use midflight_cache::control::Role;
use midflight_cache::control::controller::OperatorStatus;
use midflight_cache::select::Server;
use midflight_endpoint::{MS, Nanos, SECOND};

/// Limit until all running parties have their rules, and the plan is in force. A script sets a label per look; a
/// controller needs a takeover, and confirms two labels.
const IN_FORCE: Nanos = 6 * SECOND;
/// Limit until all reads have ended, including those that waited for their turn.
const ALL_END: Nanos = TIMEOUT + SECOND;
/// Limit until no request counts as outstanding: an RSNode forgets one after a second, an application loses its slot
/// after half a second.
const QUIET: Nanos = 3 * SECOND;
const CHECK_EVERY: Nanos = 20 * MS;
/// Servers refuse queued requests after their clients' time-outs; then all servers accept requests again.
const DRAINED: Nanos = SECOND;

impl CacheSubject {
    pub(super) fn all_heals(&mut self) -> Checked {
        self.within(IN_FORCE, |it| {
            let is_in_force = if it.run.trial.controllers > 0 { it.is_deployed() } else { it.is_in_force() };
            holds!(HEALS, is_in_force, "no plan is in force {} ms after the last fault", IN_FORCE / MS);
            Ok(())
        })?;
        for client in self.nodes(Party::Client) {
            self.run.act(Action::command(client, Ask::Stop));
        }
        self.within(ALL_END, Self::all_have_ended)?;
        self.run_until(self.run.world.now() + DRAINED)?;
        self.all_are_answered()?;
        self.within(QUIET, Self::nothing_is_outstanding)?;
        self.books_add_up()?;
        self.nothing_was_lost()
    }

    fn nodes(&self, kind: fn(usize) -> Party) -> Vec<NodeId> {
        self.run.places.of(kind).collect()
    }

    fn within(&mut self, time: Nanos, is_so: impl Fn(&Self) -> Checked) -> Checked {
        let until = self.run.world.now() + time;
        while let Err(broken) = is_so(self) {
            if self.run.world.now() >= until {
                return Err(broken);
            }
            self.run_until(self.run.world.now() + CHECK_EVERY)?;
        }
        Ok(())
    }

    /// Whether a controller is active, all operators have their rules, and the labels are its plan's.
    fn is_deployed(&self) -> bool {
        let controllers = self.nodes(Party::Controller);
        let statuses = controllers.into_iter().filter_map(|node| nodes::controller(&self.run.world, node));
        statuses.map(|controller| controller.controller().status()).any(|status| {
            let has_rules =
                |operator: &OperatorStatus| operator.is_alive && operator.is_known && operator.is_up_to_date;
            matches!(status.role, Role::Active(_)) && status.is_deployed && status.operators.iter().all(has_rules)
        })
    }

    fn all_have_ended(&self) -> Checked {
        let open = self.run.findings().open();
        holds!(HEALS, open == 0, "{open} reads have no end {} s after the last fault", ALL_END / SECOND);
        Ok(())
    }

    fn all_are_answered(&mut self) -> Checked {
        let failed = self.run.findings().failed;
        for group in 0..self.groups.len() as u32 {
            for client in self.nodes(Party::Client) {
                self.run.act(Action::command(client, Ask::Read(group)));
            }
            self.within(ALL_END, Self::all_have_ended)?;
        }
        let failed = self.run.findings().failed - failed;
        holds!(HEALS, failed == 0, "{failed} reads fail, though all faults have ended");
        Ok(())
    }

    fn nothing_is_outstanding(&self) -> Checked {
        let (world, servers) = (&self.run.world, self.run.trial.servers.len() as u16);
        for (place, node) in self.nodes(Party::Selector).into_iter().enumerate() {
            let Some(rsnode) = nodes::selector(world, node).map(|selector| selector.rsnode()) else { continue };
            let outstanding: u32 = (0..servers).map(|server| rsnode.selector().outstanding(Server(server))).sum();
            let under_way = rsnode.under_way();
            holds!(
                HEALS,
                (outstanding, under_way) == (0, 0),
                "selector {place}: {outstanding} requests count as outstanding, {under_way} as under way, and there are none"
            );
        }
        for (place, node) in self.nodes(Party::Client).into_iter().enumerate() {
            let Some(client) = nodes::client(world, node).map(|client| client.client()) else { continue };
            let outstanding = client
                .selector()
                .map_or(0, |selector| (0..servers).map(|server| selector.outstanding(Server(server))).sum::<u32>());
            let under_way = client.under_way();
            holds!(
                HEALS,
                (outstanding, under_way) == (0, 0),
                "client {place}: {outstanding} attempts count as outstanding, {under_way} as under way, and there are none"
            );
        }
        for (place, node) in self.nodes(Party::Server).into_iter().enumerate() {
            let load = nodes::server(world, node).map_or((0, 0), |server| server.server().load());
            holds!(HEALS, load == (0, 0), "server {place}: {load:?} requests wait and are served, and there are none");
        }
        Ok(())
    }

    fn books_add_up(&self) -> Checked {
        let world = &self.run.world;
        for (place, node) in self.nodes(Party::Client).into_iter().enumerate() {
            let Some(it) = nodes::client(world, node).map(|client| client.client().counters()) else { continue };
            holds!(BOOKS, it.submitted == it.answered + it.failed, "client {place}: {it:?}");
            holds!(BOOKS, it.failed == it.timed_out + it.refused_to_the_end, "client {place}: {it:?}");
        }
        for (place, node) in self.nodes(Party::Server).into_iter().enumerate() {
            let Some(it) = nodes::server(world, node).map(|server| server.server().counters()) else { continue };
            let ended = it.answered + it.given_up + it.waited_too_long + it.served_too_long;
            holds!(BOOKS, it.taken == ended, "server {place}: {it:?}");
        }
        for (place, node) in self.nodes(Party::Selector).into_iter().enumerate() {
            let Some(selector) = nodes::selector(world, node) else { continue };
            let it = selector.rsnode().counters();
            holds!(BOOKS, it.selected == it.untracked + it.answered + it.expired, "selector {place}: {it:?}");
            holds!(BOOKS, selector.refused() == 0, "selector {place} has refused {} groups", selector.refused());
        }
        for (place, node) in self.nodes(Party::Operator).into_iter().enumerate() {
            let Some(operator) = nodes::operator(world, node) else { continue };
            let sound = operator.check();
            holds!(SOUND, sound.is_ok(), "operator {place}: {sound:?}");
            holds!(BOOKS, operator.refused() == 0, "operator {place} has refused {} rules", operator.refused());
        }
        Ok(())
    }

    /// N1, N7: if only the plan has changed, each request's answer has passed the selector that chose for it, and
    /// monitors have counted what clients got.
    fn nothing_was_lost(&self) -> Checked {
        let (world, trial) = (&self.run.world, &self.run.trial);
        if !trial.loses_nothing() {
            return Ok(());
        }
        let servers = self.nodes(Party::Server).into_iter().filter_map(|node| nodes::server(world, node));
        let refused: u64 = servers
            .map(|server| server.server().counters())
            .map(|it| it.queue_full + it.waited_too_long + it.served_too_long + it.given_up)
            .sum();
        for (place, node) in self.nodes(Party::Selector).into_iter().enumerate() {
            let Some(it) = nodes::selector(world, node).map(|selector| selector.rsnode().counters()) else { continue };
            let is_all = it.expired <= refused && it.unmatched == 0;
            holds!(N1, is_all, "not all answers have passed selector {place}, which chose for them: {it:?}");
        }
        let racks = self.nodes(Party::Operator).into_iter().filter_map(|node| nodes::operator(world, node));
        let groups = trial.traffic_groups() as u16;
        let counted: u64 = racks.map(|operator| (0..groups).map(|group| operator.answers(group)).sum::<u64>()).sum();
        let clients = self.nodes(Party::Client).into_iter().filter_map(|node| nodes::client(world, node));
        let clients = clients.map(|client| client.client()).filter(|client| client.selector().is_none());
        let got: u64 = clients.map(|client| client.counters()).map(|it| it.answered + it.refused + it.unexpected).sum();
        holds!(BOOKS, counted == got, "monitors have counted {counted} answers, and clients have got {got}");
        Ok(())
    }
}
