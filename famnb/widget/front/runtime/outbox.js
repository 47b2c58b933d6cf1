// Intents on their way to the kernel, in the order in which the user acted; each is pending until it is answered.
//
//   later ── waiting for a pause of the typing ──┐
//   send ────────────────────────────────────────┴── pending ── answered, or forgotten if its answer was lost

const PAUSE_MS = 200;

/**
 * @typedef {{ok: boolean, value?: any, isUnknown?: boolean}} Answer `isUnknown`: whether it was refused is not known
 * @typedef {{id: number, name: string, key: string, resolve: (answer: Answer) => void}} Pending
 */

export class Outbox {
  /** @param {(message: object) => void} post */
  constructor(post) {
    this.post = post;
    this.isOpen = true;
    this.count = 0;
    /** @type {Map<string, {timer: number, post: () => void}>} */
    this.waiting = new Map();
    /** @type {Map<number, Pending>} */
    this.pending = new Map();
    /** Called when what is pending changes. */
    this.onChange = () => {};
  }

  /**
   * Sends an intent after all that waits; resolves with its answer. `key` tells intents of one name apart.
   * @param {string} name @param {object} [args] @param {string} [key] @returns {Promise<Answer>}
   */
  send(name, args = {}, key = "") {
    this.flush();
    return this.#deliver(name, args, key);
  }

  /** As `send`, but does nothing while one of that name and key is pending: a double click is one intent.
   * @param {string} name @param {object} [args] @param {string} [key] @returns {Promise<Answer>}
   */
  async press(name, args = {}, key = "") {
    return this.isPending(name, key) ? { ok: false } : this.send(name, args, key);
  }

  /**
   * Sends an intent once no other of the same name and key has followed for a moment, as a text that is being typed.
   * @param {string} name @param {object} args @param {string} [key] @returns {Promise<Answer>}
   */
  later(name, args, key = "") {
    const slot = `${name} ${key}`;
    clearTimeout(this.waiting.get(slot)?.timer);
    return new Promise((resolve) => {
      const post = () => {
        this.waiting.delete(slot);
        this.#deliver(name, args, key).then(resolve);
      };
      this.waiting.set(slot, { post, timer: /** @type {any} */ (setTimeout(post, PAUSE_MS)) });
      this.onChange();
    });
  }

  /** Sends what waits. */
  flush() {
    for (const { timer, post } of [...this.waiting.values()]) {
      clearTimeout(timer);
      post();
    }
  }

  /** Whether an intent waits or was not answered yet. @param {string} name @param {string} [key] */
  isPending(name, key = "") {
    return this.waiting.has(`${name} ${key}`) || [...this.pending.values()].some((each) => each.name === name && each.key === key);
  }

  /** The kernel has answered. @param {{id: number} & Answer} answer */
  answer({ id, ok, value, isUnknown = false }) {
    const pending = this.pending.get(id);
    this.pending.delete(id);
    pending?.resolve({ ok, value, isUnknown });
    this.onChange();
  }

  /** Stops waiting for intents up to one that the kernel has answered: what is pending of them was lost on the way.
   * @param {number} last */
  forget(last) {
    for (const id of [...this.pending.keys()]) if (id <= last) this.answer({ id, ok: false, isUnknown: this.isOpen });
  }

  /** Sends nothing any more: the kernel has ended, and a host may throw an error. */
  close() {
    this.isOpen = false;
    this.forget(this.count);
  }

  #deliver(name, args, key) {
    if (!this.isOpen) return Promise.resolve({ ok: false });
    const id = (this.count += 1);
    return new Promise((resolve) => {
      this.pending.set(id, { id, name, key, resolve });
      this.post({ kind: "intent", id, name, args });
      this.onChange();
    });
  }
}
