// Two answers side by side and the keys that vote on them. The page is not told whose they are.

const CHOICES = [
  ["left", "← left is better", "ArrowLeft 1"],
  ["tie", "T tie", "T"],
  ["right", "right is better →", "ArrowRight 2"],
  ["skip", "S skip", "S"],
  ["undo", "U undo", "U"],
  ["results", "R results", "R"],
];
const KEYS = { arrowleft: "left", 1: "left", arrowright: "right", 2: "right", t: "tie", s: "skip", u: "undo", r: "results" };

function append(tag, name, parent, attributes = {}) {
  const element = document.createElement(tag);
  element.className = name;
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return parent.appendChild(element);
}

function render({ model, el }) {
  const root = append("div", "famnb-ballot", el, {
    tabindex: "0",
    role: "group",
    "aria-label": "Ballot: which of two answers is better",
    "data-lm-suppress-shortcuts": "true", // else the notebook takes arrows and single letters for its own
  });
  const status = append("p", "famnb-ballot-status", root, { role: "status" });
  const prompt = append("div", "famnb-ballot-prompt", root);
  const sides = append("div", "famnb-ballot-sides", root);
  const answers = ["left", "right"].map(side => {
    const box = append("div", "famnb-ballot-side", sides);
    append("div", "famnb-ballot-name", box).textContent = side === "left" ? "Left" : "Right";
    return append("div", "famnb-ballot-answer", box, { tabindex: "0", role: "region", "aria-label": `${side} answer` });
  });
  const bar = append("div", "famnb-ballot-bar", root);
  const buttons = new Map();
  for (const [choice, label, keys] of CHOICES) {
    const button = append("button", "famnb-ballot-choice", bar, { type: "button", "aria-keyshortcuts": keys });
    button.textContent = label;
    button.addEventListener("click", () => choose(choice));
    buttons.set(choice, button);
  }
  const hint = append("p", "famnb-ballot-hint", root);
  hint.textContent = "Click here once, or go here with Tab; from then on the keys work.";
  const results = append("div", "famnb-ballot-results", root);
  const trouble = append("p", "famnb-ballot-trouble", root, { role: "alert" });

  // A choice names the turn it was made for, so that one made twice in a hurry is not a vote on a pair nobody has read.
  function choose(choice) {
    if (!buttons.get(choice).disabled) model.send({ kind: "choose", choice, turn: model.get("turn") });
  }

  function onKey(event) {
    const choice = KEYS[event.key.toLowerCase()];
    if (!choice || event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    choose(choice);
  }

  function draw() {
    const { left, right, asked, can = [] } = model.get("pair");
    status.textContent = model.get("status");
    prompt.innerHTML = asked ?? ""; // cleaned in Python, as the answers are
    answers[0].innerHTML = left ?? "";
    answers[1].innerHTML = right ?? "";
    for (const answer of answers) answer.scrollTop = 0;
    sides.hidden = left === undefined;
    hint.hidden = sides.hidden;
    for (const [choice, button] of buttons) button.disabled = !can.includes(choice);
    results.innerHTML = model.get("results");
    trouble.textContent = model.get("trouble");
    // Disabling the button that was pressed has taken the focus away, and with it the keys.
    if (document.activeElement === document.body && root.dataset.used) root.focus({ preventScroll: true });
  }

  const markUsed = () => (root.dataset.used = "true");
  root.addEventListener("keydown", onKey);
  root.addEventListener("focusin", markUsed);
  model.on("change:turn", draw);
  draw();
  model.send({ kind: "ready", page: String(performance.timeOrigin) });
  return () => model.off("change:turn", draw);
}

export default { render };
