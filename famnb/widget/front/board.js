// The board: panes side by side, each with its settings above and its answers below, and one box that asks them all.

import { arrange, button, make, once, withCode, write } from "./dom.js";
import { drawEmpty } from "./examples.js";
import { drawField } from "./field.js";
import { drawForm } from "./form.js";
import { drawFrame } from "./frame.js";
import { isTaken, makeOutbox } from "./outbox.js";
import { drawCode } from "./panels.js";
import { drawPromptBox } from "./prompt.js";
import { liveWidget } from "./stream.js";
import { drawSystem } from "./system.js";

const EXAMPLES = [
  "Explain tides to a child in three sentences.",
  "Compare bubble sort and quicksort in a table.",
  "Is 9.11 or 9.9 larger? Say why in one line.",
];
const COLUMN_PX = 200; // narrower, and a line of an answer has too few words
const GAP_PX = 12;
const METERS_PX = 400; // of a pane whose figures stand in one line
const HEAD_PX = 490; // of a pane whose name, endpoint and model stand in one line
const DRAG_PX = 4; // a hand that clicks may move that far
const MOST_COLUMNS = 4; // beside one another; further panes stand below

/** Returns an outbox for the edits of one pane. @param {object} outbox @param {string} column */
const outboxFor = (outbox, column) => ({
  later: (name, message) => outbox.later(`${column} ${name}`, { ...message, column }),
  now: (message, name) => outbox.now({ ...message, column }, name && `${column} ${name}`),
  holds: (name) => outbox.holds(`${column} ${name}`),
});

// The name of a pane, which is written in its place.
function drawName(outbox) {
  const input = Object.assign(make("input", "famnb-input famnb-title"), { spellcheck: false, autocomplete: "off" });
  input.setAttribute("aria-label", "Name of the pane");
  let label = "";
  input.addEventListener("change", () => outbox.now({ kind: "rename", text: input.value }, "name"));
  input.addEventListener("keydown", (event) => {
    if (event.key === "Escape") input.value = label;
    else if (event.key !== "Enter") return;
    event.preventDefault();
    event.stopPropagation();
    input.blur();
  });
  return {
    element: input,
    tell: (text) => {
      label = text;
      input.title = `${text} · write another name here; none: the name of its settings`;
      if (!input.matches(":focus") && !outbox.holds("name")) input.value = text;
    },
  };
}

// Where a pane is taken hold of: it is dragged, moved by arrow keys, or by two buttons that a click shows.
function drawHandle(step, drag) {
  const moves = [button("famnb-small", "Move left", "", () => step(-1)), button("famnb-small", "Move right", "", () => step(1))];
  const bar = make("div", "famnb-bar famnb-moves", ...moves);
  const handle = button("famnb-icon famnb-handle", "Move pane", "", () => {
    if (!handle.dataset.dragged) show(bar.hidden);
    delete handle.dataset.dragged;
  });
  handle.textContent = "⠿";
  handle.title = "Drag to move this pane, or press ← and →";
  const show = (isOpen) => {
    bar.hidden = !isOpen;
    handle.setAttribute("aria-expanded", isOpen);
  };
  show(false);
  handle.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!steps) return;
    event.preventDefault();
    step(steps);
  });
  handle.addEventListener("pointerdown", drag);
  return {
    element: handle,
    bar,
    tell: (place, count) => {
      moves[0].disabled = place === 0;
      moves[1].disabled = place === count - 1;
      handle.disabled = count < 2;
    },
  };
}

// The settings of a pane: endpoint and model at first, all of them once they are unfolded.
function drawColumn(id, shared, { step, drag }) {
  const outbox = outboxFor(shared, id);
  const form = drawForm(outbox);
  const system = drawSystem(outbox);
  const name = drawName(outbox);
  const handle = drawHandle(
    (steps) => step(id, steps),
    (event) => drag(id, event),
  );
  const more = button("famnb-tab", "Settings", "", () => show(element.classList.contains("famnb-brief")));
  const dropping = button("famnb-icon famnb-drop", "Remove pane", "", once(() => outbox.now({ kind: "drop" })));
  dropping.textContent = "×";
  const remarks = make("div", "famnb-remarks");
  const own = make("div", "famnb-remarks");
  const head = make("header", "famnb-head", handle.element, name.element, more, dropping);
  const element = make("section", "famnb-column", head, handle.bar, own, remarks, system.element, form.element);
  element.setAttribute("role", "group");
  const show = (isOpen) => {
    element.classList.toggle("famnb-brief", !isOpen);
    more.setAttribute("aria-expanded", isOpen);
    more.setAttribute("aria-pressed", isOpen);
  };
  const drawOwn = ({ name: field, text, shared: common }) => {
    if (!text) return withCode(make("p", "famnb-remark"), `There is no \`${field}\` here.`);
    const giveUp = button("famnb-small", `Use ${common}`, "", () => outbox.now({ kind: "share", field }));
    return make("p", "famnb-remark", make("code", "", field), ` ${text} here, ${common} in the others `, giveUp);
  };
  let described = ""; // the fields that are drawn
  let told = ""; // the own settings that are drawn
  show(false);
  return {
    element,
    tell: (column, fields, place, count) => {
      const { form: said } = column;
      if (column.fields !== described) form.describe(fields[column.fields]);
      described = column.fields;
      form.tell(said);
      system.tell(said);
      name.tell(column.label);
      handle.tell(place, count);
      element.setAttribute("aria-label", column.label);
      dropping.disabled = count === 1;
      dropping.title = count === 1 ? "A board has at least one pane" : "Remove this pane; what it has answered stays";
      more.classList.toggle("famnb-faulty", Boolean(said.faulty.length));
      if (remarks.dataset.lines !== said.remarks.join("\n")) {
        remarks.dataset.lines = said.remarks.join("\n");
        remarks.replaceChildren(...said.remarks.map((line) => withCode(make("p", "famnb-remark"), line)));
      }
      if (told !== JSON.stringify(column.own)) own.replaceChildren(...column.own.map(drawOwn));
      told = JSON.stringify(column.own);
    },
  };
}

// What is set once for all panes: one line while it is folded.
function drawShared(outbox) {
  const gist = make("span", "famnb-gist");
  const row = make("div", "famnb-shared-fields");
  const summary = make("summary", "", make("strong", "", "For all panes"), gist);
  const element = make("details", "famnb-system famnb-shared", summary, row);
  const fields = new Map();
  let texts = {};
  const settle = () => {
    const set = Object.entries(texts).map(([name, text]) => `${name} ${text}`);
    write(gist, element.open ? "" : set.join(" · ") || `${[...fields.keys()].join(", ")}: not set`);
  };
  element.addEventListener("toggle", settle);
  return {
    element,
    tell: (said) => {
      texts = said.texts;
      if ([...fields.keys()].join() !== said.fields.map(({ path }) => path).join()) {
        fields.clear();
        for (const field of said.fields) {
          const edit = (text) => outbox.later(`share ${field.path}`, { kind: "share", field: field.path, text });
          fields.set(field.path, drawField(field, edit));
        }
        row.replaceChildren(...[...fields.values()].map((field) => field.element));
      }
      for (const [name, field] of fields) {
        if (!outbox.holds(`share ${name}`)) field.set(texts[name] ?? "", false);
        field.mark(said.faults[name] ?? "");
      }
      element.hidden = !fields.size;
      settle();
    },
  };
}

/**
 * Has the answers of a round scroll together: the one that the reader scrolls leads, the others follow in proportion.
 * @param {HTMLElement} flow @param {() => boolean} isOn
 */
function scrollTogether(flow, isOn) {
  let leader = null;
  const lead = ({ target }) => {
    leader = target.closest(".famnb-flow");
  };
  for (const name of ["wheel", "pointerdown", "touchstart", "keydown"]) {
    flow.addEventListener(name, lead, { capture: true, passive: true });
  }
  const follow = ({ target }) => {
    if (!isOn() || target !== leader) return;
    const share = target.scrollTop / Math.max(1, target.scrollHeight - target.clientHeight);
    for (const other of target.closest(".famnb-row").querySelectorAll(".famnb-flow")) {
      if (other !== target) other.scrollTop = share * (other.scrollHeight - other.clientHeight);
    }
  };
  flow.addEventListener("scroll", follow, { capture: true, passive: true });
}

// A prompt and the row of its answers.
function drawRound(round, outbox) {
  const asked = round.prompt ? make("div", "famnb-asked", round.prompt) : null;
  if (asked) asked.dir = "auto";
  const row = make("div", "famnb-row");
  const element = make("section", "famnb-round", asked, row);
  element.setAttribute("aria-label", `Round ${round.number + 1}`);
  const missing = new Map();
  const drawMissing = (cell) => {
    if (missing.has(cell.column)) return missing.get(cell.column);
    const ask = () => outbox.now({ kind: "again", column: cell.column, round: round.number });
    const asking = button("", "Ask here", "", once(ask));
    const text = make("p", "famnb-note");
    const box = make("div", "famnb-pane famnb-missing", make("strong", ""), text, asking);
    box.tell = ({ label, ready }, isBusy) => {
      box.firstChild.textContent = label;
      write(text, ready ? "was not asked this yet" : "was not asked this");
      asking.hidden = !ready;
      asking.disabled = isBusy;
    };
    missing.set(cell.column, box);
    return box;
  };
  return {
    element,
    tell: (said, elementOf, isBusy) => {
      const cells = said.cells.map((cell) => (cell.pane ? elementOf(cell.pane) : drawMissing(cell)));
      for (const cell of said.cells) if (!cell.pane) missing.get(cell.column).tell(cell, isBusy);
      arrange(row, cells.filter(Boolean));
    },
  };
}

function drawBoard({ send, el, known, stop, elementOf }) {
  let state = { busy: false, rounds: [] };
  const outbox = makeOutbox(send, isTaken);
  const box = drawPromptBox(outbox, stop, " all");
  const frame = drawFrame(el, "famnb-board", { stop: box.stop, isBusy: () => state.busy });
  const system = drawSystem(outbox);
  const common = drawShared(outbox);
  const title = make("strong", "famnb-title", "Board");
  const fresh = button("famnb-new", "New talk", "", () => {
    outbox.now({ kind: "new" });
    box.area.focus();
  });
  fresh.title = "Begin another talk in every pane; this one stays in the saved output";
  const adding = button("famnb-new famnb-add", "Add a pane", "", once(() => outbox.now({ kind: "add" })));
  adding.title = "A copy of the last pane, with another model where there is one";
  const comparing = button("famnb-new", "Differences", "", () => outbox.now({ kind: "differences" }));
  comparing.title = "Mark the words that differ from the pinned answer, or else from the first";
  let isTogether = false;
  const together = button("famnb-new", "Scroll together", "", () => {
    isTogether = !isTogether;
    together.setAttribute("aria-pressed", isTogether);
  });
  together.title = "The answers of a round scroll in step";
  together.setAttribute("aria-pressed", "false");
  const experiment = button("famnb-new", "Make an experiment", "", () => openCode(panel.hidden));
  const code = drawCode(outbox, el);
  const panel = make("div", "famnb-panel famnb-experiment", code.element);
  panel.hidden = true;
  const openCode = (isOpen) => {
    panel.hidden = !isOpen;
    experiment.setAttribute("aria-expanded", isOpen);
    outbox.now({ kind: "panel", open: isOpen });
  };
  experiment.setAttribute("aria-expanded", "false");
  const top = make("header", "famnb-top", title, make("span", "famnb-space"), fresh, comparing, together, adding, experiment);
  const grid = make("div", "famnb-row famnb-columns");
  const empty = drawEmpty("The answers appear here side by side, and are saved with the notebook.", EXAMPLES, box.suggest);
  const columns = new Map();
  const rounds = new Map();
  const answers = new Set();
  let order = []; // the ids of the panes as they stand
  let flow;

  const move = (id, place) => {
    if (place >= 0 && place < order.length && place !== order.indexOf(id)) outbox.now({ kind: "move", column: id, to: place });
  };
  const step = (id, steps) => move(id, order.indexOf(id) + steps);
  // A pane that is dragged goes to the place of the one that is nearest where it is let go.
  const drag = (id, down) => {
    const handle = down.currentTarget;
    delete handle.dataset.dragged; // where it was let go over another element no click has followed
    const middles = order.map((other) => {
      const { x, y, width, height } = columns.get(other).element.getBoundingClientRect();
      return [x + width / 2, y + height / 2];
    });
    let place = order.indexOf(id);
    const mark = () => {
      for (const [index, other] of order.entries()) {
        columns.get(other)?.element.classList.toggle("famnb-target-place", index === place && other !== id);
      }
    };
    const follow = ({ clientX, clientY }) => {
      if (Math.hypot(clientX - down.clientX, clientY - down.clientY) < DRAG_PX && !handle.dataset.dragged) return;
      handle.dataset.dragged = "true"; // what follows is no click
      const distances = middles.map(([x, y]) => Math.hypot(x - clientX, y - clientY));
      place = distances.indexOf(Math.min(...distances));
      columns.get(id).element.classList.add("famnb-dragged");
      mark();
    };
    const end = (event) => {
      handle.removeEventListener("pointermove", follow);
      handle.removeEventListener("pointerup", end);
      handle.removeEventListener("pointercancel", end);
      columns.get(id)?.element.classList.remove("famnb-dragged");
      const target = place;
      place = -1;
      mark();
      if (event.type === "pointerup") move(id, target);
    };
    handle.setPointerCapture(down.pointerId);
    handle.addEventListener("pointermove", follow);
    handle.addEventListener("pointerup", end);
    handle.addEventListener("pointercancel", end);
  };

  const measure = () => {
    const room = el.clientWidth - 2 * GAP_PX;
    const fitting = Math.floor((room + GAP_PX) / (COLUMN_PX + GAP_PX));
    const most = Math.max(1, Math.min(MOST_COLUMNS, fitting));
    const count = Math.max(1, columns.size);
    const shown = Math.ceil(count / Math.ceil(count / most));
    el.style.setProperty("--famnb-columns", shown);
    // Else the settings of many panes would stand before the first answer.
    grid.classList.toggle("famnb-folded", count > shown);
    el.classList.toggle("famnb-slim", room / shown < METERS_PX);
    el.classList.toggle("famnb-folding", room / shown < HEAD_PX);
  };
  const observer = new ResizeObserver(measure);

  const tellColumns = (said) => {
    for (const id of [...columns.keys()]) if (!said.some((column) => column.id === id)) columns.delete(id);
    order = said.map(({ id }) => id);
    for (const [index, column] of said.entries()) {
      if (!columns.has(column.id)) columns.set(column.id, drawColumn(column.id, outbox, { step, drag }));
      columns.get(column.id).tell(column, known.fields, index, said.length);
    }
    const held = grid.querySelector(".famnb-handle:focus");
    arrange(grid, said.map(({ id }) => columns.get(id).element));
    if (held) held.focus(); // a pane that is moved loses it
    write(title, `Board · ${said.length} ${said.length === 1 ? "pane" : "panes"}`);
    measure();
    settle();
  };

  const place = () => {
    const said = known.state?.rounds ?? [];
    for (const id of [...rounds.keys()]) if (!said.some((round) => round.id === id)) rounds.delete(id);
    for (const [number, round] of said.entries()) {
      if (!rounds.has(round.id)) rounds.set(round.id, drawRound({ ...round, number }, outbox));
      rounds.get(round.id).tell(round, elementOf, state.busy);
    }
    arrange(flow, said.map(({ id }) => rounds.get(id).element));
  };

  const settle = () => {
    const isIdle = !state.busy && !frame.isLost();
    empty.hidden = Boolean(state.rounds.length);
    fresh.disabled = !state.rounds.length || !isIdle;
    comparing.disabled = !state.rounds.length || frame.isLost();
    comparing.setAttribute("aria-pressed", Boolean(state.differences));
    together.disabled = !state.rounds.length || columns.size < 2;
    adding.disabled = state.full || !isIdle;
    for (const answer of answers) answer.settle();
    for (const missing of flow?.querySelectorAll(".famnb-missing button") ?? []) missing.disabled = !isIdle;
    box.tellTalk(Boolean(state.rounds.length));
  };

  const apply = ({ columns: said, shared, form, pictures, state: told, panel: shown }) => {
    if (said) tellColumns(said);
    if (shared) common.tell(shared);
    if (form) {
      system.tell(form);
      box.tell(form);
    }
    if (pictures) box.tellPictures(pictures);
    if (shown) code.tell(shown);
    if (!told) return;
    state = told;
    box.tellState(told);
    place();
    settle();
  };

  return {
    scrolls: true,
    writesFirst: true,
    areas: () => [box.area],
    mount: (panes) => {
      flow = panes;
      flow.classList.add("famnb-rounds");
      scrollTogether(flow, () => isTogether);
      const commons = make("div", "famnb-commons", system.element, common.element);
      frame.mount(top, panel, commons, grid, empty, flow, box.element);
      observer.observe(el);
      apply(known);
      if (!known.form) frame.wait();
    },
    place,
    draw: (pane, parts) => {
      const { head, flow: text } = parts;
      text.tabIndex = 0; // it scrolls by itself, so keys must reach it
      text.setAttribute("role", "region");
      text.setAttribute("aria-label", `${pane.label}: answer`);
      const tiles = pane.meters.map(([name]) => make("div", "", make("dt", "", name), make("dd")));
      const set = (values) => {
        for (const [index, value] of values.entries()) {
          const figure = tiles[index].lastChild;
          // The ends of an estimate are there for who asks: in a narrow pane they would take four lines.
          figure.textContent = value.replace(/ \([^)]*\)$/, "");
          figure.title = value;
        }
      };
      set(pane.meters.map(([, figure]) => figure));
      const target = pane.label.includes(pane.head) ? null : make("span", "famnb-hint famnb-target", pane.head);
      if (target) head.firstChild.after(target);
      const [, round, column] = pane.id.split(".");
      const pin = button("famnb-small famnb-pin", "", "", () => outbox.now({ kind: "pin", pane: pane.id }));
      pin.textContent = pane.pinned ? "★ Winner" : "☆ Pin";
      pin.setAttribute("aria-pressed", pane.pinned);
      pin.setAttribute("aria-label", `${pane.label}: pin as winner`);
      pin.title = pane.pinned ? "Take the mark away" : "Pin as winner";
      const wish = { kind: "again", column, round: Number(round) };
      const again = button("famnb-small famnb-again", "Ask again", "", once(() => outbox.now(wish)));
      again.title = "Ask this pane again, with its settings as they are now; this answer stays";
      parts.meters = make("dl", "famnb-meters", ...tiles);
      const [version, versions] = pane.version;
      const show = (name, label, arrow, to) => {
        const element = button(`famnb-small famnb-version ${name}`, label, "", () => outbox.now({ kind: "version", column, to }));
        element.textContent = arrow;
        element.isOut = to < 0 || to >= versions;
        return element;
      };
      const arrows = [show("famnb-back", "Previous answer", "‹", version - 1), show("famnb-forth", "Next answer", "›", version + 1)];
      const place = make("span", "famnb-place", arrows[0], `${version + 1} of ${versions}`, arrows[1]);
      place.hidden = versions < 2;
      parts.tools = make("span", "famnb-tools", place, pin, again);
      const answer = {
        set,
        settle: () => {
          const isLatest = state.rounds.at(-1)?.cells.some((cell) => cell.pane === pane.id);
          again.hidden = pane.running || !isLatest || !columns.has(column);
          again.disabled = state.busy || frame.isLost();
          for (const arrow of arrows) arrow.disabled = arrow.isOut || !isLatest || state.busy || frame.isLost();
          place.title = isLatest ? "" : "The later answers go on from this one";
          pin.disabled = frame.isLost();
          pin.closest(".famnb-pane")?.classList.toggle("famnb-won", pane.pinned);
        },
        end: () => answers.delete(answer),
      };
      answers.add(answer);
      answer.settle();
      return answer;
    },
    // Rows that are as high in every pane: what answers, its figures, the answer, and what can be done with it.
    arrange: (pane, { head, asked, flow: text, copy, notes, meters, tools }) => {
      copy.querySelector("button").classList.add("famnb-small");
      const said = make("div", "famnb-reply", ...asked, text, ...notes);
      return [head, meters, said, make("div", "famnb-foot", copy, tools)];
    },
    settle,
    told: (message, rest) => {
      if (message.kind === "snapshot") outbox.forget();
      if (message.kind === "taken") {
        outbox.answered();
        box.taken(message.ok);
        if (known.columns) tellColumns(known.columns);
        if (known.shared) common.tell(known.shared);
      }
      code.told(message);
      if (rest.form) frame.hear();
      if (message.seq !== undefined) apply(rest);
    },
    lose: () => {
      outbox.close();
      box.lose();
      frame.lose();
    },
    end: () => {
      frame.end();
      observer.disconnect();
      outbox.flush();
    },
  };
}

export default () => liveWidget(drawBoard);
