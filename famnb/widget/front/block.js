// One block of a reply: an answer, thinking, code, or the question whether a tool may run.

import { copyButton, followEnd, make } from "./dom.js";

/**
 * @typedef {object} Block
 * @property {"text"|"thinking"|"code"|"verdict"} kind
 * @property {string} label
 * @property {boolean} open whether thinking is unfolded
 * @property {string} html finished Markdown, rendered and sanitised in Python
 * @property {string} tail text that is still growing
 */

// Whether a tool may run; its buttons are the talk's.
function drawQuestion(block) {
  const element = make("div", "famnb-verdict", make("span", "famnb-label", block.label));
  element.setAttribute("role", "group");
  element.setAttribute("aria-label", block.label);
  element.tabIndex = -1;
  return { element, answer: null, follow: null };
}

// The innermost last element of a box, where text that continues it belongs.
function lastElement(box) {
  let element = box;
  while (element.lastElementChild && element.lastElementChild.tagName !== "BUTTON") element = element.lastElementChild;
  return element;
}

/**
 * Draws a block; what is returned has a function for each change of a block.
 * @param {Block} block
 */
export function drawBlock(block) {
  if (block.kind === "verdict") return drawQuestion(block);
  const settled = make("div", "famnb-settled");
  const tail = make("div", "famnb-tail");
  const common = block.kind === "code" ? "" : " jp-RenderedHTMLCommon";
  const body = make("div", `famnb-body famnb-${block.kind}${common}`, settled, tail);
  let element = body;
  let summary = null;
  if (block.kind === "thinking") {
    summary = make("summary", "", block.label);
    summary.dataset.lmSuppressShortcuts = "true";
    element = make("details", "famnb-details", summary, body);
    element.open = block.open;
  } else {
    summary = make("div", "famnb-label", block.label);
    const copy = block.kind === "code" ? copyButton("Copy code", () => tail.textContent) : null;
    element = make("div", "", copy ? make("div", "famnb-codehead", summary, copy) : summary, body);
  }
  const addCopyButtons = () => {
    for (const pre of settled.querySelectorAll(":not(.famnb-codebox) > pre")) {
      const box = make("div", "famnb-codebox");
      pre.replaceWith(box);
      box.append(copyButton("Copy code", () => pre.textContent), pre);
    }
  };
  const showTail = (text) => {
    tail.classList.remove("famnb-draft");
    tail.replaceChildren(text);
  };
  settled.innerHTML = block.html; // clean HTML made by sanitize.render_markdown
  addCopyButtons();
  tail.append(block.tail);
  return {
    element,
    answer: block.kind === "text" ? body : null,
    follow: block.kind === "thinking" ? followEnd(body) : null,
    text: (text) => (tail.classList.contains("famnb-draft") ? lastElement(tail) : tail).append(text),
    draft: (html) => {
      tail.classList.add("famnb-draft");
      tail.innerHTML = html; // clean HTML made by sanitize.render_draft
    },
    settle: (html, rest) => {
      settled.insertAdjacentHTML("beforeend", html); // clean HTML made by sanitize.render_markdown
      addCopyButtons();
      showTail(rest);
    },
    close: (html, rest) => {
      settled.innerHTML = html; // clean HTML made by sanitize.render_markdown
      addCopyButtons();
      showTail(rest);
    },
    fold: (label) => {
      summary.textContent = label;
      element.open = false;
    },
  };
}
