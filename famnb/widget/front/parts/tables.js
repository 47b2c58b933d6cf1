// Headline figures, and lists of rows.

import { html, useRef, useState } from "../vendor/preact.js";
import { useTool } from "../runtime/tool.js";
import { Button } from "./button.js";

/** Headline figures, some of which open a call. @param {{figures: import("../protocol.js").FigureView[], open: (call: string) => void}} props */
export function Headline({ figures, open }) {
  return html`<dl class="famnb-headline">
    ${figures.map(
      ({ key, value, note, link, callId }) => html`<div key=${key} class="famnb-figure">
        <dt>${key}</dt><dd class="famnb-value">${value}</dd>${note && html`<dd class="famnb-help">${note}</dd>`}
        ${link && html`<dd><${Button} class="famnb-small" label=${link} press=${() => open(callId)} /></dd>`}
      </div>`,
    )}
  </dl>`;
}

/**
 * A list of rows: arrows move through them, Enter or a click opens one, and the head of a column sorts them by it.
 * @param {{name: string, list: import("../protocol.js").RowsView, opened: string | null, open: (key: string) => void,
 *   children?: any}} props `name` is what the list is called; `children` stand above it, beside its title
 */
export function Rows({ name, list: { title, columns, rows }, opened, open, children }) {
  const { outbox } = useTool();
  const [reached, setReached] = useState("");
  const body = useRef(/** @type {any} */ (null));
  const pressed = useRef("");
  const keys = rows.map(({ key }) => key);
  const current = [reached, opened].find((key) => key && keys.includes(key)) ?? keys[0]; // the row that Tab reaches
  const choose = (key) => {
    if (!key) return;
    setReached(key);
    open(key);
  };
  const onKeyDown = (event) => {
    const index = keys.indexOf(current);
    const next = { ArrowDown: Math.min(index + 1, keys.length - 1), ArrowUp: Math.max(index - 1, 0), Home: 0, End: keys.length - 1 }[event.key];
    if (next === undefined && event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    if (next === undefined) choose(current);
    else {
      setReached(keys[next]);
      body.current.rows[next].focus();
    }
  };
  const keyOf = ({ target }) => target.closest("tr")?.dataset.key;
  // Where rows have moved under the mouse since it was pressed, the click is the table's, and the pressed row is meant.
  const onClick = (event) => choose(event.detail ? pressed.current : keyOf(event));
  const sort = (column) => outbox.press("sort_rows", { column }, String(column));
  const cell = ({ kind, isMinor }) => ({ "data-kind": kind, class: isMinor ? "famnb-minor" : undefined });
  return html`<div>
    <div class="famnb-bar"><strong role="status">${title}</strong>${children}</div>
    <div class="famnb-scrolling">
      <table class="famnb-grid famnb-rows" role="grid" aria-label=${name}>
        <thead><tr>${columns.map((column, index) => html`<th scope="col" ...${cell(column)} aria-sort=${column.order || undefined}><button type="button" class="famnb-sort" onClick=${() => sort(index)}>${column.name}</button></th>`)}</tr></thead>
        <tbody ref=${body} onKeyDown=${onKeyDown} onPointerDown=${(event) => (pressed.current = keyOf(event))} onClick=${onClick}>
          ${rows.map(
            ({ key, cells, label, isFailed }) => html`<tr
              key=${key}
              data-key=${key}
              class=${isFailed ? "famnb-failed" : undefined}
              aria-label=${label}
              aria-selected=${String(key === opened)}
              tabindex=${key === current ? 0 : -1}
            >${cells.map((text, index) => html`<td ...${cell(columns[index])}>${text}</td>`)}</tr>`,
          )}
        </tbody>
      </table>
    </div>
  </div>`;
}
