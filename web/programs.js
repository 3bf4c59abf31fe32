// The pages of a store's switch and of an operator: their counters, and how much of each comes in a second.

import { series } from "./charts.js";
import { el, section, table, tiles } from "./dom.js";
import { dropsTable } from "./tasks.js";
import { about, count } from "./units.js";

const words = (name) => name.replaceAll("_", " ");

/** A table of counters. `show([{ key, name, all, rate }])` */
function counters(id, caption) {
  const { element, show } = table(id, caption, [
    { title: "What", text: (c) => c.name, sort: (c) => c.name },
    { title: "A second", text: (c) => (c.rate ? about(c.rate) : ""), sort: (c) => c.rate, numeric: true },
    { title: "In all", text: (c) => count(c.all), sort: (c) => c.all, numeric: true },
  ], "Nothing yet.");
  return { element, show: (list) => show({ rows: list.map((row) => ({ key: row.key, row })), more: 0 }) };
}

export function readsPage(main) {
  const numbers = tiles([["reads", "Reads a second"], ["followers", "By followers"], ["writes", "Writes a second"], ["unstable", "Unstable key groups"]]);
  const who = series("Who serves reads, a second", [
    { name: "followers", swatch: "s2" },
    { name: "leader", swatch: "s1" },
    { name: "leader only", swatch: "s3" },
  ]);
  const writes = series("Writes a second", [
    { name: "writes", swatch: "s1" },
    { name: "closed", swatch: "s2" },
  ]);
  const sets = table("sets-table", "Replica sets", [
    { title: "Set", text: (s) => String(s.set), sort: (s) => s.set, numeric: true },
    { title: "Sessions", text: (s) => count(s.sessions), sort: (s) => s.sessions, numeric: true },
    { title: "To followers", text: (s) => count(s.reads_to_followers), sort: (s) => s.reads_to_followers, numeric: true },
    { title: "To the leader", text: (s) => count(s.reads_to_leader), sort: (s) => s.reads_to_leader, numeric: true },
    { title: "Leader only", text: (s) => count(s.reads_leader_only), sort: (s) => s.reads_leader_only, numeric: true },
    { title: "Turned back", text: (s) => count(s.reads_turned_back), sort: (s) => s.reads_turned_back, numeric: true, wide: true },
    { title: "Writes", text: (s) => count(s.writes), sort: (s) => s.writes, numeric: true },
    { title: "Unstable", text: (s) => count(s.unstable), sort: (s) => s.unstable, numeric: true },
  ], "No replica set.");
  const drops = dropsTable();
  main.append(
    section("now", "Now", numbers.list),
    section("charts", "Charts", el("div", { class: "charts" }, who.element, writes.element)),
    section("sets", "Replica sets", sets.element),
    section("drops", "Drops by reason", drops.element),
  );
  return function show(view) {
    const { status, rates, period_ms: period } = view;
    const all = (name) => status.sets.reduce((sum, { set }) => sum + (rates[`sets.${set}.${name}`] ?? 0), 0);
    const perSecond = (name) => (period == null ? null : all(name));
    const [followers, leader, only] = ["reads_to_followers", "reads_to_leader", "reads_leader_only"].map(perSecond);
    const now = Date.now() / 1000;
    who.add(now, [followers, leader, only]);
    writes.add(now, [perSecond("writes"), perSecond("closed")]);
    const reads = followers + leader + only;
    numbers.set("reads", period == null ? "–" : about(reads));
    numbers.set("followers", reads > 0 ? `${about((followers / reads) * 100)} %` : "–", "of the reads");
    numbers.set("writes", period == null ? "–" : about(perSecond("writes")));
    numbers.set("unstable", count(status.sets.reduce((sum, set) => sum + set.unstable, 0)));
    sets.show({ rows: status.sets.map((row) => ({ key: String(row.set), row })), more: 0 });
    drops.show(view);
  };
}

const OPERATOR = ["labelled", "selected", "degraded", "without_rsnode", "delivered", "copied", "not_copied", "unknown_group",
  "untracked", "answered", "unmatched", "without_status", "statuses_absurd", "statuses_outdated", "expired"];

export function replicasPage(main) {
  const numbers = tiles([["requests", "Requests a second"], ["selected", "Selected here"], ["degraded", "To backups"], ["delivered", "Answers a second"]]);
  const requests = series("Requests a second", [
    { name: "towards an RSNode", swatch: "s1" },
    { name: "selected here", swatch: "s2" },
    { name: "to backups", swatch: "s3" },
  ]);
  const answers = series("Answers a second", [
    { name: "delivered", swatch: "s1" },
    { name: "copied", swatch: "s2" },
  ]);
  const operator = counters("operator-table", "The operator");
  const selector = counters("selector-table", "Selector and orders");
  const drops = dropsTable();
  main.append(
    section("now", "Now", numbers.list),
    section("charts", "Charts", el("div", { class: "charts" }, requests.element, answers.element)),
    section("operator", "The operator", operator.element),
    section("selector", "Its selector, and the controller's orders", selector.element),
    section("drops", "Drops by reason", drops.element),
  );
  return function show(view) {
    const { status, rates, period_ms: period } = view;
    const perSecond = (...names) => (period == null ? null : names.reduce((sum, name) => sum + (rates[name] ?? 0), 0));
    const backups = perSecond("degraded", "without_rsnode", "unknown_group");
    const now = Date.now() / 1000;
    requests.add(now, [perSecond("labelled"), perSecond("selected"), backups]);
    answers.add(now, [perSecond("delivered"), perSecond("copied")]);
    const text = (value) => (value == null ? "–" : about(value));
    numbers.set("requests", text(perSecond("labelled", "degraded", "without_rsnode")));
    numbers.set("selected", text(perSecond("selected")), "a second");
    numbers.set("degraded", text(backups), "a second", backups > 0 ? "warn" : "");
    numbers.set("delivered", text(perSecond("delivered")));
    operator.show(OPERATOR.map((name) => ({ key: name, name: words(name), all: status[name], rate: rates[name] ?? 0 })));
    const beside = Object.entries(status.shell).filter(([name]) => /^(selector|control)_/.test(name));
    selector.show(beside.map(([name, all]) => ({ key: name, name: words(name), all, rate: rates[`shell.${name}`] ?? 0 })));
    drops.show(view);
  };
}
