// A run: a bar and Stop while it is under way, and its report so far.

import { html } from "../vendor/preact.js";
import { Button } from "../parts/button.js";
import { SafeHtml } from "../parts/html.js";
import { defineTool, useStop, useTool } from "../runtime/tool.js";

/** @param {{view: import("../protocol.js").RunStateView}} props */
function Run({ view: { name, progress, percent, isStopping, report } }) {
  const { outbox } = useTool();
  const { stop } = useStop();
  const isLocked = isStopping || outbox.isPending("stop");
  return html`<div class="famnb-run">
    ${progress &&
    html`<div class="famnb-bar">
        <strong class="famnb-title">${name}</strong> <span class="famnb-state">${progress}</span>
        <span class="famnb-space" /><${Button} class="famnb-stop" label=${isLocked ? "Stopping …" : "Stop"} locked=${isLocked} press=${() => stop()} />
      </div>
      <progress aria-label="cells done" aria-valuetext=${progress} max="100" value=${percent} />`}
    <${SafeHtml} html=${report} />
  </div>`;
}

export default defineTool("Run of an experiment", Run, "famnb-card");
