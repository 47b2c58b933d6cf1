// The turns of a conversation: each can be copied, edited, retried and changed for another version, and tool calls wait
// for approval.

import { html, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { memo, useTool } from "../runtime/tool.js";
import { useAnswer } from "./answer.js";
import { Button, CopyButton, IntentButton } from "./button.js";
import { TextEditor } from "./editor.js";
import { Block, PaneHead, PaneNotes, Prompts, paneClass } from "./pane.js";

// The prompt of a turn, with Copy and Edit.
function TurnPrompt({ turn, prompts, isBusy }) {
  const { outbox } = useTool();
  const [isEditing, setEditing] = useState(false);
  const edit = useRef(/** @type {any} */ (null));
  const close = () => {
    setEditing(false);
    requestAnimationFrame(() => edit.current?.lastElementChild.focus());
  };
  const send = async (prompt) => {
    if ((await outbox.press("edit", { turn: Number(turn.key), prompt }, turn.key)).ok) close();
  };
  return html`<${Prompts} prompts=${isEditing ? prompts.slice(0, -1) : prompts} />
    ${isEditing &&
    html`<${TextEditor} label="Edit prompt" action="Resend" text=${turn.prompt} isPending=${isBusy || outbox.isPending("edit", turn.key)} save=${send} close=${close} />`}
    ${!isEditing &&
    html`<span class="famnb-tools" ref=${edit}>
      <${CopyButton} class="famnb-small" label="Copy prompt" read=${() => turn.prompt} />
      <${Button} class="famnb-small" label="Edit" title="Ask something else in its place; this version stays" locked=${isBusy} press=${() => setEditing(true)} />
    </span>`}`;
}

/** @param {{call: import("../protocol.js").ToolCallView, number: number, pane: string}} props `number` is its index in the reply */
function Approval({ call, number, pane }) {
  const { root } = useTool();
  const group = useRef(/** @type {any} */ (null));
  // Whoever has decided goes on writing: keys that are typed elsewhere would be the notebook's commands.
  useLayoutEffect(() => {
    const element = group.current;
    return () => {
      if (element.querySelector(":focus")) /** @type {any} */ (root.querySelector(".famnb-writing .famnb-prompt"))?.focus({ preventScroll: true });
    };
  }, []);
  const decide = (label, isApproved, name = "") =>
    html`<${IntentButton} class=${name} label=${label} intent="decide" args=${{ pane, call: number, isApproved }} lock=${`${pane} ${number}`} />`;
  const title = `Run ${call.name}?`;
  return html`<div class="famnb-approval" role="group" aria-label=${title} ref=${group}>
    <span class="famnb-label">${title}</span>
    ${decide("Approve", true, "famnb-send")}${decide("Decline", false)}
  </div>`;
}

// A call of a turn: its prompt stands first, and what the answer took at its foot, with what can be done about it.
const TurnCall = memo(({ call, turn, isFirst, isLast, isBusy }) => {
  const { outbox } = useTool();
  const { pane } = call;
  const number = Number(turn.key);
  const flow = useRef(/** @type {any} */ (null));
  const tools = new Map(call.tools.map((tool, index) => [tool.key, { tool, index }]));
  const below = ({ tool, index }) =>
    tool.result
      ? html`<${Block} block=${tool.result} />`
      : tool.isPending && html`<${Approval} key=${tool.key} call=${tool} number=${index} pane=${pane.key} />`;
  const readTurn = async () => (await outbox.press("read_turn", { turn: number }, turn.key)).value;
  const { copy, edit, editor, versions, retry } = useAnswer({
    ...turn,
    pane,
    flow,
    args: { turn: number },
    lock: turn.key,
    isBusy,
    canEdit: true,
    noun: "version",
    show: (version) => outbox.press("switch", { turn: number, version }, turn.key),
    retryIntent: "regenerate",
  });
  return html`<article class=${`${paneClass(pane)} ${isFirst ? "" : "famnb-later"}`}>
    ${isFirst && html`<${TurnPrompt} turn=${turn} prompts=${pane.prompts} isBusy=${isBusy} />`}
    <${PaneHead} pane=${pane} />
    ${editor}
    <div class="famnb-flow" ref=${flow} hidden=${Boolean(editor)}>
      ${pane.blocks.map((block) => html`<div key=${block.key}><${Block} block=${block} />${tools.has(block.key) && below(tools.get(block.key))}</div>`)}
    </div>
    <${PaneNotes} pane=${pane} />
    <div class="famnb-foot">
      ${pane.figures && html`<p class="famnb-note famnb-figures">${pane.figures}</p>`}
      <span class="famnb-tools">
        <span>${copy}${isLast && html`<span hidden=${pane.isRunning}><${CopyButton} class="famnb-small" label="Copy as Markdown" needsKernel read=${readTurn} /></span>`}</span>
        ${isLast && html`<span class="famnb-turn" role="group" aria-label=${`Turn ${number + 1}`}>${edit}${versions}${retry}</span>`}
      </span>
    </div>
  </article>`;
});

/** A turn: its calls. @param {{turn: import("../protocol.js").TurnView, isBusy: boolean}} props */
export const Turn = memo(({ turn, isBusy }) =>
  turn.calls.map(
    (call, index) => html`<${TurnCall}
      key=${index}
      call=${call}
      turn=${turn}
      isFirst=${index === 0}
      isLast=${index === turn.calls.length - 1}
      isBusy=${isBusy}
    />`,
  ),
);
