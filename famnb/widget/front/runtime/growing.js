// A value that changes by what is appended to it: the view holds it by reference, and a component that shows it listens.

/**
 * @template T
 */
export class Growing {
  /** @param {string} id */
  constructor(id) {
    this.id = id;
    /** @type {T} */
    this.value = /** @type {any} */ (null);
    /** When the whole came, by the page's clock, in milliseconds. */
    this.since = 0;
    /** @type {Set<(change: any) => void>} */
    this.listeners = new Set();
  }

  /** Takes the whole of it; listeners get null. @param {T} whole */
  set(whole) {
    this.value = whole;
    this.since = performance.now();
    for (const listener of this.listeners) listener(null);
  }

  /**
   * Takes what was appended: a text, or a list of changes that `apply` can make.
   * @param {string | any[]} changes
   */
  add(changes) {
    if (typeof changes === "string") this.value = /** @type {any} */ (appendText(/** @type {any} */ (this.value), changes));
    else for (const change of changes) this.value = /** @type {any} */ (applyChange(/** @type {any} */ (this.value), change));
    for (const listener of this.listeners) listener(changes);
  }

  /** Calls a listener with each change until what is returned is called. @param {(change: any) => void} listener */
  listen(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

/** @typedef {{html: string, tail: string, draft?: string}} MarkdownValue */

/** @param {string | MarkdownValue} value @param {string} text */
const appendText = (value, text) => (typeof value === "string" ? value + text : { ...value, tail: value.tail + text });

/** What each change makes of a Markdown text (reply_pane.py: Markdown). */
const changes = {
  text: (value, text) => ({ ...value, tail: value.tail + text }),
  draft: (value, html, text) => ({ ...value, tail: value.tail + text, draft: html }),
  freeze: (value, html, tail) => ({ html: value.html + html, tail }),
  replace: (_, html, tail) => ({ html, tail }),
};

/** @param {MarkdownValue} value @param {any[]} change @returns {MarkdownValue} */
export const applyChange = (value, [name, ...details]) => changes[name](value, ...details);

