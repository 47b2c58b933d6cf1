// The board: panes side by side, each with its settings above and its answers below, and one box that asks them all.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { useAnswer } from "../parts/answer.js";
import { Button, IntentButton } from "../parts/button.js";
import { Code } from "../parts/code.js";
import { Field } from "../parts/field.js";
import { Form } from "../parts/form.js";
import { Help } from "../parts/html.js";
import { Blocks, PaneHead, PaneNotes, Prompts, paneClass } from "../parts/pane.js";
import { FoldedText, PromptBox, SystemText } from "../parts/prompt.js";
import { defineTool, memo, useArrival, useFollowEnd, useTool, useWidth } from "../runtime/tool.js";

const COLUMN_PX = 200; // narrower, and a line of an answer has too few words
const GAP_PX = 14;
const METERS_PX = 400; // of a pane whose figures stand in one line
const HEAD_PX = 490; // of a pane whose name, endpoint, model and temperature stand in one line
const MANY = 4; // more columns than these are wider, for they are read one after another
const WIDE_COLUMN_PX = 240;

/** Returns how many panes stand beside one another, all rows about as full, and classes for what a pane has room for. */
function arrange(width, count) {
  const room = width - 2 * GAP_PX;
  const fit = (column) => Math.floor((room + GAP_PX) / (column + GAP_PX));
  const most = Math.max(1, Math.min(MANY, fit(COLUMN_PX)), fit(WIDE_COLUMN_PX));
  const columns = Math.ceil(count / Math.ceil(count / most));
  // Else the settings of many panes would stand before the first answer.
  const classes = [count > columns && "famnb-folded", room / columns < METERS_PX && "famnb-slim", room / columns < HEAD_PX && "famnb-folding"];
  return { columns, classes: classes.filter(Boolean).join(" ") };
}

// The settings of a pane: endpoint, model and temperature at first, all of them once they are unfolded.
const PaneSettings = memo(({ pane, count, afterRemoval, hasRounds, isBusy }) => {
  const { outbox } = useTool();
  const [isOpen, setOpen] = useState(false);
  const args = useRef({ pane: pane.key }).current;
  const retryOnEnter = (event) => {
    if (event.key !== "Enter" || event.isComposing || !event.target.matches("input.famnb-input")) return;
    event.preventDefault();
    if (!hasRounds || isBusy) return;
    event.target.select(); // the next value is typed over it
    outbox.press("ask_again", args, pane.key);
  };
  const isFaulty = pane.form.groups.some(({ fields }) => fields.some(({ fault }) => fault));
  return html`<section class=${`famnb-column ${isOpen ? "" : "famnb-brief"}`} role="group" aria-label=${pane.label} onKeyDown=${retryOnEnter}>
    <div class="famnb-head">
      <strong class="famnb-title">${pane.label}</strong>
      <${Button}
        class=${`famnb-tab ${isFaulty ? "famnb-faulty" : ""}`}
        label="Settings"
        text="⚙"
        aria-expanded=${String(isOpen)}
        aria-pressed=${String(isOpen)}
        press=${() => setOpen(!isOpen)}
      />
      ${hasRounds &&
      html`<${IntentButton}
        class="famnb-icon famnb-again"
        label="Retry this pane"
        text="↻"
        title="Ask this pane the latest prompt again, with its settings as they are now; its answer stays (Enter in a setting)"
        intent="ask_again"
        args=${args}
        lock=${pane.key}
        locked=${isBusy}
      />`}
      <${IntentButton}
        class="famnb-icon famnb-drop"
        label="Remove pane"
        text="×"
        title=${count === 1 ? "A board has at least one pane" : "Remove this pane; what it has answered stays"}
        disabled=${count === 1}
        intent="remove"
        args=${args}
        lock=${pane.key}
        then=${afterRemoval}
      />
    </div>
    <div class="famnb-remarks">
      ${pane.remarks.map((line) => html`<p class="famnb-remark"><${Help} text=${line} /></p>`)}
    </div>
    ${isOpen &&
    html`<div class="famnb-texts" data-pane=${pane.label}>
      <${FoldedText} title="Own prompt" text=${pane.prompt} placeholder="Asked next here, in place of what all are asked" intent="set_own_prompt" args=${args} />
      <${SystemText} text=${pane.system} args=${args} />
    </div>`}
    ${!isOpen && pane.prompt && html`<p class="famnb-remark famnb-own">Asked next here: ${pane.prompt}</p>`}
    <${Form} form=${pane.form} args=${args} isBrief=${!isOpen} />
  </section>`;
});

// What is set once for all panes: one line while it is folded.
const Shared = memo(({ fields }) => {
  const [isOpen, setOpen] = useState(false);
  if (!fields.length) return null;
  const texts = fields.filter(({ text }) => text).map(({ key, text }) => `${key} ${text}`);
  const gist = texts.join(" · ") || `${fields.map(({ key }) => key).join(", ")}: not set`;
  return html`<details class="famnb-system" open=${isOpen} onToggle=${(event) => setOpen(event.target.open)}>
    <summary><strong>For all panes</strong><span class="famnb-gist">${isOpen ? "" : gist}</span></summary>
    <div class="famnb-shared-fields">${fields.map((field) => html`<${Field} key=${field.key} field=${field} intent="set_shared" />`)}</div>
  </details>`;
});

function Meters({ meters }) {
  // The ends of an estimate are there for who points at it: in a narrow pane they would take four lines.
  const tile = ([name, figure]) => html`<div><dt>${name}</dt><dd title=${figure}>${figure.replace(/ \([^)]*\)$/, "")}</dd></div>`;
  return html`<dl class="famnb-meters">${Object.entries(meters).map(tile)}</dl>`;
}

// Rows that are as high in every pane: what answers, its figures, the answer, and what can be done with it.
const Answer = memo(({ cell, isLatest, canRetry, isBusy }) => {
  const { outbox } = useTool();
  const { key, pane, label, isWinner } = cell;
  const flow = useRef(/** @type {any} */ (null));
  const follow = useFollowEnd(flow);
  useEffect(() => {
    if (pane.isRunning) follow(true);
  }, [pane.key]);
  const args = useRef({ pane: key }).current;
  const { copy, edit, editor, versions, retry } = useAnswer({
    ...cell,
    flow,
    args,
    isBusy,
    canEdit: canRetry,
    areVersionsLocked: !isLatest,
    noun: "answer",
    show: (to) => outbox.press("show_version", { pane: key, number: to + 1 }, key),
    retryIntent: "ask_again",
    lock: key,
  });
  return html`<article class=${`${paneClass(pane)} ${isWinner ? "famnb-won" : ""}`}>
    <${PaneHead} pane=${pane} label=${label} target=${label.includes(pane.head) ? "" : pane.head} />
    <${Meters} meters=${cell.meters} />
    <div class="famnb-reply">
      <${Prompts} prompts=${pane.prompts} />
      ${editor}
      <div class="famnb-flow" hidden=${Boolean(editor)} tabindex="0" role="region" aria-label=${`${label}: answer`} ref=${flow}><${Blocks} blocks=${pane.blocks} /></div>
      <${PaneNotes} pane=${pane} />
    </div>
    <div class="famnb-foot">
      <span class="famnb-tools">
        ${copy}${edit}
        <span class="famnb-turn">
          ${versions}<${IntentButton}
            class="famnb-small"
            label=${`${label}: pin as winner`}
            text=${isWinner ? "★ Winner" : "☆ Pin"}
            title=${isWinner ? "Take the mark away" : "Pin as winner"}
            aria-pressed=${String(isWinner)}
            intent="pin"
            args=${{ pane: isWinner ? null : key }}
            lock=${key}
            disabled=${!isLatest}
          />${canRetry && retry}
        </span>
      </span>
    </div>
  </article>`;
});

// A prompt and the row of its answers.
const Round = memo(({ round, number, isLatest, paneKeys, isBusy }) => {
  const draw = (cell) =>
    cell.pane
      ? html`<${Answer}
          key=${cell.key}
          cell=${cell}
          isLatest=${isLatest}
          canRetry=${isLatest && paneKeys.split(",").includes(cell.key)}
          isBusy=${isBusy}
        />`
      : html`<div key=${cell.key} class="famnb-pane famnb-missing"><strong>${cell.label}</strong><p class="famnb-note">was not sent this</p></div>`;
  return html`<section class="famnb-round" aria-label=${`Round ${number}`}>
    ${round.prompt && html`<div class="famnb-prompt-text" dir="auto">${round.prompt}</div>`}
    <div class="famnb-row">${round.cells.map(draw)}</div>
  </section>`;
});

// Has the latest round scroll up until it begins at the top of the box, as far as its answers need the room; then, or once
// the reader has scrolled, nothing moves: the answers follow their ends in their panes.
function useFollowRounds(ref, latest) {
  const { followers } = useTool();
  const position = useRef({ top: 0 }).current;
  const follow = () => {
    const box = ref.current;
    if (!box?.lastElementChild || Math.abs(box.scrollTop - position.top) > 2) return;
    box.scrollTop = box.lastElementChild.offsetTop - GAP_PX;
    position.top = box.scrollTop;
  };
  useEffect(() => {
    position.top = ref.current.scrollTop;
    follow();
  }, [latest]);
  useEffect(() => {
    followers.add(follow);
    return () => followers.delete(follow);
  }, []);
}

function Top({ view, area }) {
  const { panes, rounds, isBusy, isMarked, code } = view;
  const isEmpty = !rounds.length;
  return html`<div class="famnb-top">
    <strong class="famnb-title">${`Board · ${panes.length} ${panes.length === 1 ? "pane" : "panes"}`}</strong>
    <div class="famnb-tools">
      <${IntentButton} class="famnb-new" label="New chat" title="Begin another chat in every pane; this one stays in the saved output" intent="new_talk" disabled=${isEmpty || isBusy} then=${() => area.current.focus()} />
      <${IntentButton} class="famnb-new" label="Differences" title="Mark the words that differ from the pinned answer, or else from the first" intent="mark_differences" args=${{ isMarked: !isMarked }} aria-pressed=${String(isMarked)} disabled=${isEmpty} />
      <${IntentButton} class="famnb-new" label="Add a pane" title="A copy of the last pane, with another model where there is one" intent="add" disabled=${isBusy} />
      <${IntentButton} class="famnb-new" label="Make an experiment" intent="show_code" args=${{ isOpen: !code }} aria-expanded=${String(Boolean(code))} />
    </div>
  </div>`;
}

/** @param {{view: import("../protocol.js").BoardView}} props */
function Board({ view }) {
  const { panes, rounds, isBusy } = view;
  const flow = useRef(/** @type {any} */ (null));
  const area = useRef(/** @type {any} */ (null)); // in which one writes
  const focusBox = useRef(() => area.current.focus()).current;
  const { columns, classes } = arrange(useWidth(), panes.length);
  const keys = panes.map(({ key }) => key).join();
  useFollowRounds(flow, rounds.at(-1)?.key);
  useArrival(() => area.current);
  return html`<div class=${`famnb-stage ${classes}`} style=${{ "--famnb-columns": columns }}>
    <${Top} view=${view} area=${area} />
    ${view.code && html`<div class="famnb-panel famnb-experiment"><${Code} code=${view.code} /></div>`}
    <div class="famnb-commons"><${SystemText} text=${view.system} /><${Shared} fields=${view.shared} /></div>
    <div class="famnb-row famnb-columns">
      ${panes.map(
        (pane) => html`<${PaneSettings}
          key=${pane.key}
          pane=${pane}
          count=${panes.length}
          afterRemoval=${focusBox}
          hasRounds=${rounds.length > 0}
          isBusy=${isBusy}
        />`,
      )}
    </div>
    <div class="famnb-rounds" tabindex="0" role="region" aria-label="Answers" ref=${flow}>
      ${!rounds.length && html`<p key="empty" class="famnb-empty">The answers appear here side by side, and are saved with the notebook.</p>`}
      ${rounds.map(
        (round, index) => html`<${Round}
          key=${round.key}
          round=${round}
          number=${index + 1}
          isLatest=${index === rounds.length - 1}
          paneKeys=${keys}
          isBusy=${isBusy}
        />`,
      )}
    </div>
    <${PromptBox} box=${view.prompt} isBusy=${isBusy} hasTurns=${rounds.length > 0} target="all" area=${area} />
  </div>`;
}

export default defineTool("Board", Board, "famnb-tool famnb-board");
