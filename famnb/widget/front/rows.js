// A list of rows that open: arrows move through them, and Enter or a click opens one.

import { make, write } from "./dom.js";

/**
 * @typedef {object} Row
 * @property {string|number} id
 * @property {string[]} cells
 * @property {string} label what the row is called
 * @property {boolean} [isBad] whether its status is set in the colour of errors
 */

/** Returns the head of a table. @param {string[]} names */
export function drawHead(names) {
  const cells = names.map((name) => Object.assign(make("th", "", name), { scope: "col" }));
  return make("thead", "", make("tr", "", ...cells));
}

/**
 * Draws a list. Its columns are [name, kind, "less"?]: a "word" is set left, a "fact" right, "data" takes the room that
 * is left, and what is "less" goes first where room is scarce.
 * @param {string} name what the list is called @param {(id: string|number) => void} choose
 */
export function drawRows(name, choose) {
  const title = make("strong", "");
  title.setAttribute("role", "status");
  const body = make("tbody", "");
  const table = make("table", "famnb-grid famnb-rows", body);
  const head = make("div", "famnb-bar", title);
  const rows = new Map(); // by id, so that one that has the focus keeps it
  let columns = [];
  let order = [];
  let opened = null;
  let current = ""; // the row that Tab reaches

  const settle = () => {
    if (!rows.has(current)) current = rows.has(opened) ? opened : (order[0] ?? "");
    for (const [id, row] of rows) {
      row.tabIndex = id === current ? 0 : -1;
      row.setAttribute("aria-selected", id === opened);
    }
  };
  const makeRow = (id) => {
    const row = make("tr", "", ...columns.map((column) => make("td", cellClass(column))));
    row.addEventListener("click", () => choose(id));
    rows.set(id, row);
    return row;
  };
  const fillRow = (row, { cells, label, isBad }) => {
    for (const [index, text] of cells.entries()) write(row.cells[index], text);
    row.classList.toggle("famnb-bad", Boolean(isBad));
    row.setAttribute("aria-label", label);
  };
  body.addEventListener("keydown", (event) => {
    const index = order.indexOf(current);
    const last = order.length - 1;
    const next = { ArrowDown: Math.min(index + 1, last), ArrowUp: Math.max(index - 1, 0), Home: 0, End: last }[event.key];
    const isChoice = event.key === "Enter" || event.key === " ";
    if (next === undefined && !isChoice) return;
    event.preventDefault();
    if (isChoice) choose(current);
    else {
      current = order[next];
      settle();
      rows.get(current).focus();
    }
  });
  table.setAttribute("aria-label", name);
  table.setAttribute("role", "grid"); // whose rows take the focus
  return {
    element: make("div", "", head, make("div", "famnb-scrolling", table)),
    head,
    setColumns: (wanted) => {
      columns = wanted;
      rows.clear();
      body.replaceChildren();
      order = [];
      table.tHead?.remove();
      table.prepend(drawHead(columns.map(([column]) => column)));
      for (const [index, column] of columns.entries()) table.tHead.rows[0].cells[index].className = cellClass(column);
    },
    /** @param {string} text the line above the list @param {Row[]} told */
    tell: (text, told) => {
      const focused = body.querySelector(":focus");
      write(title, text);
      const ids = told.map(({ id }) => id);
      const known = new Set(ids);
      for (const id of rows.keys()) if (!known.has(id)) rows.delete(id);
      for (const row of told) fillRow(rows.get(row.id) ?? makeRow(row.id), row);
      if (ids.join() !== order.join()) {
        order = ids;
        body.replaceChildren(...order.map((id) => rows.get(id)));
        if (focused && known.has(current)) rows.get(current).focus({ preventScroll: true });
      }
      settle();
    },
    open: (id) => {
      opened = id;
      if (rows.has(id)) current = id;
      settle();
    },
  };
}

const cellClass = ([name, kind, less]) =>
  [`famnb-${kind}`, less && "famnb-less", name === "status" && "famnb-status"].filter(Boolean).join(" ");
