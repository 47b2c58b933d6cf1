// Buttons: one that sends an intent, and is locked until it was answered; one that does something on the page; and one
// that copies.

import { html, useState } from "../vendor/preact.js";
import { copyText } from "../runtime/clipboard.js";
import { useTool } from "../runtime/tool.js";

const STATUS_MS = 4000;

/**
 * A button. What is locked stays in the order of Tab and keeps the focus, which `disabled` would take from it.
 * @param {{label: string, press: (event: MouseEvent) => void, class?: string, text?: any, keys?: string, title?: string,
 *   disabled?: boolean, locked?: boolean, needsKernel?: boolean, [attribute: string]: any}} props `label` is its name,
 *   `text` what it shows if that is not the label; `needsKernel` false: it works when the kernel has ended
 */
export function Button({ label, press, text = label, keys = "", title = "", disabled = false, locked = false, needsKernel = true, ...rest }) {
  const { isLost } = useTool();
  const click = (event) => {
    if (!locked && event.detail < 2) press(event); // the second click of a double click is not another press
  };
  return html`<button
    ...${rest}
    type="button"
    class=${`famnb-button ${rest.class ?? ""}`}
    aria-label=${text === label ? undefined : label}
    aria-disabled=${locked ? "true" : undefined}
    title=${title || (keys ? `${label} (${keys})` : label)}
    disabled=${disabled || (needsKernel && isLost)}
    onClick=${click}
  >${text}${keys && html`<kbd aria-hidden="true">${keys}</kbd>`}</button>`;
}

/**
 * A button that sends an intent; it is locked until the intent was answered.
 * @param {{intent: string, args?: object, lock?: string, then?: (answer: import("../runtime/outbox.js").Answer) => void,
 *   label: string, [prop: string]: any}} props `lock` tells intents of one name apart
 */
export function IntentButton({ intent, args = {}, lock = "", locked = false, then, ...rest }) {
  const { outbox } = useTool();
  const press = () => outbox.press(intent, args, lock).then((answer) => answer.ok && then?.(answer));
  return html`<${Button} ...${rest} locked=${locked || outbox.isPending(intent, lock)} press=${press} />`;
}

/** A line that screen readers say when it changes, and a function that shows a text there for a moment. */
export function useStatus() {
  const [text, setText] = useState("");
  const show = (message) => {
    setText(message);
    setTimeout(() => setText(""), STATUS_MS);
  };
  return { status: html`<span class="famnb-hint" role="status">${text}</span>`, show };
}

/**
 * A button that copies a text and says beside it whether that worked.
 * @param {{label: string, read: () => string | Promise<string | undefined>, class?: string, needsKernel?: boolean}} props
 *   `read` returns the text, or undefined if there is none
 */
export function CopyButton({ label, read, needsKernel = false, ...rest }) {
  const { status, show } = useStatus();
  const copy = async () => {
    const text = await read();
    if (text !== undefined) show((await copyText(text)) ? "Copied" : "Not copied: the browser does not let this page copy");
  };
  return html`<span class="famnb-copier">
    ${status}<${Button} ...${rest} class=${`famnb-copy ${rest.class ?? ""}`} label=${label} needsKernel=${needsKernel} press=${copy} />
  </span>`;
}
