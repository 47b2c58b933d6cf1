// The composer: the talk, the box where it goes on, and its settings at the side or, where there is no room, in a drawer.

import { button, followEnd, make, once, write } from "./dom.js";
import { drawEmpty } from "./examples.js";
import { drawForm } from "./form.js";
import { drawFrame } from "./frame.js";
import { isTaken, makeOutbox } from "./outbox.js";
import { drawSide } from "./panels.js";
import { drawPromptBox } from "./prompt.js";
import { liveWidget } from "./stream.js";
import { drawSystem } from "./system.js";
import { dressTurns } from "./talk.js";

const WIDE_PX = 540; // of the widget itself, which has about 430 px less than a JupyterLab page with its file list
const EXAMPLES = [
  "Explain tides in two sentences.",
  "Write a haiku about a {thing}.",
  "Compare bubble sort and quicksort in a table.",
];

function drawComposer({ send, el, known, stop }) {
  let state = { busy: false };
  let isNarrowTold = false;
  const outbox = makeOutbox(send, isTaken);
  const form = drawForm(outbox);
  const system = drawSystem(outbox);
  const box = drawPromptBox(outbox, stop);
  const turns = dressTurns(outbox, { isBusy: () => state.busy, enterSends: box.enterSends });
  const side = drawSide(outbox, el, form.element, () => {});
  const frame = drawFrame(el, "famnb-composer", { stop: box.stop, isBusy: () => state.busy });
  const title = make("strong", "famnb-title", "Composer");
  const fresh = button("famnb-new", "New talk", "", () => {
    outbox.now({ kind: "new" });
    box.area.focus();
  });
  fresh.title = "Begin another conversation; this one stays in the saved output";
  const comparing = button("famnb-new", "Compare", "", once(() => outbox.now({ kind: "compare" })));
  comparing.title = "Open a board below: this request beside others, such as another model's";
  const top = make("header", "famnb-top", title, make("span", "famnb-space"), fresh, comparing, side.tabs);
  const empty = drawEmpty("Replies appear here, and are saved with the notebook.", EXAMPLES, box.suggest);
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
    fresh.disabled = !hasTurns || state.busy || frame.isLost();
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
      write(title, [said.service, said.endpoint, said.values.model ?? ""].filter(Boolean).join(" · "));
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
  return {
    ...turns,
    writesFirst: true,
    areas: () => [box.area],
    mount: (panes) => {
      flow = panes;
      scroll.append(empty, flow);
      frame.mount(top, shell);
      observer.observe(el);
      measure();
      apply(known);
      if (!known.form) frame.wait();
    },
    settle,
    told: (message, rest) => {
      if (message.kind === "snapshot") outbox.forget();
      if (message.kind === "taken") {
        outbox.answered();
        box.taken(message.ok);
        if (known.form) form.tell({ ...known.form, force: false });
      }
      side.told(message);
      if (rest.form) frame.hear();
      if (message.seq !== undefined) apply(rest);
      follow();
    },
    // Whoever asks again further up reads the answer from its beginning; at the end the talk is followed.
    arrive: (drawn) => {
      if (!drawn) return;
      if (turns.wasAsked()) drawn.element.scrollIntoView({ block: "nearest" });
      follow(true);
    },
    lose: () => {
      outbox.close();
      box.lose();
      turns.lose();
      frame.lose();
    },
    end: () => {
      frame.end();
      observer.disconnect();
      outbox.flush();
    },
  };
}

export default () => liveWidget(drawComposer);
