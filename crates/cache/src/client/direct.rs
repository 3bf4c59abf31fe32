//! Direct mode: the client selects (the paper's CliRS). Attempts are tracked until they are answered or expire, even if their reads have
//! ended, because a server still works on them.

use super::config::ClientConfig;
use crate::rsnode::GroupError;
use crate::rsnode::groups::Groups;
use crate::rsnode::table::{Table, UnderWay};
use crate::select::{Choice, Selector, Server, Status};
use midflight_endpoint::Nanos;
use midflight_endpoint::mutants::planted;
use midflight_wire::Address;
use std::net::SocketAddr;
use zerocopy::FromZeros;

pub(super) struct Direct {
    selector: Box<dyn Selector + Send>,
    groups: Groups,
    table: Table,
    cookies: Vec<u64>,
    expire: Nanos,
}

pub(super) enum Chosen {
    /// With the attempt's number, if it is tracked.
    Send(Server, SocketAddr, Option<u16>),
    Wait(Nanos),
    UnknownGroup,
}

impl Direct {
    /// `generation` is random.
    pub(super) fn new(
        config: &ClientConfig,
        servers: &[SocketAddr],
        generation: u16,
        selector: Box<dyn Selector + Send>,
    ) -> Self {
        Self {
            selector,
            groups: Groups::new(servers),
            table: Table::new(config.attempts_max, generation),
            cookies: vec![0; servers.len()],
            expire: config.expire,
        }
    }

    pub(super) fn set_group(&mut self, group: u32, servers: &[SocketAddr]) -> Result<(), GroupError> {
        self.groups.set(group, servers)
    }

    pub(super) fn selector(&self) -> &dyn Selector {
        &*self.selector
    }

    pub(super) fn under_way(&self) -> usize {
        self.table.len()
    }

    pub(super) fn server(&self, address: SocketAddr) -> Option<Server> {
        self.groups.server(address)
    }

    pub(super) fn cookie(&self, server: Server) -> u64 {
        self.cookies.get(usize::from(server.0)).copied().unwrap_or_default()
    }

    pub(super) fn set_cookie(&mut self, server: Server, cookie: u64) {
        if let Some(place) = self.cookies.get_mut(usize::from(server.0)) {
            *place = cookie;
        }
    }

    pub(super) fn choose(&mut self, now: Nanos, group: u32, request: u64, random: u64) -> Chosen {
        let Some(candidates) = self.groups.get(group) else { return Chosen::UnknownGroup };
        let server = match self.selector.choose(now, &candidates, random) {
            Choice::Send(server) => server,
            Choice::Wait(until) => return Chosen::Wait(until),
        };
        let Some(to) = self.groups.address(server) else { return Chosen::UnknownGroup };
        let retained = self.table.add(UnderWay { server, client: Address::new_zeroed(), request, sent: now });
        if retained.is_none() {
            self.selector.expired(now, server);
        }
        Chosen::Send(server, to, retained)
    }

    /// Returns whether the answer matches an attempt.
    pub(super) fn answered(
        &mut self,
        now: Nanos,
        server: Server,
        retained: u16,
        request: u64,
        status: Option<Status>,
    ) -> bool {
        let is_its = |entry: &UnderWay| (entry.server, entry.request) == (server, request);
        let Some(entry) = self.table.take(retained, is_its) else { return false };
        self.selector.answered(now, server, now.saturating_sub(entry.sent), status);
        true
    }

    /// Expires attempts, and returns their number.
    pub(super) fn expire(&mut self, now: Nanos) -> u64 {
        let Some(until) = now.checked_sub(self.expire) else { return 0 };
        let mut count = 0;
        while let Some(entry) = self.table.expire(until) {
            count += 1;
            if !planted(244) {
                self.selector.expired(now, entry.server);
            }
        }
        count
    }

    pub(super) fn next_expiry(&self) -> Option<Nanos> {
        self.table.oldest().map(|sent| sent.saturating_add(self.expire))
    }
}
