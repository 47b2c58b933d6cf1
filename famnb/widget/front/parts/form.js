// The settings of a request: the endpoint, and groups of fields that fold.

import { html } from "../vendor/preact.js";
import { memo, useHeld, useTool } from "../runtime/tool.js";
import { Field, Labelled, Select } from "./field.js";

const OPEN_AT_FIRST = "Sampling";
// What is tried most often: it stands beside the model where the others are folded away.
const BRIEF = "temperature";

/** @param {{box: import("../protocol.js").BoxView, args: object}} props */
function Box({ box, args }) {
  const { outbox, isLost } = useTool();
  const [isOn, hold] = useHeld(box.isOn);
  const tick = ({ target }) => hold(target.checked, outbox.send("tick", { ...args, box: box.key, isOn: target.checked }, box.key));
  return html`<label class="famnb-box" title=${box.help}>
    <input type="checkbox" checked=${isOn} disabled=${isLost} onChange=${tick} /><span>${box.key}</span>
  </label>`;
}

/** @param {{group: import("../protocol.js").GroupView, args: object}} props */
const Group = memo(({ group: { key, boxes, fields }, args }) => {
  const content = html`${boxes.length > 0 &&
  html`<div class="famnb-boxes">${boxes.map((box) => html`<${Box} key=${box.key} box=${box} args=${args} />`)}</div>`}
  ${fields.map((field) => html`<${Field} key=${field.key} field=${field} args=${args} />`)}`;
  if (!key) return html`<div class="famnb-group">${content}</div>`;
  const isFaulty = fields.some(({ fault }) => fault);
  const count = fields.filter(({ text }) => text).length;
  // Folded and unfolded by the page alone, which the constant value leaves to it.
  return html`<details class=${`famnb-group ${isFaulty ? "famnb-faulty" : ""}`} open=${key === OPEN_AT_FIRST}>
    <summary>${key}<span class="famnb-count">${isFaulty ? "invalid" : count ? `${count} set` : ""}</span></summary>
    ${content}
  </details>`;
});

const NO_ARGS = {};

/**
 * The settings; `args` are those of every intent, such as the pane that is meant. Intents: choose_endpoint, set_field, tick.
 * @param {{form: import("../protocol.js").FormView, args?: object, isBrief?: boolean}} props `isBrief`: endpoint, model and temperature alone
 */
export function Form({ form, args = NO_ARGS, isBrief = false }) {
  const { outbox } = useTool();
  const [endpoint, hold] = useHeld(form.endpoint);
  const choose = (name) => hold(name, outbox.send("choose_endpoint", { ...args, endpoint: name }));
  const select = (id) => html`<${Select} id=${id} choices=${form.endpoints} value=${endpoint} change=${choose} />`;
  const brief = form.groups.flatMap(({ fields }) => fields.filter(({ key, control }) => control.kind === "model" || key === BRIEF));
  return html`<div class="famnb-form">
    <${Labelled} label="Endpoint" control=${select}><p class="famnb-help">${form.help}</p><//>
    ${isBrief && brief.map((field) => html`<${Field} key=${field.key} field=${field} args=${args} />`)}
    ${!isBrief && form.groups.map((group) => html`<${Group} key=${group.key} group=${group} args=${args} />`)}
  </div>`;
}
