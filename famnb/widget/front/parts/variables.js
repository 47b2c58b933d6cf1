// The values of a prompt's variables: a small table, of which one row is sent, or all of them side by side. Enter goes
// on to the next row, and a table that is pasted from a sheet or a CSV file fills the cells from there on.

import { html, useRef } from "../vendor/preact.js";
import { useHeld, useTool } from "../runtime/tool.js";
import { Button, IntentButton } from "./button.js";
import { TextInput, useId } from "./field.js";

/** The table; nothing without variables. @param {{variables: import("../protocol.js").VariablesView}} props */
export function Variables({ variables }) {
  const { outbox, isLost } = useTool();
  const [table, hold] = useHeld(variables);
  const body = useRef(/** @type {any} */ (null));
  const choice = useId();
  const { names } = variables;
  if (!names.length) return null;
  const { row } = table;
  const rows = table.rows.length ? table.rows : [{}];
  const change = (next, chosen = row) => {
    if (!next.length) next = [{}];
    const index = Math.min(chosen, next.length - 1);
    hold({ ...table, rows: next, row: index }, outbox.later("set_rows", { rows: next, row: index }));
  };
  const write = (index, name, text) => change(rows.map((values, other) => (other === index ? { ...values, [name]: text } : values)));
  const reach = (index, column) =>
    requestAnimationFrame(() => body.current.rows[index]?.querySelectorAll(".famnb-input")[column]?.focus());
  const add = (column = 0) => {
    change([...rows, {}]);
    reach(rows.length, column);
  };
  const keys = (event, index, column) => {
    if (event.key !== "Enter" || event.isComposing) return;
    event.preventDefault();
    event.stopPropagation();
    if (index === rows.length - 1) add(column);
    else reach(index + 1, column);
  };
  const paste = (event, index, name) => {
    const text = event.clipboardData.getData("text/plain").trimEnd();
    if (!/[\t\n]/.test(text)) return; // a text of one cell, which may have commas
    event.preventDefault();
    outbox.send("paste_rows", { text, row: index, name });
  };
  const isFilled = rows.some((values) => names.every((name) => values[name]));
  return html`<div class="famnb-variables">
    <table class="famnb-table">
      <thead><tr>${["send", ...names.map((name) => `{${name}}`), ""].map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
      <tbody ref=${body}>
        ${rows.map(
          (values, index) => html`<tr key=${index}>
            <td><input type="radio" name=${choice} tabindex=${rows.length > 1 ? 0 : -1} checked=${index === row} disabled=${isLost} aria-label=${`Send row ${index + 1}`} onChange=${() => change(rows, index)} /></td>
            ${names.map(
              (name, column) => html`<td key=${name}>
                <${TextInput}
                  aria-label=${`${name}, row ${index + 1}`}
                  text=${values[name] ?? ""}
                  edit=${(text) => write(index, name, text)}
                  onKeyDown=${(event) => keys(event, index, column)}
                  onPaste=${(event) => paste(event, index, name)}
                />
              </td>`,
            )}
            <td><${Button} class="famnb-icon" label=${`Remove row ${index + 1}`} text="×" press=${() => change(rows.filter((_, other) => other !== index), index < row ? row - 1 : row)} /></td>
          </tr>`,
        )}
      </tbody>
    </table>
    <div class="famnb-bar">
      <${Button} label="Add a row" title="Add a row, as Enter does in the last one; a pasted table fills the cells" press=${() => add()} />
      <${IntentButton} label="Run all rows" title="Send each row by itself, and show the answers below" intent="run_all_rows" disabled=${!isFilled} />
    </div>
  </div>`;
}
