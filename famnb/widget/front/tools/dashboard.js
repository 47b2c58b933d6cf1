// The dashboard: filters, headline figures, charts over time, a table by model or endpoint, and calls that open.

import { html, useState } from "../vendor/preact.js";
import { Button, IntentButton } from "../parts/button.js";
import { OpenedCall } from "../parts/call.js";
import { Chart } from "../parts/chart.js";
import { Labelled, Select, TextInput } from "../parts/field.js";
import { Headline, Rows } from "../parts/tables.js";
import { defineTool, useHeld, useTool } from "../runtime/tool.js";

/** @param {{filter: import("../protocol.js").FilterView}} props */
function Filter({ filter: { key, label, value, choices } }) {
  const { outbox } = useTool();
  const [shown, hold] = useHeld(value);
  const change = (next) => hold(next, outbox.send("set_filter", { name: key, value: next }));
  return html`<${Labelled} label=${label} control=${(id) => html`<${Select} id=${id} choices=${choices.map((choice) => [choice, choice || "all"])} value=${shown} change=${change} />`} />`;
}

/** A price where one is missing, without which nothing says what a model's calls cost. @param {{models: string[]}} props */
function PriceEntry({ models }) {
  const [chosen, choose] = useState("");
  const [amounts, setAmounts] = useState({ input: "", output: "" });
  const model = models.includes(chosen) ? chosen : models[0];
  const amount = (side) => html`<${Labelled}
    label=${`USD for a million ${side} tokens`}
    control=${(id) => html`<${TextInput} id=${id} inputmode="decimal" text=${amounts[side]} edit=${(text) => setAmounts({ ...amounts, [side]: text })} />`}
  />`;
  // A price is of the model in view when it was written, whatever others come meanwhile.
  return html`<details onInput=${() => choose(model)}>
    <summary>Set a missing price</summary>
    <div class="famnb-bar famnb-filters">
      <${Labelled} label="Of the model" control=${(id) => html`<${Select} id=${id} choices=${models} value=${model} change=${choose} />`} />
      ${amount("input")}${amount("output")}
      <${IntentButton}
        label="Set price"
        intent="set_price"
        args=${{ model, ...amounts }}
        disabled=${!amounts.input.trim() || !amounts.output.trim()}
        then=${() => setAmounts({ input: "", output: "" })}
      />
    </div>
  </details>`;
}

// By model or endpoint; it is the legend of the charts, and a label narrows everything to it.
function Groups({ overview: { head, groups } }) {
  const { outbox } = useTool();
  const heading = ({ key, colour, cycle, isFilter }) => {
    const text = html`<span class="famnb-swatch" style=${{ background: colour, opacity: cycle ? 0.55 : 1 }} />${key}`;
    if (!isFilter) return text;
    const narrow = () => outbox.press("set_filter", { name: head[0], value: key }, key);
    return html`<${Button} class="famnb-small" label=${key} text=${text} title=${`Only ${key}`} press=${narrow} />`;
  };
  return html`<div class="famnb-scrolling">
    <table class="famnb-grid">
      <thead><tr>${head.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
      <tbody>
        ${groups.map((group) => html`<tr key=${group.key}><th scope="row">${heading(group)}</th>${group.cells.map((cell) => html`<td>${cell}</td>`)}</tr>`)}
      </tbody>
    </table>
  </div>`;
}

/** @param {{overview: import("../protocol.js").OverviewView, opened: string | null, setFirst: (page: string) => void}} props */
function Overview({ overview, opened, setFirst }) {
  const { outbox } = useTool();
  const open = (call) => outbox.press("show_call", { callId: call }, call);
  // Whoever asks for the slowest call wants to see when its events came.
  const openSlowest = (call) => {
    setFirst("Events");
    open(call);
  };
  return html`
    <${Headline} figures=${overview.figures} open=${openSlowest} />
    ${overview.note && html`<p class="famnb-help">${overview.note}</p>`}
    ${overview.unpriced.length > 0 && html`<div><${PriceEntry} models=${overview.unpriced} /></div>`}
    <div class="famnb-charts">
      ${overview.charts.map((chart) => html`<${Chart} key=${chart.key} chart=${chart} overview=${overview} />`)}
    </div>
    <${Groups} overview=${overview} />
    <${Rows} name="Calls" list=${overview.calls} opened=${opened} open=${open} />
  `;
}

/** @param {{view: import("../protocol.js").DashboardView}} props */
function Dashboard({ view: { filters, isReading, empty, overview, call } }) {
  const [first, setFirst] = useState("Transcript");
  return html`<div class="famnb-dashboard">
    <div class="famnb-top">
      <strong class="famnb-title">Dashboard</strong>
      ${filters.map((filter) => html`<${Filter} key=${filter.key} filter=${filter} />`)}
    </div>
    <p role="status">${empty}</p>
    ${isReading && html`<progress class="famnb-reading" aria-label="Reading the calls" />`}
    ${overview && html`<${Overview} overview=${overview} opened=${call && call.id} setFirst=${setFirst} />`}
    ${call && html`<${OpenedCall} key=${first} call=${call} first=${first} />`}
  </div>`;
}

export default defineTool("Dashboard", Dashboard, "famnb-card");
