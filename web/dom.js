// Helpers for elements. Text from the network always becomes a text node.

/** An element with attributes and children; a string child becomes text. */
export function el(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(key, "");
    else if (value !== false && value != null) element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

/** Control characters and bidirectional formatting: invisible, but they change how other text is shown. */
const CODES = /[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/** Sets a text only if it differs, to keep selections and not disturb screen readers. */
export function say(element, text) {
  const shown = String(text).replace(CODES, " ");
  if (element.textContent !== shown) element.textContent = shown;
}

/** A section with a heading. The section's number key focuses the heading. */
export function section(id, title, ...children) {
  const heading = el("h2", { id: `${id}-title`, tabindex: "-1" }, title);
  return el("section", { id, "aria-labelledby": `${id}-title` }, heading, ...children);
}

/** A list of names and large values. `set(name, value, note, tone)` */
export function tiles(names) {
  const list = el("dl", { class: "tiles" });
  const byName = new Map();
  for (const [name, title] of names) {
    const value = el("dd", { "data-tile": name }, "–");
    const note = el("dd", { class: "note" });
    const tile = el("div", {}, el("dt", {}, title), value, note);
    byName.set(name, { tile, value, note });
    list.append(tile);
  }
  const set = (name, text, about = "", tone = "") => {
    const { tile, value, note } = byName.get(name);
    say(value, text);
    say(note, about);
    tile.dataset.tone = tone;
  };
  return { list, set };
}

/**
 * A table with rows by key, sorted by the column the user selects.
 * columns: { title, text(row), sort(row), tone(row), hint(row), numeric, wide, long }. Narrow screens hide `wide` columns and wrap `long`
 * ones.
 */
export function table(id, caption, columns, empty) {
  const head = el("tr");
  const body = el("tbody");
  const left = el("p", { class: "left", hidden: true });
  const rows = new Map();
  let order = null;
  const scroller = el(
    "div",
    { class: "scroller", tabindex: "0", role: "region", "aria-label": caption },
    el("table", { id }, el("caption", { class: "hidden" }, caption), el("thead", {}, head), body),
  );
  const headers = columns.map((column, at) => {
    const button = el("button", { type: "button" }, column.title);
    const header = el("th", { scope: "col", class: classes(column) }, button);
    button.addEventListener("click", () => {
      order = order?.at !== at ? { at, down: Boolean(column.numeric) } : { at, down: !order.down };
      headers.forEach((other, i) => {
        if (i === at) other.setAttribute("aria-sort", order.down ? "descending" : "ascending");
        else other.removeAttribute("aria-sort");
      });
      show(last);
    });
    head.append(header);
    return header;
  });
  let last = { rows: [], more: 0 };

  function sorted(list) {
    if (!order) return list;
    const { sort } = columns[order.at];
    const sign = order.down ? -1 : 1;
    return [...list].sort((a, b) => {
      const [x, y] = [sort(a.row), sort(b.row)];
      return sign * (typeof x === "string" ? x.localeCompare(y, "en", { numeric: true }) : x - y);
    });
  }

  function cells(tr, row) {
    columns.forEach((column, i) => {
      const cell = tr.children[i];
      say(cell, column.text(row));
      const tone = column.tone?.(row) ?? "";
      if (cell.dataset.tone !== tone) cell.dataset.tone = tone;
      const hint = column.hint?.(row) ?? "";
      if (cell.title !== hint) cell.title = hint;
    });
  }

  /** list: [{ key, row }] */
  function show({ rows: list, more }) {
    last = { rows: list, more };
    const keep = new Set(list.map(({ key }) => key));
    for (const [key, tr] of rows) {
      if (keep.has(key)) continue;
      tr.remove();
      rows.delete(key);
    }
    sorted(list).forEach(({ key, row }, at) => {
      let tr = rows.get(key);
      if (!tr) {
        tr = el("tr", { "data-key": key }, ...columns.map((column) => el("td", { class: classes(column) })));
        rows.set(key, tr);
      }
      cells(tr, row);
      if (body.children[at] !== tr) body.insertBefore(tr, body.children[at] ?? null);
    });
    left.hidden = list.length > 0 && more === 0;
    say(left, list.length === 0 ? empty : `and ${more} more`);
    scroller.hidden = list.length === 0;
  }

  show(last);
  return { element: el("div", {}, scroller, left), show };
}

function classes({ numeric, wide, long }) {
  return [numeric && "number", wide && "wide", long && "long"].filter(Boolean).join(" ") || null;
}
