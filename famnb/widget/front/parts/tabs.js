// A row of tabs with what each shows.

import { html, useRef, useState } from "../vendor/preact.js";

let tabsCount = 0; // for ids, which tie a tab to what it shows

/**
 * Arrows move between the tabs, and only the one that is open is in the order of Tab.
 * @param {{pages: {[name: string]: () => unknown}}} props each page is rendered while it is open
 */
export function Tabs({ pages }) {
  const names = Object.keys(pages);
  const [open, setOpen] = useState(names[0]);
  const id = useRef(0);
  id.current ||= tabsCount += 1;
  const row = useRef(/** @type {any} */ (null));
  const move = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const index = (names.indexOf(open) + step + names.length) % names.length;
    setOpen(names[index]);
    row.current.children[index].focus();
  };
  return html`<div>
    <div class="famnb-tabs" role="tablist" ref=${row} onKeyDown=${move}>
      ${names.map(
        (name, index) => html`<button
          key=${name}
          type="button"
          class="famnb-button famnb-tab"
          role="tab"
          id=${`famnb-tabs-${id.current}-${index}`}
          aria-selected=${String(name === open)}
          tabindex=${name === open ? 0 : -1}
          onClick=${() => setOpen(name)}
        >${name}</button>`,
      )}
    </div>
    <div role="tabpanel" key=${open} aria-labelledby=${`famnb-tabs-${id.current}-${names.indexOf(open)}`}>${pages[open]()}</div>
  </div>`;
}
