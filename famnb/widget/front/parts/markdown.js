// A Markdown text of a model while it grows. Its HTML was made and cleaned in Python; it is changed in place, since only a
// little of it is new with each message.

import { html, render, useLayoutEffect, useRef } from "../vendor/preact.js";
import { copyText } from "../runtime/clipboard.js";
import { memo } from "../runtime/tool.js";

// The innermost last element of a box, where text that continues it belongs.
function findLastElement(box) {
  let element = box;
  while (element.lastElementChild && element.lastElementChild.tagName !== "BUTTON") element = element.lastElementChild;
  return element;
}

// The button above a block of code. It stands in HTML that is Python's, outside the tool's tree.
function PreCopy({ pre }) {
  const status = useRef(/** @type {any} */ (null));
  const copy = async () => {
    status.current.textContent = (await copyText(pre.textContent)) ? "Copied" : "Not copied: the browser does not let this page copy";
    setTimeout(() => status.current && (status.current.textContent = ""), 2000);
  };
  return html`<span class="famnb-hint" role="status" ref=${status} />
    <button type="button" class="famnb-button famnb-copy" onClick=${copy}>Copy code</button>`;
}

function addCopyButtons(frozen) {
  for (const pre of frozen.querySelectorAll(":not(.famnb-codebox) > pre")) {
    const box = document.createElement("div");
    const copier = document.createElement("span");
    box.className = "famnb-codebox";
    copier.className = "famnb-copier";
    pre.replaceWith(box);
    box.append(copier, pre);
    render(html`<${PreCopy} pre=${pre} />`, copier);
  }
}

// The two boxes of a text, and how each change of it is shown in them.
function showText(body, frozen, tail) {
  const showTail = (text) => {
    tail.classList.remove("famnb-draft");
    tail.replaceChildren(text);
  };
  const showAll = () => {
    frozen.innerHTML = body.value.html; // clean HTML made by sanitize.render_markdown
    addCopyButtons(frozen);
    showTail(body.value.tail);
  };
  const append = (text) => (tail.classList.contains("famnb-draft") ? findLastElement(tail) : tail).append(text);
  let shownLength = 0; // of the frozen HTML
  const update = (changes) => {
    const { html: whole, tail: rest, draft } = body.value;
    const texts = typeof changes === "string" ? [changes] : changes?.every(([name]) => name === "text") ? changes.map(([, text]) => text) : null;
    if (texts) {
      texts.forEach(append);
      return;
    }
    if (changes === null || changes.some(([name]) => name === "replace")) showAll();
    else if (whole.length > shownLength) {
      frozen.insertAdjacentHTML("beforeend", whole.slice(shownLength)); // clean HTML made by sanitize.render_markdown
      addCopyButtons(frozen);
      showTail(rest);
    }
    shownLength = whole.length;
    if (draft === undefined) return;
    tail.classList.add("famnb-draft");
    tail.innerHTML = draft; // clean HTML made by sanitize.render_draft
    // What came after the draft was made.
    const index = changes?.findLastIndex(([name]) => name === "draft") ?? -1;
    for (const [, text] of changes?.slice(index + 1) ?? []) append(text);
  };
  update(null);
  return update;
}

/** @param {{body: import("../runtime/growing.js").Growing<any>}} props */
export const Markdown = memo(({ body }) => {
  const frozen = useRef(/** @type {any} */ (null));
  const tail = useRef(/** @type {any} */ (null));
  useLayoutEffect(() => body.listen(showText(body, frozen.current, tail.current)), [body]);
  return html`<div class="famnb-frozen" ref=${frozen} /><div class="famnb-tail" ref=${tail} />`;
});
