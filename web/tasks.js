// The page of a task queue.

import { histogram, series } from "./charts.js";
import { el, section, table, tiles } from "./dom.js";
import { aboutSwitch, dropped, dropsTable, keyed } from "./parts.js";
import { about, count, millis } from "./units.js";

/** Views summed up in a histogram. */
const MINUTE = 60;
const TONES = { lost: "bad", silent: "warn", alive: "good", left: "" };

export const tasks = { about: aboutSwitch, page };

function page(main) {
  const numbers = tiles([
    ["rate", "Tasks a second"],
    ["queued", "Queued"],
    ["slots", "Busy slots"],
    ["executors", "Executors"],
    ["clients", "Clients"],
    ["drops", "Drops a second"],
  ]);
  const rates = series("Tasks a second", [
    { name: "submitted", swatch: "s1" },
    { name: "completed", swatch: "s2" },
    { name: "taken back", swatch: "s3" },
  ]);
  const levels = Array.from({ length: 8 }, (_, i) => ({ name: `level ${i + 1}`, swatch: `s${i + 1}`, optional: true }));
  const queue = series("Queue by level", levels, count);
  const slots = series("Slots", [
    { name: "busy", swatch: "s1" },
    { name: "parked", swatch: "s2" },
    { name: "registered", swatch: "s4" },
  ], count);
  const waits = histogram("Wait for an executor", "s1");
  const runs = histogram("Run, as the switch sees it", "s2");
  const span = el(
    "select",
    { id: "span", "aria-label": "Histograms of" },
    el("option", { value: "minute" }, "the last minute"),
    el("option", { value: "start" }, "since the start"),
  );
  const executors = table("executors-table", "Executors", [
    { title: "Executor", long: true, text: (e) => e.address, sort: (e) => e.address, hint: (e) => `executor ${e.id}` },
    { title: "State", text: (e) => (e.had ? `${e.state}, ${count(e.had)} tasks requeued` : e.state), sort: (e) => e.state, tone: (e) => TONES[e.state] },
    { title: "Last heard", text: (e) => millis(e.heard_ms), sort: (e) => e.heard_ms, numeric: true },
    { title: "Busy / slots", text: (e) => `${count(e.busy)} / ${count(e.slots)}`, sort: (e) => e.busy, numeric: true },
    { title: "Parked", text: (e) => count(e.parked), sort: (e) => e.parked, numeric: true, wide: true },
    { title: "Longest task", text: (e) => (e.longest_ms == null ? "" : millis(e.longest_ms)), sort: (e) => e.longest_ms ?? -1, numeric: true, wide: true },
    { title: "Resources", text: (e) => e.resources.join(", "), sort: (e) => e.resources.join(), wide: true },
  ], "No executor: start one with midflight executor.");
  const jobs = table("jobs-table", "Jobs", [
    { title: "Client", long: true, text: (j) => j.address, sort: (j) => j.address, hint: (j) => `client ${j.client}` },
    { title: "Job", text: (j) => count(j.jid), sort: (j) => j.jid, numeric: true },
    { title: "Level", text: (j) => count(j.level), sort: (j) => j.level, numeric: true, wide: true },
    { title: "Queued", text: (j) => count(j.queued), sort: (j) => j.queued, numeric: true },
    { title: "Running", text: (j) => count(j.running), sort: (j) => j.running, numeric: true },
    { title: "Running again", text: (j) => (j.again ? count(j.again) : ""), sort: (j) => j.again, numeric: true },
    { title: "Oldest task", text: (j) => millis(j.oldest_ms), sort: (j) => j.oldest_ms, numeric: true, wide: true },
  ], "No job has tasks in the switch.");
  const partial = el("p", { hidden: true }, "The queue is longer than what was looked at: these are a part.");
  const clients = table("clients-table", "Clients", [
    { title: "Client", long: true, text: (c) => c.address, sort: (c) => c.address, hint: (c) => `client ${c.id}` },
    { title: "User", text: (c) => String(c.uid), sort: (c) => c.uid, numeric: true },
    { title: "Open tasks", text: (c) => count(c.open), sort: (c) => c.open, numeric: true },
    { title: "Last heard", text: (c) => millis(c.heard_ms), sort: (c) => c.heard_ms, numeric: true },
  ], "No client.");
  const drops = dropsTable();
  const missing = el("p", { class: "left", hidden: true }, "The switch does not tell who its executors and clients are.");
  const charts = el("div", { class: "charts" }, rates.element, queue.element, slots.element);
  main.append(
    section("now", "Now", numbers.list),
    section("charts", "Charts", charts),
    section("times", "Times", el("p", { class: "choice" }, el("label", { for: "span" }, "Histograms of "), span), el("div", { class: "charts" }, waits.element, runs.element)),
    section("executors", "Executors", missing, executors.element),
    section("jobs", "Jobs", partial, jobs.element),
    section("clients", "Clients", clients.element),
    section("drops", "Drops by reason", drops.element),
  );

  const recent = [];
  let latest = null;
  span.addEventListener("change", () => latest && times(latest));

  function times(view) {
    const { status } = view;
    if (span.value === "start") {
      waits.show(status.wait_us, "since the start");
      runs.show(status.run_us, "since the start");
    } else {
      const of = "the last minute";
      waits.show(sum(recent.map((detail) => detail.wait_us)), of);
      runs.show(sum(recent.map((detail) => detail.run_us)), of);
    }
  }

  return function show(view, now) {
    latest = view;
    const { status, rates: rate, detail, period_ms: period } = view;
    const perSecond = (name) => (period == null ? null : rate[name] ?? 0);
    const queued = status.queued.reduce((all, n) => all + n, 0);
    rates.add(now, [perSecond("tasks.submitted"), perSecond("tasks.completed"), period == null ? null : (rate["tasks.expired"] ?? 0) + (rate["tasks.returned"] ?? 0)]);
    queue.add(now, levels.map((_, i) => status.queued[i] ?? 0));
    slots.add(now, [status.busy, status.parked, status.slots]);

    numbers.set("rate", period == null ? "–" : about(perSecond("tasks.completed")), `${about(status.tasks.completed)} completed`);
    numbers.set("queued", about(queued), status.for_place ? `${count(status.for_place)} for their place` : "", queued > 0 && status.parked > 0 ? "warn" : "");
    numbers.set("slots", about(status.busy), `of ${count(status.slots)}, ${count(status.parked)} parked`);
    numbers.set("clients", count(status.clients));
    numbers.set("drops", ...dropped(view));
    if (detail) {
      const { alive = 0, silent = 0, lost = 0 } = detail.states;
      const gone = [silent && `${count(silent)} silent`, lost && `${count(lost)} lost`].filter(Boolean).join(", ");
      numbers.set("executors", count(alive + silent), gone, lost ? "bad" : silent ? "warn" : "");
      executors.show(keyed(detail.executors, (e) => e.id));
      jobs.show(keyed(detail.jobs, (j) => `${j.client} ${j.jid}`));
      clients.show(keyed(detail.clients, (c) => c.id));
      partial.hidden = !detail.jobs_are_partial;
      recent.push(detail);
      if (recent.length > MINUTE) recent.shift();
    }
    missing.hidden = Boolean(detail);
    times(view);
    drops.show(view);
    return perSecond("tasks.completed");
  };
}

function sum(histograms) {
  const total = [];
  for (const one of histograms) one.forEach((n, b) => (total[b] = (total[b] ?? 0) + n));
  return total;
}
