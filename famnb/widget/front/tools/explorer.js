// The explorer: points to hover over, a legend that hides groups, the list of what is chosen, and a call that opens.

import { html, useEffect, useMemo, useState } from "../vendor/preact.js";
import { Button } from "../parts/button.js";
import { OpenedCall } from "../parts/call.js";
import { readFacts, readNumbers } from "../parts/facts.js";
import { Scatter } from "../parts/scatter.js";
import { Rows } from "../parts/tables.js";
import { axisLimits, writeValue } from "../parts/ticks.js";
import { defineTool, useHeld, useTool } from "../runtime/tool.js";

/**
 * @typedef {import("../protocol.js").ExplorerView} ExplorerView
 * @typedef {import("../parts/ticks.js").Span} Span
 */

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
  const [zoom, setZoom] = useState(/** @type {Span[] | null} */ (null)); // what is shown of x and y; null is all
  const [brushed, hold] = useHeld(view.spans);
  const points = useMemo(() => {
    const [xs, ys] = [plot.xs, plot.ys].map((bytes) => readNumbers(Float32Array, bytes));
    return { plot, xs, ys, codes: readNumbers(Uint8Array, plot.codes) };
  }, [plot]);
  const axes = [plot.x, plot.y];
  const whole = useMemo(() => [axisLimits(plot.x, points.xs), axisLimits(plot.y, points.ys)], [points]);
  const facts = useMemo(() => view.facts && readFacts(view.facts, points.xs.length), [view.facts]);
  // They are larger than the places, which are shown first.
  useEffect(() => {
    if (!view.facts) outbox.press("load_facts");
  }, [!view.facts]);
  // Python's are the values; the page's have no offset, which its 32-bit numbers could not hold.
  const move = (spans, sign) => spans && spans.map((span, axis) => span.map((end) => end + sign * axes[axis].offset));
  const spans = useMemo(() => move(brushed, -1), [brushed]);
  const brush = (next) => hold(move(next, 1), outbox.send("brush", { spans: move(next, 1) }));
  const describe = (index) => {
    // Until the facts have come, what the page knows by itself: the group and the place.
    const known = facts ? facts(index) : { title: plot.groups[points.codes[index]].key, text: "", facts: [] };
    const places = [points.xs[index], points.ys[index]].map((value, axis) => [axes[axis].label, writeValue(axes[axis], value)]);
    const isShown = ({ isComputed, kind }) => !facts || (isComputed && kind !== "names");
    return { ...known, facts: [...places.filter((_, axis) => isShown(axes[axis])), ...known.facts] };
  };
  const open = (row) => outbox.press("open_row", { row }, row);
  return html`
    <${Legend} plot=${plot} hidden=${view.hidden} />
    <${Scatter}
      points=${points}
      limits=${zoom ?? whole}
      hidden=${view.hidden}
      spans=${spans}
      brush=${brush}
      open=${(point) => outbox.press("open_point", { point }, String(point))}
      describe=${describe}
    />
    ${plot.notes.map((note) => html`<p class="famnb-help">${note}</p>`)}
    <${Rows} name="Rows" list=${view.chosen} opened=${view.opened} open=${open}>
      ${spans && html`<${Button} class="famnb-small" label="Choose all" keys="Esc" press=${() => brush(null)} />`}
      ${spans && html`<${Button} class="famnb-small" label="Zoom in" press=${() => setZoom(spans)} />`}
      ${zoom && html`<${Button} class="famnb-small" label="Zoom out" press=${() => setZoom(null)} />`}
    <//>
    ${view.call && html`<${OpenedCall} call=${view.call} />`}
  `;
}

/** @param {{view: ExplorerView}} props */
function Explorer({ view }) {
  return html`<div class="famnb-explorer">
    <header class="famnb-top"><strong class="famnb-title">${view.title}</strong></header>
    <p>${view.empty}</p>
    ${view.plot && html`<${Plot} view=${view} plot=${view.plot} />`}
  </div>`;
}

export default defineTool("Explorer", Explorer, "famnb-card");
