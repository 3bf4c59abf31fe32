//! The controller's rules, and their entries in the program's tables.

use super::Config;
use super::fields::{Fields, Kind, at, peer, place};
use crate::Pipeline::Ingress;
use crate::{Action, Builder, Field, Match, argument};
use std::collections::BTreeMap;

/// An address and a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct End {
    /// The IP address: IPv4 as `::ffff:a.b.c.d`.
    pub ip: [u32; 4],
    /// UDP.
    pub port: u16,
}

/// Kind of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// A host, whatever the port.
    Host {
        /// Its rack.
        rack: u16,
        /// The traffic group of its requests.
        group: Option<u16>,
    },
    /// A server.
    Server {
        /// Its rack.
        rack: u16,
    },
    /// Another operator.
    Operator,
}

/// All rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rules {
    /// This operator's rack.
    pub own_rack: Option<u16>,
    /// Address of its selector.
    pub selector: Option<End>,
    /// Hosts (port 0), servers and operators.
    pub places: BTreeMap<End, Place>,
    /// Operator and marker of each rack.
    pub racks: BTreeMap<u16, (End, u32)>,
    /// Operator of each RSNode; `None`: this one.
    pub rsnodes: BTreeMap<u16, Option<End>>,
    /// Label of each traffic group.
    pub groups: BTreeMap<u16, u16>,
}

impl Rules {
    /// Servers with their numbers, from 1, and their racks.
    fn servers(&self) -> impl Iterator<Item = (u32, &End, u16)> {
        let servers = self.places.iter().filter_map(|(end, known)| match known {
            Place::Server { rack } => Some((end, *rack)),
            _ => None,
        });
        (1..).zip(servers).map(|(number, (end, rack))| (number, end, rack))
    }

    fn hosts(&self) -> impl Iterator<Item = (&End, u16, Option<u16>)> {
        self.places.iter().filter_map(|(end, known)| match known {
            Place::Host { rack, group } => Some((end, *rack, *group)),
            _ => None,
        })
    }
}

/// Matches no packet: a table's actions must be known before the controller adds entries.
const NOBODY: [Match; 4] = [Match::is(u32::MAX); 4];

fn is_ip(ip: [u32; 4]) -> Vec<Match> {
    ip.map(Match::is).to_vec()
}

fn is_end(end: &End) -> Vec<Match> {
    [is_ip(end.ip), vec![Match::is(end.port.into())]].concat()
}

fn arguments(end: &End) -> [u32; 5] {
    let [a, b, c, d] = end.ip;
    [a, b, c, d, end.port.into()]
}

/// Sets an address to the entry's arguments from 0 on.
fn to_arguments(action: Action, (ip, port): ([Field; 4], Field)) -> Action {
    let words = (0..).zip(ip).fold(action, |action, (number, word)| action.set(word, argument(number)));
    words.set(port, argument(4))
}

/// Stages 0 to 4.
pub(super) fn declare(b: &mut Builder, f: &Fields, config: &Config, rules: &Rules) {
    known_clients(b, f, config);
    peers(b, f, config, rules);
    hosts(b, f, config, rules);
    markers(b, f, config, rules);
    no_clients(b, f, config, rules);
    clients(b, f, config, rules);
    groups(b, f, config, rules);
    servers(b, f, config, rules);
    rsnodes(b, f, config, rules);
    racks(b, f, config, rules);
    selector(b, f, rules);
}

/// Stage 0. The controller enters a client that has sent its cookie. Clients change with each packet, so here the parser puts this table's
/// result into the packet.
fn known_clients(b: &mut Builder, f: &Fields, config: &Config) {
    let known = Action::new("known").set(f.known, 1);
    let table = b.table(Ingress, 0, "known clients").when(f.op.is(Kind::Request as u32));
    f.source.into_iter().for_each(|word| _ = table.exact(word));
    table.exact(f.source_port).exact(f.client[0]).exact(f.client[1]);
    let nobody = [NOBODY.to_vec(), vec![Match::is(u32::MAX); 3]].concat();
    table.entry_of(nobody, &known, &[]).room(config.known as usize);
    table.note("clients whose cookie the controller has seen: it is compared, not computed");
}

/// Stage 0: servers and other operators, by address and port; the RSNode id in the packet.
fn peers(b: &mut Builder, f: &Fields, config: &Config, rules: &Rules) {
    let i = &f.inside;
    let server = Action::new("server").set(i.peer, peer::SERVER).set(i.number, argument(0)).set(i.rack, argument(1));
    let operator = Action::new("operator").set(i.peer, peer::OPERATOR);
    let table = b.table(Ingress, 0, "peers");
    f.source.into_iter().for_each(|word| _ = table.exact(word));
    table.exact(f.source_port);
    for (number, end, rack) in rules.servers() {
        table.entry_of(is_end(end), &server, &[number, rack.into()]);
    }
    for (end, _) in rules.places.iter().filter(|(_, known)| **known == Place::Operator) {
        table.entry_of(is_end(end), &operator, &[]);
    }
    let nobody = [NOBODY.to_vec(), vec![Match::is(u32::MAX)]].concat();
    table.entry_of(nobody.clone(), &server, &[0, 0]).entry_of(nobody, &operator, &[]);
    table.room(config.places as usize).note("who has sent it: a server, another operator, or none of these");
    b.table(Ingress, 0, "claimed").run(&Action::new("claimed").set(i.id, f.rsnode)).note("the RSNode that it names");
}

/// Stage 1: hosts of this rack. A host of another rack is a stranger.
fn hosts(b: &mut Builder, f: &Fields, config: &Config, rules: &Rules) {
    let i = &f.inside;
    let host = Action::new("host").set(i.host, 1).set(i.group, argument(0));
    let table = b.table(Ingress, 1, "hosts");
    f.source.into_iter().for_each(|word| _ = table.exact(word));
    for (end, _, group) in rules.hosts().filter(|(_, rack, _)| Some(*rack) == rules.own_rack) {
        table.entry_of(is_ip(end.ip), &host, &[group.unwrap_or(u16::MAX).into()]);
    }
    table.entry(NOBODY, &host, &[0]).room(config.places as usize).note("hosts of this rack, and their traffic groups");
}

/// Stage 1: the marker of a server's answer, whatever the answer has.
fn markers(b: &mut Builder, f: &Fields, config: &Config, rules: &Rules) {
    let i = &f.inside;
    let mark = Action::new("mark").set(f.marker, argument(0));
    let table = b.table(Ingress, 1, "markers").when(i.peer.is(peer::SERVER)).exact(i.peer).exact(i.rack);
    for (&rack, &(_, marker)) in &rules.racks {
        table.entry([Match::is(peer::SERVER), Match::is(rack.into())], &mark, &[marker]);
    }
    table.entry([Match::is(u32::MAX); 2], &mark, &[0]).run(&Action::new("none").set(f.marker, 0));
    table.room(config.racks as usize).note("SM of the server's rack");
}

/// Stages 1 and 3: an operator's machine may be a host too. An answer must not return what was sent to an operator, even to this one.
fn no_clients(b: &mut Builder, f: &Fields, config: &Config, rules: &Rules) {
    let i = &f.inside;
    let taken = Action::new("taken").set(i.taken, 1);
    let table = b.table(Ingress, 1, "no clients").when(f.op.is_not(Kind::Request as u32));
    f.client.into_iter().for_each(|word| _ = table.exact(word));
    table.exact(f.client_port);
    for (end, _) in rules.places.iter().filter(|(_, known)| !matches!(known, Place::Host { .. })) {
        table.entry_of(is_end(end), &taken, &[]);
    }
    table.entry_of([NOBODY.to_vec(), vec![Match::is(u32::MAX)]].concat(), &taken, &[]);
    table.room(config.places as usize).note("servers and operators, which are no clients");
    let nobody = b.table(Ingress, 3, "nobody").when(i.at.is(at::HERE)).when(i.taken.is(1));
    nobody.run(&Action::new("nobody").set(i.at, 0)).note("the client of an answer is none");
}

/// Stage 2: the location of an answer's client.
fn clients(b: &mut Builder, f: &Fields, config: &Config, rules: &Rules) {
    let i = &f.inside;
    let here = Action::new("here").set(i.at, at::HERE).set(i.counted, argument(0)).set(i.cell, argument(1));
    let away = Action::new("away").set(i.at, at::AWAY).set(i.client_rack, argument(0));
    let table = b.table(Ingress, 2, "clients").when(f.op.is_not(Kind::Request as u32));
    f.client.into_iter().for_each(|word| _ = table.exact(word));
    for (end, rack, group) in rules.hosts() {
        if Some(rack) == rules.own_rack {
            let first = u32::from(group.unwrap_or_default()) * super::TIERS as u32;
            table.entry_of(is_ip(end.ip), &here, &[group.is_some().into(), first]);
        } else {
            table.entry_of(is_ip(end.ip), &away, &[rack.into()]);
        }
    }
    table.entry(NOBODY, &here, &[0, 0]).entry(NOBODY, &away, &[0]);
    table.room(config.places as usize).note("all hosts: the client is in this rack, or in which");
}

/// Stage 2: a host's request gets its traffic group's label, whatever it has (N2).
fn groups(b: &mut Builder, f: &Fields, config: &Config, rules: &Rules) {
    let i = &f.inside;
    let label = Action::new("label").set(i.id, argument(0));
    let none = Action::new("none").set(i.id, super::fields::NO_RSNODE);
    let table = b.table(Ingress, 2, "groups").when(f.op.is(Kind::Request as u32)).when(i.peer.is(0)).when(i.host.is(1));
    table.exact(i.host).exact(i.group);
    for (&group, &id) in &rules.groups {
        table.entry([Match::is(1), Match::is(group.into())], &label, &[id.into()]);
    }
    table.entry([Match::is(u32::MAX); 2], &label, &[0]).run(&none);
    table.room(config.groups as usize).note("the RSNode of the host's traffic group");
}

/// Stage 3: the server that the packet names: a request's backup, an answer's sender.
fn servers(b: &mut Builder, f: &Fields, config: &Config, rules: &Rules) {
    let i = &f.inside;
    let named = Action::new("named").set(i.named, argument(0));
    let table = b.table(Ingress, 3, "servers");
    f.server.into_iter().for_each(|word| _ = table.exact(word));
    table.exact(f.server_port);
    for (number, end, _) in rules.servers() {
        table.entry_of(is_end(end), &named, &[number]);
    }
    table.entry_of([NOBODY.to_vec(), vec![Match::is(u32::MAX)]].concat(), &named, &[0]);
    table.room(config.places as usize).note("the server that the packet names");
}

/// Stage 3: the location of the RSNode.
fn rsnodes(b: &mut Builder, f: &Fields, config: &Config, rules: &Rules) {
    let i = &f.inside;
    let here = Action::new("here").set(i.place, place::EMPTY);
    let elsewhere = to_arguments(Action::new("elsewhere").set(i.place, place::ELSEWHERE), i.rsnode_to);
    let table = b.table(Ingress, 3, "rsnodes").exact(i.id);
    for (&id, operator) in &rules.rsnodes {
        match operator {
            None => table.entry([Match::is(id.into())], &here, &[]),
            Some(end) => table.entry([Match::is(id.into())], &elsewhere, &arguments(end)),
        };
    }
    let none = Match::is(super::fields::NO_RSNODE);
    table.entry([none], &Action::new("none").set(i.place, 0), &[]);
    table.entry([none], &here, &[]).entry([none], &elsewhere, &[0; 5]);
    table.room(config.rsnodes as usize + 1).note("the operator behind an RSNode id, or this one");
}

/// Stage 3: the operator of a remote client's rack.
fn racks(b: &mut Builder, f: &Fields, config: &Config, rules: &Rules) {
    let i = &f.inside;
    let known = to_arguments(Action::new("known").set(i.has_rack, 1), i.rack_to);
    let table = b.table(Ingress, 3, "racks").exact(i.at).exact(i.client_rack);
    for (&rack, (operator, _)) in &rules.racks {
        table.entry([Match::is(at::AWAY), Match::is(rack.into())], &known, &arguments(operator));
    }
    table.entry([Match::is(u32::MAX); 2], &known, &[0; 5]);
    table.room(config.racks as usize).note("the operator of the client's rack");
}

/// Stage 4: this operator's selector.
fn selector(b: &mut Builder, f: &Fields, rules: &Rules) {
    let i = &f.inside;
    let selects = to_arguments(Action::new("selects").set(i.place, place::SELECTS), i.selector);
    let table = b.table(Ingress, 4, "selector").exact(i.place);
    if let Some(end) = &rules.selector {
        table.entry([Match::is(place::EMPTY)], &selects, &arguments(end));
    }
    table.entry([Match::is(u32::MAX)], &selects, &[0; 5]);
    table.note("the RSNode is here: is there a selector?");
}
