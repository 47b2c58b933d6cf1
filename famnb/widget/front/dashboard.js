// The dashboard: filters, headline figures, charts over time, a table by model or endpoint, and calls that open.

import { drawCall } from "./call.js";
import { drawChart } from "./chart.js";
import { describedWidget } from "./described.js";
import { button, make, write } from "./dom.js";
import { labelled, makeSelect } from "./field.js";

const FILTERS = { range: "Calls of", model: "Model", endpoint: "Endpoint", by: "Grouped by" };
const COLUMNS = ["started", "endpoint", "model", "status", "took", "tokens out", "cost", "prompt"];
const CELLS = ["time", "endpoint", "model", "status", "took", "tokens", "cost"];

function drawFilters(outbox) {
  const selects = {};
  const bar = make("div", "famnb-bar famnb-filters");
  for (const [name, label] of Object.entries(FILTERS)) {
    const select = (selects[name] = makeSelect([]));
    select.addEventListener("change", () => outbox.now({ kind: "filter", name, value: select.value }));
    bar.append(labelled(label, select));
  }
  return {
    element: bar,
    tell: ({ choices, chosen }) => {
      for (const [name, select] of Object.entries(selects)) {
        const values = choices[name];
        if (JSON.stringify([...select.options].map(({ value }) => value)) !== JSON.stringify(values)) {
          select.replaceChildren(...values.map((value) => Object.assign(make("option", "", value || "all"), { value })));
        }
        select.value = chosen[name];
      }
    },
  };
}

function drawFigure([name, value, note]) {
  return make("div", "famnb-figure", make("dt", "", name), make("dd", "famnb-value", value), make("dd", "famnb-help", note));
}

/** Returns a row of a table, its first cell a heading. @param {(Node|string)[]} cells */
function drawRow(cells) {
  const [first, ...others] = cells.map((cell, index) => make(index ? "td" : "th", "", cell));
  first.scope = "row";
  return make("tr", "", first, ...others);
}

function drawHead(names) {
  const cells = names.map((name) => Object.assign(make("th", "", name), { scope: "col" }));
  return make("thead", "", make("tr", "", ...cells));
}

// By model or endpoint; it is the legend of the charts, and a label narrows everything to it.
function drawGroups(outbox) {
  const table = make("table", "famnb-grid");
  const element = make("div", "famnb-scrolling", table);
  return {
    element,
    tell: ({ by, head, rows }, groups) => {
      const lines = rows.map((cells, index) => {
        const { label, colour, cycle } = groups[index];
        const swatch = make("span", "famnb-swatch");
        swatch.style.cssText = `background: ${colour}; opacity: ${cycle ? 0.55 : 1}`;
        const narrow = button("famnb-small", label, "", () => outbox.now({ kind: "filter", name: by, value: label }));
        narrow.prepend(swatch);
        narrow.title = `Only ${label}`;
        return drawRow([narrow, ...cells]);
      });
      table.replaceChildren(drawHead(head), make("tbody", "", ...lines));
    },
  };
}

// The latest calls: arrows move through them, and Enter or a click opens one.
function drawCalls(outbox) {
  const title = make("strong", "");
  title.setAttribute("role", "status");
  const all = button("famnb-small", "Show all", "", () => outbox.now({ kind: "span" }));
  const body = make("tbody", "");
  const table = make("table", "famnb-grid famnb-rows", drawHead(COLUMNS), body);
  const box = make("div", "famnb-scrolling", table);
  const rows = new Map(); // by the call's id, so that one that has the focus keeps it
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
    const cells = [...CELLS, "prompt"].map((name) => make("td", `famnb-${name === "prompt" ? "data" : "fact"}`));
    const row = make("tr", "", ...cells);
    row.addEventListener("click", () => outbox.now({ kind: "open", id }));
    rows.set(id, row);
    return row;
  };
  const fillRow = (row, told) => {
    for (const [index, name] of [...CELLS, "prompt"].entries()) write(row.cells[index], told[name]);
    row.classList.toggle("famnb-bad", told.status === "failed");
    row.setAttribute("aria-label", `${told.time} ${told.model} ${told.status}: ${told.prompt}`);
  };
  body.addEventListener("keydown", (event) => {
    const index = order.indexOf(current);
    const last = order.length - 1;
    const next = { ArrowDown: Math.min(index + 1, last), ArrowUp: Math.max(index - 1, 0), Home: 0, End: last }[event.key];
    const isChoice = event.key === "Enter" || event.key === " ";
    if (next === undefined && !isChoice) return;
    event.preventDefault();
    if (isChoice) outbox.now({ kind: "open", id: current });
    else {
      current = order[next];
      settle();
      rows.get(current).focus();
    }
  });
  table.setAttribute("aria-label", "Calls");
  table.setAttribute("role", "grid"); // whose rows take the focus
  return {
    element: make("div", "", make("div", "famnb-bar", title, all), box),
    tell: (calls) => {
      const focused = body.querySelector(":focus");
      write(title, calls.title);
      all.hidden = !calls.narrowed;
      const known = new Set(calls.rows.map(({ id }) => id));
      for (const id of rows.keys()) if (!known.has(id)) rows.delete(id);
      for (const told of calls.rows) fillRow(rows.get(told.id) ?? makeRow(told.id), told);
      const ids = calls.rows.map(({ id }) => id);
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

function drawDashboard(outbox) {
  const known = {}; // what is drawn together from several parts
  const filters = drawFilters(outbox);
  const figures = make("dl", "famnb-headline");
  const charts = [];
  const chartBox = make("div", "famnb-charts");
  const groups = drawGroups(outbox);
  const calls = drawCalls(outbox);
  const sheet = drawCall(outbox);
  const shut = button("", "Close", "", () => outbox.now({ kind: "shut" }));
  const opened = make("section", "famnb-opened", make("div", "famnb-bar", make("strong", "", "Call"), make("span", "famnb-space"), shut), sheet.element);
  const empty = make("p", "famnb-none");
  const note = make("p", "famnb-help");
  const full = make("div", "famnb-full", figures, note, chartBox, groups.element, calls.element, opened);
  const title = make("header", "famnb-top", make("strong", "famnb-title", "Dashboard"));
  opened.setAttribute("aria-label", "Call");
  opened.hidden = true;
  let isOpened = false;

  const drawCharts = () => {
    for (const [index, chart] of known.charts.charts.entries()) {
      charts[index] ??= drawChart((span) => outbox.now({ kind: "span", index: span }));
      if (!charts[index].element.isConnected) chartBox.append(charts[index].element);
      charts[index].tell(chart, known.charts, known.calls.span);
    }
  };
  return {
    element: make("div", "famnb-dashboard", title, filters.element, empty, full),
    tell: (parts) => {
      Object.assign(known, parts);
      if (parts.filters) filters.tell(parts.filters);
      if (parts.empty !== undefined) {
        write(empty, parts.empty);
        empty.hidden = !parts.empty;
        full.hidden = Boolean(parts.empty);
      }
      if (parts.figures) figures.replaceChildren(...parts.figures.map(drawFigure));
      if (parts.note !== undefined) write(note, parts.note);
      if (known.charts && (parts.charts || parts.calls)) drawCharts();
      if (known.charts && known.table && (parts.table || parts.charts)) groups.tell(known.table, known.charts.groups);
      if (parts.calls) calls.tell(parts.calls);
      if (parts.call !== undefined) {
        opened.hidden = !parts.call;
        calls.open(parts.call?.id ?? null);
        if (parts.call && !isOpened) opened.scrollIntoView({ block: "nearest" });
        isOpened = Boolean(parts.call);
      }
      if (parts.call || parts.events || parts.timeline !== undefined) sheet.tell({ ...parts, call: parts.call ?? undefined });
    },
    told: sheet.told,
    end: () => charts.forEach((chart) => chart.end()),
  };
}

export default () => describedWidget("Dashboard", drawDashboard);
