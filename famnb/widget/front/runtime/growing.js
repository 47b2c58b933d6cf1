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
    /** @type {Set<() => void>} */
    this.listeners = new Set();
  }

  /** Takes the whole of it. @param {T} whole */
  set(whole) {
    this.value = whole;
    this.since = performance.now();
    for (const listener of this.listeners) listener();
  }

  /** Takes what was appended to a Markdown text: a text, or a list of changes. @param {string | any[]} added */
  add(added) {
    const list = typeof added === "string" ? [["text", added]] : added;
    for (const [name, ...details] of list) this.value = changes[name](this.value, ...details);
    for (const listener of this.listeners) listener();
  }

  /** Calls a listener after each change until what is returned is called. @param {() => void} listener */
  listen(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

/** @typedef {{html: string, tail: string, draft?: string, draftLength?: number}} MarkdownValue the draft is of so much of the tail */

/** What each change makes of a Markdown text (reply_pane.py: Markdown). */
const changes = {
  text: (value, text) => ({ ...value, tail: value.tail + text }),
  draft: (value, html, text) => ({ ...value, tail: value.tail + text, draft: html, draftLength: value.tail.length + text.length }),
  freeze: (value, html, tail) => ({ html: value.html + html, tail }),
  replace: (_, html, tail) => ({ html, tail }),
};
