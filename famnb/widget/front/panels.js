// The panels beside the talk: code that repeats it, past calls, and presets. Python says what each shows.

import { copyText } from "./clipboard.js";
import { button, make, statusLine, write } from "./dom.js";
import { labelled, makeSelect } from "./field.js";
import { canInsertCell, insertCell } from "./kernel.js";

// A part of the panel that Python has rendered.
function showHtml(element, html) {
  element.innerHTML = html; // clean HTML made by sanitize.render_markdown or transcript
  for (const pre of element.querySelectorAll("pre")) {
    pre.tabIndex = 0;
    pre.setAttribute("role", "region");
    pre.setAttribute("aria-label", "code");
  }
}

/** Draws code with buttons that copy and insert it. @param {object} outbox @param {HTMLElement} root */
export function drawCode(outbox, root) {
  const kind = makeSelect([]);
  const choice = labelled("As", kind);
  const note = make("p", "famnb-help");
  const shown = make("div", "famnb-shown jp-RenderedHTMLCommon");
  const status = statusLine("famnb-hint");
  let purpose = ""; // what the whole text was asked for
  const ask = (what) => () => {
    purpose = what;
    outbox.now({ kind: "copy" });
  };
  const copy = button("", "Copy code", "", ask("copy"));
  const insert = button("", "Insert cell below", "", ask("insert"));
  kind.addEventListener("change", () => outbox.now({ kind: "code", as: kind.value }));
  return {
    element: make("div", "", choice, make("div", "famnb-bar", copy, insert, status), note, shown),
    tell: (panel) => {
      if (JSON.stringify([...kind.options].map(({ value }) => value)) !== JSON.stringify(panel.kinds)) {
        kind.replaceChildren(...panel.kinds.map((name) => Object.assign(make("option", "", name), { value: name })));
      }
      kind.value = panel.kind;
      choice.hidden = !panel.kinds.length;
      copy.disabled = !panel.html;
      write(note, panel.note);
      insert.hidden = !panel.is_cell || !canInsertCell();
      showHtml(shown, panel.html);
    },
    told: async ({ kind: name, text }) => {
      if (name !== "copied" || !purpose) return;
      const wish = purpose;
      purpose = "";
      if (wish === "insert") await insertCell(root, text);
      else write(status, (await copyText(text)) ? "Copied" : "Not copied: the browser does not let this page copy");
      setTimeout(() => write(status, ""), 4000);
    },
  };
}

function drawHistory(outbox, root) {
  const filter = Object.assign(make("input", "famnb-input"), { placeholder: "all calls", type: "search" });
  filter.addEventListener("input", () => outbox.later("history", { kind: "history", filter: filter.value }));
  const list = make("ul", "famnb-calls");
  list.setAttribute("aria-label", "Latest calls");
  const note = statusLine("famnb-help");
  const shown = make("div", "famnb-shown");
  const opening = button("famnb-send", "Open in the form", "", () => act("open"));
  const inspect = button("", "Copy inspector code", "", async () => {
    if (canInsertCell()) await insertCell(root, code);
    else if (await copyText(code)) write(note, `${code} is copied: run it in a cell`);
  });
  const bar = make("div", "famnb-bar", opening, inspect);
  let chosen = "";
  let code = "";
  const act = (action) => outbox.now({ kind: "call", do: action, id: chosen });
  const drawRow = ({ id, when, prompt, facts }) => {
    const row = button("famnb-call", prompt || "(no prompt)", "", () => {
      chosen = id;
      act("look");
    });
    row.title = prompt;
    row.replaceChildren(make("span", "famnb-call-prompt", prompt || "(no prompt)"), make("span", "famnb-help", `${when} · ${facts}`));
    row.dataset.call = id;
    return make("li", "", row);
  };
  bar.hidden = true;
  return {
    element: make("div", "", labelled("Filter calls", filter), list, bar, note, shown),
    tell: (panel) => {
      write(note, panel.note ?? "");
      if (panel.rows) {
        list.replaceChildren(...panel.rows.map(drawRow));
        bar.hidden = true;
        shown.replaceChildren();
      }
      if (!panel.call) return;
      code = panel.code;
      inspect.textContent = canInsertCell() ? "Inspect in a cell below" : "Copy inspector code";
      bar.hidden = false;
      showHtml(shown, panel.html);
      for (const row of list.querySelectorAll("button")) row.setAttribute("aria-pressed", row.dataset.call === panel.call);
    },
  };
}

function drawPresets(outbox) {
  const names = makeSelect([]);
  const name = Object.assign(make("input", "famnb-input"), { placeholder: "a name" });
  const lines = make("div", "famnb-help");
  lines.setAttribute("role", "status");
  const act = (action, which) => () => outbox.now({ kind: "preset", do: action, name: which.value });
  const saved = [button("famnb-send", "Load", "", act("load", names)), button("", "Delete preset", "", act("delete", names))];
  const save = act("save", name);
  name.addEventListener("keydown", (event) => {
    if (event.key === "Enter") save();
  });
  return {
    element: make(
      "div",
      "",
      labelled("Preset", names),
      make("div", "famnb-bar", ...saved),
      labelled("Save as", name),
      make("div", "famnb-bar", button("", "Save preset", "", save)),
      lines,
    ),
    tell: (panel) => {
      lines.replaceChildren(...(panel.lines ?? []).map((line) => make("p", "", line)));
      if (!panel.names) return;
      const chosen = panel.selected || names.value;
      const options = panel.names.length ? panel.names.map((each) => [each, each]) : [["", "none yet"]];
      names.replaceChildren(...options.map(([value, text]) => Object.assign(make("option", "", text), { value })));
      if (panel.names.includes(chosen)) names.value = chosen;
      for (const button of saved) button.disabled = !panel.names.length;
      if (panel.selected === name.value.trim()) name.value = "";
    },
  };
}

const panels = { Code: drawCode, History: drawHistory, Presets: drawPresets };

/**
 * Draws the column beside the talk: a row of tabs, and the settings or a panel below.
 * @param {object} outbox @param {HTMLElement} root @param {HTMLElement} settings @param {() => void} change
 */
export function drawSide(outbox, root, settings, change) {
  const drawn = { Settings: { element: settings, tell: () => {} } };
  const fault = make("p", "famnb-fault");
  fault.setAttribute("role", "alert");
  const content = make("div", "famnb-panel");
  const element = make("aside", "famnb-side", content, fault);
  let open = null; // the name of what is shown, "" for nothing
  const buttons = {};
  const show = (name) => {
    if (name === open) return;
    open = name;
    drawn[name] ??= name && panels[name](outbox, root);
    write(fault, "");
    content.replaceChildren(...(name ? [drawn[name].element] : []));
    element.hidden = !name;
    element.setAttribute("aria-label", name);
    root.dataset.side = name;
    for (const [other, tab] of Object.entries(buttons)) {
      tab.setAttribute("aria-expanded", other === name);
      tab.setAttribute("aria-pressed", other === name);
    }
    if (name !== "Settings") outbox.now({ kind: "panel", name });
    change();
  };
  for (const name of ["Settings", ...Object.keys(panels)]) {
    buttons[name] = button("famnb-tab", name, "", () => show(open === name ? "" : name));
  }
  element.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.defaultPrevented || root.classList.contains("famnb-wide")) return;
    const tab = buttons[open];
    event.stopPropagation();
    show("");
    tab?.focus();
  });
  return {
    element,
    tabs: make("div", "famnb-tabs", ...Object.values(buttons)),
    show,
    mark: (isFaulty) => buttons.Settings.classList.toggle("famnb-faulty", isFaulty),
    tell: (panel) => {
      if (panel.name !== open) return;
      write(fault, panel.fault ?? "");
      if (!panel.fault) drawn[open].tell(panel);
    },
    told: (message) => drawn.Code?.told(message),
  };
}
