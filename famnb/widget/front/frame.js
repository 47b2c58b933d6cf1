// What stands around a tool: its frame, the notice that its kernel has ended, and the keys that are not the notebook's.

import { make, write } from "./dom.js";
import { RUN_AGAIN } from "./kernel.js";

const SILENCE_MS = 10_000; // after which a page without an answer of its kernel says so

/**
 * Draws the frame of a tool around it.
 * @param {HTMLElement} el the widget's own element
 * @param {string} name the class of the tool
 * @param {{stop: () => void, isBusy: () => boolean}} tool
 */
export function drawFrame(el, name, { stop, isBusy }) {
  const banner = make("p", "famnb-banner");
  banner.setAttribute("role", "alert");
  banner.hidden = true;
  let isLost = false;
  let silence = 0;
  const keys = (event) => {
    if (event.key !== "Escape" || !isBusy() || event.defaultPrevented) return;
    event.preventDefault();
    event.stopPropagation();
    stop();
  };
  // Else the notebook takes arrows, Enter and single letters for its own; it asks the element itself, not its parents.
  // Not where one writes: there it takes none of them, and in an element that is marked so it drops Shift+Enter.
  const keepKeys = ({ target }) => {
    if (!target.matches("textarea")) target.dataset.lmSuppressShortcuts = "true";
  };
  return {
    isLost: () => isLost,
    mount: (...children) => {
      el.classList.add("famnb-tool", name);
      el.append(banner, ...children);
      el.addEventListener("keydown", keys);
      el.addEventListener("focusin", keepKeys);
    },
    /** Says that the kernel has not answered yet, and after a while that none does. */
    wait: () => {
      write(banner, "Waiting for the kernel …");
      banner.hidden = false;
      silence = setTimeout(() => write(banner, "No kernel answers: run this cell again."), SILENCE_MS);
    },
    /** The kernel has answered. */
    hear: () => {
      if (!silence) return;
      clearTimeout(silence);
      silence = 0;
      banner.hidden = !isLost;
    },
    /** The kernel has ended: nothing can be done here but reading and copying. */
    lose: () => {
      isLost = true;
      clearTimeout(silence);
      write(banner, RUN_AGAIN);
      banner.hidden = false;
      el.classList.add("famnb-lost");
      for (const control of el.querySelectorAll("input, select, button:not(.famnb-copy)")) control.disabled = true;
    },
    end: () => {
      clearTimeout(silence);
      el.removeEventListener("keydown", keys);
      el.removeEventListener("focusin", keepKeys);
    },
  };
}
