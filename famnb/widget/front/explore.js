// The explorer: points to hover over, a legend that hides groups, the list of what is chosen, and a call that opens.

import { drawCall } from "./call.js";
import { describedWidget } from "./described.js";
import { button, make, write } from "./dom.js";
import { readFacts, readNumbers } from "./facts.js";
import { drawRows } from "./rows.js";
import { drawScatter } from "./scatter.js";

// What is known of the point that is pointed at.
function drawTip() {
  const title = make("strong", "");
  const text = make("p", "famnb-said");
  const facts = make("dl", "famnb-facts");
  const element = make("div", "famnb-tip", title, text, facts);
  element.setAttribute("role", "status");
  element.hidden = true;
  return {
    element,
    tell: (told) => {
      write(title, told.title);
      write(text, told.text);
      text.hidden = !told.text;
      facts.replaceChildren(...told.facts.flatMap(([name, value]) => [make("dt", "", name), make("dd", "", value)]));
    },
    show: ([left, top, wide]) => {
      element.hidden = false;
      const isRight = left > wide / 2;
      element.style.left = isRight ? "auto" : `${left + 14}px`;
      element.style.right = isRight ? `${wide - left + 14}px` : "auto";
      element.style.top = `${Math.max(Math.min(top - 20, 200), 0)}px`;
    },
    hide: () => {
      element.hidden = true;
    },
  };
}

function drawExplorer(outbox) {
  const known = {};
  let pointed = -1;
  let isAsked = false; // whether the facts have come or are on their way
  const tip = drawTip();
  const say = () => {
    // Until the facts have come, what the page knows by itself: the group and the place.
    const told = known.say?.(pointed) ?? { title: known.plot.groups[known.groups[pointed]].label, text: "", facts: [] };
    const places = plot.placesOf(pointed).filter(([{ computed, kind }]) => !known.say || (computed && kind !== "names"));
    tip.tell({ ...told, facts: [...places.map(([{ label }, value]) => [label, value]), ...told.facts] });
  };
  const point = (index) => {
    pointed = index;
    if (index < 0) tip.hide();
    else {
      say();
      tip.show(plot.placeOf(index));
    }
  };
  const brush = (spans) => outbox.now({ kind: "brush", x: spans?.[0] ?? null, y: spans?.[1] ?? null });
  const plot = drawScatter({ point, brush, open: (index) => outbox.now({ kind: "open", number: index }) });
  const legend = make("div", "famnb-bar famnb-legend");
  legend.setAttribute("role", "group");
  const all = button("famnb-small", "Choose all", "Esc", () => plot.clear());
  const closer = button("famnb-small", "Zoom in", "", () => zoom(true));
  const farther = button("famnb-small", "Zoom out", "", () => zoom(false));
  const list = drawRows("Rows", (row) => outbox.now({ kind: "open", row }));
  const sheet = drawCall(outbox);
  const shut = button("", "Close", "", () => outbox.now({ kind: "shut" }));
  const opened = make("section", "famnb-opened", make("div", "famnb-bar", make("strong", "", "Call"), make("span", "famnb-space"), shut), sheet.element);
  const notes = make("div", "famnb-notes famnb-help");
  const empty = make("p", "famnb-none");
  const title = make("strong", "famnb-title");
  const full = make("div", "famnb-full", legend, make("div", "", plot.element), notes, list.element, opened);
  plot.element.append(tip.element);
  list.head.append(all, closer, farther);
  opened.setAttribute("aria-label", "Call");
  opened.hidden = true;
  let isZoomed = false;
  let isOpened = false;

  const settle = () => {
    const isBrushed = known.chosen.spans.some(Boolean);
    all.hidden = closer.hidden = !isBrushed;
    farther.hidden = !isZoomed;
  };
  const zoom = (isIn) => {
    isZoomed = isIn;
    plot.zoom(isIn);
    settle();
  };
  const toggle = (code) => {
    const hidden = new Set(known.chosen.hidden);
    if (!hidden.delete(code)) hidden.add(code);
    outbox.now({ kind: "hide", groups: [...hidden] });
  };
  const drawLegend = () => {
    const entries = known.plot.groups.map(({ label, count, colour, cycle }, code) => {
      const swatch = make("span", cycle ? "famnb-swatch" : "famnb-swatch famnb-round");
      swatch.style.background = colour;
      const entry = button("famnb-small", label, "", () => toggle(code));
      entry.prepend(swatch);
      entry.append(make("span", "famnb-help", ` ${count}`));
      return entry;
    });
    legend.hidden = entries.length < 2;
    legend.setAttribute("aria-label", known.plot.by);
    legend.replaceChildren(...entries);
  };
  return {
    element: make("div", "famnb-explorer", make("header", "famnb-top", title), empty, full),
    tell: (parts) => {
      Object.assign(known, parts);
      if (parts.plot) {
        write(title, parts.plot.title);
        write(empty, parts.plot.empty);
        empty.hidden = !parts.plot.empty;
        full.hidden = Boolean(parts.plot.empty);
        notes.replaceChildren(...parts.plot.notes.map((note) => make("p", "", note)));
        list.setColumns(parts.plot.columns);
        drawLegend();
      }
      if (parts.xs) {
        const [xs, ys] = [parts.xs, parts.ys].map((part) => readNumbers(Float32Array, part));
        known.groups = readNumbers(Uint8Array, parts.codes);
        plot.tell(known.plot, xs, ys, known.groups);
        // They are more than the places: these are drawn first.
        if (!isAsked) outbox.now({ kind: "facts" });
        isAsked = true;
      }
      if (parts.chosen) {
        plot.choose(parts.chosen.spans, parts.chosen.hidden);
        for (const [code, entry] of [...legend.children].entries()) entry.setAttribute("aria-pressed", !parts.chosen.hidden.includes(code));
        list.tell(parts.chosen.title, parts.chosen.rows.map(({ id, cells }) => ({ id, cells, label: cells.filter(Boolean).join(", ") })));
        settle();
      }
      if (parts.opened !== undefined) list.open(parts.opened);
      if (parts.call !== undefined) {
        opened.hidden = !parts.call;
        if (parts.call && !isOpened) opened.scrollIntoView({ block: "nearest" });
        isOpened = Boolean(parts.call);
      }
      if (parts.call || parts.events || parts.timeline !== undefined) sheet.tell({ ...parts, call: parts.call ?? undefined });
    },
    told: (message) => {
      if (message.kind === "facts") {
        known.say = readFacts(message);
        if (pointed >= 0) say();
      } else sheet.told(message);
    },
    end: plot.end,
  };
}

export default () => describedWidget("Explorer", drawExplorer);
