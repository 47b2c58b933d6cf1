// The live view of a call that a cell waits for.

import { html } from "../vendor/preact.js";
import { Pane } from "../parts/pane.js";
import { defineTool } from "../runtime/tool.js";

/** @param {{view: import("../protocol.js").RepliesView}} props */
function Replies({ view }) {
  return html`<div class="famnb-panes">${view.panes.map((pane) => html`<${Pane} key=${pane.key} pane=${pane} />`)}</div>`;
}

export default defineTool("Reply", Replies);
