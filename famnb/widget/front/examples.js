// What a tool shows before anything was asked: what will stand there, and prompts to begin with.

import { button, make } from "./dom.js";

/**
 * Draws it; `suggest(text)` is called with the example that is chosen.
 * @param {string} text @param {string[]} examples @param {(text: string) => void} suggest
 */
export function drawEmpty(text, examples, suggest) {
  const buttons = examples.map((example) => button("famnb-example", example, "", () => suggest(example)));
  return make("div", "famnb-empty", make("p", "", text), make("div", "famnb-bar", ...buttons));
}
