// The dashboard: filters, headline figures, charts over time, a table by model or endpoint, and calls that open.

import { html } from "../vendor/preact.js";
import { Button, IntentButton } from "../parts/button.js";
import { OpenedCall } from "../parts/call.js";
import { Chart } from "../parts/chart.js";
import { Labelled, Select } from "../parts/field.js";
import { Grid, Headline, Rows } from "../parts/tables.js";
import { defineTool, useHeld, useTool } from "../runtime/tool.js";

/**
 * @typedef {import("../protocol.js").DashboardView} DashboardView
 * @typedef {import("../protocol.js").OverviewView} OverviewView
 */

/** @param {{filter: import("../protocol.js").FilterView}} props */
function Filter({ filter: { key, label, value, choices } }) {
  const { outbox } = useTool();
  const [shown, hold] = useHeld(value);
  const change = (next) => hold(next, outbox.send("set_filter", { name: key, value: next }));
  const options = choices.map((choice) => [choice, choice || "all"]);
  return html`<${Labelled} label=${label} control=${(id) => html`<${Select} id=${id} choices=${options} value=${shown} change=${change} />`} />`;
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
  return html`<${Grid} head=${head} lines=${groups} heading=${heading} />`;
}

/** @param {{overview: OverviewView, opened: string | null}} props */
function Overview({ overview, opened }) {
  const { outbox } = useTool();
  const choose = (index) => outbox.press("choose_span", { index });
  return html`
    <${Headline} figures=${overview.figures} />
    ${overview.note && html`<p class="famnb-help">${overview.note}</p>`}
    <div class="famnb-charts">
      ${overview.charts.map((chart) => html`<${Chart} key=${chart.key} chart=${chart} overview=${overview} choose=${choose} />`)}
    </div>
    <${Groups} overview=${overview} />
    <${Rows} name="Calls" list=${overview.calls} opened=${opened} open=${(call) => outbox.press("open_call", { call }, call)}>
      ${overview.hasSpan && html`<${IntentButton} class="famnb-small" label="Show all" intent="choose_span" args=${{ index: null }} />`}
    <//>
  `;
}

/** @param {{view: DashboardView}} props */
function Dashboard({ view: { filters, isReading, empty, overview, call } }) {
  return html`<div class="famnb-dashboard">
    <header class="famnb-top"><strong class="famnb-title">Dashboard</strong></header>
    <div class="famnb-bar famnb-filters">${filters.map((filter) => html`<${Filter} key=${filter.key} filter=${filter} />`)}</div>
    <p role="status">${empty}</p>
    ${isReading && html`<progress class="famnb-reading" aria-label="Reading the calls" />`}
    ${overview && html`<${Overview} overview=${overview} opened=${call && call.id} />`}
    ${call && html`<${OpenedCall} call=${call} />`}
  </div>`;
}

export default defineTool("Dashboard", Dashboard, "famnb-card");
