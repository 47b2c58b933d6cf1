// The inspector: one call, on a page by itself.

import { html } from "../vendor/preact.js";
import { CallPages } from "../parts/call.js";
import { defineTool } from "../runtime/tool.js";

/** @param {{view: import("../protocol.js").CallView}} props */
const Inspector = ({ view }) => html`<${CallPages} call=${view} />`;

export default defineTool("Inspector", Inspector, "famnb-card");
