// One recorded call laid open: its transcript, what went over the wire, every event, and their timeline.

import { copyText } from "./clipboard.js";
import { button, make, statusLine, write } from "./dom.js";
import { labelled } from "./field.js";

let tabCount = 0; // for ids, which tie a tab to what it shows

// A row of tabs: arrows move between them, and only the one that is open is in the order of Tab.
function drawTabs(pages, opened) {
  const tabs = {};
  const open = (name) => {
    for (const [other, page] of Object.entries(pages)) {
      page.hidden = other !== name;
      tabs[other].setAttribute("aria-selected", other === name);
      tabs[other].tabIndex = other === name ? 0 : -1;
    }
    opened(name);
  };
  const names = Object.keys(pages);
  const row = make("div", "famnb-tabs");
  row.setAttribute("role", "tablist");
  for (const name of names) {
    const tab = (tabs[name] = button("famnb-tab", name, "", () => open(name)));
    tab.id = `famnb-tab-${(tabCount += 1)}`;
    tab.setAttribute("role", "tab");
    pages[name].setAttribute("role", "tabpanel");
    pages[name].setAttribute("aria-labelledby", tab.id);
    row.append(tab);
  }
  row.addEventListener("keydown", ({ key, target }) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
    if (!step) return;
    const next = names[(names.indexOf(target.textContent) + step + names.length) % names.length];
    open(next);
    tabs[next].focus();
  });
  open(names[0]);
  return { element: make("div", "", row, ...Object.values(pages)), open };
}

// A box that scrolls, and so has to be reached by keys.
function scrolling(element, label) {
  element.tabIndex = 0;
  element.setAttribute("role", "region");
  element.setAttribute("aria-label", label);
  return element;
}

// Head and body of a request or a response; the whole text is Python's, and is asked for when it is copied.
function drawRaw(name, copy) {
  const lines = make("div", "");
  const text = scrolling(make("pre", "famnb-raw"), `raw ${name}`);
  return {
    element: make("div", "", lines, make("div", "famnb-bar", copy), text),
    tell: (raw) => {
      lines.replaceChildren(...raw.lines.map((line) => make("p", "", line)));
      write(text, raw.text);
    },
  };
}

function drawEvents(outbox, copy) {
  const filter = Object.assign(make("input", "famnb-input"), { type: "search", placeholder: "all events" });
  const summary = make("p", "");
  summary.setAttribute("role", "status");
  const body = make("tbody", "");
  const head = make("tr", "", ...["event", "arrived", "data"].map((name) => make("th", "", name)));
  for (const cell of head.children) cell.scope = "col";
  const table = scrolling(make("div", "famnb-scrolling", make("table", "famnb-grid", make("thead", "", head), body)), "events");
  const timeline = make("img", "famnb-timeline");
  timeline.hidden = true;
  const ask = (message) => outbox.now({ kind: "events", ...message });
  const pages = [button("", "Earlier", "", () => ask({ step: -1 })), button("", "Later", "", () => ask({ step: 1 }))];
  filter.addEventListener("input", () => outbox.later("filter", { kind: "events", filter: filter.value }));
  const search = labelled("Filter", filter);
  return {
    element: make(
      "div",
      "",
      make("div", "famnb-bar famnb-filters", search, ...pages, copy),
      summary,
      make("div", "famnb-beside", table, timeline),
    ),
    tell: (events) => {
      write(summary, events.summary);
      if (!filter.matches(":focus")) filter.value = events.filter;
      body.replaceChildren(
        ...events.rows.map(([number, time, text]) =>
          make("tr", "", make("td", "", number), make("td", "", time), make("td", "famnb-data", make("code", "", text))),
        ),
      );
      table.scrollTop = 0;
      table.hidden = !events.rows.length;
      pages[0].disabled = !events.earlier;
      pages[1].disabled = !events.later;
    },
    tellTimeline: (picture) => {
      timeline.hidden = !picture;
      if (picture) Object.assign(timeline, { src: picture.url, alt: picture.alt });
    },
  };
}

// Whether the page is dark, by the colour of its text: no host says it in the same way.
function isDark(element) {
  const [red, green, blue] = getComputedStyle(element).color.match(/[\d.]+/g) ?? [0, 0, 0];
  return Number(red) + Number(green) + Number(blue) > 384;
}

/**
 * Draws a call; it tells of the parts "call", "events" and "timeline".
 * @param {object} outbox
 */
export function drawCall(outbox) {
  const status = statusLine("famnb-hint");
  const copying = (what) => button("", `Copy ${what}`, "", () => outbox.now({ kind: "copy", what }));
  const transcript = make("div", "famnb-shown jp-RenderedHTMLCommon");
  const request = drawRaw("request", copying("request"));
  const response = drawRaw("response", copying("response"));
  const events = drawEvents(outbox, copying("events"));
  let shown = ""; // the id of the call
  let isDrawn = false; // whether its timeline is there or on its way
  let open = "";
  // Drawn only when it is looked at: that takes longer than everything else.
  const askForTimeline = () => {
    if (open !== "Events" || isDrawn || !shown) return;
    isDrawn = true;
    outbox.now({ kind: "timeline", dark: isDark(element) });
  };
  const pages = { Transcript: transcript, Request: request.element, Response: response.element, Events: events.element };
  const tabs = drawTabs(pages, (name) => {
    open = name;
    askForTimeline();
  });
  const element = make("div", "famnb-sheet", tabs.element, status);
  return {
    element,
    tell: ({ call, events: page, timeline }) => {
      if (call) {
        shown = call.id;
        isDrawn = false;
        transcript.innerHTML = call.transcript; // clean HTML made by transcript.reply_bundle
        request.tell(call.request);
        response.tell(call.response);
      }
      if (page) events.tell(page);
      if (timeline !== undefined) events.tellTimeline(timeline);
      if (call) askForTimeline();
    },
    told: async ({ kind, text }) => {
      if (kind !== "copied") return;
      write(status, (await copyText(text)) ? "Copied" : "Not copied: the browser does not let this page copy");
      setTimeout(() => write(status, ""), 4000);
    },
  };
}
