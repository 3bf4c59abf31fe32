//! Planted defects of the program, one at a time, which the checks must find.
//!
//! A program is data, and a planted defect changes that data. The result still keeps the laws of the switch. Only the feature `check` can
//! build one, so none ever serves packets.

use super::fields::Fields;
use super::{Cache, Config, Role, Rules};
use crate::action::Effect;
use crate::program::Builder;
use crate::table::{Match, Table};
use crate::{Refusal, Target};

macro_rules! planted {
    ($($defect:ident = $name:literal, $about:literal;)*) => {
        /// A defect of the program.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Planted { $(#[doc = $about] $defect,)* }

        impl Planted {
            /// All defects.
            pub const ALL: &'static [Self] = &[$(Self::$defect,)*];

            /// Name of the defect.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$defect => $name,)* }
            }

            /// Description of the defect.
            #[must_use]
            pub const fn about(self) -> &'static str {
                match self { $(Self::$defect => $about,)* }
            }
        }
    };
}

planted! {
    CookieNotAsked = "cookie-not-asked", "a request is taken without a cookie";
    ClientsLabel = "clients-label", "a request keeps the RSNode id that its client has written";
    BackupNotLookedUp = "backup-not-looked-up", "a degraded request goes to any address that its client names";
    OthersName = "others-name", "a server may answer in another one's name";
    MarkerKept = "marker-kept", "an answer keeps the marker that its server has written";
    MonitoredOn = "monitored-on", "an answer of another operator is sent on to a third one";
    ResponseOn = "response-on", "the same, before its RSNode has seen it";
    RequestOn = "request-on", "a request of another operator is sent on to a third one";
    NoCopy = "no-copy", "the selector gets no copy";
    NotStamped = "not-stamped", "a request keeps the cookie where its client's address should stand";
    DegradedWithId = "degraded-with-id", "a degraded request keeps the id of its RSNode";
    TiersReversed = "tiers-reversed", "the monitor takes the lowest tier that may be, not the highest";
    CountsRefused = "counts-refused", "the monitor counts answers that reach no client";
    Circle = "circle", "an answer whose client is an operator is delivered";
    PortOfNobody = "port-of-nobody", "an answer for port 0 is sent";
    UnknownRack = "unknown-rack", "an answer for a rack without an operator is sent nowhere, and counts as sent";
}

impl Cache {
    /// The program with a defect.
    ///
    /// # Errors
    /// If it does not fit the target.
    pub fn planted(config: Config, rules: &Rules, target: &Target, defect: Planted) -> Result<Self, Refusal> {
        Self::built(config, rules, target, |b, f| plant(b, f, defect))
    }
}

fn plant(b: &mut Builder, f: &Fields, defect: Planted) {
    let is_role = |role: Role| Match::is(role as u32);
    let [role, route] = ["role", "route"];
    match defect {
        Planted::CookieNotAsked => retain(table(b, role), |name, _| name != "ask"),
        Planted::ClientsLabel => {
            let groups = table(b, "groups");
            groups.entries.clear();
            groups.default = None;
        }
        Planted::BackupNotLookedUp => retain(table(b, route), |name, _| name != "no such server"),
        Planted::OthersName => retain(table(b, role), |name, _| name != "other"),
        Planted::MarkerKept => {
            let markers = table(b, "markers");
            markers.entries.clear();
            markers.default = None;
        }
        Planted::MonitoredOn => retain(table(b, role), |name, _| name != "last"),
        Planted::ResponseOn => {
            table(b, role).change_entries("to rsnode", |matches| matches[1] = Match::ANY);
        }
        Planted::RequestOn => {
            let role = table(b, role);
            retain(role, |name, _| name != "retired");
            role.change_entries("label", |matches| (matches[1], matches[2]) = (Match::ANY, Match::ANY));
        }
        Planted::NoCopy => {
            let actions = &mut table(b, route).actions;
            actions.iter_mut().for_each(|action| action.effects.retain(|(e, _)| !matches!(e, Effect::Mirror(_))));
        }
        Planted::NotStamped => table(b, "stamp").actions.iter_mut().for_each(|action| action.ops.clear()),
        Planted::DegradedWithId => {
            let backup = table(b, route).actions.iter_mut().filter(|action| action.name == "to the backup");
            backup.for_each(|action| action.ops.retain(|op| op.to != f.rsnode));
        }
        Planted::TiersReversed => table(b, "tiers").entries.reverse(),
        Planted::CountsRefused => table(b, "monitor").gateway.retain(|compare| compare.field != f.did),
        Planted::Circle => {
            // The last entry matches no packet: without it nothing would write what is read later.
            let entries = &mut table(b, "no clients").entries;
            entries.drain(..entries.len() - 1);
        }
        Planted::PortOfNobody => retain(table(b, route), |name, matches| {
            name != "no such client" || matches[3] == Match::ANY || matches[0] == is_role(Role::Last)
        }),
        Planted::UnknownRack => table(b, route).entries.iter_mut().for_each(|entry| entry.matches[4] = Match::ANY),
    }
}

fn table<'a>(b: &'a mut Builder, name: &str) -> &'a mut Table {
    b.tables().iter_mut().find(|table| table.name == name).expect("a table of this program")
}

/// Keeps the wanted entries, by the name of their action and their matches.
fn retain(table: &mut Table, is_wanted: impl Fn(&str, &[Match]) -> bool) {
    let Table { entries, actions, .. } = table;
    entries.retain(|entry| is_wanted(&actions[entry.action].name, &entry.matches));
}

impl Table {
    /// Changes the matches of entries with this action.
    fn change_entries(&mut self, name: &str, change: impl Fn(&mut Vec<Match>)) {
        let Self { entries, actions, .. } = self;
        let named = entries.iter_mut().filter(|entry| actions[entry.action].name == name);
        named.for_each(|entry| change(&mut entry.matches));
    }
}
