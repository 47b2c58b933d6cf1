// Elements of the page: how all widgets make them, and what their buttons and boxes have in common.

import { copyText } from "./clipboard.js";

/**
 * Returns an element with a class and children; a child that is null or undefined is left out, a text is a text node.
 * @param {string} tag
 * @param {string} name
 * @param {...(Node|string|null|undefined)} children
 * @returns {HTMLElement}
 */
export function make(tag, name, ...children) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/**
 * Returns a button; `keys` is written beside its label.
 * @param {string} name @param {string} label @param {string} keys @param {(event: MouseEvent) => void} press
 * @returns {HTMLButtonElement}
 */
export function button(name, label, keys, press) {
  const element = make("button", `famnb-button ${name}`, label, keys ? make("kbd", "", keys) : null);
  element.type = "button";
  element.setAttribute("aria-label", label);
  element.title = keys ? `${label} (${keys})` : label;
  element.dataset.lmSuppressShortcuts = "true"; // else the notebook takes Enter and single letters for its own
  element.addEventListener("click", press);
  return element;
}

/**
 * Makes elements the children of a box, in their order. Those that are there already and in order are not moved: an
 * element that is taken out of the page, be it for a moment, loses the focus and how far it was scrolled.
 * @param {HTMLElement} box @param {HTMLElement[]} elements
 */
export function arrange(box, elements) {
  const wanted = new Set(elements);
  for (const child of [...box.children]) if (!wanted.has(child)) child.remove();
  for (const [index, element] of elements.entries()) {
    if (box.children[index] !== element) box.insertBefore(element, box.children[index] ?? null);
  }
}

/** Returns a listener that ignores the second click of a double click. @param {() => void} act */
export const once = (act) => (event) => {
  if (event.detail < 2) act();
};

/** Returns a line that screen readers say when it changes. @param {string} name */
export function statusLine(name) {
  const element = make("span", name);
  element.setAttribute("role", "status");
  return element;
}

/** Writes a text into an element, if it is another one: screen readers may say a status whenever it is written. */
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * Returns a button that copies what `text()` returns when it is pressed, and says beside it whether that worked.
 * @param {string} label @param {() => string} text
 */
export function copyButton(label, text) {
  const status = statusLine("famnb-hint");
  const press = button("famnb-copy", label, "", async () => {
    status.textContent = (await copyText(text())) ? "copied" : "could not be copied";
    setTimeout(() => (status.textContent = ""), 2000);
  });
  return make("span", "famnb-copier", status, press);
}

/** Returns the text of elements as the page shows it, without the buttons in it. @param {HTMLElement[]} elements */
export function visibleText(elements) {
  const hide = (hidden) => elements.forEach((element) => element.classList.toggle("famnb-copying", hidden));
  hide(true);
  const text = elements.map((element) => element.innerText.trim()).join("\n\n");
  hide(false);
  return text;
}

/**
 * Returns a function that keeps a box scrolled to its end, unless the reader scrolled up. It is called after all changes
 * of a message, so that the page is laid out once; given true, it goes to the end wherever the reader is.
 * @param {HTMLElement} box
 */
export function followEnd(box) {
  let isNearEnd = true;
  let lastTop = 0;
  const update = () => {
    isNearEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 24;
  };
  box.addEventListener("scroll", update);
  return (always = false) => {
    if (box.scrollTop < lastTop) update(); // the reader has scrolled up, and the event is still on its way
    if (!isNearEnd && !always) return;
    isNearEnd = true;
    box.scrollTop = 1e7; // beyond every end; reading scrollHeight here would lay the page out once more
    lastTop = box.scrollTop;
  };
}

/**
 * Appends a text with names in backticks set in code type.
 * @param {HTMLElement} element @param {string} text @returns {HTMLElement}
 */
export function withCode(element, text) {
  for (const [index, piece] of text.split("`").entries()) element.append(index % 2 ? make("code", "", piece) : piece);
  return element;
}
