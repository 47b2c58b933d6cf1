// One field of a request: a control of its kind, with its help or what is wrong with it below.

import { button, make, withCode } from "./dom.js";

/**
 * @typedef {object} Field a field as editor.py describes it
 * @property {string} path its name, such as thinking.budget_tokens
 * @property {"model"|"choice"|"switch"|"integer"|"number"|"text"|"json"} kind
 * @property {string} help
 * @property {string[]} choices all values of a choice, suggestions for any other kind
 * @property {boolean} only whether a model is one of the choices
 * @property {string} hint default and limits, which an empty control shows
 * @property {number|null} default
 * @property {number|null} low
 * @property {number|null} high
 */

let fieldCount = 0; // for ids, which tie a control to its label and its help

/** Returns a list of choices, each a value and the text for it. @param {[string, string][]} choices */
export function makeSelect(choices) {
  const select = make("select", "famnb-input");
  select.replaceChildren(...choices.map(([value, text]) => Object.assign(make("option", "", text), { value })));
  return select;
}

/** Returns a control with its label above and perhaps more below. @param {string} text @param {HTMLElement} input */
export function labelled(text, input, ...below) {
  const label = make("label", "famnb-name", text);
  label.htmlFor = input.id = `famnb-control-${(fieldCount += 1)}`;
  return make("div", "famnb-item", label, input, ...below);
}

function makeInput(field) {
  const input = make("input", "famnb-input");
  input.placeholder = field.hint || "not set";
  input.autocomplete = "off";
  input.spellcheck = false;
  if (field.kind === "integer") input.inputMode = "numeric";
  if (field.kind === "number") input.inputMode = "decimal";
  return input;
}

// A list of choices whose first one leaves the choice to the service, and which looks so for as long as it is chosen.
function makeUnsettable(field, choices) {
  const select = makeSelect([["", field.hint || "not set"], ...choices]);
  const settle = () => select.classList.toggle("famnb-unset", !select.value);
  const control = {
    get value() {
      return select.value;
    },
    set value(text) {
      select.value = text;
      settle();
    },
  };
  select.addEventListener("change", settle);
  settle();
  return { input: select, box: select, control };
}

// A range of values stays on one line: after a dash, a line may break even before a space that does not break.
const unbroken = (text) => text.replaceAll(" – ", "\u00a0–\u2060\u00a0");

// Each returns the control of a kind: the element that has the label, and what stands around it.
const controls = {
  choice: (field) => makeUnsettable(field, field.choices.map((choice) => [choice, choice])),
  // A check box has no state for "not set", which leaves the choice to the service.
  switch: (field) => makeUnsettable(field, [["true", "yes"], ["false", "no"]]),
  model: (field) => {
    const list = field.choices.map((choice) => [choice, choice]);
    const select = makeSelect(field.only ? list : [...list, ["", "another …"]]);
    if (field.only) return { input: select, box: select };
    const other = makeInput({ ...field, hint: "the model's id" });
    other.setAttribute("aria-label", "model id");
    const settle = () => (other.hidden = select.value !== "");
    // What the user sees as one control is read and written as one text.
    const control = {
      get value() {
        return select.value || other.value;
      },
      set value(text) {
        select.value = field.choices.includes(text) ? text : "";
        if (select.value !== text) other.value = text;
        settle();
      },
    };
    select.addEventListener("change", () => {
      settle();
      if (!other.hidden) other.focus();
    });
    settle();
    return { input: select, box: make("div", "famnb-model", select, other), control, others: [other] };
  },
  range: (field) => {
    const input = makeInput({ ...field, hint: field.default === null ? "" : `default ${field.default}` });
    input.classList.add("famnb-number");
    const slider = make("input", "famnb-range");
    Object.assign(slider, { type: "range", min: field.low, max: field.high, step: 0.01 });
    slider.setAttribute("aria-label", `${field.path}, slider`);
    const reset = button("famnb-icon famnb-reset", `Unset ${field.path}`, "", () => {
      control.value = "";
      input.dispatchEvent(new Event("input", { bubbles: true }));
      input.focus();
    });
    reset.textContent = "×";
    const settle = () => {
      const number = Number(input.value.trim() || (field.default ?? field.low));
      if (Number.isFinite(number)) slider.value = number;
      const isUnset = !input.value.trim();
      slider.classList.toggle("famnb-unset", isUnset);
      if (isUnset) slider.ariaValueText = input.placeholder;
      else slider.removeAttribute("aria-valuetext");
      reset.style.visibility = isUnset ? "hidden" : "visible";
    };
    const control = {
      get value() {
        return input.value;
      },
      set value(text) {
        input.value = text;
        settle();
      },
    };
    slider.addEventListener("input", (event) => {
      event.stopPropagation();
      input.value = String(Number(slider.value));
      input.dispatchEvent(new Event("input", { bubbles: true }));
    });
    input.addEventListener("input", settle);
    settle();
    return { input, box: make("div", "famnb-slide", slider, input, reset), control, others: [slider] };
  },
  json: (field) => {
    if (field.bare && field.choices.length) return controls.text(field);
    const area = make("textarea", "famnb-input famnb-code-input");
    area.rows = 2;
    area.placeholder = field.hint || "not set";
    area.spellcheck = false;
    return { input: area, box: area };
  },
  text: (field) => {
    const input = makeInput(field);
    if (!field.choices.length) return { input, box: input };
    const list = make("datalist", "", ...field.choices.map((choice) => Object.assign(make("option"), { value: choice })));
    list.id = `famnb-list-${(fieldCount += 1)}`;
    input.setAttribute("list", list.id);
    return { input, box: make("div", "", input, list) };
  },
};

/**
 * Draws a field; `edit(text)` is called with each edit.
 * @param {Field} field @param {(text: string) => void} edit
 */
export function drawField(field, edit) {
  const isRange = field.kind === "number" && field.low !== null && field.high !== null;
  const { input, box, control = input, others = [] } = (controls[isRange ? "range" : field.kind] ?? controls.text)(field);
  const id = `famnb-field-${(fieldCount += 1)}`;
  const label = make("label", "famnb-name", field.path);
  label.htmlFor = input.id = id;
  const note = withCode(make("p", "famnb-help"), isRange && field.hint ? `${field.help} (${unbroken(field.hint)})` : field.help);
  note.id = `${id}-note`;
  const fault = make("p", "famnb-fault");
  fault.id = `${id}-fault`;
  fault.setAttribute("role", "alert");
  fault.hidden = true;
  input.setAttribute("aria-describedby", `${note.id} ${fault.id}`);
  box.addEventListener("input", () => edit(control.value));
  const isHeld = () => [input, ...others].some((element) => element.matches(":focus"));
  return {
    element: make("div", `famnb-item famnb-item-${field.kind}`, label, box, fault, note),
    input,
    text: () => control.value,
    /** Shows a text, unless the user is writing another one. @param {string} text @param {boolean} force */
    set: (text, force) => {
      if (control.value !== text && (force || !isHeld())) control.value = text;
    },
    /** Shows what is wrong; nothing if it is empty. @param {string} text */
    mark: (text) => {
      if (fault.textContent !== text) fault.textContent = text;
      fault.hidden = !text;
      note.hidden = Boolean(text);
      if (text) input.setAttribute("aria-invalid", "true");
      else input.removeAttribute("aria-invalid");
    },
  };
}
