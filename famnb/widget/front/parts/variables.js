// The values of a prompt's variables: a small table, of which one row is sent, or all of them side by side.

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
  const add = () => {
    change([...rows, {}]);
    requestAnimationFrame(() => body.current.lastElementChild.querySelector(".famnb-input").focus());
  };
  const filledCount = rows.filter((values) => names.some((name) => values[name])).length;
  return html`<div class="famnb-variables">
    <table class="famnb-table">
      <thead><tr>${["send", ...names.map((name) => `{${name}}`), ""].map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
      <tbody ref=${body}>
        ${rows.map(
          (values, index) => html`<tr key=${index}>
            <td><input type="radio" name=${choice} checked=${index === row} disabled=${isLost} aria-label=${`Send row ${index + 1}`} onChange=${() => change(rows, index)} /></td>
            ${names.map(
              (name) => html`<td key=${name}>
                <${TextInput} aria-label=${`${name}, row ${index + 1}`} text=${values[name] ?? ""} edit=${(text) => write(index, name, text)} />
              </td>`,
            )}
            <td><${Button} class="famnb-icon" label=${`Remove row ${index + 1}`} text="×" press=${() => change(rows.filter((_, other) => other !== index))} /></td>
          </tr>`,
        )}
      </tbody>
    </table>
    <div class="famnb-bar">
      <${Button} label="Add a row" press=${add} />
      <${IntentButton} label="Run all rows" title="Send each row, side by side on a board below" intent="run_all_rows" disabled=${filledCount < 2} />
    </div>
  </div>`;
}
