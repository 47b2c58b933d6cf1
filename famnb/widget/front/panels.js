// The panel with the code of an experiment. Python says what it shows.

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
