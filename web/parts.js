// Parts shared by the pages.

import { table } from "./dom.js";
import { about, count, millis } from "./units.js";

/** A switch's description in its page header. */
export const aboutSwitch = ({ status }) => `${status.listen}, ${status.engine.kind} engine, up ${millis(status.uptime_ms)}`;

/** A counter's name as words. */
export const words = (name) => name.replaceAll("_", " ");

/** A rate; "–" if unknown. */
export const rateText = (rate) => (rate == null ? "–" : about(rate));

/** `perSecond(...names)`: the sum of a view's rates; null in the first view. */
export const ratesOf = ({ rates, period_ms: period }) => (...names) =>
  period == null ? null : names.reduce((sum, name) => sum + (rates[name] ?? 0), 0);

/** Rows of a list, with the number of omitted ones. */
export const keyed = ({ shown, more }, key) => ({ rows: shown.map((row) => ({ key: key(row), row })), more });

/** A table of counters. `show([{ key, name, all, rate }])` */
export function counters(id, caption, first = "What", empty = "Nothing yet.") {
  const { element, show } = table(id, caption, [
    { title: first, text: (c) => c.name, sort: (c) => c.name, long: true },
    { title: "Per second", text: (c) => (c.rate ? about(c.rate) : ""), sort: (c) => c.rate, numeric: true },
    { title: "Total", text: (c) => count(c.all), sort: (c) => c.all, numeric: true },
  ], empty);
  return { element, show: (list) => show({ rows: list.map((row) => ({ key: row.key, row })), more: 0 }) };
}

/** A group's nonzero counters, those with the highest rate first. */
export function groupOf({ rates }, counts, prefix) {
  const list = Object.entries(counts)
    .filter(([, all]) => all > 0)
    .map(([key, all]) => ({ key, name: words(key), all, rate: rates[`${prefix}.${key}`] ?? 0 }));
  return list.sort((a, b) => b.rate - a.rate || b.all - a.all);
}

/** Drop reasons that have occurred; every switch page has this table. */
export function dropsTable() {
  const drops = counters("drops-table", "Drops by reason", "Reason", "Nothing was dropped.");
  return { element: drops.element, show: (view) => drops.show(groupOf(view, view.status.drops, "drops").map((drop) => ({ ...drop, name: drop.key }))) };
}

/** A switch's drops per second as a tile's value, note and tone. */
export function dropped({ status, rates, period_ms: period }) {
  const rate = Object.entries(rates).reduce((sum, [name, n]) => (name.startsWith("drops.") ? sum + n : sum), 0);
  const all = Object.values(status.drops).reduce((sum, n) => sum + n, 0);
  return [period == null ? "–" : about(rate), `${about(all)} in all`];
}
