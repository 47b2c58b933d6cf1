// A run while it is under way: a bar, figures, a table and Stop. Their texts are made in Python.

import { describedWidget } from "./described.js";
import { button, make, write } from "./dom.js";

// A kernel that runs no other cell has answered long before.
const UNHEARD_MS = 1500;
const PARTS = ["done", "failed", "running"];

function drawLine(cells, isHead) {
  const line = make("tr", "");
  for (const [index, text] of cells.entries()) {
    const cell = make(isHead || !index ? "th" : "td", "", text);
    if (cell.tagName === "TH") cell.scope = isHead ? "col" : "row";
    line.append(cell);
  }
  return line;
}

function drawFact([label, value, remark]) {
  const note = remark ? make("dd", "famnb-help", remark) : null;
  return make("div", "famnb-figure", make("dt", "", label), make("dd", "famnb-value", value), note);
}

function drawRun(outbox) {
  const title = make("strong", "famnb-title");
  const status = make("span", "famnb-state");
  let isPressed = false;
  let unheard = 0;
  const labelStop = (isStopping) => {
    write(stop, isStopping ? "Stopping …" : "Stop");
    stop.setAttribute("aria-label", stop.textContent);
    stop.setAttribute("aria-disabled", isStopping); // not `disabled`, which would take the focus away
  };
  const stop = button("famnb-stop", "Stop", "", () => {
    if (isPressed) return;
    isPressed = true;
    labelStop(true);
    outbox.now({ kind: "stop" });
    unheard = setTimeout(() => write(stop, "Stopping as soon as the kernel hears it …"), UNHEARD_MS);
  });
  const parts = PARTS.map((name) => make("span", `famnb-part-${name}`));
  const bar = make("div", "famnb-progress", ...parts);
  bar.setAttribute("role", "progressbar");
  bar.setAttribute("aria-label", "cells done");
  const facts = make("dl", "famnb-headline");
  const errors = make("p", "famnb-fault");
  const table = make("table", "famnb-grid");
  const more = make("p", "famnb-help");
  const note = make("p", "famnb-help");
  const head = make("div", "famnb-bar", title, status, make("span", "famnb-space"), stop);
  const live = make("div", "", head, bar, facts, errors, make("div", "famnb-scrolling", table), more, note);
  const result = make("div", "jp-RenderedHTMLCommon");
  const tellState = (state) => {
    write(title, state.title);
    write(status, state.said);
    if (state.stopping) {
      clearTimeout(unheard);
      isPressed = true;
    }
    if (!isPressed || state.stopping) labelStop(state.stopping);
    for (const [name, value] of [["min", 0], ["max", 100], ["now", state.percent], ["text", state.said]]) {
      bar.setAttribute(`aria-value${name}`, value);
    }
    for (const [index, name] of PARTS.entries()) parts[index].style.width = `${state.bar[name]}%`;
    facts.replaceChildren(...state.facts.map(drawFact));
    write(errors, state.errors ? `Errors: ${state.errors}` : "");
    const lines = state.rows.map((row) => drawLine(row, false));
    table.replaceChildren(...(lines.length ? [make("thead", "", drawLine(state.head, true)), make("tbody", "", ...lines)] : []));
    write(more, state.more);
    write(note, state.note);
  };

  return {
    element: make("div", "famnb-run", live, result),
    tell: ({ state, result: html }) => {
      if (state) tellState(state);
      if (html === undefined) return;
      live.hidden = Boolean(html);
      result.innerHTML = html; // made and cleaned in Python
    },
    end: () => clearTimeout(unheard),
  };
}

export default () => describedWidget("Run of an experiment", drawRun);
