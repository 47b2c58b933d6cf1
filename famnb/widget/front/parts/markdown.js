// A Markdown text of a model while it grows. Its HTML was made and cleaned in Python; it is changed in place, since only a
// little of it is new with each message.

import { html, render, useLayoutEffect, useRef } from "../vendor/preact.js";
import { memo } from "../runtime/tool.js";
import { CopyButton } from "./button.js";

// The innermost last block of a box, where text that continues it belongs: what is bold or a link in a draft has ended.
function findLastBlock(box) {
  const last = [...box.childNodes].filter((node) => node.nodeType === 1 || node.textContent.trim()).at(-1);
  return !last?.matches || last.matches("br, hr, strong, em, a, s, span, :not(pre) > code") ? box : findLastBlock(last);
}

// The button above a block of code stands in HTML that is Python's, outside the tool's tree.
function addCopyButtons(frozen) {
  for (const pre of frozen.querySelectorAll(":not(.famnb-codebox) > pre")) {
    const box = document.createElement("div");
    const head = document.createElement("div");
    box.className = "famnb-codebox";
    pre.replaceWith(box);
    box.append(head, pre);
    render(html`<${CopyButton} label="Copy code" read=${() => pre.textContent} />`, head);
  }
}

// Returns what brings the two boxes of a text up to date: finished HTML, and a tail of text or of a draft of its HTML.
function showText(body, frozen, tail) {
  let shown = { whole: "", text: "", draft: "" };
  for (const box of [frozen, tail]) box.replaceChildren(); // of another text
  const update = () => {
    const { html: whole, tail: text, draft = "", draftLength = 0 } = body.value;
    if (whole !== shown.whole) {
      const isMore = whole.startsWith(shown.whole);
      if (!isMore) frozen.replaceChildren();
      frozen.insertAdjacentHTML("beforeend", isMore ? whole.slice(shown.whole.length) : whole); // clean: sanitize.render_markdown
      addCopyButtons(frozen);
    }
    // What only grows is appended, so that the reader's selection stays.
    const isMore = whole === shown.whole && draft === shown.draft && text.startsWith(shown.text);
    if (!isMore) tail.innerHTML = draft; // clean: sanitize.render_draft
    tail.classList.toggle("famnb-draft", Boolean(draft));
    const element = draft ? findLastBlock(tail) : tail;
    // Except in code, HTML has lost the white space at the end of its text.
    const start = /\s$/.test(element.textContent) ? draftLength : text.slice(0, draftLength).trimEnd().length;
    element.append(text.slice(isMore ? shown.text.length : start));
    shown = { whole, text, draft };
  };
  update();
  return update;
}

/** @param {{body: import("../runtime/growing.js").Growing<any>}} props */
export const Markdown = memo(({ body }) => {
  const frozen = useRef(/** @type {any} */ (null));
  const tail = useRef(/** @type {any} */ (null));
  useLayoutEffect(() => body.listen(showText(body, frozen.current, tail.current)), [body]);
  return html`<div class="famnb-frozen" ref=${frozen} /><div class="famnb-tail" ref=${tail} />`;
});
