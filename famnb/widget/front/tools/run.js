// A run while it is under way: a bar, figures, a table and Stop.

import { html } from "../vendor/preact.js";
import { Button } from "../parts/button.js";
import { SafeHtml } from "../parts/html.js";
import { Grid, Headline } from "../parts/tables.js";
import { defineTool, useStop, useTool } from "../runtime/tool.js";

/** @typedef {import("../protocol.js").ProgressView} ProgressView */

/** @param {{progress: ProgressView}} props */
function ProgressBar({ progress }) {
  return html`<div
    class="famnb-progress"
    role="progressbar"
    aria-label="cells done"
    aria-valuemin="0"
    aria-valuemax="100"
    aria-valuenow=${progress.percent}
    aria-valuetext=${progress.summary}
  >
    <span class="famnb-part-done" style=${{ width: `${progress.done}%` }} />
    <span class="famnb-part-failed" style=${{ width: `${progress.failed}%` }} />
    <span class="famnb-part-running" style=${{ width: `${progress.running}%` }} />
  </div>`;
}

/** @param {{progress: ProgressView}} props */
function Progress({ progress }) {
  const { outbox } = useTool();
  const { stop } = useStop();
  const isStopping = progress.isStopping || outbox.isPending("stop");
  return html`
    <div class="famnb-bar">
      <strong class="famnb-title">${progress.title}</strong> <span class="famnb-state">${progress.summary}</span>
      <span class="famnb-space" /><${Button} class="famnb-stop" label=${isStopping ? "Stopping …" : "Stop"} locked=${isStopping} press=${() => stop()} />
    </div>
    <${ProgressBar} progress=${progress} />
    <${Headline} figures=${progress.facts} />
    ${progress.errors && html`<p class="famnb-error">Errors: ${progress.errors}</p>`}
    ${progress.rows.length > 0 && html`<${Grid} head=${progress.head} lines=${progress.rows} />`}
    ${progress.more && html`<p class="famnb-hint">${progress.more}</p>`}
    ${progress.note && html`<p class="famnb-hint">${progress.note}</p>`}
  `;
}

/** @param {{view: import("../protocol.js").RunStateView}} props */
function Run({ view }) {
  return html`<div class="famnb-run">
    ${view.progress ? html`<${Progress} progress=${view.progress} />` : html`<${SafeHtml} html=${view.result} />`}
  </div>`;
}

export default defineTool("Run of an experiment", Run, "famnb-card");
