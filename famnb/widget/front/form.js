// The settings of a request, drawn from the list of its fields: one column of groups that fold.

import { make } from "./dom.js";
import { drawField, labelled, makeSelect } from "./field.js";

const OPEN_AT_FIRST = ["Sampling"];
const CONTROLS = "summary, input, select, textarea, button";

// Check boxes, by name; `tick(name, on)` is called with each change.
function drawBoxes(tick) {
  const element = make("div", "famnb-boxes");
  return {
    element,
    tell: (boxes) => {
      element.hidden = !boxes.length;
      // Drawn anew only if they are others: a box that is ticked keeps the focus.
      if (element.childElementCount !== boxes.length) {
        element.replaceChildren(
          ...boxes.map(({ name, help }) => {
            const box = Object.assign(make("input"), { type: "checkbox" });
            box.addEventListener("change", () => tick(box.dataset.name, box.checked));
            const label = make("label", "famnb-box", box, make("span"));
            label.title = help ?? "";
            return label;
          }),
        );
      }
      for (const [index, { name, on }] of boxes.entries()) {
        const [box, text] = element.children[index].children;
        box.dataset.name = text.textContent = name;
        box.checked = on;
      }
    },
  };
}

/**
 * Draws the settings.
 * @param {{later: Function, now: Function}} outbox
 */
export function drawForm(outbox) {
  const endpoint = makeSelect([]);
  const address = make("p", "famnb-help");
  endpoint.addEventListener("change", () => outbox.now({ kind: "endpoint", name: endpoint.value }, "endpoint"));
  const choice = labelled("Endpoint", endpoint, address);
  choice.classList.add("famnb-item-endpoint");
  const groups = make("div", "famnb-groups");
  const element = make("div", "famnb-form", choice, groups);
  const tools = drawBoxes((name, on) => outbox.now({ kind: "tool", name, on }));
  const schema = drawBoxes((name, on) => outbox.now({ kind: "schema", on }));
  const unfolded = new Set(OPEN_AT_FIRST);
  let endpoints = [];
  let fields = new Map();
  let headings = new Map();
  let described = ""; // what is drawn
  let giveBackFocus = null; // once what is drawn anew has its texts

  // Returns what gives the focus, and what is selected, to the control that takes the place of the one that has it:
  // whoever writes just then goes on writing there.
  const holdFocus = () => {
    const active = groups.querySelector(":focus");
    if (!active) return null;
    const { part } = active.closest("[data-part]").dataset;
    const controls = () => [...(groups.querySelector(`[data-part="${CSS.escape(part)}"]`)?.querySelectorAll(CONTROLS) ?? [])];
    const index = controls().indexOf(active);
    const { selectionStart: start, selectionEnd: end, value } = active;
    const isAll = start === 0 && end === value?.length;
    return () => {
      const twin = active.isConnected ? active : controls()[index];
      if (!twin?.checkVisibility()) {
        endpoint.focus();
        return;
      }
      twin.focus({ preventScroll: true });
      if (Number.isInteger(start) && Number.isInteger(twin.selectionStart)) {
        twin.setSelectionRange(isAll ? 0 : start, isAll ? twin.value.length : end);
      }
    };
  };

  const drawGroup = ({ name, fields: members }) => {
    const drawn = members.map((field) => {
      const item = drawField(field, (text) =>
        outbox.later(`set ${field.path}`, { kind: "set", field: field.path, text }),
      );
      fields.set(field.path, item);
      item.element.dataset.part = field.path;
      return item.element;
    });
    if (!name) return make("div", "famnb-group", ...drawn);
    const count = make("span", "famnb-count");
    const summary = make("summary", "", name, count);
    summary.dataset.lmSuppressShortcuts = "true";
    const boxes = { Tools: tools.element, "Output form": schema.element }[name];
    const group = make("details", "famnb-group", summary, boxes, ...drawn);
    group.dataset.part = `under ${name}`;
    group.open = unfolded.has(name);
    group.addEventListener("toggle", () => (group.open ? unfolded.add(name) : unfolded.delete(name)));
    headings.set(name, { count, group, paths: members.map(({ path }) => path) });
    return group;
  };

  return {
    element,
    first: endpoint,
    /** Draws the fields of an endpoint, in place of those of another. */
    describe: (description) => {
      // What is drawn already stays, and with it what one is doing there.
      if (JSON.stringify(description) === described) return;
      described = JSON.stringify(description);
      giveBackFocus = holdFocus();
      const unsent = [...fields].filter(([path]) => outbox.holds(`set ${path}`)).map(([path, { text }]) => [path, text()]);
      fields = new Map();
      headings = new Map();
      endpoints = description.endpoints;
      if (!endpoint.options.length) {
        endpoint.replaceChildren(
          ...endpoints.map(({ name }) => Object.assign(make("option", "", name), { value: name })),
        );
      }
      groups.replaceChildren(...description.groups.map(drawGroup));
      for (const [path, text] of unsent) fields.get(path)?.set(text, true);
      for (const field of fields.values()) field.isNew = true;
    },
    /** Shows what the form holds and what is wrong with it. */
    tell: (form) => {
      const isChosen = endpoint.matches(":focus") || outbox.holds("endpoint");
      if (form.force || !isChosen) endpoint.value = form.endpoint;
      const { title, path } = endpoints.find(({ name }) => name === form.endpoint) ?? {};
      address.textContent = `${title}: POST ${path}`;
      for (const [name, field] of fields) {
        if (form.force || !outbox.holds(`set ${name}`)) field.set(form.values[name] ?? "", form.force || field.isNew);
        field.isNew = false;
        field.mark(form.faults[name] ?? "");
      }
      tools.tell(form.tools);
      schema.tell(form.schema ? [form.schema] : []);
      for (const [name, { count, group, paths }] of headings) {
        const set = paths.filter((path) => form.values[path]).length;
        const isFaulty = form.faulty.includes(name);
        count.textContent = isFaulty ? "to mend" : set ? `${set} set` : "";
        group.classList.toggle("famnb-faulty", isFaulty);
      }
      giveBackFocus?.();
      giveBackFocus = null;
    },
  };
}
