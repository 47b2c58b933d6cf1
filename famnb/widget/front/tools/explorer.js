// The explorer: points to hover over, a legend that hides groups, the list of what is chosen, and a call that opens.

import { html, useMemo, useState } from "../vendor/preact.js";
import { Button } from "../parts/button.js";
import { OpenedCall } from "../parts/call.js";
import { Scatter } from "../parts/scatter.js";
import { Rows } from "../parts/tables.js";
import { axisLimits, bulkLimits } from "../parts/ticks.js";
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

// A copy, since a part of a message may lie where no array of numbers can begin.
const copyBytes = ({ buffer, byteOffset, byteLength }) => buffer.slice(byteOffset, byteOffset + byteLength);

/** @param {{view: ExplorerView, plot: import("../protocol.js").PlotView}} props */
function Plot({ view, plot: sent }) {
  const { outbox } = useTool();
  const [zoom, setZoom] = useState(/** @type {Span[] | null} */ (null)); // what is shown of x and y; null is the bulk
  const [logs, setLogs] = useState([sent.x.isLog, sent.y.isLog]);
  const plot = useMemo(() => ({ ...sent, x: { ...sent.x, isLog: logs[0] }, y: { ...sent.y, isLog: logs[1] } }), [sent, ...logs]);
  const [brushed, hold] = useHeld(view.spans);
  const points = useMemo(() => {
    const [xs, ys] = [plot.xs, plot.ys].map((bytes) => new Float32Array(copyBytes(bytes)));
    return { plot, xs, ys, codes: new Uint8Array(copyBytes(plot.codes)) };
  }, [plot]);
  const axes = [plot.x, plot.y];
  const [whole, bulk] = useMemo(
    () => [axisLimits, bulkLimits].map((limits) => [limits(plot.x, points.xs), limits(plot.y, points.ys)]),
    [points],
  );
  const shown = zoom ?? bulk;
  const hasMore = String(shown) !== String(whole);
  const toggleLog = (axis) => {
    setLogs(logs.map((isLog, other) => (other === axis ? !isLog : isLog)));
    setZoom(null);
  };
  const canLog = (axis) => axes[axis].kind === "number" && [points.xs, points.ys][axis].some((value) => value > 0);
  // Python's are the values; the page's have no offset, which its 32-bit numbers could not hold.
  const move = (spans, sign) => spans && spans.map((span, axis) => span.map((end) => end + sign * axes[axis].offset));
  const spans = useMemo(() => move(brushed, -1), [brushed]);
  const brush = (next) => hold(move(next, 1), outbox.send("brush", { spans: move(next, 1) }));
  const open = (row) => outbox.press("open_row", { row }, row);
  return html`
    <${Legend} plot=${plot} hidden=${view.hidden} />
    <${Scatter}
      points=${points}
      limits=${shown}
      hidden=${view.hidden}
      spans=${spans}
      brush=${brush}
      open=${(point) => outbox.press("open_point", { point }, String(point))}
      described=${view.pointed}
    />
    ${plot.notes.map((note) => html`<p class="famnb-help">${note}</p>`)}
    <${Rows} name="Rows" list=${view.chosen} opened=${view.opened} open=${open} sort=${(column) => outbox.press("sort_rows", { column }, String(column))}>
      ${spans && html`<${Button} class="famnb-small" label="Choose all" keys="Esc" press=${() => brush(null)} />`}
      ${spans && html`<${Button} class="famnb-small" label="Zoom in" press=${() => setZoom(spans)} />`}
      ${hasMore && html`<${Button} class="famnb-small" label=${zoom ? "Zoom out" : "Show outliers"} press=${() => setZoom(whole)} />`}
      ${!hasMore && String(bulk) !== String(whole) && html`<${Button} class="famnb-small" label="Hide outliers" press=${() => setZoom(null)} />`}
      ${["x", "y"].map((name, axis) => canLog(axis) && html`<${Button} class="famnb-small" label=${`Logarithmic ${name}`} aria-pressed=${String(logs[axis])} press=${() => toggleLog(axis)} />`)}
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
