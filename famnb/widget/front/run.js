// A run while it is under way: a bar, figures, a table and Stop. What they say is decided in Python.

const UNHEARD_MS = 1500;

function made(tag, name, parent, attributes = {}, text = "") {
  const element = document.createElement(tag);
  element.className = name;
  element.textContent = text;
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return parent.appendChild(element);
}

function line(cells, tag, parent) {
  const row = made("tr", "", parent);
  for (const [place, cell] of cells.entries()) {
    const name = place === 0 && tag === "td" ? "th" : tag;
    made(name, "", row, name === "th" ? { scope: tag === "th" ? "col" : "row" } : {}, cell);
  }
}

function render({ model, el }) {
  const root = made("div", "famnb-run", el, { role: "group" });
  const live = made("div", "", root);
  const title = made("strong", "famnb-run-title", made("div", "famnb-run-head", live));
  const said = made("span", "famnb-run-said", title.parentElement);
  const stop = made("button", "famnb-run-stop", title.parentElement, {
    type: "button",
    "data-lm-suppress-shortcuts": "true", // else the notebook takes Enter and Space for its own
  });
  const bar = made("div", "famnb-run-bar", live, { role: "progressbar", "aria-label": "cells done", "aria-valuemin": 0, "aria-valuemax": 100 });
  const parts = ["done", "failed", "running"].map(name => [name, made("span", `famnb-run-${name}`, bar)]);
  const facts = made("div", "famnb-run-facts", live);
  const errors = made("p", "famnb-run-errors", live);
  const table = made("table", "", made("div", "famnb-run-table", live));
  const more = made("p", "famnb-run-note", live);
  const note = made("p", "famnb-run-note", live);
  const trouble = made("p", "famnb-run-trouble", root, { role: "alert" });
  const result = made("div", "famnb-run-result", root);
  let pressed = false;
  let unheard;

  function name(stopping) {
    stop.textContent = stopping ? "Stopping …" : "Stop";
    stop.setAttribute("aria-disabled", String(stopping)); // not `disabled`, which would take the focus away
  }

  stop.addEventListener("click", () => {
    if (pressed) return;
    pressed = true;
    name(true);
    model.send({ kind: "stop" });
    unheard = setTimeout(() => {
      stop.textContent = "Stopping as soon as the kernel hears it …";
    }, UNHEARD_MS);
  });

  function draw() {
    const state = model.get("state");
    const over = Boolean(state.result);
    live.hidden = over;
    if (result.innerHTML !== state.result) result.innerHTML = state.result; // made and cleaned in Python
    root.setAttribute("aria-label", `Run of ${state.title}`);
    title.textContent = state.title;
    said.textContent = state.said;
    if (state.stopping) {
      clearTimeout(unheard);
      pressed = true;
    }
    if (!pressed || state.stopping) name(state.stopping);
    bar.setAttribute("aria-valuenow", state.percent);
    bar.setAttribute("aria-valuetext", state.said);
    for (const [part, element] of parts) element.style.width = `${state.bar[part]}%`;
    facts.replaceChildren();
    for (const [what, value, small] of state.facts) {
      const fact = made("div", "", facts);
      made("div", "famnb-run-small", fact, {}, what);
      made("div", "famnb-run-value", fact, {}, value);
      if (small) made("div", "famnb-run-small", fact, {}, small);
    }
    errors.textContent = state.errors ? `Errors: ${state.errors}` : "";
    table.replaceChildren();
    if (state.rows.length) {
      line(state.head, "th", made("thead", "", table));
      const body = made("tbody", "", table);
      for (const row of state.rows) line(row, "td", body);
    }
    more.textContent = state.more;
    note.textContent = state.note;
    trouble.textContent = over ? "" : state.trouble;
  }

  model.on("change:state", draw);
  draw();
  model.send({ kind: "ready", page: String(performance.timeOrigin) });
  return () => {
    clearTimeout(unheard);
    model.off("change:state", draw);
  };
}

export default { render };
