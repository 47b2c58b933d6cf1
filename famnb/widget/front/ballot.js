// Two answers side by side and the keys that vote on them. The page is not told whose they are.

import { describedWidget } from "./described.js";
import { button, make, write } from "./dom.js";

const CHOICES = [
  ["left", "left is better", "←", "ArrowLeft 1"],
  ["tie", "tie", "T", "T"],
  ["right", "right is better", "→", "ArrowRight 2"],
  ["skip", "skip", "S", "S"],
  ["undo", "undo", "U", "U"],
  ["results", "results", "R", "R"],
];
const KEYS = { arrowleft: "left", 1: "left", arrowright: "right", 2: "right", t: "tie", s: "skip", u: "undo", r: "results" };

function drawAnswer(name) {
  const answer = make("div", "famnb-answer jp-RenderedHTMLCommon");
  answer.tabIndex = 0; // it scrolls by itself, so keys must reach it
  answer.setAttribute("role", "region");
  answer.setAttribute("aria-label", `${name} answer`);
  return { element: make("div", "", make("div", "famnb-help", name), answer), answer };
}

function drawBallot(outbox) {
  const status = make("p", "famnb-help");
  status.setAttribute("role", "status");
  const prompt = make("div", "jp-RenderedHTMLCommon");
  const drawn = ["Left", "Right"].map(drawAnswer);
  const sides = make("div", "famnb-sides", ...drawn.map(({ element }) => element));
  let turn = 0;
  // A choice names the turn it was made for, so that one made twice in a hurry is not a vote on a pair nobody has read.
  const choose = (choice) => {
    if (!buttons.get(choice).disabled) outbox.now({ kind: "choose", choice, turn });
  };
  const buttons = new Map(
    CHOICES.map(([choice, label, key, keys]) => {
      const element = button("", label, key, () => choose(choice));
      element.setAttribute("aria-keyshortcuts", keys);
      return [choice, element];
    }),
  );
  const hint = make("p", "famnb-help", "Click here once, or go here with Tab; from then on the keys work.");
  const results = make("div", "jp-RenderedHTMLCommon");
  const bar = make("div", "famnb-bar", ...buttons.values());
  const element = make("div", "famnb-ballot", status, prompt, sides, bar, hint, results);
  let isUsed = false;
  element.tabIndex = 0;
  element.addEventListener("focusin", () => (isUsed = true));
  element.addEventListener("keydown", (event) => {
    const choice = KEYS[event.key.toLowerCase()];
    if (!choice || event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    choose(choice);
  });

  return {
    element,
    tell: ({ status: words, pair, results: html }) => {
      if (words !== undefined) write(status, words);
      if (html !== undefined) results.innerHTML = html; // made and cleaned in Python
      if (!pair) return;
      const isOther = pair.turn !== turn;
      turn = pair.turn;
      for (const [choice, press] of buttons) press.disabled = !pair.can.includes(choice);
      sides.hidden = hint.hidden = pair.left === undefined;
      if (isOther) {
        prompt.innerHTML = pair.asked ?? ""; // cleaned in Python, as the answers are
        for (const [index, text] of [pair.left, pair.right].entries()) {
          drawn[index].answer.innerHTML = text ?? "";
          drawn[index].answer.scrollTop = 0;
        }
      }
      // Disabling the button that was pressed has taken the focus away, and with it the keys.
      if (isUsed && element.getRootNode().activeElement === document.body) element.focus({ preventScroll: true });
    },
  };
}

export default () => describedWidget("Ballot: which of two answers is better", drawBallot);
