// A run while it is under way: a bar, figures, a table and Stop. Their texts are made in Python.

// A kernel that runs no other cell has answered long before.
const UNHEARD_MS = 1500;

function append(tag, name, parent, attributes = {}, text = "") {
  const element = document.createElement(tag);
  element.className = name;
  element.textContent = text;
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return parent.appendChild(element);
}

function line(cells, tag, parent) {
  const row = append("tr", "", parent);
  for (const [index, cell] of cells.entries()) {
    const name = index === 0 && tag === "td" ? "th" : tag;
    append(name, "", row, name === "th" ? { scope: tag === "th" ? "col" : "row" } : {}, cell);
  }
}

function render({ model, el }) {
  const root = append("div", "famnb-run", el, { role: "group" });
  const live = append("div", "", root);
  const title = append("strong", "famnb-run-title", append("div", "famnb-run-head", live));
  const status = append("span", "famnb-run-said", title.parentElement);
  const stop = append("button", "famnb-run-stop", title.parentElement, {
    type: "button",
    "data-lm-suppress-shortcuts": "true", // else the notebook takes Enter and Space for its own
  });
  const bar = append("div", "famnb-run-bar", live, { role: "progressbar", "aria-label": "cells done", "aria-valuemin": 0, "aria-valuemax": 100 });
  const parts = ["done", "failed", "running"].map(name => [name, append("span", `famnb-run-${name}`, bar)]);
  const facts = append("div", "famnb-run-facts", live);
  const errors = append("p", "famnb-run-errors", live);
  const table = append("table", "", append("div", "famnb-run-table", live));
  const more = append("p", "famnb-run-note", live);
  const note = append("p", "famnb-run-note", live);
  const trouble = append("p", "famnb-run-trouble", root, { role: "alert" });
  const result = append("div", "famnb-run-result", root);
  let pressed = false;
  let unheard;

  function labelStop(stopping) {
    stop.textContent = stopping ? "Stopping …" : "Stop";
    stop.setAttribute("aria-disabled", String(stopping)); // not `disabled`, which would take the focus away
  }

  stop.addEventListener("click", () => {
    if (pressed) return;
    pressed = true;
    labelStop(true);
    model.send({ kind: "stop" });
    unheard = setTimeout(() => {
      stop.textContent = "Stopping as soon as the kernel hears it …";
    }, UNHEARD_MS);
  });

  function draw() {
    const state = model.get("state");
    const hasEnded = Boolean(state.result);
    live.hidden = hasEnded;
    if (result.innerHTML !== state.result) result.innerHTML = state.result; // made and cleaned in Python
    root.setAttribute("aria-label", `Run of ${state.title}`);
    title.textContent = state.title;
    status.textContent = state.said;
    if (state.stopping) {
      clearTimeout(unheard);
      pressed = true;
    }
    if (!pressed || state.stopping) labelStop(state.stopping);
    bar.setAttribute("aria-valuenow", state.percent);
    bar.setAttribute("aria-valuetext", state.said);
    for (const [part, element] of parts) element.style.width = `${state.bar[part]}%`;
    facts.replaceChildren();
    for (const [label, value, remark] of state.facts) {
      const fact = append("div", "", facts);
      append("div", "famnb-run-small", fact, {}, label);
      append("div", "famnb-run-value", fact, {}, value);
      if (remark) append("div", "famnb-run-small", fact, {}, remark);
    }
    errors.textContent = state.errors ? `Errors: ${state.errors}` : "";
    table.replaceChildren();
    if (state.rows.length) {
      line(state.head, "th", append("thead", "", table));
      const body = append("tbody", "", table);
      for (const row of state.rows) line(row, "td", body);
    }
    more.textContent = state.more;
    note.textContent = state.note;
    trouble.textContent = hasEnded ? "" : state.trouble;
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
