// One field of a request: a control of its kind, with its help or what is wrong with it below.

import { html, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { memo, useTool, useTyped } from "../runtime/tool.js";
import { Help } from "./html.js";

/**
 * @typedef {import("../protocol.js").FieldView} FieldView
 * @typedef {object} ControlProps
 * @property {FieldView} field
 * @property {string} text
 * @property {(text: string) => void} edit
 * @property {object} label attributes of the element that has the label
 */

let idCount = 0;

/** Returns an id that ties a control to its label. */
export function useId() {
  const id = useRef("");
  id.current ||= `famnb-control-${(idCount += 1)}`;
  return id.current;
}

/**
 * A list of choices, each a value or a value and the text for it.
 * @param {{choices: (string | [string, string])[], value: string, change: (value: string) => void, [attribute: string]: any}} props
 */
export function Select({ choices, value, change, ...rest }) {
  const { isLost } = useTool();
  const options = choices.map((choice) => (typeof choice === "string" ? [choice, choice] : choice));
  return html`<select
    disabled=${isLost}
    ...${rest}
    class=${`famnb-input ${rest.class ?? ""}`}
    value=${value}
    onChange=${(event) => change(event.target.value)}
  >${options.map(([name, text]) => html`<option key=${name} value=${name} selected=${name === value}>${text}</option>`)}</select>`;
}

/** A line to write in. @param {{text: string, edit: (text: string) => void, [attribute: string]: any}} props */
export function TextInput({ text, edit, ...rest }) {
  const { isLost } = useTool();
  return html`<input
    autocomplete="off"
    spellcheck=${false}
    readonly=${isLost}
    ...${rest}
    class=${`famnb-input ${rest.class ?? ""}`}
    value=${text}
    onInput=${(event) => edit(event.target.value)}
  />`;
}

/** A control with its label above and perhaps more below. @param {{label: string, control: (id: string) => unknown, children?: any}} props */
export function Labelled({ label, control, children }) {
  const id = useId();
  return html`<div class="famnb-item"><label class="famnb-name" for=${id}>${label}</label>${control(id)}${children}</div>`;
}

const hintOf = ({ control }) => control.hint || "not set";

/** @param {ControlProps} props */
function Choice({ field, text, edit, label }) {
  const { kind, choices } = field.control;
  // The first one leaves it to the service, for which a check box has no state.
  const all = [["", hintOf(field)], ...(kind === "switch" ? [["true", "yes"], ["false", "no"]] : choices)];
  return html`<${Select} ...${label} class=${text ? "" : "famnb-unset"} choices=${all} value=${text} change=${edit} />`;
}

/** @param {ControlProps} props */
function Model({ field, text, edit, label }) {
  const { choices, isClosed } = field.control;
  const [isOther, setOther] = useState(false); // whether the id of another model is to be written
  const other = useRef(/** @type {any} */ (null));
  useLayoutEffect(() => {
    if (isOther) other.current.querySelector("input").focus();
  }, [isOther]);
  if (isClosed) return html`<${Select} ...${label} choices=${choices} value=${text} change=${edit} />`;
  const isListed = choices.includes(text) && !isOther;
  const choose = (value) => {
    setOther(!value);
    edit(value);
  };
  return html`<div ref=${other}>
    <${Select} ...${label} choices=${[...choices, ["", "another …"]]} value=${isListed ? text : ""} change=${choose} />
    ${!isListed && html`<${TextInput} aria-label="model id" placeholder="the model's id" text=${text} edit=${edit} />`}
  </div>`;
}

/** @param {ControlProps} props */
function Text({ field, text, edit, label }) {
  const { kind } = field.control;
  const inputmode = kind === "integer" ? "numeric" : kind === "number" ? "decimal" : undefined;
  return html`<${TextInput} ...${label} inputmode=${inputmode} placeholder=${hintOf(field)} text=${text} edit=${edit} />`;
}

/** @param {ControlProps} props */
function Json({ field, text, edit, label }) {
  const { isLost } = useTool();
  return html`<textarea
    ...${label}
    class="famnb-input"
    rows="2"
    placeholder=${hintOf(field)}
    spellcheck=${false}
    readonly=${isLost}
    value=${text}
    onInput=${(event) => edit(event.target.value)}
  />`;
}

const CONTROLS = { choice: Choice, switch: Choice, model: Model, json: Json, text: Text, integer: Text, number: Text };

/**
 * A field; each edit is sent as `intent` with the `args`, the field's name and its text.
 * @param {{field: FieldView, intent?: string, args?: object}} props
 */
export const Field = memo(({ field, intent = "set_field", args = {} }) => {
  const id = useId();
  const { control, fault, key } = field;
  const [text, edit] = useTyped(field.text, intent, (next) => ({ ...args, field: key, text: next }), `${Object.values(args)} ${key}`);
  const Control = CONTROLS[control.kind];
  const label = { id, "aria-describedby": `${id}-${fault ? "fault" : "help"}`, "aria-invalid": fault ? "true" : undefined };
  return html`<div class="famnb-item" data-kind=${control.kind} title=${key}>
    <label class="famnb-name" for=${id}>${key}</label>
    <${Control} field=${field} text=${text} edit=${edit} label=${label} />
    <p class="famnb-fault" id=${`${id}-fault`} role="alert" hidden=${!fault}>${fault}</p>
    <p class="famnb-help" id=${`${id}-help`} hidden=${Boolean(fault)}><${Help} text=${control.help} /></p>
  </div>`;
});
