// Which of several versions is shown, and two buttons that show another one.

import { html } from "../vendor/preact.js";
import { Button } from "./button.js";

/**
 * Nothing if there is but one. What cannot be done is locked rather than disabled, so that it keeps the focus.
 * @param {{version: number, count: number, isLocked: boolean, show: (version: number) => void, name?: string}} props
 */
export function Versions({ version, count, isLocked, show, name = "version" }) {
  if (count < 2) return null;
  const isOut = (to) => to < 0 || to >= count || isLocked;
  const arrow = (label, text, to) =>
    html`<${Button} class="famnb-small famnb-version" label=${label} text=${text} locked=${isOut(to)} press=${() => show(to)} />`;
  const move = (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step && !isOut(version + step)) show(version + step);
  };
  return html`<span class="famnb-place" onKeyDown=${move}>
    ${arrow(`Previous ${name}`, "‹", version - 1)}${`${version + 1} of ${count}`}${arrow(`Next ${name}`, "›", version + 1)}
  </span>`;
}
