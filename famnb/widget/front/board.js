// The board: a prompt to all panes, and the panes side by side, each with its meters and a pin for the winner.

import { button, make } from "./dom.js";
import { liveWidget } from "./stream.js";

// The box where a prompt is written and sent to all panes.
function drawPrompt(model, send, stop, { toggle, winners }) {
  const area = make("textarea", "famnb-prompt");
  area.rows = 3;
  area.value = model.get("prompt");
  const label = make("label", "famnb-field", make("span", "famnb-label", "Prompt"), area);
  const sending = button("famnb-send", "Send to all", "Ctrl+Enter", (event) => {
    if (event.detail < 2) send(area.value); // ignores the second click of a double click
  });
  const stopping = button("famnb-stop", "Stop all", "Esc", stop);
  const hint = make("span", "famnb-hint");
  hint.setAttribute("role", "status");
  const element = make("div", "famnb-ask", label, make("div", "famnb-bar", sending, stopping, toggle, hint), winners);
  area.addEventListener("input", () => {
    model.set("prompt", area.value);
    model.save_changes();
    waited = false;
    settle();
  });
  const keys = (event) => {
    const sends = event.key === "Enter" && (event.ctrlKey || event.metaKey);
    const stops = event.key === "Escape" && model.get("busy");
    if (!sends && !stops) return;
    event.preventDefault();
    event.stopPropagation();
    if (stops) stop();
    else if (!sending.disabled) send(area.value);
  };
  let waited = false; // whether a reply was awaited and nothing was written since
  function settle() {
    const busy = model.get("busy");
    waited ||= busy;
    const empty = !area.value.trim() && !model.get("replaced");
    area.placeholder = model.get("replaced") ? "The conversation in the variants is sent instead" : "Ask something";
    sending.disabled = busy || Boolean(model.get("fault")) || empty;
    stopping.disabled = !busy;
    const over = "All answers have ended.";
    const idle = waited ? over : empty ? "Write a prompt to send." : "";
    hint.textContent = busy ? "" : model.get("fault") || idle;
  }
  const changed = () => {
    if (area.value !== model.get("prompt")) area.value = model.get("prompt");
    settle();
  };
  const names = ["change:prompt", "change:busy", "change:fault", "change:replaced"];
  for (const name of names) model.on(name, changed);
  const lock = () => {
    sending.disabled = true;
    hint.textContent = "Waiting for the kernel …";
  };
  const lose = () => {
    sending.disabled = stopping.disabled = true;
    hint.textContent = "The kernel has ended: run this cell again.";
  };
  const end = () => {
    for (const name of names) model.off(name, changed);
  };
  settle();
  return { element, area, settle, keys, lock, lose, end };
}

// The panes' meters, and a pin for the winner.
function drawBoard(model) {
  const pins = new Map();
  const drawn = new Set();
  const pin = (label, text) => {
    const element = button("famnb-pin", text, "", () => model.send({ kind: "pin", label }));
    element.settle = () => {
      const won = model.get("pinned") === label;
      element.textContent = won ? `★ ${text === label ? label : "Winner"}` : text;
      element.setAttribute("aria-pressed", won);
      element.setAttribute("aria-label", `${label}: pin as winner`);
      element.title = won ? "Take the mark away" : "Pin as winner";
    };
    element.settle();
    return element;
  };
  const toggle = button("famnb-toggle", "Differences", "", () => model.send({ kind: "differences" }));
  toggle.title = "Mark the words that differ from the pinned answer, or else from the first";
  for (const label of model.get("labels")) pins.set(label, pin(label, label));
  const winners = make("div", "famnb-bar famnb-winners", make("span", "famnb-hint", "Winner:"), ...pins.values());
  winners.setAttribute("role", "group");
  winners.setAttribute("aria-label", "Winner");
  const settle = () => {
    toggle.setAttribute("aria-pressed", model.get("differences"));
    winners.hidden = !model.get("ended") || drawn.size > 0;
    for (const element of pins.values()) element.settle();
    for (const pane of drawn) pane.settle();
  };
  const names = ["change:pinned", "change:differences", "change:ended"];
  for (const name of names) model.on(name, settle);
  settle();
  return {
    toggle,
    winners,
    settle,
    draw: (pane, { head, flow }) => {
      flow.tabIndex = 0; // it scrolls by itself, so keys must reach it
      flow.setAttribute("role", "region");
      flow.setAttribute("aria-label", `${pane.label}: answer`);
      const tiles = pane.meters.map(([name]) => make("div", "", make("dt", "", name), make("dd")));
      const pinning = pin(pane.label, "Pin");
      const set = (values) => {
        for (const [index, value] of values.entries()) {
          tiles[index].lastChild.textContent = value;
          tiles[index].hidden = !value;
        }
      };
      set(pane.meters.map(([, figure]) => figure));
      head.firstChild.after(pinning);
      const target = pane.label.includes(pane.head) ? null : make("div", "famnb-hint", pane.head);
      const element = make("div", "", target, make("dl", "famnb-meters", ...tiles));
      const tile = {
        element,
        set,
        settle: () => {
          pinning.settle();
          pinning.closest(".famnb-pane")?.classList.toggle("famnb-won", model.get("pinned") === pane.label);
        },
        end: () => drawn.delete(tile),
      };
      drawn.add(tile);
      return tile;
    },
    end: () => {
      for (const name of names) model.off(name, settle);
    },
  };
}

export default () =>
  liveWidget(({ model, el, stop }) => {
    const board = drawBoard(model);
    const send = (prompt) => {
      box.lock();
      model.send({ kind: "send", prompt });
    };
    const box = drawPrompt(model, send, stop, board);
    el.addEventListener("keydown", box.keys);
    return {
      ...board,
      scrolls: true,
      areas: () => [box.area],
      mount: (flow) => {
        flow.classList.add("famnb-board");
        el.append(box.element, flow);
      },
      told: ({ kind }) => {
        if (kind === "taken") box.settle();
      },
      lose: box.lose,
      end: () => {
        el.removeEventListener("keydown", box.keys);
        box.end();
        board.end();
      },
    };
  });
