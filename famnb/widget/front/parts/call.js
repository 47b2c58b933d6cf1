// One recorded call laid open: its transcript, what went over the wire, every event, and their timeline.

import { html, useEffect, useLayoutEffect, useRef } from "../vendor/preact.js";
import { useTool, useTyped } from "../runtime/tool.js";
import { CopyButton, IntentButton } from "./button.js";
import { CellButton } from "./code.js";
import { SafeHtml } from "./html.js";
import { Tabs } from "./tabs.js";

/**
 * @typedef {import("../protocol.js").CallView} CallView
 * @typedef {import("../protocol.js").EventsView} EventsView
 */

// The whole text stays in Python until it is copied.
function CopyPart({ part }) {
  const { outbox } = useTool();
  const read = async () => (await outbox.send("read_part", { part })).value;
  return html`<${CopyButton} label=${`Copy ${part}`} needsKernel read=${read} />`;
}

// Head and body of a request or a response.
function Raw({ part, raw }) {
  return html`<div>
    ${raw.lines.map((line) => html`<p>${line}</p>`)}
    <div class="famnb-bar"><${CopyPart} part=${part} /></div>
    <pre class="famnb-raw" tabindex="0" role="region" aria-label=${`raw ${part}`}>${raw.text}</pre>
  </div>`;
}

// Whether the page is dark, by the colour of its text: no host says it in the same way.
function isDark(element) {
  const [red, green, blue] = getComputedStyle(element).color.match(/[\d.]+/g) ?? [0, 0, 0];
  return Number(red) + Number(green) + Number(blue) > 384;
}

/** @param {{call: CallView}} props */
function Events({ call }) {
  const { outbox, root, isLost } = useTool();
  const { events, timeline } = call;
  const [filter, setFilter] = useTyped(events.filter, "filter_events", (text) => ({ text }));
  const table = useRef(/** @type {any} */ (null));
  useLayoutEffect(() => {
    if (table.current) table.current.scrollTop = 0;
  }, [events]);
  // Rendered only when it is looked at: that takes longer than everything else.
  useEffect(() => {
    if (!timeline) outbox.press("draw_timeline", { dark: isDark(root) });
  }, [call.id, !timeline]);
  const turn = (label, step, isPossible) =>
    html`<${IntentButton} label=${label} intent="turn_events" lock=${label} args=${{ step }} disabled=${!isPossible} />`;
  return html`<div>
    <div class="famnb-bar famnb-filters">
      <label class="famnb-item"><span class="famnb-name">Filter</span>
        <input class="famnb-input" type="search" placeholder="all events" value=${filter} disabled=${isLost} onInput=${(event) => setFilter(event.target.value)} />
      </label>
      ${turn("Earlier", -1, events.hasEarlier)}${turn("Later", 1, events.hasLater)}<${CopyPart} part="events" />
    </div>
    <p role="status">${events.summary}</p>
    <div class="famnb-beside">
      ${events.rows.length > 0 &&
      html`<div class="famnb-scrolling" tabindex="0" role="region" aria-label="events" ref=${table}>
        <table class="famnb-grid">
          <thead><tr><th scope="col">event</th><th scope="col">arrived</th><th scope="col" data-kind="text">data</th></tr></thead>
          <tbody>
            ${events.rows.map(
              ({ key, time, text }) => html`<tr key=${key}><td>${key}</td><td>${time}</td><td data-kind="text"><code>${text}</code></td></tr>`,
            )}
          </tbody>
        </table>
      </div>`}
      ${timeline && html`<img class="famnb-timeline" src=${timeline.url} alt=${timeline.alt} />`}
    </div>
  </div>`;
}

/** @param {{call: CallView}} props */
export function CallPages({ call }) {
  const pages = {
    Transcript: () => html`<${SafeHtml} class="famnb-shown" html=${call.transcript} />`,
    Request: () => html`<${Raw} part="request" raw=${call.request} />`,
    Response: () => html`<${Raw} part="response" raw=${call.response} />`,
    Events: () => html`<${Events} call=${call} />`,
  };
  const code = `import famnb\n\ncomposer = famnb.Composer()\ncomposer.load("${call.id}")\ncomposer`;
  return html`<div class="famnb-sheet">
    <${Tabs} pages=${pages} />
    <div class="famnb-bar"><${CellButton} label="Continue this chat in a cell below" code=${code} /></div>
  </div>`;
}

/** A call that was opened in a tool, below the list that it is of. @param {{call: CallView}} props */
export function OpenedCall({ call }) {
  const section = useRef(/** @type {any} */ (null));
  useEffect(() => section.current.scrollIntoView({ block: "nearest" }), []);
  return html`<section class="famnb-opened" aria-label="Call" ref=${section}>
    <div class="famnb-bar"><strong>Call</strong><span class="famnb-space" /><${IntentButton} label="Close" intent="close_call" /></div>
    <${CallPages} call=${call} />
  </section>`;
}
