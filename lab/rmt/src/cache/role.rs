//! Stages 4 and 5: the handling of a packet, and the client's address in a request.

use super::Role;
use super::fields::{Fields, ILLEGAL_RSNODE, Kind, NO_RSNODE, peer, place};
use crate::Pipeline::Ingress;
use crate::{Action, Builder, Match};

const ANY: Match = Match::ANY;
const YES: Match = Match::is(1);
const NO: Match = Match::is(0);

pub(super) fn declare(b: &mut Builder, f: &Fields) {
    other(b, f);
    role(b, f);
    stamp(b, f);
}

/// Stage 4: a server reports only about itself. The tables of both addresses give a server the same number.
fn other(b: &mut Builder, f: &Fields) {
    let i = &f.inside;
    let other = b.table(Ingress, 4, "other server").when(i.peer.is(peer::SERVER)).when(i.named.differs(i.number));
    other.run(&Action::new("other").set(i.other, 1)).note("it names another server than itself");
}

fn role(b: &mut Builder, f: &Fields) {
    let i = &f.inside;
    let table = b.table(Ingress, 5, "role").ternary(f.op).ternary(i.peer).ternary(i.host).ternary(f.known);
    table.ternary(i.other).ternary(i.id).ternary(i.place);
    let [request, response, monitored, copy] =
        [Kind::Request, Kind::Response, Kind::Monitored, Kind::Copy].map(|kind| Match::is(kind as u32));
    let [server, operator, nobody] = [peer::SERVER, peer::OPERATOR, 0].map(Match::is);
    let [empty, elsewhere, selects] = [place::EMPTY, place::ELSEWHERE, place::SELECTS].map(Match::is);
    let [unlabelled, illegal] = [NO_RSNODE, ILLEGAL_RSNODE].map(Match::is);
    let rows: [([Match; 7], Role); 20] = [
        ([request, operator, ANY, ANY, ANY, ANY, selects], Role::Select),
        ([request, operator, ANY, ANY, ANY, ANY, ANY], Role::Retired),
        ([request, nobody, YES, NO, ANY, ANY, ANY], Role::Ask),
        ([request, nobody, YES, ANY, ANY, unlabelled, ANY], Role::Degrade),
        ([request, nobody, YES, ANY, ANY, illegal, ANY], Role::Degrade),
        ([request, nobody, YES, ANY, ANY, ANY, selects], Role::LabelHere),
        ([request, nobody, YES, ANY, ANY, ANY, empty], Role::LabelOrphan),
        ([request, nobody, YES, ANY, ANY, ANY, elsewhere], Role::Label),
        ([request, nobody, YES, ANY, ANY, ANY, ANY], Role::Orphan),
        ([request, ANY, ANY, ANY, ANY, ANY, ANY], Role::Stranger),
        ([copy, ANY, ANY, ANY, ANY, ANY, selects], Role::Show),
        ([copy, ANY, ANY, ANY, ANY, ANY, ANY], Role::Forget),
        ([ANY, nobody, ANY, ANY, ANY, ANY, ANY], Role::Stranger),
        ([ANY, server, ANY, ANY, YES, ANY, ANY], Role::Other),
        ([monitored, operator, ANY, ANY, ANY, ANY, ANY], Role::Last),
        ([monitored, ANY, ANY, ANY, ANY, ANY, ANY], Role::Pass),
        ([response, ANY, ANY, ANY, ANY, ANY, selects], Role::Copy),
        ([response, ANY, ANY, ANY, ANY, ANY, empty], Role::Pass),
        ([response, server, ANY, ANY, ANY, ANY, elsewhere], Role::ToRsNode),
        ([response, ANY, ANY, ANY, ANY, ANY, ANY], Role::Unseen),
    ];
    for (matches, role) in rows {
        let is = Action::new(role.name().to_lowercase().replace('_', " ")).set(f.role, role as u32);
        table.entry(matches, &is, &[]);
    }
    table.note("what is done with the packet");
}

/// Stage 5: after the lookups of the cookie, which occupies the same bytes.
fn stamp(b: &mut Builder, f: &Fields) {
    let i = &f.inside;
    let stamp =
        f.client.into_iter().zip(f.source).fold(Action::new("stamp"), |action, (to, from)| action.set(to, from));
    let stamp = stamp.set(f.client_port, f.source_port);
    let table = b.table(Ingress, 5, "stamp").when(f.op.is(Kind::Request as u32)).when(i.peer.is(0));
    table.when(i.host.is(1)).when(f.known.is(1)).run(&stamp).note("a client's request: its address over its cookie");
}
