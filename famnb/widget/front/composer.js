// The composer: the talk, the box where it goes on, and its settings at the side or, where there is no room, in a drawer.

import { button, followEnd, make, write } from "./dom.js";
import { drawForm } from "./form.js";
import { RUN_AGAIN } from "./kernel.js";
import { makeOutbox } from "./outbox.js";
import { drawSide } from "./panels.js";
import { drawPromptBox, sendByKeys } from "./prompt.js";
import { liveWidget } from "./stream.js";
import { dressTurns } from "./talk.js";

const WIDE_PX = 660; // of the widget itself, which has about 430 px less than a JupyterLab page with its file list
const SILENCE_MS = 10_000; // after which a page without an answer of its kernel says so
const EXAMPLES = [
  "Explain tides in two sentences.",
  "Write a haiku about a {thing}.",
  "Compare bubble sort and quicksort in a table.",
];

// The system text: one line while it is empty, and a box once it is opened.
function drawSystem(outbox) {
  const area = make("textarea", "famnb-prompt famnb-system-text");
  area.rows = 2;
  area.placeholder = "How the model shall behave";
  area.setAttribute("aria-label", "System");
  const gist = make("span", "famnb-gist");
  const summary = make("summary", "", make("strong", "", "System"), gist);
  const element = make("details", "famnb-system", summary, area);
  const settle = () => write(gist, element.open ? "" : area.value.trim() || "not set");
  element.addEventListener("toggle", settle);
  sendByKeys(area, () => {}, () => false);
  area.addEventListener("input", () => outbox.later("system", { kind: "system", text: area.value }));
  settle();
  let isFirst = true;
  return {
    element,
    tell: ({ system, force }) => {
      const isHeld = area.matches(":focus") || outbox.holds("system");
      if (area.value !== system && (force || !isHeld)) area.value = system;
      if (isFirst || force) element.open = Boolean(system);
      isFirst = false;
      settle();
    },
  };
}

function drawEmpty(suggest) {
  const examples = EXAMPLES.map((text) => button("famnb-example", text, "", () => suggest(text)));
  const text = "Replies appear here, and are saved with the notebook.";
  return make("div", "famnb-empty", make("p", "", text), make("div", "famnb-bar", ...examples));
}

function drawComposer({ model, el, known, stop }) {
  let state = { busy: false };
  let isNarrowTold = false;
  let isLost = false;
  const outbox = makeOutbox((message) => model.send(message));
  const form = drawForm(outbox);
  const system = drawSystem(outbox);
  const box = drawPromptBox(outbox, stop);
  const turns = dressTurns(outbox, { isBusy: () => state.busy, enterSends: box.enterSends });
  const side = drawSide(outbox, el, form.element, () => {});
  const banner = make("p", "famnb-banner");
  banner.setAttribute("role", "alert");
  const title = make("strong", "famnb-title", "Composer");
  const fresh = button("famnb-new", "New talk", "", () => {
    outbox.now({ kind: "new" });
    box.area.focus();
  });
  fresh.title = "Begin another conversation; this one stays in the saved output";
  const top = make("header", "famnb-top", title, make("span", "famnb-space"), fresh, side.tabs);
  const empty = drawEmpty(box.suggest);
  const scroll = make("div", "famnb-scroll");
  scroll.tabIndex = 0; // it scrolls by itself, so keys must reach it
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", "Talk");
  const follow = followEnd(scroll);
  const main = make("div", "famnb-main", system.element, scroll, box.element);
  const shell = make("div", "famnb-shell", main, side.element);
  let flow;

  const settle = () => {
    turns.settle();
    const hasTurns = Boolean(flow?.childElementCount);
    empty.hidden = hasTurns;
    fresh.disabled = !hasTurns || state.busy || isLost;
    box.tellTalk(hasTurns);
    follow();
  };
  const apply = ({ fields, form: said, pictures, state: told, panel }) => {
    if (fields) form.describe(fields);
    if (said) {
      form.tell(said);
      system.tell(said);
      box.tell(said);
      side.mark(Boolean(said.faulty.length));
      write(title, `${said.endpoint} · ${said.values.model ?? ""}`);
    }
    if (pictures) box.tellPictures(pictures);
    if (panel) side.tell(panel);
    if (!told) return;
    state = told;
    box.tellState(told);
    settle();
  };
  // A drawer that a narrow page opened stays; a page that becomes wide has the settings beside the talk.
  const measure = () => {
    const isWide = el.clientWidth >= WIDE_PX;
    if (!el.clientWidth || (isWide === el.classList.contains("famnb-wide") && isNarrowTold)) return;
    isNarrowTold = true;
    el.classList.toggle("famnb-wide", isWide);
    if (isWide) side.show("Settings");
    else side.show("");
  };
  const observer = new ResizeObserver(measure);
  const keys = (event) => {
    if (event.key !== "Escape" || !state.busy || event.defaultPrevented) return;
    event.preventDefault();
    event.stopPropagation();
    stop();
  };
  // Else the notebook takes arrows, Enter and single letters for its own; it asks the element itself, not its parents.
  // Not where one writes: there it takes none of them, and in an element that is marked so it drops Shift+Enter.
  const keepKeys = ({ target }) => {
    if (!target.matches("textarea")) target.dataset.lmSuppressShortcuts = "true";
  };
  const lose = (text) => {
    isLost = true;
    outbox.close();
    write(banner, text);
    banner.hidden = false;
    el.classList.add("famnb-lost");
    box.lose();
    turns.lose();
    for (const control of shell.querySelectorAll("input, select, button:not(.famnb-copy)")) control.disabled = true;
    for (const control of el.querySelectorAll(".famnb-top button")) control.disabled = true;
  };
  let silence = 0;

  return {
    ...turns,
    writesFirst: true,
    areas: () => [box.area],
    mount: (panes) => {
      flow = panes;
      banner.hidden = true;
      el.classList.add("famnb-composer");
      scroll.append(empty, flow);
      el.append(banner, top, shell);
      el.addEventListener("keydown", keys);
      el.addEventListener("focusin", keepKeys);
      observer.observe(el);
      measure();
      apply(known);
      if (!known.form) {
        write(banner, "Waiting for the kernel …");
        banner.hidden = false;
        silence = setTimeout(() => write(banner, "No kernel answers: run this cell again."), SILENCE_MS);
      }
    },
    settle,
    told: (message, rest) => {
      if (message.kind === "taken") box.taken(message.ok);
      side.told(message);
      if (rest.form && silence) {
        clearTimeout(silence);
        silence = 0;
        banner.hidden = !isLost;
      }
      if (message.seq !== undefined) apply(rest);
      follow();
    },
    // Whoever asks again further up reads the answer from its beginning; at the end the talk is followed.
    arrive: (drawn) => {
      if (!drawn) return;
      if (turns.wasAsked()) drawn.element.scrollIntoView({ block: "nearest" });
      follow(true);
    },
    lose: () => lose(RUN_AGAIN),
    end: () => {
      clearTimeout(silence);
      observer.disconnect();
      outbox.flush();
      el.removeEventListener("keydown", keys);
      el.removeEventListener("focusin", keepKeys);
    },
  };
}

export default () => liveWidget(drawComposer);
