// The page of a store's switch.

import { series, seriesByKey } from "./charts.js";
import { el, section, table, tiles } from "./dom.js";
import { aboutSwitch, counters, dropped, dropsTable, keyed, rateText, ratesOf } from "./parts.js";
import { about, count, millis } from "./units.js";

const TONES = { silent: "bad", out: "warn", no_reads: "warn", waits: "warn", serves: "good", leads: "good" };
const STATES = { out: "out of the session", no_reads: "gets no reads", waits: "waits for a session" };

/** Outcomes of reads, by the counter's name. */
const BECAME = [
  ["reads_to_followers", "to a follower: its key group is stable, and it is up to date"],
  ["reads_to_leader", "to the leader, as one of those that are up to date"],
  ["reads_leader_only", "to the leader, as nobody else may answer: a write is under way, or no other replica is up to date"],
  ["reads_turned_back", "to the leader in the end: a follower's reply was overtaken by a write, or it was behind"],
  ["replies_outdated", "asked again by the client: the leader's reply came after its session"],
  ["reads_direct", "of those above: the replica may answer the client directly"],
];

export const store = { about: aboutSwitch, page };

function page(main) {
  const numbers = tiles([
    ["reads", "Reads a second"],
    ["followers", "By followers"],
    ["writes", "Writes a second"],
    ["replicas", "Replicas heard"],
    ["session", "Session"],
    ["drops", "Drops a second"],
  ]);
  const who = series("Reads a second, by why there", [
    { name: "followers", swatch: "s2" },
    { name: "leader, one of several", swatch: "s1" },
    { name: "leader only", swatch: "s3" },
    { name: "turned back", swatch: "s6", optional: true },
  ]);
  const each = seriesByKey("Reads a second, by replica");
  const writes = series("Writes a second", [
    { name: "writes", swatch: "s1" },
    { name: "closed", swatch: "s2" },
  ]);
  const replicas = table("replicas-table", "Replicas", [
    { title: "Replica", text: nameOf, sort: nameOf, hint: (r) => `slot ${r.slot} of set ${r.set}` },
    { title: "State", text: (r) => STATES[r.state] ?? r.state, sort: (r) => r.state, tone: (r) => TONES[r.state] },
    { title: "Reads a second", text: (r) => rateText(r.reads_per_s), sort: (r) => r.reads_per_s ?? -1, numeric: true },
    { title: "Share", text: (r) => (r.share == null ? "–" : `${about(r.share * 100)} %`), sort: (r) => r.share ?? -1, numeric: true },
    { title: "Lag", text: (r) => count(r.lag), sort: (r) => r.lag, numeric: true },
    { title: "Log index", text: (r) => count(r.matched), sort: (r) => r.matched, numeric: true, wide: true },
    { title: "Last heard", text: (r) => (r.heard_ms == null ? "never" : millis(r.heard_ms)), sort: (r) => r.heard_ms ?? Infinity, numeric: true, wide: true },
    { title: "Weight", text: (r) => count(r.weight), sort: (r) => r.weight, numeric: true, wide: true },
    { title: "Address", text: (r) => r.address, sort: (r) => r.address, wide: true },
  ], "No replica is known: name them in the configuration.");
  const sets = table("sets-table", "Replica sets", [
    { title: "Set", text: (s) => String(s.set), sort: (s) => s.set },
    { title: "Session", text: sessionText, sort: sessionText, tone: (s) => (s.session?.ends_in_ms == null ? "bad" : "good") },
    { title: "Sessions", text: (s) => count(s.sessions), sort: (s) => s.sessions, numeric: true },
    { title: "Unstable", text: (s) => count(s.unstable), sort: (s) => s.unstable, numeric: true },
    { title: "Writes under way", text: (s) => count(s.writes_under_way), sort: (s) => s.writes_under_way, numeric: true },
    { title: "Reads go to", text: (s) => (s.any_replica ? "any replica" : s.policy), sort: (s) => s.policy, wide: true },
    { title: "Replies", text: (s) => s.reply_check, sort: (s) => s.reply_check, wide: true },
  ], "No replica set.");
  const became = counters("became-table", "What became of reads", "A read went");
  const drops = dropsTable();
  const missing = el("p", { class: "left", hidden: true }, "The switch does not tell what it knows of its replicas.");
  main.append(
    section("now", "Now", numbers.list),
    section("charts", "Charts", el("div", { class: "charts" }, who.element, each.element, writes.element)),
    section("replicas", "Replicas", missing, replicas.element),
    section("sets", "Sessions", sets.element),
    section("became", "What became of reads", became.element),
    section("drops", "Drops by reason", drops.element),
  );
  return function show(view, now) {
    const { status, detail } = view;
    const perSecond = ratesOf(view);
    const ofSets = (name) => perSecond(...status.sets.map(({ set }) => `sets.${set}.${name}`));
    const kinds = ["reads_to_followers", "reads_to_leader", "reads_leader_only"].map(ofSets);
    who.add(now, [...kinds, ofSets("reads_turned_back")]);
    writes.add(now, [ofSets("writes"), ofSets("closed")]);
    const all = kinds.reduce((sum, rate) => sum + rate, 0);
    const unstable = status.sets.reduce((sum, set) => sum + set.unstable, 0);
    numbers.set("reads", view.period_ms == null ? "–" : about(all));
    numbers.set("followers", all > 0 ? `${about((kinds[0] / all) * 100)} %` : "–", "of the reads");
    numbers.set("writes", rateText(ofSets("writes")), `${count(unstable)} key groups unstable`);
    numbers.set("drops", ...dropped(view));
    drops.show(view);
    became.show(BECAME.map(([key, name]) => ({ key, name, all: status.sets.reduce((sum, set) => sum + set[key], 0), rate: ofSets(key) })).filter((row) => row.all > 0));
    missing.hidden = Boolean(detail);
    const known = detail?.sets.shown ?? [];
    const list = known.flatMap(withShares);
    each.add(now, list.map((r) => ({ key: `${r.set} ${r.address}`, name: `replica ${nameOf(r)}`, value: r.reads_per_s })));
    replicas.show({ rows: list.map((row) => ({ key: `${row.set} ${row.slot}`, row })), more: 0 });
    sets.show(keyed({ shown: status.sets.map((set) => ({ ...set, ...known.find((one) => one.set === set.set) })), more: 0 }, (s) => String(s.set)));
    const silent = list.filter((r) => r.state === "silent").length;
    numbers.set("replicas", detail ? `${count(list.length - silent)} of ${count(list.length)}` : "–", silent ? `${count(silent)} silent` : "", silent ? "bad" : "");
    const ended = known.filter((set) => set.session?.ends_in_ms == null).length;
    numbers.set("session", !detail ? "–" : ended ? "none" : known.length === 1 ? `term ${count(known[0].session.term)}` : "all", ended ? `of ${count(ended)} sets` : "", ended ? "bad" : "");
    return view.period_ms == null ? null : all;
  };
}

/** A set's replicas with their shares of its reads, known from the second view on. */
function withShares({ set, replicas }, _, all) {
  const sum = replicas.reduce((total, r) => total + (r.reads_per_s ?? 0), 0);
  return replicas.map((r) => ({ ...r, set, isOne: all.length === 1, share: sum > 0 ? r.reads_per_s / sum : null }));
}

function nameOf({ set, replica, slot, isOne }) {
  const name = replica == null ? `slot ${slot}` : `${replica}`;
  return isOne ? name : `${set} / ${name}`;
}

function sessionText({ session }) {
  if (!session) return "none yet";
  const name = `term ${count(session.term)}, number ${count(session.number)}`;
  return session.ends_in_ms == null ? `ended: ${name}` : name;
}
