// The dashboard: filters, headline figures, charts over time, a table by model or endpoint, and calls that open.

import { drawCall } from "./call.js";
import { drawChart } from "./chart.js";
import { describedWidget } from "./described.js";
import { button, make, write } from "./dom.js";
import { labelled, makeSelect } from "./field.js";
import { drawHead, drawRows } from "./rows.js";

const FILTERS = { range: "Calls of", model: "Model", endpoint: "Endpoint", by: "Grouped by" };
const COLUMNS = [
  ["started", "word"],
  ["endpoint", "word", "less"],
  ["model", "word"],
  ["status", "word"],
  ["took", "fact"],
  ["tokens out", "fact", "less"],
  ["cost", "fact"],
  ["prompt", "data"],
];
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

// The latest calls, or those of a span.
function drawCalls(outbox) {
  const all = button("famnb-small", "Show all", "", () => outbox.now({ kind: "span" }));
  const list = drawRows("Calls", (id) => outbox.now({ kind: "open", id }));
  list.setColumns(COLUMNS);
  list.head.append(all);
  return {
    element: list.element,
    tell: ({ title, narrowed, rows }) => {
      all.hidden = !narrowed;
      list.tell(
        title,
        rows.map((told) => ({
          id: told.id,
          cells: [...CELLS.map((name) => told[name]), told.prompt],
          label: `${told.time} ${told.model} ${told.status}: ${told.prompt}`,
          isBad: told.status === "failed",
        })),
      );
    },
    open: list.open,
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
  const reading = make("progress", "famnb-reading");
  const note = make("p", "famnb-help");
  const full = make("div", "famnb-full", figures, note, chartBox, groups.element, calls.element, opened);
  const title = make("header", "famnb-top", make("strong", "famnb-title", "Dashboard"));
  empty.setAttribute("role", "status");
  reading.setAttribute("aria-label", "Reading the calls");
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
    element: make("div", "famnb-dashboard", title, filters.element, empty, reading, full),
    tell: (parts) => {
      Object.assign(known, parts);
      if (parts.filters) filters.tell(parts.filters);
      if (parts.empty !== undefined) {
        write(empty, parts.empty);
        empty.hidden = !parts.empty;
        full.hidden = Boolean(parts.empty);
      }
      if (parts.reading !== undefined) reading.hidden = !parts.reading;
      if (parts.figures) figures.replaceChildren(...parts.figures.map(drawFigure));
      if (parts.note !== undefined) write(note, parts.note);
      if (known.charts && (parts.charts || parts.calls)) drawCharts();
      if (known.charts && known.table && (parts.table || parts.charts)) groups.tell(known.table, known.charts.groups);
      if (parts.calls) calls.tell(parts.calls);
      if (parts.call !== undefined) {
        opened.hidden = !parts.call;
        calls.open(parts.call?.id ?? null);
      }
      if (parts.call || parts.events || parts.timeline !== undefined) sheet.tell({ ...parts, call: parts.call ?? undefined });
      if (parts.call === undefined) return;
      // After it is drawn: before, only its heading would come into view.
      if (parts.call && !isOpened) opened.scrollIntoView({ block: "nearest" });
      isOpened = Boolean(parts.call);
    },
    told: sheet.told,
    end: () => charts.forEach((chart) => chart.end()),
  };
}

export default () => describedWidget("Dashboard", drawDashboard);
