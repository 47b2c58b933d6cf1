// Code that repeats what is sent, with buttons that copy and insert it.

import { html, useLayoutEffect, useRef } from "../vendor/preact.js";
import { copyText } from "../runtime/clipboard.js";
import { canInsertCell, insertCell } from "../runtime/kernel.js";
import { useTool } from "../runtime/tool.js";
import { Button, CopyButton, useStatus } from "./button.js";
import { Labelled, Select } from "./field.js";
import { SafeHtml } from "./html.js";

/**
 * A button that puts code into a cell below, and runs it if it `isRun`, or copies it where there are no cells.
 * @param {{label: string, code?: string, read?: () => string | Promise<string | undefined>, isRun?: boolean}} props
 *   `read` returns the code
 */
export function CellButton({ label, code = "", read = () => code, isRun = false }) {
  const { root } = useTool();
  const { status, show } = useStatus();
  const press = async () => {
    const text = await read();
    if (text && canInsertCell()) await insertCell(root, text, isRun);
    else if (text && (await copyText(text))) show("The code is copied: run it in a cell");
  };
  return html`<${Button} label=${canInsertCell() ? label : `${label}: copy code`} needsKernel=${!code} press=${press} />${status}`;
}

/** HTML of Python whose code can be scrolled by keys. @param {{html: string}} props */
export function Shown({ html: source }) {
  const box = useRef(/** @type {any} */ (null));
  useLayoutEffect(() => {
    for (const pre of box.current.querySelectorAll("pre")) {
      pre.tabIndex = 0;
      pre.setAttribute("role", "region");
      pre.setAttribute("aria-label", "code");
    }
  }, [source]);
  return html`<div ref=${box}><${SafeHtml} class="famnb-shown" html=${source} /></div>`;
}

/** The code. Intents: read_code, set_code_kind. @param {{code: import("../protocol.js").CodeView}} props */
export function Code({ code }) {
  const { outbox } = useTool();
  // The page has only the beginnings of images.
  const read = async () => (await outbox.send("read_code")).value;
  const choose = (kind) => outbox.send("set_code_kind", { kind });
  const select = (id) => html`<${Select} id=${id} choices=${code.kinds} value=${code.kind} change=${choose} />`;
  return html`<div>
    ${code.kinds.length > 0 && html`<${Labelled} label="As" control=${select} />`}
    <div class="famnb-bar">
      <${CopyButton} label="Copy code" needsKernel disabled=${!code.html} read=${read} />
      ${code.isCell && canInsertCell() && html`<${CellButton} label="Insert cell below" read=${read} />`}
    </div>
    <p class="famnb-help">${code.note}</p>
    <${Shown} html=${code.html} />
  </div>`;
}
