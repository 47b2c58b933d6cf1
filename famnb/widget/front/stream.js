// The browser's half of a live view: it draws what the kernel says and reports what the reader does; every decision is
// taken in Python. Texts become text nodes; HTML is inserted only where Python made it and cleaned it.
//
//   model ── channel.js ── message ──┬── snapshot: all that is known, drawn anew
//                                    └── changes: made to what is known, and to what is drawn

import { deliver, openChannel } from "./channel.js";
import { arrange, make } from "./dom.js";
import { interruptKernel } from "./kernel.js";
import { changes, drawPane } from "./pane.js";
import { waitForRelease } from "./press.js";

// A kernel that can hear Stop has answered by then; after that it is interrupted through the server.
const ACKNOWLEDGE_MS = 300;

/**
 * @typedef {object} Dress what a tool adds to the panes of a live view; all of it is optional but `mount`
 * @property {(flow: HTMLElement) => void} mount puts everything into the page
 * @property {() => void} place puts the panes into the flow, where that is not just one below the other
 * @property {(pane: object, parts: object) => object|undefined} draw adds to a pane
 * @property {() => void} settle brings everything up to date after a change
 * @property {(message: object) => void} told follows a message of the kernel
 * @property {(drawn: object|undefined) => void} arrive a pane that runs was drawn for the first time
 * @property {() => HTMLElement[]} areas where one writes, for the focus
 * @property {() => void} lose the kernel has ended
 * @property {() => void} end the view is taken away
 */

// All of a pane that can be seen once it has ended, as a text that can be compared. Only thinking can be folded.
function look(pane) {
  const blocks = pane.blocks.map((block) => ({ ...block, open: block.open && block.kind === "thinking" }));
  return JSON.stringify({ ...pane, blocks, elapsed: 0, stopping: undefined });
}

/**
 * Returns the front end of a live view, as anywidget wants it.
 * @param {(view: {send: (message: object) => void, el: HTMLElement, known: object, stop: () => void, elementOf: (id: string) =>
 *   HTMLElement|undefined}) => Dress} [dressUp] `known` is what the kernel has said, `elementOf` finds a drawn pane
 */
export function liveWidget(dressUp) {
  let panes = []; // what is known, in the shape of a snapshot
  const known = {}; // what else the kernel has said, by name: only the latest of each counts
  const views = new Set();
  let heard = false; // whether the kernel acknowledged the last stop

  const finish = (drawn) => {
    drawn?.end();
    drawn?.beside?.end?.();
  };

  // What is drawn anew in place of a pane's button that has the focus gets it.
  const focusing = (view, change) => {
    const active = view.flow.querySelector(":focus"); // the document's own cannot look into marimo's shadow roots
    const before = active && [...view.drawn.values()].find(({ element }) => element.contains(active));
    change();
    if (!before || active.matches(":focus")) return;
    const same = ({ turn }) => turn !== undefined && turn === before.turn;
    const pane = (view.drawn.get(before.id) ?? [...view.drawn.values()].find(same))?.element;
    const buttons = [...(pane?.querySelectorAll("button:enabled, [tabindex]") ?? [])].filter((element) => element.checkVisibility());
    const alike = (name) => buttons.find((element) => active.classList.contains(name) && element.classList.contains(name));
    const twin = buttons.find((element) => element.className === active.className) ?? alike("famnb-version");
    const writing = (view.dress?.areas?.() ?? []).find((area) => area.checkVisibility());
    // A key that is held down must not decide about the next call too.
    const question = active.closest(".famnb-verdict") && (pane?.querySelector(".famnb-verdict") ?? writing);
    const target = question ?? twin ?? (view.dress?.writesFirst ? writing : (buttons[0] ?? writing));
    target?.focus({ preventScroll: true });
  };

  // Panes that look the same as before are left alone: one may write in them, have scrolled or folded them.
  const draw = (view, kept = new Set()) =>
    focusing(view, () => {
      for (const [id, drawn] of view.drawn) if (!kept.has(id)) finish(drawn);
      const drawnBefore = view.drawn;
      view.drawn = new Map(
        panes.map((pane) => [pane.id, kept.has(pane.id) ? drawnBefore.get(pane.id) : drawPane(pane, view)]),
      );
      if (view.dress?.place) view.dress.place();
      else arrange(view.flow, [...view.drawn.values()].map((drawn) => drawn.element));
      view.dress?.settle?.();
      view.dress?.arrive?.(view.drawn.get(panes.find(({ running }) => running)?.id));
    });

  // One pane among others has ended: the others are left alone.
  const renew = (view, pane) =>
    focusing(view, () => {
      const before = view.drawn.get(pane.id);
      finish(before);
      const drawn = drawPane(pane, view);
      view.drawn.set(pane.id, drawn);
      before.element.replaceWith(drawn.element);
      view.dress?.settle?.();
    });

  const change = (message) => {
    const touched = [];
    for (const [place, told] of Object.entries(message.panes)) {
      const pane = panes[place];
      if (!pane) continue; // a view that is hidden shows none
      const drawn = [...views].map((view) => view.drawn.get(pane.id));
      for (const [name, ...details] of told) changes[name](pane, drawn, ...details);
      touched.push(...drawn);
    }
    for (const drawn of touched) drawn.settle();
    for (const pane of message.anew ?? []) {
      const index = panes.findIndex(({ id }) => id === pane.id);
      pane.blocks ??= panes[index].blocks; // null: the changes have shown them already
      panes[index] = pane;
      for (const view of views) renew(view, pane);
    }
  };

  const hear = (message) => {
    const { kind, seq, panes: said, anew, ...rest } = message;
    if (kind === "stopping") heard = true;
    if (seq !== undefined) Object.assign(known, rest);
    if (kind === "snapshot") {
      const before = new Map(panes.map((pane) => [pane.id, look(pane)]));
      const kept = new Set(said.filter((pane) => !pane.running && before.get(pane.id) === look(pane)).map(({ id }) => id));
      panes = said;
      for (const view of views) draw(view, kept);
    } else if (kind === "changes") {
      change({ panes: said, anew });
    }
    for (const view of views) view.dress?.told?.(message, rest);
  };

  const presses = waitForRelease(hear);

  const lose = () => {
    for (const pane of panes.filter((pane) => pane.running)) {
      pane.lost = true;
      for (const view of views) view.drawn.get(pane.id)?.settle();
    }
    for (const view of views) view.dress?.lose?.();
  };

  const stop = (model, ids) => {
    heard = false;
    for (const id of ids.length ? ids : [""]) deliver(model, { kind: "stop", pane: id }, lose);
    for (const pane of panes.filter((pane) => ids.includes(pane.id))) {
      pane.stopping = true;
      for (const view of views) view.drawn.get(pane.id).settle();
    }
    if (!model.get("blocking")) return;
    setTimeout(() => {
      if (heard || !panes.some((pane) => pane.running)) return;
      interruptKernel(model.get("kernel_id")).catch((error) => {
        const text = `The kernel is busy and could not be interrupted from here (${error.message}): press the notebook's stop button.`;
        for (const view of views) for (const id of ids) view.drawn.get(id)?.say(text);
      });
    }, ACKNOWLEDGE_MS);
  };

  return {
    initialize({ model }) {
      openChannel(model, { hear: presses.hear, lose });
    },
    render({ model, el }) {
      const flow = make("div", "famnb-panes");
      const running = () => panes.filter((pane) => pane.running).map((pane) => pane.id);
      const view = { flow, drawn: new Map(), stop: (id) => stop(model, [id]) };
      const elementOf = (id) => view.drawn.get(id)?.element;
      const send = (message) => deliver(model, message, lose);
      view.dress = dressUp?.({ send, el, known, stop: () => stop(model, running()), elementOf });
      el.classList.add("famnb");
      if (view.dress) view.dress.mount(flow);
      else el.append(flow);
      views.add(view);
      draw(view);
      const unwatch = presses.watch(el);
      return () => {
        unwatch();
        views.delete(view);
        view.drawn.forEach(finish);
        view.dress?.end?.();
      };
    },
  };
}
