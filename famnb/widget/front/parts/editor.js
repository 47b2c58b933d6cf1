// A box in the place of a text that is edited: a prompt, or what a model has answered.

import { html, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { useTool } from "../runtime/tool.js";
import { Button } from "./button.js";
import { sendByKeys } from "./prompt.js";

/**
 * The box; Esc closes it.
 * @param {{label: string, action: string, text: string, isPending: boolean, save: (text: string) => void, close: () => void}} props
 */
export function TextEditor({ label, action, text: first, isPending, save, close }) {
  const { isLost } = useTool();
  const [text, setText] = useState(first);
  const area = useRef(/** @type {any} */ (null));
  useLayoutEffect(() => area.current.focus(), []);
  const isReady = Boolean(text.trim()) && !isLost;
  const finish = () => isReady && !isPending && save(text);
  const cancel = (event) => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation();
    close();
  };
  return html`<div class="famnb-rewrite" onKeyDown=${cancel}>
    <label>
      <span class="famnb-label">${label}</span>
      <textarea class="famnb-prompt" ref=${area} value=${text} onInput=${(event) => setText(event.target.value)} onKeyDown=${sendByKeys(finish)} />
    </label>
    <div class="famnb-bar">
      <${Button} class="famnb-send" label=${action} disabled=${!isReady} locked=${isPending} press=${finish} />
      <${Button} label="Cancel" keys="Esc" press=${close} />
    </div>
  </div>`;
}
