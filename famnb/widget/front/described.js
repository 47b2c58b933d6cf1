// The page's half of a widget that Python describes part by part (described.py): what all of them have around them.

import { deliver, openChannel } from "./channel.js";
import { make, write } from "./dom.js";
import { RUN_AGAIN } from "./kernel.js";
import { makeOutbox } from "./outbox.js";
import { waitForRelease } from "./press.js";

const WAITING_MS = 1000; // before a page without an answer of its kernel says that it waits
const SILENCE_MS = 10_000; // after which it says that there is none

/**
 * @typedef {object} Drawn what a tool draws
 * @property {HTMLElement} element
 * @property {(parts: object) => void} tell draws the parts that have changed
 * @property {(message: object) => void} [told] follows a message that changes no part
 * @property {() => void} [end] the view is taken away
 */

/**
 * Returns the front end of a described widget, as anywidget wants it.
 * @param {string} name what the widget is called
 * @param {(outbox: object) => Drawn} drawTool
 */
export function describedWidget(name, drawTool) {
  const known = {}; // all parts as they were told last
  const views = new Set();
  let isLost = false;

  // What is read and copied stays as it is; nothing can be done any more.
  const showLost = ({ el, outbox, banner, drawn }) => {
    outbox.close();
    write(banner, RUN_AGAIN);
    banner.hidden = false;
    el.classList.add("famnb-lost");
    for (const control of drawn.element.querySelectorAll("input, select, button:not(.famnb-copy)")) control.disabled = true;
  };

  const lose = () => {
    isLost = true;
    views.forEach(showLost);
  };

  const tell = (view, parts) => {
    clearTimeout(view.silence);
    view.banner.hidden = !isLost;
    view.drawn.element.hidden = false;
    view.drawn.tell(parts);
    if (parts.trouble !== undefined) write(view.trouble, parts.trouble);
  };

  const hear = ({ kind, seq, ...parts }) => {
    if (seq !== undefined) Object.assign(known, parts);
    for (const view of views) {
      if (seq === undefined) view.drawn.told?.({ kind, ...parts });
      else tell(view, parts);
    }
  };
  const presses = waitForRelease(hear);

  const render = ({ model, el }) => {
    const outbox = makeOutbox((message) => deliver(model, message, lose));
    const drawn = drawTool(outbox);
    const banner = make("p", "famnb-banner");
    const trouble = make("p", "famnb-fault");
    for (const line of [banner, trouble]) line.setAttribute("role", "alert");
    const view = { el, outbox, banner, trouble, drawn, silence: 0 };
    // Else the notebook takes arrows, Enter and single letters for its own; it asks the element, not its parents.
    const keepKeys = ({ target }) => {
      target.dataset.lmSuppressShortcuts = "true";
    };
    const say = (text) => {
      write(banner, text);
      banner.hidden = false;
    };
    el.classList.add("famnb", "famnb-card");
    drawn.element.setAttribute("role", "group");
    drawn.element.setAttribute("aria-label", name);
    el.addEventListener("focusin", keepKeys);
    banner.hidden = true;
    drawn.element.hidden = true;
    el.append(banner, drawn.element, trouble);
    views.add(view);
    if (Object.keys(known).length) tell(view, known);
    else {
      view.silence = setTimeout(() => {
        say("Waiting for the kernel …");
        view.silence = setTimeout(() => say("No kernel answers: run this cell again."), SILENCE_MS);
      }, WAITING_MS);
    }
    if (isLost) showLost(view);
    const unwatch = presses.watch(el);
    return () => {
      unwatch();
      clearTimeout(view.silence);
      views.delete(view);
      outbox.flush();
      el.removeEventListener("focusin", keepKeys);
      drawn.end?.();
    };
  };

  return {
    initialize({ model }) {
      openChannel(model, { hear: presses.hear, lose });
    },
    render,
  };
}
