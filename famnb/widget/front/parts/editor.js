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
  const finish = () => isReady && save(text);
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

/**
 * Returns a button that has an answer edited, and the box while it is. Intents: read_answer, edit_answer.
 * Draw the button always: an element that comes before the other buttons can take the focus from one of them.
 * @param {object} args those of both intents @param {boolean} isShown @param {boolean} isLocked
 */
export function useAnswerEditor(args, isShown, isLocked) {
  const { outbox } = useTool();
  const [text, setText] = useState(/** @type {string | null} */ (null));
  const place = useRef(/** @type {any} */ (null));
  const lock = String(Object.values(args));
  const open = async () => {
    const { ok, value } = await outbox.press("read_answer", args, lock);
    if (ok) setText(value ?? "");
  };
  const close = () => {
    setText(null);
    requestAnimationFrame(() => place.current?.querySelector("button")?.focus());
  };
  const save = async (next) => {
    if ((await outbox.press("edit_answer", { ...args, text: next }, lock)).ok) close();
  };
  const isPending = outbox.isPending("read_answer", lock) || outbox.isPending("edit_answer", lock);
  const title = "Change what was answered: the chat goes on from that, and the answer as it came stays as a version";
  return {
    button: html`<span ref=${place} hidden=${!isShown}><${Button} class="famnb-small" label="Edit answer" title=${title} locked=${isLocked || isPending} press=${open} /></span>`,
    editor: text !== null && html`<${TextEditor} label="Edit answer" action="Save" text=${text} isPending=${isPending} save=${save} close=${close} />`,
  };
}
