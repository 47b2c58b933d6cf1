// A pane: one reply while it streams and when it has ended, and the changes that Python sends of it.

import { drawBlock } from "./block.js";
import { button, copyButton, followEnd, make, statusLine, visibleText, write } from "./dom.js";
import { LOST } from "./kernel.js";

/**
 * @typedef {object} Pane what Python says of a reply (pane.py: Pane.snapshot)
 * @property {string} id
 * @property {boolean} running
 * @property {import("./block.js").Block[]} blocks
 */

/**
 * Draws a pane. A tool may dress it: `dress.draw` adds what belongs to the tool, `dress.scrolls` gives it its own scroll
 * bar, `dress.arrange` puts its parts in another order.
 */
export function drawPane(pane, { stop, dress }) {
  const blocks = pane.blocks.map(drawBlock);
  const flow = make("div", "famnb-flow", ...blocks.map((block) => block.element));
  const follow = dress?.scrolls ? followEnd(flow) : null;
  const state = statusLine("famnb-state");
  const clock = make("span", "famnb-clock");
  const stopping = button("famnb-stop", "Stop", "", () => stop(pane.id));
  const marks = pane.badges.map(([text, tone]) => make("span", `famnb-badge famnb-${tone}`, text));
  const head = make("div", "famnb-head", make("strong", "", pane.label ?? pane.head), ...marks, state, clock);
  if (pane.running && pane.stop) head.append(stopping);
  const asked = pane.asked.map(([role, text]) =>
    make("div", "famnb-asked", role === "user" ? null : make("strong", "famnb-role", role), text),
  );
  for (const element of asked) element.dir = "auto";
  const answer = () => visibleText(blocks.map((block) => block.answer).filter(Boolean));
  const copy = copyButton("Copy answer", answer);
  const notes = [
    pane.failure ? make("p", "famnb-failure", pane.failure) : null,
    ...pane.notes.map((note) => make("p", "famnb-note", note)),
  ];
  const figures = pane.figures ? make("p", "famnb-note famnb-figures", pane.figures) : null;
  const parts = { head, asked, flow, copy, notes, figures };
  const beside = dress?.draw(pane, parts);
  const element = make("article", "famnb-pane");
  element.append(
    ...(dress?.arrange?.(pane, parts) ?? [head, beside?.element, ...asked, flow, copy, ...notes, figures]).filter(Boolean),
  );
  const start = performance.now() - pane.elapsed * 1000;
  const tick = () => {
    if (pane.lost) return;
    clock.textContent = pane.running ? `${Math.floor((performance.now() - start) / 1000)} s` : "";
  };
  const timer = pane.running ? setInterval(tick, 500) : 0;
  const settle = () => {
    const last = pane.blocks.at(-1)?.kind;
    const doing = last === "thinking" ? "thinking …" : last ? "answering …" : `waiting for the ${pane.waiting} …`;
    const waiting = pane.lost ? LOST : pane.stopping ? "stopping …" : doing;
    write(state, pane.running ? waiting : (pane.doing ?? ""));
    copy.hidden = !blocks.some((block) => block.answer);
    stopping.disabled = Boolean(pane.stopping || pane.lost);
    element.classList.toggle("famnb-running", pane.running && !pane.lost);
    blocks.at(-1)?.follow?.();
    follow?.();
  };
  tick();
  settle();
  return {
    id: pane.id,
    turn: pane.turn?.[0],
    element,
    settle,
    say: (text) => head.append(make("span", "famnb-note", text)),
    open: (block) => {
      blocks.push(drawBlock(block));
      flow.append(blocks.at(-1).element);
    },
    block: (number) => blocks[number],
    beside,
    end: () => clearInterval(timer),
  };
}

// Paragraphs without markup, as sanitize.render_markdown would make them.
function makeParagraphs(text) {
  const paragraphs = text.replace(/^\n+|\n+$/g, "").split(/\n{2,}/).map((paragraph) => make("p", "", paragraph));
  for (const paragraph of paragraphs) {
    paragraph.dir = "auto";
    paragraph.setAttribute("style", "text-align:start");
  }
  return paragraphs.map((paragraph) => `${paragraph.outerHTML}\n`).join("");
}

// Adds finished HTML to a block, and has `rest` as what is still growing.
function settle(block, drawn, number, html, rest) {
  block.html += html;
  block.tail = rest;
  block.draft = undefined;
  for (const view of drawn) view.block(number).settle(html, rest);
}

/** Each makes one change of pane.py to what is known of a pane and to its views: [change, block number, …] */
export const changes = {
  open: (pane, drawn, number, kind, label) => {
    pane.blocks[number] = { kind, label, open: true, html: "", tail: "" };
    for (const view of drawn) view.open(pane.blocks[number]);
  },
  text: (pane, drawn, number, text) => {
    pane.blocks[number].tail += text;
    for (const view of drawn) view.block(number).text(text);
  },
  draft: (pane, drawn, number, kept, html, text) => {
    const block = pane.blocks[number];
    block.tail += text;
    block.draft = (block.draft ?? "").slice(0, kept) + html;
    for (const view of drawn) view.block(number).draft(block.draft);
  },
  settle: (pane, drawn, number, kept, html, rest) => {
    const block = pane.blocks[number];
    settle(block, drawn, number, (block.draft ?? "").slice(0, kept) + html, rest);
  },
  paragraphs: (pane, drawn, number, length) => {
    const block = pane.blocks[number];
    settle(block, drawn, number, makeParagraphs(block.tail.slice(0, length)), block.tail.slice(length));
  },
  close: (pane, drawn, number, html, rest) => {
    pane.blocks[number].html = html;
    pane.blocks[number].tail = rest;
    pane.blocks[number].draft = undefined;
    for (const view of drawn) view.block(number).close(html, rest);
  },
  meters: (pane, drawn, _, figures) => {
    for (const [index, figure] of figures.entries()) pane.meters[index][1] = figure;
    for (const view of drawn) view.beside?.set(figures);
  },
  fold: (pane, drawn, number, label) => {
    pane.blocks[number].label = label;
    pane.blocks[number].open = false;
    for (const view of drawn) view.block(number).fold(label);
  },
};
