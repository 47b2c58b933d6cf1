// The explorer: points to hover over, a legend that hides groups, the list of what is chosen, and a call that opens.

import { html } from "../vendor/preact.js";
import { Button, IntentButton } from "../parts/button.js";
import { OpenedCall } from "../parts/call.js";
import { Scatter } from "../parts/scatter.js";
import { Rows } from "../parts/tables.js";
import { defineTool, useHeld, useTool } from "../runtime/tool.js";

/** @typedef {import("../protocol.js").ExplorerView} ExplorerView */

/** @param {{plot: import("../protocol.js").PlotView, hidden: number[]}} props */
function Legend({ plot: { by, groups }, hidden }) {
  const { outbox } = useTool();
  const toggle = (code) => {
    const others = hidden.filter((other) => other !== code);
    outbox.press("hide_groups", { groups: hidden.includes(code) ? others : [...others, code] }, String(code));
  };
  if (groups.length < 2) return null;
  return html`<div class="famnb-bar famnb-legend" role="group" aria-label=${by}>
    ${groups.map(({ key, count, colour, cycle }, code) => {
      const swatch = html`<span class=${`famnb-swatch ${cycle ? "" : "famnb-dot"}`} style=${{ background: colour }} />`;
      const text = html`${swatch}${key}<span class="famnb-help">${` ${count}`}</span>`;
      return html`<${Button} key=${key} class="famnb-small" label=${`${key} ${count}`} text=${text} aria-pressed=${String(!hidden.includes(code))} press=${() => toggle(code)} />`;
    })}
  </div>`;
}

/** @param {{view: ExplorerView, plot: import("../protocol.js").PlotView}} props */
function Plot({ view, plot }) {
  const { outbox } = useTool();
  const [spans, hold] = useHeld(view.spans);
  const brush = (next) => hold(next, outbox.send("brush", { spans: next }));
  const zoom = (name) => html`<${IntentButton} key=${name} class="famnb-small" label=${name} intent="zoom" args=${{ to: name }} />`;
  return html`
    <${Legend} plot=${plot} hidden=${view.hidden} />
    <${Scatter}
      plot=${plot}
      spans=${spans}
      brush=${brush}
      open=${(point) => outbox.press("show_row", { row: point }, String(point))}
      described=${view.pointed}
    />
    ${plot.notes.map((note) => html`<p class="famnb-help">${note}</p>`)}
    <${Rows} name="Rows" list=${view.chosen} opened=${view.opened} open=${(row) => outbox.press("show_row", { row: Number(row) }, row)}>
      ${spans && html`<${Button} class="famnb-small" label="Choose all" keys="Esc" press=${() => brush(null)} />${zoom("Zoom in")}`}
      ${plot.zooms.map(zoom)}
      ${plot.scales.map(({ key, isLog }) => html`<${IntentButton} key=${key} class="famnb-small" label=${`Logarithmic ${key}`} aria-pressed=${String(isLog)} intent="toggle_log" args=${{ axis: key }} lock=${key} />`)}
    <//>
    ${view.call && html`<${OpenedCall} call=${view.call} />`}
  `;
}

/** @param {{view: ExplorerView}} props */
function Explorer({ view }) {
  return html`<div class="famnb-explorer">
    <div class="famnb-top"><strong class="famnb-title">${view.title}</strong></div>
    <p>${view.empty}</p>
    ${view.plot && html`<${Plot} view=${view} plot=${view.plot} />`}
  </div>`;
}

export default defineTool("Explorer", Explorer, "famnb-card");
