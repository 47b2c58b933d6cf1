// The system text of a composer or a board.

import { make, write } from "./dom.js";
import { sendByKeys } from "./prompt.js";

/** Draws it: one line while it is empty, and a box once it is opened. @param {object} outbox */
export function drawSystem(outbox) {
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
