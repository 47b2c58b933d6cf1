// What a page knows of one tool: the view as the kernel sent it last, and whether there is a kernel. It applies the
// kernel's messages, which are numbered, and asks for everything when one is missing.

import { Growing } from "./growing.js";
import { Outbox } from "./outbox.js";
import { applyDelta, reviveValue } from "./patch.js";

const PAGE = globalThis.crypto?.randomUUID?.() ?? String(Math.random()); // tells a reloaded page from the first one
// Patches come up to 20 times a second: without a pause each would ask for the whole view again.
const REPEAT_MS = 1000;

export class Store {
  /** @param {any} model the widget's; of it only what all hosts have is used */
  constructor(model) {
    this.model = model;
    this.view = null;
    this.error = "";
    this.isLost = false;
    this.isNew = false; // opened by another tool, and not shown yet
    this.outbox = new Outbox((message) => this.#post(message));
    this.outbox.onChange = () => this.#notifySoon();
    /** @type {Set<() => void>} */
    this.listeners = new Set();
    /** Called after each message, once all of it is shown: where a box is scrolled to is decided then. @type {Set<() => void>} */
    this.followers = new Set();
    /** @type {Map<string, Growing<any>>} */
    this.growing = new Map();
    this.sequence = /** @type {number | null} */ (null); // of the last message; null: a whole view is needed
    this.readyTime = 0; // when a whole view was last requested
    model.on("msg:custom", (message, buffers) => this.receive(message, buffers));
    // Jupyter's models say so when their kernel is gone; others never do.
    model.on("comm_live_update", () => this.#disconnect());
    this.#sendReady();
  }

  /** Calls a listener after each change until what is returned is called. @param {() => void} listener */
  listen(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** @param {any} message @param {DataView[]} [buffers] */
  receive(message, buffers = []) {
    if (message.kind === "answer") {
      this.outbox.answer(message);
      return;
    }
    if (message.kind !== "view" && (this.sequence === null || message.seq !== this.sequence + 1)) {
      this.sequence = null;
      this.#sendReady();
      return;
    }
    this.sequence = message.seq ?? null;
    for (const [id, changes] of Object.entries(message.more ?? {})) this.growing.get(id)?.add(changes);
    for (const [id, whole] of Object.entries(message.growing ?? {})) this.#growingOf(id).set(whole);
    const revive = (value) => reviveValue(value, (id) => this.#growingOf(id), buffers);
    if (message.kind === "view") {
      this.readyTime = 0;
      this.view = revive(message.view);
      this.isNew ||= Boolean(message.isNew);
      for (const id of this.growing.keys()) if (!(id in message.growing)) this.growing.delete(id);
      this.outbox.forget(message.answered);
    } else if (message.patch) this.view = applyDelta(this.view, message.patch, revive);
    if (message.error !== undefined) this.error = message.error;
    // What only grows is shown by the components that listen to it.
    if (message.view !== undefined || message.patch || message.error !== undefined) this.#notify();
    for (const follow of this.followers) follow();
  }

  /** @param {string} id @returns {Growing<any>} */
  #growingOf(id) {
    const growing = this.growing.get(id) ?? new Growing(id);
    this.growing.set(id, growing);
    return growing;
  }

  // Question and answer may both be dropped on the way, so it is sent again for as long as there is news.
  #sendReady() {
    if (this.readyTime && performance.now() - this.readyTime < REPEAT_MS) return;
    this.readyTime = performance.now();
    this.#post({ kind: "ready", page: PAGE });
  }

  // Jupyter's models throw an error once their kernel was shut down: nothing tells them before, other than of a restart.
  #post(message) {
    try {
      this.model.send(message);
    } catch (error) {
      console.warn("famnb: the kernel cannot be reached", error);
      this.#disconnect();
    }
  }

  #disconnect() {
    if (this.isLost) return;
    this.isLost = true;
    this.outbox.close();
    this.#notifySoon();
  }

  // An effect of a component may send an intent, and Preact runs effects within a render: another one within it would
  // leave elements behind.
  #notifySoon() {
    queueMicrotask(() => this.#notify());
  }

  #notify() {
    for (const listener of this.listeners) listener();
  }
}
