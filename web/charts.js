// Live series and histograms, drawn by uPlot.
/* global uPlot */

import { el, say } from "./dom.js";
import { colour, onTheme } from "./theme.js";
import { about, count, micros, quantile } from "./units.js";

/** Views a live chart keeps: ten minutes. */
const KEPT = 600;
const HEIGHT = 190;
/** Number of colours. */
const LINES = 8;
const all = new Set();

onTheme(() => all.forEach((chart) => chart.redraw()));
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) all.forEach((chart) => chart.draw());
});

/** Seconds of Unix time as local time of day. */
const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString("en-GB");

function axis(options) {
  const line = { stroke: () => colour("--line"), width: 1 };
  return { stroke: () => colour("--muted"), grid: line, ticks: { ...line, size: 4 }, font: "12px system-ui", ...options };
}

/** A figure with caption, legend, and room for a chart of its width. */
function figure(title) {
  const legend = el("ul", { class: "legend" });
  const place = el("div", { class: "chart", "aria-hidden": "true" });
  const caption = el("figcaption", {}, title);
  return { element: el("figure", {}, caption, place, legend), caption, place, legend };
}

function fit(place, chart) {
  new ResizeObserver(([{ contentRect }]) => {
    const width = Math.floor(contentRect.width);
    if (width > 0 && width !== chart.width) chart.setSize({ width, height: HEIGHT });
  }).observe(place);
}

function entry(legend, name, swatch) {
  const value = el("b", {}, "–");
  const label = el("span", {}, name);
  const item = el("li", {}, el("i", { class: `swatch ${swatch}` }), label, " ", value);
  legend.append(item);
  return { item, label, value };
}

/**
 * Lines over time. lines: [{ name, swatch, optional }]; swatch: a colour's name. The legend shows an optional line only while it has
 * nonzero values. `add(time, values)`; null makes a gap. `name(line, text)` renames a line.
 */
export function series(title, lines, text = about) {
  const { element, place, legend } = figure(title);
  const data = [[], ...lines.map(() => [])];
  const entries = lines.map(({ name, swatch }) => entry(legend, name, swatch));
  const options = {
    width: 300,
    height: HEIGHT,
    padding: [8, 26, 0, 0],
    legend: { show: false },
    cursor: { sync: { key: "midflight" }, drag: { x: false, y: false }, points: { size: 6 } },
    scales: { x: { time: true }, y: { range: (_, low, high) => [Math.min(0, low), high > 0 ? high * 1.1 : 1] } },
    axes: [axis({ space: 90, size: 32, values: (_, ticks) => ticks.map(clock) }), axis({ size: 52, values: (_, ticks) => ticks.map(about) })],
    series: [
      {},
      ...lines.map(({ name, swatch }) => ({
        label: name,
        stroke: () => colour(`--${swatch}`),
        width: 2,
        points: { show: false },
      })),
    ],
  };
  const plot = new uPlot(options, data, place);
  fit(place, plot);
  const tell = (at) =>
    entries.forEach(({ value }, i) => {
      const shown = data[i + 1][at];
      say(value, shown == null ? "–" : text(shown));
    });
  plot.hooks.setCursor = [({ cursor }) => tell(cursor.idx ?? data[0].length - 1)];
  const draw = () => {
    if (!document.hidden) plot.setData(data);
  };
  all.add({ draw, redraw: () => plot.redraw(false, true) });
  return {
    element,
    name: (line, text) => say(entries[line].label, text),
    add(time, values) {
      [time, ...values].forEach((value, i) => {
        data[i].push(value);
        if (data[i].length > KEPT) data[i].shift();
      });
      lines.forEach(({ optional }, i) => {
        if (optional) entries[i].item.hidden = data[i + 1].every((value) => !value);
      });
      draw();
      if (plot.cursor.idx == null) tell(data[0].length - 1);
    },
  };
}

/**
 * A line for each of the first eight keys. `add(time, [{ key, name, value }])`; a missing key makes a gap.
 */
export function seriesByKey(title, text = about) {
  const lines = Array.from({ length: LINES }, (_, i) => ({ name: "", swatch: `s${i + 1}`, optional: true }));
  const { element, name, add } = series(title, lines, text);
  const known = new Map();
  return {
    element,
    add(time, things) {
      const values = Array(LINES).fill(null);
      for (const thing of things) {
        if (!known.has(thing.key) && known.size < LINES) known.set(thing.key, known.size);
        const line = known.get(thing.key);
        if (line == null) continue;
        name(line, thing.name);
        values[line] = thing.value;
      }
      add(time, values);
    },
  };
}

/** A histogram whose bucket b counts times of 2^(b-1) to 2^b µs. `show(buckets)` */
export function histogram(title, swatch) {
  const { element, place, legend, caption } = figure(title);
  const quantiles = [
    ["median below", 0.5],
    ["p99 below", 0.99],
  ].map(([name, q]) => ({ q, ...entry(legend, name, swatch) }));
  const number = entry(legend, "tasks", swatch);
  let buckets = [];
  let first = 0;
  let data = [[0], [0]];
  const options = {
    width: 300,
    height: HEIGHT,
    padding: [8, 26, 0, 0],
    legend: { show: false },
    cursor: { show: false },
    scales: { x: { time: false, range: (_, low, high) => [low - 0.6, high + 0.6] }, y: { range: (_, __, high) => [0, high > 0 ? high * 1.1 : 1] } },
    axes: [
      axis({ space: 58, size: 32, incrs: [1, 2, 3, 4, 6, 8, 12], values: (_, ticks) => ticks.map((b) => (Number.isInteger(b) && b >= 0 ? micros(2 ** b) : "")) }),
      axis({ size: 52, values: (_, ticks) => ticks.map(about) }),
    ],
    series: [
      {},
      {
        stroke: () => colour(`--${swatch}`),
        fill: () => colour(`--${swatch}`),
        width: 0,
        points: { show: false },
        paths: uPlot.paths.bars({ size: [0.85, 64] }),
      },
    ],
  };
  const plot = new uPlot(options, data, place);
  fit(place, plot);
  const draw = () => {
    if (!document.hidden) plot.setData(data);
  };
  all.add({ draw, redraw: () => plot.redraw(false, true) });
  return {
    element,
    /** of: what the histogram covers, shown after the title. */
    show(counts, of) {
      buckets = counts;
      say(caption, `${title}, ${of}`);
      const used = buckets.findLastIndex((n) => n > 0);
      first = Math.max(0, buckets.findIndex((n) => n > 0) - 1);
      const end = Math.max(used + 1, first + 6);
      const xs = Array.from({ length: end - first + 1 }, (_, i) => first + i);
      data = [xs, xs.map((b) => buckets[b] ?? 0)];
      draw();
      for (const { q, value } of quantiles) {
        const us = quantile(buckets, q);
        say(value, us == null ? "–" : micros(us));
      }
      say(number.value, count(buckets.reduce((sum, n) => sum + n, 0)));
    },
  };
}
