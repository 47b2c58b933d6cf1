// The board: panes side by side, each with its settings above and its answers below, and one box that asks them all.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { useAnswer } from "../parts/answer.js";
import { Button, IntentButton } from "../parts/button.js";
import { Code } from "../parts/code.js";
import { Field, TextInput } from "../parts/field.js";
import { Form } from "../parts/form.js";
import { Help } from "../parts/html.js";
import { shortenNames } from "../parts/names.js";
import { Blocks, PaneHead, PaneNotes, Prompts, paneClass } from "../parts/pane.js";
import { Empty, FoldedText, PromptBox, SystemText } from "../parts/prompt.js";
import { defineTool, memo, useFollowEnd, useHeld, useTool, useWidth } from "../runtime/tool.js";

/**
 * @typedef {import("../protocol.js").BoardView} BoardView
 * @typedef {import("../protocol.js").BoardPaneView} BoardPaneView
 * @typedef {import("../protocol.js").RoundView} RoundView
 */

const EXAMPLES = [
  "Explain tides to a child in three sentences.",
  "Compare bubble sort and quicksort in a table.",
  "Is 9.11 or 9.9 larger? Say why in one line.",
];
const COLUMN_PX = 200; // narrower, and a line of an answer has too few words
const GAP_PX = 12;
const METERS_PX = 400; // of a pane whose figures stand in one line
const HEAD_PX = 490; // of a pane whose name, endpoint and model stand in one line
const MANY = 4; // more columns than these are wider, for they are read one after another
const WIDE_COLUMN_PX = 240;
const NARROW_PX = 340; // of a pane whose Settings are an icon
const ICONS_PX = 144; // of a pane's head beside its name
const WORD_PX = 50; // that "Settings" takes more than its icon
const LETTER_PX = 8;

/** Returns how many panes stand beside one another, all rows about as full, and classes for what a pane has room for. */
function arrange(width, count) {
  const room = width - 2 * GAP_PX;
  const fit = (column) => Math.floor((room + GAP_PX) / (column + GAP_PX));
  const most = Math.max(1, Math.min(MANY, fit(COLUMN_PX)), fit(WIDE_COLUMN_PX));
  const columns = Math.ceil(count / Math.ceil(count / most));
  const isFolding = room / columns < HEAD_PX;
  // A name beside endpoint and model has a third of the line.
  const isNarrow = room / columns < NARROW_PX;
  const letters = Math.max(9, Math.floor((room / columns - ICONS_PX - (isNarrow ? 0 : WORD_PX)) / (isFolding ? 1 : 3) / LETTER_PX));
  // Else the settings of many panes would stand before the first answer.
  const classes = [count > columns && "famnb-folded", room / columns < METERS_PX && "famnb-slim", isFolding && "famnb-folding"];
  return { columns, letters, isNarrow, classes: classes.filter(Boolean).join(" ") };
}

// The name of a pane, which is written in its place: Enter or leaving it renames the pane, Esc does not.
function PaneName({ pane, short }) {
  const { outbox } = useTool();
  const [hasFocus, setFocus] = useState(false);
  const [label, hold] = useHeld(pane.label);
  const [typed, setTyped] = useState(/** @type {string | null} */ (null));
  const rename = () => {
    if (typed !== null && typed !== label) hold(typed, outbox.send("rename", { pane: pane.key, name: typed }));
    setTyped(null);
    setFocus(false);
  };
  const keys = (event) => {
    if (event.key !== "Enter" && event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation();
    if (event.key === "Enter") event.target.blur();
    else setTyped(null);
  };
  return html`<${TextInput}
    class="famnb-title"
    aria-label="Name of the pane"
    title=${`${label} · write another name here; none: the name of its settings`}
    text=${typed ?? (hasFocus || label !== pane.label ? label : short)}
    edit=${setTyped}
    onFocus=${() => setFocus(true)}
    onBlur=${rename}
    onKeyDown=${keys}
  />`;
}

// Where a pane is taken hold of: it is dragged, moved by arrow keys, or by two buttons that a click shows.
function useHandle({ pane, place, count, setDragged }) {
  const { outbox } = useTool();
  const [isOpen, setOpen] = useState(false);
  const target = useRef(-1); // the place that it is dragged to
  const step = async (steps, element) => {
    const position = place + steps;
    if (position < 0 || position >= count) return;
    await outbox.press("move", { pane: pane.key, position });
    element.focus(); // an element that is moved may not keep it
  };
  const keys = (event) => {
    const steps = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!steps) return;
    event.preventDefault();
    step(steps, event.currentTarget);
  };
  const begin = ({ currentTarget, pointerId }) => {
    target.current = place;
    currentTarget.setPointerCapture(pointerId);
  };
  const follow = ({ currentTarget, pointerId, clientX, clientY }) => {
    if (!currentTarget.hasPointerCapture(pointerId)) return;
    const column = currentTarget.getRootNode().elementFromPoint(clientX, clientY)?.closest(".famnb-column");
    target.current = [...currentTarget.closest(".famnb-columns").children].indexOf(column);
    setDragged({ pane: pane.key, target: target.current });
  };
  const press = () => {
    setDragged({ pane: "", target: -1 });
    if (target.current === place || target.current < 0) setOpen(!isOpen);
    else outbox.press("move", { pane: pane.key, position: target.current });
  };
  const button = (label, steps) =>
    html`<${Button} class="famnb-small" label=${label} locked=${place + steps < 0 || place + steps >= count} press=${(event) => step(steps, event.currentTarget)} />`;
  const handle = html`<${Button}
    class="famnb-icon famnb-handle"
    label="Move pane"
    text="⠿"
    title="Drag to move this pane, or press ← and →"
    aria-expanded=${String(isOpen)}
    disabled=${count < 2}
    onKeyDown=${keys}
    onPointerDown=${begin}
    onPointerMove=${follow}
    press=${press}
  />`;
  return { handle, moves: isOpen && html`<div class="famnb-bar famnb-moves">${button("Move left", -1)}${button("Move right", 1)}</div>` };
}

// The settings of a pane: endpoint and model at first, all of them once they are unfolded.
const PaneSettings = memo(({ pane, short, place, count, mark, setDragged, afterRemoval, hasRounds, isBusy, isNarrow }) => {
  const { outbox } = useTool();
  const [isOpen, setOpen] = useState(false);
  const args = useRef({ pane: pane.key }).current;
  const { handle, moves } = useHandle({ pane, place, count, setDragged });
  const isFaulty = pane.form.groups.some(({ fields }) => fields.some(({ fault }) => fault));
  return html`<section class=${`famnb-column ${isOpen ? "" : "famnb-brief"} ${mark}`} role="group" aria-label=${pane.label}>
    <header class="famnb-head">
      ${handle}<${PaneName} pane=${pane} short=${short} />
      <${Button}
        class=${`famnb-tab ${isFaulty ? "famnb-faulty" : ""}`}
        label="Settings"
        text=${isNarrow ? "⚙" : "Settings"}
        aria-expanded=${String(isOpen)}
        aria-pressed=${String(isOpen)}
        press=${() => setOpen(!isOpen)}
      />
      ${hasRounds &&
      html`<${Button}
        class="famnb-icon famnb-again"
        label="Retry this pane"
        text="↻"
        title="Ask this pane the latest prompt again, with its settings as they are now; its answer stays"
        locked=${isBusy || outbox.isPending("ask_again", pane.key)}
        press=${() => outbox.press("ask_again", args, pane.key)}
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
    </header>
    ${moves}
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

function Meters({ names, meters }) {
  // The ends of an estimate are there for who points at it: in a narrow pane they would take four lines.
  const tile = (name, figure) => html`<div><dt>${name}</dt><dd title=${figure}>${figure.replace(/ \([^)]*\)$/, "")}</dd></div>`;
  return html`<dl class="famnb-meters">${names.map((name, index) => tile(name, meters[index]))}</dl>`;
}

// Rows that are as high in every pane: what answers, its figures, the answer, and what can be done with it.
const Answer = memo(({ answer, cell, round, names, isLatest, canRetry, isBusy }) => {
  const { outbox } = useTool();
  const { pane, label, isWinner } = answer;
  const flow = useRef(/** @type {any} */ (null));
  const follow = useFollowEnd(flow);
  useEffect(() => {
    if (pane.isRunning) follow(true);
  }, [pane.key]);
  const args = useRef({ round, pane: cell }).current;
  const { copy, edit, editor, versions, retry } = useAnswer({
    ...answer,
    flow,
    args,
    isBusy,
    canEdit: canRetry,
    areVersionsLocked: !isLatest,
    noun: "answer",
    show: (to) => outbox.press("show_version", { pane: cell, number: to + 1 }, cell),
    retryIntent: "ask_again",
    lock: cell,
  });
  return html`<article class=${`${paneClass(pane)} ${isWinner ? "famnb-won" : ""}`}>
    <${PaneHead} pane=${pane} label=${label} target=${label.includes(pane.head) ? "" : pane.head} />
    <${Meters} names=${names} meters=${answer.meters} />
    <div class="famnb-reply">
      <${Prompts} prompts=${pane.prompts} />
      ${editor}
      <div class="famnb-flow" hidden=${Boolean(editor)} tabindex="0" role="region" aria-label=${`${label}: answer`} ref=${flow}><${Blocks} blocks=${pane.blocks} /></div>
      <${PaneNotes} pane=${pane} />
    </div>
    <div class="famnb-foot">
      <span class="famnb-tools">
        ${copy}${edit}${versions}
        <${IntentButton}
          class="famnb-small"
          label=${`${label}: pin as winner`}
          text=${isWinner ? "★ Winner" : "☆ Pin"}
          title=${isWinner ? "Take the mark away" : "Pin as winner"}
          aria-pressed=${String(isWinner)}
          intent="pin"
          args=${{ round, pane: isWinner ? null : cell }}
          lock=${`${round} ${cell}`}
        />
        ${canRetry && retry}
      </span>
    </div>
  </article>`;
});

function Missing({ cell, round, isBusy }) {
  return html`<div class="famnb-pane famnb-missing">
    <strong>${cell.label}</strong>
    <p class="famnb-note">${cell.canAsk ? "has not been sent this yet" : "was not sent this"}</p>
    ${cell.canAsk && html`<${IntentButton} label="Ask here" disabled=${isBusy} intent="ask_again" args=${{ round, pane: cell.key }} lock=${cell.key} />`}
  </div>`;
}

// A prompt and the row of its answers.
const Round = memo(({ round, number, isLatest, paneKeys, names, isBusy }) => {
  const draw = (cell) =>
    cell.answer
      ? html`<${Answer}
          key=${cell.key}
          answer=${cell.answer}
          cell=${cell.key}
          round=${round.key}
          names=${names}
          isLatest=${isLatest}
          canRetry=${isLatest && paneKeys.split(",").includes(cell.key)}
          isBusy=${isBusy}
        />`
      : html`<${Missing} key=${cell.key} cell=${cell} round=${round.key} isBusy=${isBusy} />`;
  return html`<section class="famnb-round" aria-label=${`Round ${number}`}>
    ${round.prompt && html`<div class="famnb-prompt-text" dir="auto">${round.prompt}</div>`}
    <div class="famnb-row">${round.cells.map(draw)}</div>
  </section>`;
});

// Has the answers of a round scroll together: the one that the reader scrolls leads, the others follow in proportion.
function useScrollTogether(ref, isOn) {
  useEffect(() => {
    const box = ref.current;
    if (!isOn || !box) return undefined;
    const listeners = new AbortController();
    const options = { capture: true, passive: true, signal: listeners.signal };
    let leader = null;
    for (const name of ["wheel", "pointerdown", "touchstart", "keydown"]) {
      box.addEventListener(name, ({ target }) => (leader = target.closest(".famnb-flow")), options);
    }
    const follow = ({ target }) => {
      if (target !== leader) return;
      const share = target.scrollTop / Math.max(1, target.scrollHeight - target.clientHeight);
      for (const other of target.closest(".famnb-row").querySelectorAll(".famnb-flow")) {
        if (other !== target) other.scrollTop = share * (other.scrollHeight - other.clientHeight);
      }
    };
    box.addEventListener("scroll", follow, options);
    return () => listeners.abort();
  }, [isOn]);
}

// Has the latest round scroll up until it begins at the top of the box, as far as its answers need the room; then, or once
// the reader has scrolled, nothing moves: the answers follow their ends in their own panes.
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

// Brings a board into view that another tool has opened, where one writes.
function useArrival(isNew, write) {
  const { outbox, root } = useTool();
  useEffect(() => {
    if (!isNew) return;
    outbox.send("mark_as_seen", {});
    requestAnimationFrame(() => {
      write.current();
      root.scrollIntoView({ block: "nearest" });
    });
  }, [isNew]);
}

function Top({ view, isTogether, setTogether, write }) {
  const { panes, rounds, isBusy, isFull, isMarked, code } = view;
  const isEmpty = !rounds.length;
  return html`<header class="famnb-top">
    <strong class="famnb-title">${`Board · ${panes.length} ${panes.length === 1 ? "pane" : "panes"}`}</strong>
    <span class="famnb-space" />
    <${IntentButton} class="famnb-new" label="New chat" title="Begin another chat in every pane; this one stays in the saved output" intent="new_talk" disabled=${isEmpty || isBusy} then=${() => write.current()} />
    <${IntentButton} class="famnb-new" label="Differences" title="Mark the words that differ from the pinned answer, or else from the first" intent="mark_differences" args=${{ isMarked: !isMarked }} aria-pressed=${String(isMarked)} disabled=${isEmpty} />
    <${Button} class="famnb-new" label="Scroll together" title="The answers of a round scroll in step" aria-pressed=${String(isTogether)} disabled=${isEmpty || panes.length < 2} needsKernel=${false} press=${() => setTogether(!isTogether)} />
    <${IntentButton} class="famnb-new" label="Add a pane" title="A copy of the last pane, with another model where there is one" intent="add" disabled=${isFull || isBusy} />
    <${IntentButton} class="famnb-new" label="Make an experiment" intent="show_code" args=${{ isOpen: !code }} aria-expanded=${String(Boolean(code))} />
  </header>`;
}

/** @param {{view: BoardView}} props */
function Board({ view }) {
  const { panes, rounds, isBusy } = view;
  const [isTogether, setTogether] = useState(false);
  const flow = useRef(/** @type {any} */ (null));
  const write = useRef((/** @type {string} */ _text = "") => {});
  const focusBox = useRef(() => write.current()).current;
  const [dragged, setDragged] = useState({ pane: "", target: -1 });
  const { columns, letters, isNarrow, classes } = arrange(useWidth(), panes.length);
  const names = shortenNames(panes.map(({ label }) => label), letters);
  const keys = panes.map(({ key }) => key).join();
  useScrollTogether(flow, isTogether);
  useFollowRounds(flow, rounds.at(-1)?.key);
  useArrival(view.isNew, write);
  return html`<div class=${`famnb-stage ${classes}`} style=${{ "--famnb-columns": columns }}>
    <${Top} view=${view} isTogether=${isTogether} setTogether=${setTogether} write=${write} />
    ${view.code && html`<div class="famnb-panel famnb-experiment"><${Code} code=${view.code} /></div>`}
    <div class="famnb-commons"><${SystemText} text=${view.system} /><${Shared} fields=${view.shared} /></div>
    <div class="famnb-row famnb-columns">
      ${panes.map(
        (pane, place) => html`<${PaneSettings}
          key=${pane.key}
          pane=${pane}
          short=${names[place]}
          place=${place}
          count=${panes.length}
          mark=${pane.key === dragged.pane ? "famnb-dragged" : place === dragged.target ? "famnb-target-place" : ""}
          setDragged=${setDragged}
          afterRemoval=${focusBox}
          hasRounds=${rounds.length > 0}
          isBusy=${isBusy}
          isNarrow=${isNarrow}
        />`,
      )}
    </div>
    <div class="famnb-rounds" tabindex="0" role="region" aria-label="Answers" ref=${flow}>
      ${!rounds.length && html`<${Empty} key="empty" text="The answers appear here side by side, and are saved with the notebook." examples=${EXAMPLES} choose=${(text) => write.current(text)} />`}
      ${rounds.map(
        (round, index) => html`<${Round}
          key=${round.key}
          round=${round}
          number=${index + 1}
          isLatest=${index === rounds.length - 1}
          paneKeys=${keys}
          names=${view.meterNames}
          isBusy=${isBusy}
        />`,
      )}
    </div>
    <${PromptBox} box=${view.prompt} isBusy=${isBusy} hasTurns=${rounds.length > 0} target="all" write=${write} />
  </div>`;
}

export default defineTool("Board", Board, "famnb-tool famnb-board");
