// The page of a replica of a store.

import { series } from "./charts.js";
import { el, say, section, table, tiles } from "./dom.js";
import { counters, groupOf, keyed, rateText, ratesOf } from "./parts.js";
import { about, count } from "./units.js";

/// Upper bound in microseconds of the bucket with this quantile.
function quantile(buckets, q) {
  const all = buckets.reduce((sum, n) => sum + n, 0);
  let below = 0;
  const bucket = buckets.findIndex((n) => (below += n) >= q * all && n > 0);
  return all > 0 && bucket >= 0 ? 2 ** bucket : null;
}

const milliseconds = (us) => (us == null ? "" : `${us < 1000 ? us / 1000 : Math.round(us / 1000)} ms`);

const ROLES = { leader: "good", follower: "good", learner: "warn", outside: "bad" };

export const replica = { about: ({ status }) => `replica ${status.replica} of set ${status.set}, reads: ${status.reads}`, page };

function page(main) {
  const numbers = tiles([
    ["role", "Role"],
    ["term", "Term"],
    ["log", "Last log index"],
    ["lag", "Not applied yet"],
    ["reads", "Reads a second"],
    ["keys", "Keys"],
    ["disk", "Log bytes"],
  ]);
  const reads = series("Reads a second", [
    { name: "served", swatch: "s2" },
    { name: "as the leader", swatch: "s1" },
    { name: "sent directly", swatch: "s5", optional: true },
    { name: "refused", swatch: "s3" },
  ]);
  const entries = series("Log entries a second", [
    { name: "committed", swatch: "s1" },
    { name: "applied", swatch: "s2" },
    { name: "writes taken", swatch: "s6", optional: true },
  ]);
  const waiting = series("Waiting", [
    { name: "reads", swatch: "s1" },
    { name: "answers to writes", swatch: "s2" },
    { name: "key groups unstable", swatch: "s3", optional: true },
  ], count);
  const members = table("members-table", "Members", [
    { title: "Replica", text: (m) => (m.isThis ? `${m.id}, this one` : `${m.id}`), sort: (m) => m.id },
    { title: "Part", text: (m) => m.part, sort: (m) => m.part },
    { title: "Has the log up to", text: (m) => (m.isLed ? count(m.matched) : ""), sort: (m) => m.matched, numeric: true },
    { title: "Behind", text: (m) => (m.isLed ? count(m.behind) : ""), sort: (m) => m.behind, numeric: true },
    { title: "Address", text: (m) => m.address, sort: (m) => m.address, wide: true },
    { title: "Links", text: (m) => m.links, sort: (m) => m.links, wide: true },
  ], "It knows no members.");
  const times = table("times-table", "Times", [
    { title: "What", text: (t) => t.name, sort: (t) => t.name },
    { title: "How often", text: (t) => count(t.number), sort: (t) => t.number, numeric: true },
    { title: "Median", text: (t) => milliseconds(t.median), sort: (t) => t.median ?? -1, numeric: true },
    { title: "99th percentile", text: (t) => milliseconds(t.high), sort: (t) => t.high ?? -1, numeric: true },
  ], "Nothing has taken time yet.");
  const did = counters("did-table", "What it has done");
  const shell = counters("shell-table", "Socket and links");
  const session = el("p", {});
  const note = el("p", { class: "left" }, "Only the leader knows how far the others are.");
  main.append(
    section("now", "Now", numbers.list, session),
    section("charts", "Charts", el("div", { class: "charts" }, reads.element, entries.element, waiting.element)),
    section("members", "Members", members.element, note),
    section("times", "How long it takes", times.element),
    section("did", "What it has done", did.element),
    section("shell", "Socket and links", shell.element),
  );
  return function show(view, now) {
    const { status } = view;
    const perSecond = ratesOf(view);
    const of = (name) => perSecond(`counters.${name}`);
    const isLeader = status.role === "leader";
    reads.add(now, [of("reads_served"), of("reads_as_leader"), of("reads_direct"), of("reads_refused")]);
    entries.add(now, [perSecond("committed"), perSecond("applied"), of("writes")]);
    waiting.add(now, [status.reads_waiting, status.answers_waiting, status.kgroups_unstable]);
    const lag = Math.max(0, status.committed - status.applied);
    numbers.set("role", status.role, isLeader ? (status.has_lease ? "with its lease" : "without its lease") : status.leader == null ? "knows no leader" : `${status.leader} leads`,
      isLeader && !status.has_lease ? "warn" : !isLeader && status.leader == null ? "bad" : ROLES[status.role] === "good" ? "" : ROLES[status.role]);
    numbers.set("term", count(status.term), status.is_changing ? "members change" : "");
    numbers.set("log", count(status.last_index), `${count(status.committed)} committed`);
    numbers.set("lag", count(lag), "of what is committed");
    numbers.set("reads", rateText(of("reads_served")), `${count(status.reads_waiting)} wait`);
    numbers.set("keys", about(status.keys), `${about(status.store_bytes)} bytes with values`);
    const refuses = isLeader && !status.has_room;
    numbers.set("disk", about(status.log_bytes), status.disk_full ? "the disk is full" : refuses ? "the others' disks are full" : `${about(status.unsafe_bytes)} wait for the disk`,
      refuses ? "bad" : status.disk_full ? "warn" : "");
    times.show(keyed({
      shown: Object.entries(status.times ?? {}).map(([name, { us }]) => ({
        name,
        number: us.reduce((sum, n) => sum + n, 0),
        median: quantile(us, 0.5),
        high: quantile(us, 0.99),
      })),
      more: 0,
    }, (t) => t.name));
    session.hidden = !isLeader;
    say(session, status.session ? `Its session is at ${status.session.switch}.` : "It has no session with a switch, so no switch passes reads.");
    note.hidden = isLeader;
    members.show(keyed({
      shown: status.members.map((m) => ({
        ...m,
        isThis: m.id === status.replica,
        isLed: isLeader,
        part: m.id === status.leader ? "leads" : "follows",
        behind: Math.max(0, status.last_index - m.matched),
      })),
      more: 0,
    }, (m) => m.id));
    did.show(groupOf(view, status.counters, "counters"));
    shell.show(groupOf(view, status.shell, "shell"));
    return of("reads_served");
  };
}
