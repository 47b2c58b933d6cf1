// The box in which the next prompt is written: its text, images, variables, and Send; and the system text.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { useEscape, useStop, useTool, useTyped } from "../runtime/tool.js";
import { Button } from "./button.js";
import { Help } from "./html.js";
import { PictureAdder, Pictures, useDrop } from "./pictures.js";
import { Variables } from "./variables.js";

/**
 * Returns what a text area does with a key: Ctrl+Enter sends, and Enter if it is enough; a key that an input method takes
 * is left to it. @param {() => void} send
 */
export const sendByKeys = (send, isEnterEnough = true) => (event) => {
  // Else JupyterLab runs the cell, and drops the line break that follows a Shift that it has heard of.
  if (event.key === "Enter" || event.key === "Shift") event.stopPropagation();
  if (event.key !== "Enter" || event.isComposing) return;
  if (!event.ctrlKey && !event.metaKey && (event.shiftKey || !isEnterEnough)) return;
  event.preventDefault();
  send();
};

/**
 * A text of the settings: one line while it is empty, and a box once it is opened.
 * @param {{title: string, text: string, placeholder: string, intent: string, args?: object}} props
 */
export function FoldedText({ title, text: value, placeholder, intent, args = {} }) {
  const { isLost } = useTool();
  const [text, edit] = useTyped(value, intent, (next) => ({ ...args, text: next }), String(Object.values(args)));
  const [isOpen, setOpen] = useState(Boolean(value));
  // What was filled in by a preset or a past call is seen.
  useEffect(() => {
    if (value) setOpen(true);
  }, [Boolean(value)]);
  return html`<details class="famnb-system" open=${isOpen} onToggle=${(event) => setOpen(event.target.open)}>
    <summary><strong>${title}</strong><span class="famnb-gist">${isOpen ? "" : text.trim() || "not set"}</span></summary>
    <textarea
      class="famnb-prompt"
      rows="2"
      placeholder=${placeholder}
      aria-label=${title}
      readonly=${isLost}
      value=${text}
      onInput=${(event) => edit(event.target.value)}
      onKeyDown=${sendByKeys(() => {}, false)}
    />
  </details>`;
}

/** The system text. Intent: set_system. @param {{text: string, args?: object}} props */
export const SystemText = (props) =>
  html`<${FoldedText} title="System" placeholder="How the model should behave" intent="set_system" ...${props} />`;

// The text of the box, and what sends it. What could not be sent comes back, above what was written since.
function usePrompt(box, { canSend, isBusy }) {
  const { outbox, isLost } = useTool();
  const [text, edit, hold] = useTyped(box.text, "set_prompt", (next) => ({ text: next }));
  const [isNext, setNext] = useState(false); // whether it is sent once the answer has ended
  const written = useRef(""); // since the last prompt was sent
  const isSending = outbox.isPending("send_prompt");
  const isWaiting = isBusy || isSending;
  const send = async () => {
    // An answer looks complete a moment before its turn has ended: an Enter in between must not be lost.
    setNext(isWaiting && !isLost && !box.fault && Boolean(text.trim()));
    if (isWaiting || !canSend(text)) return;
    const answer = outbox.press("send_prompt", { prompt: text });
    hold("", answer);
    written.current = "";
    const { ok, isUnknown } = await answer;
    if (!ok && !isUnknown && (written.current || !outbox.isOpen)) edit([text, written.current].filter(Boolean).join("\n"));
  };
  useEffect(() => {
    if (isNext && !isWaiting) send();
  });
  const write = (next) => {
    written.current = next;
    setNext(false);
    edit(next);
  };
  return { text, write, send, isNext, setNext, isSending };
}

/**
 * The box. Intents: send_prompt, set_prompt, set_rows, run_all_rows, add_image, remove_image, stop. Esc stops.
 * @param {{box: import("../protocol.js").PromptBoxView, area: {current: any}, isBusy: boolean, hasTurns: boolean,
 *   target?: string}} props
 *   `hasTurns`: whether there is something to go on from; `target` is appended to Send and Stop: "all";
 *   `area` is given the element in which one writes
 */
export function PromptBox({ box, area, isBusy, hasTurns, target = "" }) {
  const { outbox, isLost } = useTool();
  const { stop, trouble } = useStop();
  const canSend = (text) => !isLost && !box.fault && Boolean(text.trim() || box.hasConversation);
  const replacement = target ? "The panes' own prompts are sent" : "The conversation in the settings is sent instead";
  const prompt = usePrompt(box, { canSend, isBusy });
  const { drop, add } = useDrop();
  const stopAll = () => {
    prompt.setNext(false);
    stop();
  };
  useEscape(isBusy, stopAll);
  const send = () => {
    prompt.send();
    area.current.focus();
  };
  // A table whose head names variables is meant for their rows, wherever it is pasted.
  const paste = (event) => {
    const text = event.clipboardData.getData("text/plain").trimEnd();
    const { names } = box.variables;
    const head = text.split("\n", 1)[0].split(/[\t,]/);
    if (!text.includes("\n") || !head.every((name) => names.includes(name.trim()))) return;
    event.preventDefault();
    outbox.send("paste_rows", { text, row: 0, name: names[0] });
  };
  const isReady = canSend(prompt.text) && !prompt.isSending;
  const hint = prompt.isNext ? "Sent when the answer has ended" : prompt.isSending ? "Waiting for the kernel …" : isBusy ? "" : box.fault;
  return html`<div class="famnb-writer" ...${drop}>
    <div class="famnb-remarks">${box.remarks.map((line) => html`<p class="famnb-remark"><${Help} text=${line} /></p>`)}</div>
    ${trouble && html`<p class="famnb-failure" role="alert">${trouble}</p>`}
    <div class="famnb-writing">
      <${Pictures} pictures=${box.pictures} />
      <label>
        <span class="famnb-hidden">Prompt</span>
        <textarea
          class="famnb-prompt"
          rows="1"
          ref=${area}
          readonly=${isLost}
          placeholder=${box.hasConversation ? replacement : hasTurns ? "Write a reply" : "Ask something"}
          value=${prompt.text}
          onInput=${(event) => prompt.write(event.target.value)}
          onKeyDown=${sendByKeys(prompt.send)}
          onPaste=${paste}
        />
      </label>
    </div>
    <${Variables} variables=${box.variables} />
    <div class="famnb-bar">
      ${isBusy
        ? html`<${Button} class="famnb-stop" label=${`Stop ${target}`.trim()} keys="Esc" press=${stopAll} />`
        : html`<${Button} class="famnb-send" label=${target ? `Send to ${target}` : "Send"} keys="Enter" disabled=${!isReady} press=${send} />`}
      <${PictureAdder} add=${add} />
      <span class=${`famnb-hint ${box.fault ? "famnb-fault" : ""}`} role="status">${hint}</span>
      <span class="famnb-estimate" title=${box.estimateHelp} hidden=${isBusy || !isReady}>${box.estimate}</span>
    </div>
  </div>`;
}
