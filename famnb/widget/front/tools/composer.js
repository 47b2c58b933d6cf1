// The composer: the chat, the box where it goes on, and its settings at the side or, where there is no room, in a drawer.

import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { Button, IntentButton } from "../parts/button.js";
import { Code } from "../parts/code.js";
import { Form } from "../parts/form.js";
import { History, Presets } from "../parts/panels.js";
import { PromptBox, SystemText } from "../parts/prompt.js";
import { Turn } from "../parts/turn.js";
import { defineTool, useArrival, useFollowEnd, useTool, useWidth } from "../runtime/tool.js";

/** @typedef {import("../protocol.js").ComposerView} ComposerView */

const WIDE_PX = 540; // of the widget itself, which has about 430 px less than a JupyterLab page with its file list
const PANELS = ["Settings", "Code", "History", "Presets"];

// Which panel is open, "" for none. A drawer that a narrow page opened stays; a page that becomes wide has the settings
// beside the chat.
function useSide() {
  const { outbox } = useTool();
  const [open, setOpen] = useState("");
  const width = useWidth();
  const isWide = width >= WIDE_PX;
  const show = (name) => {
    setOpen(name);
    outbox.send("show_panel", { name });
  };
  useLayoutEffect(() => {
    if (width) setOpen(isWide ? "Settings" : "");
  }, [isWide, !width]);
  return { isWide, open, show };
}

/** @param {{view: ComposerView, open: string, close: (() => void) | null, write: () => void}} props `close` is called by Esc */
function Side({ view, open, close, write }) {
  const keys = (event) => {
    if (event.key !== "Escape" || event.defaultPrevented || !close) return;
    event.stopPropagation();
    close();
  };
  // A drawer would cover the chat.
  const opened = () => {
    close?.();
    write();
  };
  const { code, history, presets } = view;
  return html`<aside class="famnb-side" aria-label=${open} hidden=${!open} onKeyDown=${keys}>
    <div class="famnb-panel">
      <div hidden=${open !== "Settings"}><${Form} form=${view.form} /></div>
      ${open === "Code" && code && html`<${Code} code=${code} />`}
      ${open === "History" && history && html`<${History} history=${history} opened=${opened} />`}
      ${open === "Presets" && presets && html`<${Presets} presets=${presets} />`}
    </div>
  </aside>`;
}

/** @param {{view: ComposerView}} props */
function Chat({ view }) {
  const { turns, isBusy } = view;
  const box = useRef(/** @type {any} */ (null));
  const follow = useFollowEnd(box);
  // A turn that is new is read from where it begins to grow.
  const last = turns.at(-1)?.calls.at(-1)?.key;
  useEffect(() => follow(true), [last]);
  return html`<div class="famnb-chat" tabindex="0" role="region" aria-label="Chat" ref=${box}>
    ${turns.map((turn) => html`<${Turn} key=${turn.key} turn=${turn} isBusy=${isBusy} />`)}
    ${!turns.length && html`<p class="famnb-empty">Replies appear here, and are saved with the notebook.</p>`}
  </div>`;
}

/** @param {{view: ComposerView}} props */
function Composer({ view }) {
  const { form, turns, isBusy } = view;
  const { isWide, open, show } = useSide();
  const area = useRef(/** @type {any} */ (null)); // in which one writes
  useArrival(() => area.current);
  const settings = useRef(/** @type {any} */ (null));
  const hasTurns = turns.length > 0;
  const isFaulty = form.groups.some(({ fields }) => fields.some(({ fault }) => fault));
  const close = () => {
    settings.current.querySelector('[aria-pressed="true"]')?.focus();
    show("");
  };
  const tab = (name) => html`<${Button}
    class=${`famnb-tab ${name === "Settings" && isFaulty ? "famnb-faulty" : ""}`}
    label=${name}
    aria-expanded=${String(name === open)}
    aria-pressed=${String(name === open)}
    press=${() => show(name === open ? "" : name)}
  />`;
  return html`<div>
    <div class="famnb-top">
      <strong class="famnb-title">${[view.service, form.endpoint, view.model].filter(Boolean).join(" · ")}</strong>
      <div class="famnb-tools">
        <${IntentButton} class="famnb-new" label="New chat" title="Begin another conversation; this one stays in the saved output" intent="new_talk" disabled=${!hasTurns || isBusy} then=${() => area.current.focus()} />
        <${IntentButton} class="famnb-new" label="Compare" title="Open a board below: this request beside others, such as another model's" intent="compare" />
        <div class="famnb-tabs" ref=${settings}>${PANELS.map(tab)}</div>
      </div>
    </div>
    <div class=${`famnb-shell ${isWide ? "famnb-wide" : ""}`} data-side=${open}>
      <div class="famnb-main">
        <${SystemText} text=${view.system} />
        <${Chat} view=${view} />
        <${PromptBox} box=${view.prompt} isBusy=${isBusy} hasTurns=${hasTurns} area=${area} />
      </div>
      <${Side} view=${view} open=${open} close=${isWide ? null : close} write=${() => area.current.focus()} />
    </div>
  </div>`;
}

export default defineTool("Composer", Composer, "famnb-tool famnb-composer");
