// The page of a controller.

import { series, seriesByKey } from "./charts.js";
import { el, say, section, table, tiles } from "./dom.js";
import { counters, groupOf, keyed, ratesOf } from "./parts.js";
import { about, count, millis } from "./units.js";

export const controller = { about: ({ status }) => `controller at place ${status.place}, of ${status.controllers.length}`, page };

const ROLES = { active: "", claiming: "warn", standby: "" };

function stateOf(o, isActive) {
  if (!o.is_connected) return ["not connected", "bad"];
  if (!o.is_alive) return ["dead", "bad"];
  if (o.refused) return [`refuses ${count(o.refused)} orders`, "bad"];
  if (isActive && !o.is_up_to_date) return ["gets its rules", "warn"];
  return o.is_barred ? ["alive, in no plan", "warn"] : ["alive", "good"];
}

function page(main) {
  const numbers = tiles([
    ["role", "This controller"],
    ["operators", "Operators that answer"],
    ["rsnodes", "RSNodes"],
    ["groups", "Groups with an RSNode"],
    ["plan", "Plan"],
    ["failures", "Failures"],
  ]);
  const loads = seriesByKey("Packets a second, by selector");
  const orders = series("Messages a second", [
    { name: "reports", swatch: "s2" },
    { name: "orders", swatch: "s1" },
    { name: "repeated", swatch: "s3", optional: true },
  ]);
  const controllers = table("controllers-table", "Controllers", [
    { title: "Place", text: (c) => String(c.place), sort: (c) => c.place },
    { title: "Address", text: (c) => c.address, sort: (c) => c.address },
    { title: "Role", text: (c) => c.role, sort: (c) => c.role },
  ], "None.");
  const operators = table("operators-table", "Operators", [
    { title: "Operator", text: (o) => o.switch, sort: (o) => o.switch, hint: (o) => o.address },
    { title: "State", text: (o) => o.state[0], sort: (o) => o.state[0], tone: (o) => o.state[1] },
    { title: "Last heard", text: (o) => (o.heard_ms == null ? "never" : millis(o.heard_ms)), sort: (o) => o.heard_ms ?? Infinity, numeric: true },
    { title: "RSNode", text: (o) => o.ids, sort: (o) => o.ids },
    { title: "Load", text: (o) => (o.may_select ? `${about(o.load_per_s)} / s` : ""), sort: (o) => o.load_per_s, numeric: true },
    { title: "At most", text: (o) => (o.may_select ? `${about(o.load_most_per_s)} / s` : ""), sort: (o) => o.load_most_per_s, numeric: true, wide: true },
    { title: "Address", text: (o) => o.address, sort: (o) => o.address, wide: true },
  ], "The topology has no operator.");
  const groups = table("groups-table", "Traffic groups", [
    { title: "Group", text: (g) => g.group, sort: (g) => g.group },
    { title: "Selected at", text: (g) => g.at, sort: (g) => g.at, tone: (g) => (g.label == null ? "warn" : "") },
    { title: "Planned", text: (g) => g.wanted ?? "degraded", sort: (g) => g.wanted ?? "" },
    { title: "Requests", text: (g) => `${about(g.requests_per_s)} / s`, sort: (g) => g.requests_per_s, numeric: true },
  ], "The network has no traffic group.");
  const did = counters("did-table", "What it has done");
  const shell = counters("shell-table", "Streams to operators");
  const others = el("p", { class: "left" });
  main.append(
    section("now", "Now", numbers.list),
    section("charts", "Charts", el("div", { class: "charts" }, loads.element, orders.element)),
    section("operators", "Operators", operators.element),
    section("groups", "Traffic groups", groups.element),
    section("controllers", "Controllers", controllers.element, others),
    section("did", "What it has done", did.element),
    section("shell", "Streams to operators", shell.element),
  );
  return function show(view, now) {
    const { status, detail } = view;
    const perSecond = ratesOf(view);
    const isActive = status.role === "active";
    const selecting = detail.operators.shown.filter((o) => o.may_select);
    selecting.sort((a, b) => a.switch.localeCompare(b.switch, "en", { numeric: true }));
    loads.add(now, selecting.map((o) => ({ key: o.switch, name: o.switch, value: o.load_per_s })));
    orders.add(now, ["reports", "sets", "repeats"].map((name) => perSecond(`counters.${name}`)));

    const { rsnodes, operators_all: all, operators_silent: silent, groups_all: groupsAll, groups_degraded: degraded } = detail;
    const serving = rsnodes.shown.filter((r) => r.used === "serving").length;
    const heard = status.other_heard_ms;
    const other = heard == null ? "no other was heard of" : `another is active, heard ${millis(heard)} ago`;
    numbers.set("role", status.role, status.term ? `term ${count(status.term)}` : other, ROLES[status.role]);
    numbers.set("operators", `${count(all - silent)} of ${count(all)}`, silent ? `${count(silent)} do not answer` : "", silent ? "bad" : "");
    // A standby does not know the rules.
    numbers.set("rsnodes", isActive ? count(serving) : "–", status.plan ? `${count(status.plan.bound)} at least` : "");
    numbers.set("groups", isActive ? `${count(groupsAll - degraded)} of ${count(groupsAll)}` : "–", degraded && isActive ? `${count(degraded)} degraded` : "", degraded && isActive ? "warn" : "");
    const plan = status.plan;
    numbers.set("plan", !isActive ? "–" : status.is_deployed ? "deployed" : "moves", plan ? `${plan.method}, ${plan.took_ms ? millis(plan.took_ms) : "below 1 ms"}` : "no plan taken yet");
    const { failures, takeovers } = status.counters;
    numbers.set("failures", count(failures), `${count(takeovers)} takeovers`);

    const idsOf = (name) => rsnodes.shown.filter((r) => r.switch === name).map((r) => (r.used === "serving" ? `${r.id}` : `${r.id} ${r.used}`)).join(", ");
    operators.show(keyed({ shown: detail.operators.shown.map((o) => ({ ...o, state: stateOf(o, isActive), ids: idsOf(o.switch) })), more: detail.operators.more }, (o) => o.switch));
    const where = (label) => (label == null ? (isActive ? "degraded" : "not known") : (rsnodes.shown.find((r) => r.id === label)?.switch ?? `RSNode ${label}`));
    groups.show(keyed({ shown: detail.groups.shown.map((g) => ({ ...g, at: where(g.label) })), more: detail.groups.more }, (g) => g.group));
    controllers.show(keyed({ shown: status.controllers.map((address, place) => ({ place, address, role: place === status.place ? `this one, ${status.role}` : isActive ? "standby, not confirmed" : "" })), more: 0 }, (c) => c.place));
    others.hidden = isActive;
    say(others, `This one does not give orders: ${other}.`);
    did.show(groupOf(view, status.counters, "counters"));
    shell.show(groupOf(view, status.shell, "shell"));
    return null;
  };
}
