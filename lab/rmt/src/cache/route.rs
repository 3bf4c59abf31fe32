//! Stage 6: the packet's destination and start.

use super::fields::{Fields, ILLEGAL_RSNODE, Kind, XOR, at};
use super::{Did, Role};
use crate::Pipeline::Ingress;
use crate::{Action, Builder, Destination, Field, Match};

const ANY: Match = Match::ANY;
const NONE: Match = Match::is(0);
/// The port of the switch's own CPU.
const CPU: u32 = 192;

pub(super) fn declare(b: &mut Builder, f: &Fields) {
    let i = &f.inside;
    // The rest of the copy is in its datagram.
    let copy =
        b.mirror("copy for the selector", (f.op, Kind::Copy as u32), &[(f.rsnode, f.rsnode), (f.marker, f.marker)]);
    let table = b.table(Ingress, 6, "route").ternary(f.role).ternary(i.named).ternary(i.at).ternary(f.client_port);
    table.ternary(i.has_rack);
    let is = |role: Role| Match::is(role as u32);
    let [here, away] = [at::HERE, at::AWAY].map(Match::is);
    let ends = |name: &str, did: Did| Action::new(name).set(f.did, did as u32);

    let selected = sent(f, "to the selector", Did::Sent, i.selector);
    table.entry([is(Role::Select), ANY, ANY, ANY, ANY], &selected, &[]);
    let labelled = |action: Action| action.set(f.rsnode, i.id);
    let here_labelled = labelled(sent(f, "labelled, to the selector", Did::Sent, i.selector));
    table.entry([is(Role::LabelHere), ANY, ANY, ANY, ANY], &here_labelled, &[]);
    let away_labelled = labelled(sent(f, "labelled, to the RSNode", Did::Sent, i.rsnode_to));
    table.entry([is(Role::Label), ANY, ANY, ANY, ANY], &away_labelled, &[]);

    let backup = sent(f, "to the backup", Did::Sent, (f.server, f.server_port)).set(f.rsnode, ILLEGAL_RSNODE);
    let backup = backup.set(f.op, Kind::Monitored as u32 | XOR);
    let no_backup = ends("no such server", Did::NoServer).drop("unknown server");
    for role in [Role::Degrade, Role::Orphan, Role::LabelOrphan, Role::Retired] {
        table.entry([is(role), NONE, ANY, ANY, ANY], &no_backup, &[]);
        table.entry([is(role), ANY, ANY, ANY, ANY], &backup, &[]);
    }
    let asks = ends("to the controller", Did::Asked).forward(Destination::Port(CPU.into()));
    table.entry([is(Role::Ask), ANY, ANY, ANY, ANY], &asks, &[]);
    for (role, what) in
        [(Role::Stranger, "unknown sender"), (Role::Other, "other server"), (Role::Forget, "no selector")]
    {
        table.entry([is(role), ANY, ANY, ANY, ANY], &ends("refuse", Did::Refused).drop(what), &[]);
    }
    let on = sent(f, "to its RSNode", Did::Sent, i.rsnode_to);
    table.entry([is(Role::ToRsNode), ANY, ANY, ANY, ANY], &on, &[]);

    let monitored = |action: Action| action.set(f.op, Kind::Monitored as u32);
    let shown = monitored(sent(f, "copy to the selector", Did::Sent, i.selector));
    table.entry([is(Role::Show), ANY, ANY, ANY, ANY], &shown, &[]);
    let deliver = monitored(sent(f, "to the client", Did::Delivered, (f.client, f.client_port)));
    let pass = monitored(sent(f, "to the client's operator", Did::Sent, i.rack_to));
    let nobody = ends("no such client", Did::NoClient).drop("unknown client");
    for role in [Role::Copy, Role::Pass, Role::Unseen, Role::Last] {
        let copied = |action: &Action, name: &str| match role {
            Role::Copy => Action { name: name.into(), ..action.clone() }.mirror(copy),
            _ => action.clone(),
        };
        table.entry([is(role), ANY, ANY, NONE, ANY], &nobody, &[]);
        table.entry([is(role), ANY, here, ANY, ANY], &copied(&deliver, "to the client, and a copy"), &[]);
        if role != Role::Last {
            let pass = copied(&pass, "to the client's operator, and a copy");
            table.entry([is(role), ANY, away, ANY, Match::is(1)], &pass, &[]);
        }
        table.entry([is(role), ANY, ANY, ANY, ANY], &nobody, &[]);
    }
    table.note("where the packet goes, and what its start says");
}

fn sent(f: &Fields, name: &str, did: Did, (ip, port): ([Field; 4], Field)) -> Action {
    let sent = Action::new(name).set(f.did, did as u32).set(f.to_port, port).forward(Destination::Requester);
    f.to.into_iter().zip(ip).fold(sent, |action, (to, from)| action.set(to, from))
}
