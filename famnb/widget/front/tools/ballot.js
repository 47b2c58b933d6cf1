// Two answers side by side and the keys that vote on them. The page does not know whose they are.

import { html, useLayoutEffect, useRef } from "../vendor/preact.js";
import { Button } from "../parts/button.js";
import { SafeHtml } from "../parts/html.js";
import { defineTool, useTool } from "../runtime/tool.js";

const CHOICES = [
  { choice: "left", label: "left is better", keys: "←", shortcut: "ArrowLeft 1" },
  { choice: "tie", label: "tie", keys: "T", shortcut: "T" },
  { choice: "right", label: "right is better", keys: "→", shortcut: "ArrowRight 2" },
  { choice: "skip", label: "skip", keys: "S", shortcut: "S" },
  { choice: "undo", label: "undo", keys: "U", shortcut: "U" },
  { choice: "results", label: "results", keys: "R", shortcut: "R" },
];
const KEYS = { arrowleft: "left", 1: "left", arrowright: "right", 2: "right", t: "tie", s: "skip", u: "undo", r: "results" };

// It scrolls by itself, so keys must reach it; the next pair begins at its top.
function Answer({ name, turn, source }) {
  const box = useRef(/** @type {any} */ (null));
  useLayoutEffect(() => {
    box.current.scrollTop = 0;
  }, [turn]);
  return html`<div>
    <div class="famnb-hint">${name}</div>
    <div class="famnb-answer" tabindex="0" role="region" aria-label=${`${name} answer`} ref=${box}><${SafeHtml} html=${source} /></div>
  </div>`;
}

/** @param {{view: import("../protocol.js").BallotView}} props */
function Ballot({ view }) {
  const { outbox } = useTool();
  const { turn, pair, choices } = view;
  // A choice names its turn, so that one made twice in a hurry is not a vote on a pair that nobody has read.
  const choose = (choice) => choices.includes(choice) && outbox.press("choose", { choice, turn }, String(turn));
  const onKeyDown = (event) => {
    const choice = KEYS[event.key.toLowerCase()];
    if (!choice || event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    choose(choice);
  };
  return html`<div class="famnb-ballot" tabindex="0" role="group" aria-label="Vote by keyboard" onKeyDown=${onKeyDown}>
    <p class="famnb-hint" role="status">${view.status}</p>
    ${pair &&
    html`<${SafeHtml} html=${pair.prompt} />
      <div class="famnb-sides">
        <${Answer} name="Left" turn=${turn} source=${pair.left} /><${Answer} name="Right" turn=${turn} source=${pair.right} />
      </div>`}
    <div class="famnb-bar">
      ${CHOICES.map(
        ({ choice, label, keys, shortcut }) => html`<${Button}
          key=${choice}
          label=${label}
          keys=${keys}
          aria-keyshortcuts=${shortcut}
          locked=${!choices.includes(choice)}
          press=${() => choose(choice)}
        />`,
      )}
    </div>
    ${pair && html`<p class="famnb-hint">Click here once, or go here with Tab; from then on the keys work.</p>`}
    <${SafeHtml} html=${view.results} />
  </div>`;
}

export default defineTool("Ballot: which of two answers is better", Ballot, "famnb-card");
