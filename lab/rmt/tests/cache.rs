//! The cache program: its page; and every packet of a small world, under all rules of that world, has the protocol's outcome. Planted
//! defects are found.

mod common;

use common::page_shows;
use midflight_rmt::cache::{Cache, Came, Config, End, Kind, Place, Planted, Rules, TIERS};
use midflight_rmt::{Machine, Refusal, Target};
use std::collections::BTreeMap;
use std::fmt::Write as _;

const PAGE: &str = "printed/asic-cache.md";
const ILLEGAL: u16 = 65535;
const SMALL: Config =
    Config { places: 16, racks: 4, groups: 4, rsnodes: 4, known: 4, masks: [0, 0xffff_0000, 0xffff_ffff, 0] };

fn built(config: Config) -> Cache {
    Cache::build(config, &Rules::default(), &Target::TOFINO_1).unwrap_or_else(|refusal| panic!("{refusal}"))
}

#[test]
fn the_page_shows_the_program() {
    let cache = built(Config::DEFAULT);
    page_shows(PAGE, "cache: stages", &cache.program().stages());
    page_shows(PAGE, "cache: report", &cache.program().report().to_string());
    for table in ["role", "route"] {
        let entries = cache.program().entries(table).expect("a table");
        page_shows(PAGE, &format!("cache: {table}"), &entries);
    }
    let defects = Planted::ALL.iter().fold("| defect | what is wrong |\n|---|---|\n".to_owned(), |mut text, defect| {
        writeln!(text, "| `{}` | {} |", defect.name(), defect.about()).expect("a string takes it");
        text
    });
    page_shows(PAGE, "cache: planted", &defects);
}

#[test]
fn there_is_room_for_32768_places_and_no_more() {
    assert_eq!(built(Config::LARGEST).program().report().depth, [8, 0]);
    let too_large = |config| Cache::build(config, &Rules::default(), &Target::TOFINO_1).is_err();
    assert!(too_large(Config { places: 2 * Config::LARGEST.places, ..Config::LARGEST }));
    assert!(too_large(Config { rsnodes: 65_534, ..Config::LARGEST }));
    let groups = Cache::build(Config { groups: 32_769, ..SMALL }, &Rules::default(), &Target::TOFINO_1);
    assert!(matches!(groups, Err(Refusal::Parameters { .. })));
}

fn end(last: u32, port: u16) -> End {
    End { ip: [0, 0, 0xffff, 0x0a00_0000 + last], port }
}

const OWN: u16 = 0;

fn client(number: u32) -> End {
    end(10 + number, 7000)
}

fn server(number: u32) -> End {
    end(20 + number, 7800)
}

fn operator(number: u32) -> End {
    end(30 + number, 7900)
}

fn marker(rack: u16) -> u32 {
    u32::from(rack / 2) << 16 | u32::from(rack)
}

/// Hosts 0 and 1 are in this rack, the second without a group, and so is the machine of operator 1; 2 and 3 in racks 1 and 3, which has no
/// operator. Servers are in racks 0, 1, 2 and 3. RSNode 1 is here, 2 elsewhere.
fn rules(own_rack: Option<u16>, label: Option<u16>, has_selector: bool) -> Rules {
    let host = |number, rack, group| (End { port: 0, ..client(number) }, Place::Host { rack, group });
    let hosts = [host(0, OWN, Some(1)), host(1, OWN, None), host(2, 1, Some(2)), host(3, 3, None)];
    let of_operator = (End { port: 0, ..operator(1) }, Place::Host { rack: OWN, group: Some(2) });
    let servers = (0..4).map(|number| (server(number.into()), Place::Server { rack: number }));
    let operators = (1..3).map(|number| (operator(number), Place::Operator));
    Rules {
        own_rack,
        selector: has_selector.then(|| operator(9)),
        places: hosts.into_iter().chain([of_operator]).chain(servers).chain(operators).collect(),
        racks: (0..3).map(|rack| (rack, (operator(rack.into()), marker(rack)))).collect(),
        rsnodes: BTreeMap::from([(1, None), (2, Some(operator(1)))]),
        groups: label.into_iter().map(|label| (1, label)).collect(),
    }
}

fn all_rules() -> impl Iterator<Item = Rules> {
    let labels = [None, Some(1), Some(2), Some(3), Some(ILLEGAL)];
    let of = move |own| labels.into_iter().flat_map(move |label| [false, true].map(|has| rules(own, label, has)));
    [Some(OWN), None].into_iter().flat_map(of)
}

fn all_packets() -> Vec<Came> {
    let nobody = end(99, 7000);
    let other_port = |end: End| End { port: 9, ..end };
    let mut senders: Vec<End> = (0..3).flat_map(|n| [client(n), server(n), operator(n)]).collect();
    senders.extend([server(3), nobody, other_port(server(1)), other_port(client(0)), End { port: 0, ..client(0) }]);
    let mut clients: Vec<End> = (0..4).map(client).collect();
    clients.extend([nobody, operator(1), End { port: 0, ..client(0) }]);
    let named = [server(0), server(1), server(3), nobody, client(0)];
    let mut packets = Vec::new();
    for kind in [Kind::Request, Kind::Response, Kind::Monitored] {
        for &source in &senders {
            for rsnode in [0, 1, 2, 3, ILLEGAL] {
                let of = |server| clients.iter().map(move |&client| (server, client));
                for (server, client) in named.into_iter().flat_map(of) {
                    let came = Came { kind, rsnode, marker: marker(1), source, client, server, is_known: true };
                    packets.push(came);
                    if kind == Kind::Request && rsnode < 2 {
                        packets.push(Came { is_known: false, ..came });
                    }
                }
            }
        }
    }
    packets
}

/// A sent datagram: destination, last byte of its magic field, RID, SM of an answer, client.
type Sent = (End, u8, u16, Option<u32>, End);

/// The effect of a packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Caused {
    sent: Option<Sent>,
    copy: Option<End>,
    counted: Option<(u16, usize)>,
}

/// The protocol's outcome: `docs/internals/cache.md`.
fn expected(rules: &Rules, came: &Came) -> Caused {
    let sender = rules.places.get(&came.source).copied();
    match came.kind {
        Kind::Request => Caused { sent: expected_of_request(rules, came, sender), ..Caused::default() },
        _ => expected_of_answer(rules, came, sender).unwrap_or_default(),
    }
}

fn expected_of_request(rules: &Rules, came: &Came, sender: Option<Place>) -> Option<Sent> {
    let host = rules.places.get(&End { port: 0, ..came.source }).copied();
    let here = |rsnode, client| rules.selector.map(|selector| (selector, 1, rsnode, None, client));
    let backup = |client| match rules.places.get(&came.server) {
        Some(Place::Server { .. }) => Some((came.server, 0x83, ILLEGAL, None, client)),
        _ => None,
    };
    match sender.or(host)? {
        Place::Operator => match rules.rsnodes.get(&came.rsnode) {
            Some(None) => here(came.rsnode, came.client).or_else(|| backup(came.client)),
            _ => backup(came.client),
        },
        Place::Host { rack, group } if Some(rack) == rules.own_rack && came.is_known => {
            let client = came.source;
            let label = group.and_then(|group| rules.groups.get(&group).copied());
            match label.and_then(|id| Some((id, rules.rsnodes.get(&id)?))) {
                Some((id, None)) => here(id, client).or_else(|| backup(client)),
                Some((id, Some(operator))) => Some((*operator, 1, id, None, client)),
                None => backup(client),
            }
        }
        _ => None,
    }
}

fn expected_of_answer(rules: &Rules, came: &Came, sender: Option<Place>) -> Option<Caused> {
    let (marker, is_from_server) = match sender? {
        Place::Operator => (came.marker, false),
        Place::Server { rack } if came.server == came.source => (rules.racks.get(&rack).map_or(0, |rack| rack.1), true),
        _ => return None,
    };
    let sent = |to: End, kind| Some((to, kind, came.rsnode, Some(marker), came.client));
    let rsnode = rules.rsnodes.get(&came.rsnode).filter(|_| came.kind == Kind::Response);
    if let (Some(Some(operator)), true) = (rsnode, is_from_server) {
        return Some(Caused { sent: sent(*operator, 2), ..Caused::default() });
    }
    let copy = rules.selector.filter(|_| rsnode == Some(&None));
    let Some(&Place::Host { rack, group }) = rules.places.get(&End { port: 0, ..came.client }) else { return None };
    if came.client.port == 0 {
        return None;
    }
    if Some(rack) == rules.own_rack {
        if rules.places.contains_key(&came.client) {
            return None;
        }
        let own = rules.racks.get(&rack)?.1;
        let tier = if own == marker { 2 } else { usize::from(own >> 16 == marker >> 16) };
        return Some(Caused { sent: sent(came.client, 3), copy, counted: group.map(|group| (group, tier)) });
    }
    let may_pass = is_from_server || came.kind == Kind::Response;
    let operator = rules.racks.get(&rack).filter(|_| may_pass)?.0;
    Some(Caused { sent: sent(operator, 3), copy, counted: None })
}

fn caused(cache: &Cache, machine: &mut Machine, came: &Came) -> Caused {
    let outputs = machine.pass(cache.packet(came));
    let answer = cache.answer(&outputs.packet).expect("every packet has a role");
    let is_answer = came.kind != Kind::Request;
    let sent = answer.to.map(|to| {
        let marker = is_answer.then_some(answer.marker);
        (to, answer.kind, answer.rsnode, marker, answer.client)
    });
    let [copy, none] = outputs.copies;
    assert_eq!(none, None);
    let copy = copy.and_then(|copy| {
        let outputs = machine.pass(cache.copied(copy, came));
        assert_eq!(outputs.copies, [None, None]);
        let copy = cache.answer(&outputs.packet).expect("every packet has a role");
        let is_same = (copy.kind, copy.rsnode, copy.marker) == (answer.kind, answer.rsnode, answer.marker);
        copy.to.filter(|_| is_same)
    });
    let mut counted = None;
    for group in 0..SMALL.groups as u16 {
        let counts = cache.take_counts(machine, group);
        for tier in (0..TIERS).filter(|&tier| counts[tier] != 0) {
            assert_eq!((counts[tier], counted.replace((group, tier))), (1, None));
        }
    }
    Caused { sent, copy, counted }
}

/// The first packet with a wrong effect.
fn first_wrong(defect: Option<Planted>) -> Option<String> {
    let packets = all_packets();
    for rules in all_rules() {
        let cache = match defect {
            None => Cache::build(SMALL, &rules, &Target::TOFINO_1),
            Some(defect) => Cache::planted(SMALL, &rules, &Target::TOFINO_1, defect),
        };
        let cache = cache.unwrap_or_else(|refusal| panic!("{refusal}"));
        let mut machine = cache.machine();
        for came in &packets {
            let (is, right) = (caused(&cache, &mut machine, came), expected(&rules, came));
            if is != right {
                return Some(format!("{is:?}\ninstead of {right:?}\nafter {came:?}\nunder {rules:?}"));
            }
        }
    }
    None
}

/// N1, N2, N3, N8, as far as they concern the operator.
#[test]
fn n1_every_packet_of_a_small_world_causes_what_the_protocol_says() {
    if let Some(wrong) = first_wrong(None) {
        panic!("{wrong}");
    }
}

#[test]
fn each_planted_defect_is_refuted() {
    for &defect in Planted::ALL {
        assert!(first_wrong(Some(defect)).is_some(), "{}: {}", defect.name(), defect.about());
    }
}
