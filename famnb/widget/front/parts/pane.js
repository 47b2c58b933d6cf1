// A pane: one reply while it streams and when it has ended. A tool that shows more of a reply composes one from the
// parts below.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { memo, useFollowEnd, useStop, useTool } from "../runtime/tool.js";
import { Button, CopyButton } from "./button.js";
import { Help } from "./html.js";
import { Markdown } from "./markdown.js";

/**
 * @typedef {import("../protocol.js").PaneView} PaneView
 * @typedef {import("../protocol.js").BlockView} BlockView
 */

/** Returns the text of elements as the page shows it, without the buttons in it. @param {Element[]} elements */
export function readVisibleText(elements) {
  const hide = (isHidden) => elements.forEach((element) => element.classList.toggle("famnb-copying", isHidden));
  hide(true);
  const text = elements.map((element) => /** @type {HTMLElement} */ (element).innerText.trim()).join("\n\n");
  hide(false);
  return text;
}

function Thinking({ block }) {
  const box = useRef(/** @type {any} */ (null));
  useFollowEnd(box);
  return html`<details class="famnb-details" open=${block.isOpen}>
    <summary>${block.label}</summary>
    <div class="famnb-body famnb-thinking jp-RenderedHTMLCommon" ref=${box}><${Markdown} body=${block.body} /></div>
  </details>`;
}

/** An answer, thinking or code. @param {{block: BlockView}} props */
export const Block = memo(({ block }) => {
  if (block.kind === "thinking") return html`<${Thinking} block=${block} />`;
  const isCode = block.kind === "code";
  return html`<div>
    <div class="famnb-codehead">
      <div class="famnb-label">${block.label}</div>
      ${isCode && html`<${CopyButton} label="Copy code" read=${() => block.body.value.tail} />`}
    </div>
    <div class=${`famnb-body famnb-${block.kind} ${isCode ? "" : "jp-RenderedHTMLCommon"}`}><${Markdown} body=${block.body} /></div>
  </div>`;
});

/** The blocks of a reply. @param {{blocks: BlockView[]}} props */
export const Blocks = memo(({ blocks }) => blocks.map((block) => html`<${Block} key=${block.key} block=${block} />`));

/** The messages of a request. @param {{prompts: {label: string, text: string}[]}} props */
export function Prompts({ prompts }) {
  return prompts.map(
    ({ label, text }) => html`<div class="famnb-prompt-text" dir="auto">
      ${label && html`<strong class="famnb-role">${label}</strong>`}${text}
    </div>`,
  );
}

function Clock({ elapsed }) {
  const [now, setNow] = useState(performance.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(performance.now()), 500);
    return () => clearInterval(timer);
  }, []);
  const seconds = elapsed.value + (Math.max(now, elapsed.since) - elapsed.since) / 1000;
  return html`<span class="famnb-clock">${Math.floor(seconds)} s</span>`;
}

/** What a reply is, how far it is, and Stop. @param {{pane: PaneView, label?: string, target?: string}} props */
export function PaneHead({ pane, label = pane.head, target = "" }) {
  const { isLost, outbox } = useTool();
  const { stop, trouble } = useStop();
  const isStopping = outbox.isPending("stop", pane.key);
  const isRunning = pane.isRunning && !isLost;
  // What to do then is said once, above.
  const status = isLost && pane.isRunning ? "cut off: the kernel has ended" : isStopping ? "stopping …" : pane.status;
  return html`<div class="famnb-head">
    <strong>${label}</strong>
    ${target && html`<span class="famnb-hint">${target}</span>`}
    ${pane.badges.map(({ text, tone }) => html`<span class=${`famnb-badge famnb-badge-${tone}`}>${text}</span>`)}
    <span class="famnb-state" role="status">${status}</span>
    ${isRunning && html`<${Clock} elapsed=${pane.elapsed} />`}
    ${isRunning && pane.hasStop && html`<${Button} class="famnb-stop" label="Stop" locked=${isStopping} press=${() => stop(pane.key)} />`}
    ${trouble && html`<span class="famnb-note">${trouble}</span>`}
  </div>`;
}

/** What went wrong, and remarks. @param {{pane: PaneView}} props */
export function PaneNotes({ pane }) {
  return html`${pane.failure && html`<p class="famnb-failure">${pane.failure}</p>`}
    ${pane.notes.map((note) => html`<p class="famnb-note"><${Help} text=${note} /></p>`)}`;
}

/** The class of a pane's element. @param {PaneView} pane */
export function paneClass(pane) {
  const { isLost } = useTool();
  return `famnb-pane ${pane.isRunning && !isLost ? "famnb-running" : ""}`;
}

/** A whole reply, as a live view shows it. @param {{pane: PaneView}} props */
export const Pane = memo(({ pane }) => {
  const flow = useRef(/** @type {any} */ (null));
  const readAnswer = () => readVisibleText([...flow.current.querySelectorAll(".famnb-text")]);
  const hasAnswer = pane.blocks.some(({ kind }) => kind === "text");
  return html`<article class=${paneClass(pane)}>
    <${PaneHead} pane=${pane} />
    <${Prompts} prompts=${pane.prompts} />
    <div class="famnb-flow" ref=${flow}><${Blocks} blocks=${pane.blocks} /></div>
    ${hasAnswer && html`<${CopyButton} label="Copy answer" read=${readAnswer} />`}
    <${PaneNotes} pane=${pane} />
    ${pane.figures && html`<p class="famnb-note famnb-figures">${pane.figures}</p>`}
  </article>`;
});
