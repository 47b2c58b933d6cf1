// What can be done with an answer, wherever it stands: it is copied, edited, retried, and changed for another version.

import { html, useRef, useState } from "../vendor/preact.js";
import { useTool } from "../runtime/tool.js";
import { Button, CopyButton, IntentButton } from "./button.js";
import { TextEditor } from "./editor.js";
import { readVisibleText } from "./pane.js";

/**
 * Nothing if there is but one. What cannot be done is locked rather than disabled, so that it keeps the focus.
 * @param {{version: number, count: number, isLocked: boolean, show: (version: number) => void, name: string}} props
 */
function Versions({ version, count, isLocked, show, name }) {
  if (count < 2) return null;
  const isOut = (to) => to < 0 || to >= count || isLocked;
  const arrow = (label, text, to) =>
    html`<${Button} class="famnb-small famnb-version" label=${label} text=${text} locked=${isOut(to)} press=${() => show(to)} />`;
  return html`<span class="famnb-place">
    ${arrow(`Previous ${name}`, "‹", version - 1)}${`${version + 1} of ${count}`}${arrow(`Next ${name}`, "›", version + 1)}
  </span>`;
}

/**
 * Returns the buttons of an answer, and the box in which it is edited. Intents: read_answer, edit_answer, `retryIntent`.
 * Draw `edit` always: an element that comes before the other buttons can take the focus from one of them.
 * @param {{pane: import("../protocol.js").PaneView, flow: {current: any}, args: object, lock: string, isBusy: boolean,
 *   canEdit: boolean, version: number, versionCount: number, areVersionsLocked?: boolean, noun: string,
 *   show: (version: number) => void, retryIntent: string}} props
 *   `flow` holds the element of the answer; `args` are those of the intents, `lock` tells them from those of others
 */
export function useAnswer({ pane, flow, args, lock, isBusy, canEdit, version, versionCount, areVersionsLocked = false, noun, show, retryIntent }) {
  const { outbox } = useTool();
  const [text, setText] = useState(/** @type {string | null} */ (null));
  const place = useRef(/** @type {any} */ (null));
  const hasText = pane.blocks.some(({ kind }) => kind === "text");
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
  const read = () => readVisibleText([...flow.current.querySelectorAll(".famnb-text")]);
  return {
    copy: hasText && html`<${CopyButton} class="famnb-small" label="Copy answer" read=${read} />`,
    edit: html`<span ref=${place} hidden=${!hasText || !canEdit || pane.isRunning}>
      <${Button} class="famnb-small" label="Edit answer" title=${title} locked=${isBusy || isPending} press=${open} />
    </span>`,
    editor: text !== null && html`<${TextEditor} label="Edit answer" action="Save" text=${text} isPending=${isPending} save=${save} close=${close} />`,
    versions: html`<${Versions} version=${version} count=${versionCount} isLocked=${isBusy || areVersionsLocked} name=${noun} show=${show} />`,
    retry: html`<${IntentButton}
      class="famnb-small"
      label="Retry"
      title="Ask again, with the settings as they are now; this answer stays"
      intent=${retryIntent}
      args=${args}
      lock=${lock}
      locked=${isBusy}
    />`,
  };
}
