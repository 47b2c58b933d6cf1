// The matrix of answers: a row a prompt, a column a variant, and with each answer its grade and a note.

import { html, useEffect, useRef } from "../vendor/preact.js";
import { Button } from "../parts/button.js";
import { CellButton } from "../parts/code.js";
import { Select, TextInput } from "../parts/field.js";
import { SafeHtml } from "../parts/html.js";
import { defineTool, memo, useArrival, useHeld, useStop, useTool, useTyped } from "../runtime/tool.js";

const LABEL_PX = 90;
const COLUMN_PX = 220; // narrower, and a line of an answer has too few words
const UNGRADED = '[data-grade=""] .famnb-answer';
const GRADES = { pass: "pass", p: "pass", 1: "pass", fail: "fail", f: "fail", 0: "fail" };

const Cell = memo(({ cell, row, label }) => {
  const { outbox, root } = useTool();
  const { key, grade, note, status } = cell;
  const args = { row, variant: key };
  const [written, write] = useTyped(note, "note_on", (text) => ({ ...args, note: text }), `${row} ${key}`);
  const [number, hold] = useHeld(grade === "pass" || grade === "fail" ? "" : grade);
  // A grade that is pressed again is taken away.
  const give = (next) => outbox.press("grade", { ...args, grade: next === grade ? "" : next }, `${row} ${key}`);
  if (status) return html`<td><p class="famnb-help">${status}</p></td>`;
  const keys = (event) => {
    const next = GRADES[event.key.toLowerCase()];
    if (!next || event.target !== event.currentTarget || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    give(next);
    const answer = event.currentTarget;
    const others = [.../** @type {NodeListOf<HTMLElement>} */ (root.querySelectorAll(UNGRADED))].filter((other) => other !== answer);
    const follows = (other) => answer.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING;
    if (next === grade) return;
    (others.find(follows) ?? others[0])?.focus();
    // What is left to do with them is below the last one.
    if (!others.length) root.querySelector(".famnb-matrix > .famnb-bar")?.scrollIntoView({ block: "nearest" });
  };
  const name = `${key}, ${label}`;
  const choice = (value) => html`<${Button}
    class="famnb-small"
    label=${`${value}: ${name}`}
    text=${value}
    title=${`${value} (${value[0].toUpperCase()} when the answer has the focus)`}
    aria-pressed=${String(grade === value)}
    press=${() => give(value)}
  />`;
  return html`<td data-grade=${grade}>
    <div class="famnb-answer" tabindex="0" role="region" aria-label=${`Answer of ${name}`} onKeyDown=${keys}><${SafeHtml} html=${cell.html} /></div>
    <p class="famnb-help">${cell.figures}</p>
    <div class="famnb-bar famnb-grades">
      ${choice("pass")}${choice("fail")}
      <${TextInput} class="famnb-grade" aria-label=${`Grade as a number: ${name}`} placeholder="grade" inputmode="decimal" text=${number} edit=${(text) => hold(text, new Promise(() => {}))} onChange=${(event) => hold(event.target.value, give(event.target.value))} />
      <${TextInput} class="famnb-note" aria-label=${`Note: ${name}`} placeholder="note" text=${written} edit=${write} />
    </div>
  </td>`;
});

/** @param {{view: import("../protocol.js").MatrixTableView}} props */
function Matrix({ view }) {
  const { outbox } = useTool();
  const { stop, trouble } = useStop();
  const { columns, rows, isRunning } = view;
  const box = useRef(/** @type {any} */ (null));
  const findFirst = () => box.current.querySelector("td")?.querySelector(".famnb-answer");
  useArrival(() => findFirst() ?? box.current);
  // Whoever waits for the answers grades the first one, once it has come.
  useEffect(() => {
    if (box.current.matches(":focus")) findFirst()?.focus();
  }, [view.status]);
  const experiment = () => view.code && html`<${CellButton} label="Make an experiment" code=${view.code} />`;
  return html`<div class="famnb-matrix">
    <div class="famnb-top">
      <strong class="famnb-title">${view.title}</strong>
      <span class="famnb-hint" role="status">${view.status}</span>
      <span class="famnb-space" />
      <label class="famnb-box"><span>Show</span>
        <${Select} choices=${view.filters} value=${view.filter} change=${(filter) => outbox.press("filter_rows", { filter })} />
      </label>
      ${experiment()}
      ${isRunning && html`<${Button} class="famnb-stop" label="Stop" press=${() => stop()} />`}
    </div>
    ${trouble && html`<p class="famnb-failure" role="alert">${trouble}</p>`}
    <div class="famnb-scrolled" tabindex="0" role="region" aria-label="Answers" ref=${box}>
      <table style=${{ minWidth: `${LABEL_PX + COLUMN_PX * columns.length}px` }}>
        <thead><tr>
          <th scope="col">prompt</th>
          ${columns.map(({ key, grades }) => html`<th key=${key} scope="col">${key}${grades && html`<span class="famnb-help"> · ${grades}</span>`}</th>`)}
        </tr></thead>
        <tbody>
          ${rows.map(
            ({ key, label, prompt, cells }) => html`<tr key=${key}>
              <th scope="row" title=${prompt}>${label}</th>
              ${cells.map((cell) => html`<${Cell} key=${cell.key} cell=${cell} row=${key} label=${label} />`)}
            </tr>`,
          )}
        </tbody>
      </table>
    </div>
    <div class="famnb-bar">${experiment()}</div>
    ${!rows.length && html`<p class="famnb-help">No row has such an answer.</p>`}
  </div>`;
}

export default defineTool("Matrix of answers", Matrix, "famnb-card");
