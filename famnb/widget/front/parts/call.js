// One recorded call laid open: its transcript, what went over the wire, every event, and their timeline.

import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { useTool } from "../runtime/tool.js";
import { Button, CopyButton, IntentButton } from "./button.js";
import { CellButton } from "./code.js";
import { SafeHtml } from "./html.js";

const MAX_EVENTS = 1000; // that are shown at once: more would take the browser a while

/** @typedef {import("../protocol.js").CallView} CallView */

// Head and body of a request or a response.
function Raw({ part, raw }) {
  const { outbox } = useTool();
  // The whole text stays in Python until it is copied.
  const read = async () => (await outbox.send("read_part", { part })).value;
  return html`<div>
    ${raw.lines.map((line) => html`<p>${line}</p>`)}
    <div class="famnb-bar"><${CopyButton} label=${`Copy ${part}`} needsKernel read=${read} /></div>
    <pre class="famnb-raw" tabindex="0" role="region" aria-label=${`raw ${part}`}>${raw.text}</pre>
  </div>`;
}

/** Whether the page is dark, by the colour of its text: no host says it in the same way. @param {Element} element */
export function isDark(element) {
  const [red, green, blue] = getComputedStyle(element).color.match(/[\d.]+/g) ?? [0, 0, 0];
  return Number(red) + Number(green) + Number(blue) > 384;
}

/** @param {{call: CallView}} props */
function Events({ call }) {
  const { outbox, root } = useTool();
  const { eventCount, timeline } = call;
  const box = useRef(/** @type {any} */ (null));
  const [lines, setLines] = useState(/** @type {string[]} */ ([]));
  const [filter, setFilter] = useState("");
  // Only when they are looked at: both take longer than everything else.
  useEffect(() => {
    if (eventCount) outbox.send("read_part", { part: "events" }).then(({ value = "" }) => setLines(value.split("\n")));
  }, [call.id, eventCount]);
  useEffect(() => {
    if (!timeline) outbox.press("draw_timeline", { dark: isDark(root) });
  }, [call.id, !timeline]);
  useEffect(() => box.current.scrollIntoView({ block: "nearest" }), [lines.length > 0]);
  const matches = lines.filter((line) => line.toLowerCase().includes(filter.trim().toLowerCase()));
  const shown = matches.slice(0, MAX_EVENTS);
  const count = (list) => list.length.toLocaleString("en");
  const rest = shown.length < matches.length ? `; the first ${count(shown)} are shown` : "";
  const summary = `${filter.trim() ? `${count(matches)} of ${count(lines)} events hold the text` : `${count(lines)} events`}${rest}`;
  return html`<div ref=${box}>
    <div class="famnb-bar famnb-filters">
      <label class="famnb-item"><span class="famnb-name">Filter</span>
        <input class="famnb-input" type="search" placeholder="all events" value=${filter} onInput=${(event) => setFilter(event.target.value)} />
      </label>
      <${CopyButton} label="Copy events" read=${() => matches.join("\n")} />
    </div>
    <p role="status">${eventCount ? summary : "No events: the reply was not an event stream, or nothing came."}</p>
    <div class="famnb-beside">
      ${eventCount > 0 && html`<pre class="famnb-raw" tabindex="0" role="region" aria-label="events">${shown.join("\n")}</pre>`}
      ${timeline && html`<img class="famnb-timeline" src=${timeline.url} alt=${timeline.alt} />`}
    </div>
  </div>`;
}

/** @param {{call: CallView, first?: string}} props `first` is the page that is open at first */
export function CallPages({ call, first = "Transcript" }) {
  const pages = {
    Transcript: () => html`<${SafeHtml} class="famnb-shown" html=${call.transcript} />`,
    Request: () => html`<${Raw} part="request" raw=${call.request} />`,
    Response: () => html`<${Raw} part="response" raw=${call.response} />`,
    Events: () => html`<${Events} call=${call} />`,
  };
  const [open, setOpen] = useState(first);
  const tab = (name) => html`<${Button} key=${name} class="famnb-tab" role="tab" label=${name} aria-selected=${String(name === open)} needsKernel=${false} press=${() => setOpen(name)} />`;
  const code = `import famnb\n\ncomposer = famnb.Composer()\ncomposer.load("${call.id}")\ncomposer`;
  return html`<div class="famnb-sheet">
    <div class="famnb-bar">
      <div class="famnb-tabs" role="tablist">${Object.keys(pages).map(tab)}</div><span class="famnb-space" />
      <${CellButton} label="Continue this chat in a cell below" code=${code} isRun />
    </div>
    <div role="tabpanel" aria-label=${open} key=${open}>${pages[open]()}</div>
  </div>`;
}

/** A call that was opened in a tool, below the list that it is of. @param {{call: CallView, first?: string}} props */
export function OpenedCall({ call, first }) {
  const section = useRef(/** @type {any} */ (null));
  useEffect(() => section.current.scrollIntoView({ block: "nearest" }), []);
  return html`<section class="famnb-opened" aria-label="Call" ref=${section}>
    <div class="famnb-bar"><strong>Call</strong><span class="famnb-space" /><${IntentButton} label="Close" intent="close_call" /></div>
    <${CallPages} call=${call} first=${first} />
  </section>`;
}
