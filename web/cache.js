// The page of an operator.

import { series, seriesByKey } from "./charts.js";
import { el, section, table, tiles } from "./dom.js";
import { aboutSwitch, counters, dropped, dropsTable, keyed, rateText, ratesOf, words } from "./parts.js";
import { about, count, micros, millis } from "./units.js";

const OPERATOR = ["labelled", "selected", "degraded", "without_rsnode", "delivered", "copied", "not_copied", "unknown_group",
  "untracked", "answered", "unmatched", "without_status", "statuses_invalid", "statuses_outdated", "expired"];
/** Gauges with their own tile. */
const STATES = new Set(["selector_works", "selector_under_way", "selector_busy_ns", "control_term", "control_rules"]);
const SERVERS = { silent: "bad", unknown: "warn", answers: "good" };
const GROUPS = { unknown: "bad", degraded: "warn", labelled: "good" };
/** A controller asks several times a second; after this silence it counts as missing. */
const MISSED_MS = 3000;

export const cache = { about: aboutSwitch, page };

const time = (us) => (us == null ? "" : micros(us));

function page(main) {
  const numbers = tiles([
    ["requests", "Requests a second"],
    ["selected", "Selected here"],
    ["backups", "To backups"],
    ["rsnode", "RSNode"],
    ["servers", "Servers that answer"],
    ["controller", "Controller, last word"],
    ["drops", "Drops a second"],
  ]);
  const requests = series("Requests a second", [
    { name: "towards an RSNode", swatch: "s1" },
    { name: "selected here", swatch: "s2" },
    { name: "to backups", swatch: "s3" },
  ]);
  const answers = series("Answers a second", [
    { name: "delivered", swatch: "s1" },
    { name: "copied", swatch: "s2" },
    { name: "without a copy", swatch: "s3", optional: true },
  ]);
  const each = seriesByKey("Requests a second, by server");
  const servers = table("servers-table", "Servers, as the selector sees them", [
    { title: "Server", text: (s) => s.address, sort: (s) => s.address, long: true },
    { title: "State", text: (s) => s.state, sort: (s) => s.state, tone: (s) => SERVERS[s.state] },
    { title: "Per second", text: (s) => rateText(s.asked_per_s), sort: (s) => s.asked_per_s ?? -1, numeric: true },
    { title: "Expired a second", text: (s) => (s.expired_per_s ? about(s.expired_per_s) : ""), sort: (s) => s.expired_per_s ?? -1, numeric: true, wide: true },
    { title: "In flight", text: (s) => count(s.outstanding), sort: (s) => s.outstanding, numeric: true },
    { title: "Queue", text: (s) => (s.queue == null ? "" : about(s.queue)), sort: (s) => s.queue ?? -1, numeric: true },
    { title: "Service time", text: (s) => time(s.service_us), sort: (s) => s.service_us ?? -1, numeric: true, wide: true },
    { title: "Response time", text: (s) => time(s.response_us), sort: (s) => s.response_us ?? -1, numeric: true },
    { title: "Score", text: (s) => (s.score == null ? "" : about(s.score)), sort: (s) => s.score ?? Infinity, numeric: true, wide: true },
  ], "No selector here, or it knows no server yet.");
  const groups = table("groups-table", "Traffic groups of its rack", [
    { title: "Group", text: (g) => String(g.group), sort: (g) => g.group },
    { title: "State", text: (g) => (g.state === "unknown" ? "its RSNode is not known" : g.state), sort: (g) => g.state, tone: (g) => GROUPS[g.state] },
    { title: "RSNode", text: (g) => (g.rsnode == null ? "" : String(g.rsnode)), sort: (g) => g.rsnode ?? -1, numeric: true },
    { title: "Selected at", text: (g) => g.operator ?? "", sort: (g) => g.operator ?? "" },
    { title: "Answers a second", text: (g) => rateText(g.answers_per_s), sort: (g) => g.answers_per_s ?? -1, numeric: true },
  ], "No traffic group: no client is in its rack, or no controller has given it rules.");
  const rsnodes = table("rsnodes-table", "RSNodes that it knows", [
    { title: "Id", text: (r) => String(r.id), sort: (r) => r.id },
    { title: "Operator", text: (r) => r.operator, sort: (r) => r.operator },
  ], "None.");
  const operator = counters("operator-table", "The operator");
  const beside = counters("selector-table", "Its selector, and the controller's orders");
  const drops = dropsTable();
  const missing = el("p", { class: "left", hidden: true }, "The operator has no time to tell what it knows.");
  main.append(
    section("now", "Now", numbers.list, missing),
    section("charts", "Charts", el("div", { class: "charts" }, requests.element, answers.element, each.element)),
    section("servers", "Servers, as the selector sees them", servers.element),
    section("groups", "Traffic groups of its rack", groups.element),
    section("rsnodes", "RSNodes that it knows", rsnodes.element),
    section("operator", "The operator", operator.element),
    section("selector", "Its selector, and the controller's orders", beside.element),
    section("drops", "Drops by reason", drops.element),
  );
  return function show(view, now) {
    const { status, rates, detail } = view;
    const perSecond = ratesOf(view);
    const backups = perSecond("degraded", "without_rsnode", "unknown_group");
    const all = perSecond("labelled", "degraded", "without_rsnode");
    requests.add(now, [perSecond("labelled"), perSecond("selected"), backups]);
    answers.add(now, [perSecond("delivered"), perSecond("copied"), perSecond("not_copied")]);
    numbers.set("requests", rateText(all), "of its rack");
    numbers.set("selected", rateText(perSecond("selected")), "a second");
    numbers.set("backups", rateText(backups), "a second", backups > 0 ? "warn" : "");
    numbers.set("drops", ...dropped(view));
    operator.show(OPERATOR.map((name) => ({ key: name, name: words(name), all: status[name], rate: rates[name] ?? 0 })).filter((row) => row.all > 0));
    const ofBeside = Object.entries(status.shell).filter(([name, n]) => n > 0 && /^(selector|control)_/.test(name) && !STATES.has(name));
    beside.show(ofBeside.map(([name, n]) => ({ key: name, name: words(name), all: n, rate: rates[`shell.${name}`] ?? 0 })));
    drops.show(view);
    missing.hidden = Boolean(detail);
    const known = [...(detail?.servers.shown ?? [])].sort((a, b) => a.address.localeCompare(b.address, "en", { numeric: true }));
    each.add(now, known.map((s) => ({ key: s.address, name: s.address, value: s.asked_per_s })));
    if (detail) {
      const { selector, serves, servers: list } = detail;
      numbers.set("rsnode", serves.shown.length ? "yes" : "no", selector ? `${selector.algorithm}${selector.address ? "" : " in its core"}${selector.works ? "" : ", has ended"}` : "no selector", selector && !selector.works ? "bad" : "");
      const { silent = 0, unknown = 0, answers: answering = 0 } = detail.server_states;
      numbers.set("servers", selector ? `${count(answering)} of ${count(silent + unknown + answering)}` : "–", silent ? `${count(silent)} silent` : "", silent ? "bad" : "");
      const heard = detail.controller_heard_ms;
      numbers.set("controller", heard == null ? "never" : millis(heard), detail.term ? `term ${count(detail.term)}, ${count(detail.rules)} rules` : "no rules", heard == null || heard > MISSED_MS ? "bad" : "");
      servers.show(keyed(list, (s) => s.address));
      groups.show(keyed(detail.groups, (g) => g.group));
      rsnodes.show(keyed(detail.rsnodes, (r) => r.id));
    }
    return all;
  };
}
