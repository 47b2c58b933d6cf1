// The board: panes side by side, each with its settings above and its answers below, and one box that asks them all.

import { arrange, button, make, once, withCode, write } from "./dom.js";
import { drawForm } from "./form.js";
import { drawFrame } from "./frame.js";
import { isTaken, makeOutbox } from "./outbox.js";
import { drawCode } from "./panels.js";
import { drawPromptBox } from "./prompt.js";
import { liveWidget } from "./stream.js";
import { drawSystem } from "./system.js";

const COLUMN_PX = 200; // narrower, and a line of an answer has too few words
const GAP_PX = 12;
const METERS_PX = 400; // of a pane whose figures stand in one line
const MOST_COLUMNS = 4; // beside one another; further panes stand below

/** Returns an outbox for the edits of one pane. @param {object} outbox @param {string} column */
const outboxFor = (outbox, column) => ({
  later: (name, message) => outbox.later(`${column} ${name}`, { ...message, column }),
  now: (message, name) => outbox.now({ ...message, column }, name && `${column} ${name}`),
  holds: (name) => outbox.holds(`${column} ${name}`),
});

// The settings of a pane: endpoint and model at first, all of them once they are unfolded.
function drawColumn(id, shared) {
  const outbox = outboxFor(shared, id);
  const form = drawForm(outbox);
  const system = drawSystem(outbox);
  const title = make("strong", "famnb-title");
  const more = button("famnb-tab", "Settings", "", () => show(element.classList.contains("famnb-brief")));
  const dropping = button("famnb-icon famnb-drop", "Remove pane", "", once(() => outbox.now({ kind: "drop" })));
  dropping.textContent = "×";
  const remarks = make("div", "famnb-remarks");
  const head = make("header", "famnb-head", title, more, dropping);
  const element = make("section", "famnb-column", head, remarks, system.element, form.element);
  element.setAttribute("role", "group");
  const show = (isOpen) => {
    element.classList.toggle("famnb-brief", !isOpen);
    more.setAttribute("aria-expanded", isOpen);
    more.setAttribute("aria-pressed", isOpen);
  };
  let described = ""; // the fields that are drawn
  show(false);
  return {
    element,
    tell: (column, fields, isOnly) => {
      const { form: said } = column;
      if (column.fields !== described) form.describe(fields[column.fields]);
      described = column.fields;
      form.tell(said);
      system.tell(said);
      write(title, column.label);
      title.title = column.label;
      element.setAttribute("aria-label", column.label);
      dropping.disabled = isOnly;
      dropping.title = isOnly ? "A board has at least one pane" : "Remove this pane; what it has answered stays";
      more.classList.toggle("famnb-faulty", Boolean(said.faulty.length));
      if (remarks.dataset.lines !== said.remarks.join("\n")) {
        remarks.dataset.lines = said.remarks.join("\n");
        remarks.replaceChildren(...said.remarks.map((line) => withCode(make("p", "famnb-remark"), line)));
      }
    },
  };
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

function drawBoard({ model, el, known, stop, elementOf }) {
  let state = { busy: false, rounds: [] };
  const outbox = makeOutbox((message) => model.send(message), isTaken);
  const frame = drawFrame(el, "famnb-board", { stop, isBusy: () => state.busy });
  const box = drawPromptBox(outbox, stop, " all");
  const system = drawSystem(outbox);
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
  const top = make("header", "famnb-top", title, make("span", "famnb-space"), fresh, comparing, adding, experiment);
  const grid = make("div", "famnb-row famnb-columns");
  const columns = new Map();
  const rounds = new Map();
  const answers = new Set();
  let flow;

  const measure = () => {
    const room = el.clientWidth - 2 * GAP_PX;
    const fitting = Math.floor((room + GAP_PX) / (COLUMN_PX + GAP_PX));
    const most = Math.max(1, Math.min(MOST_COLUMNS, fitting));
    const count = Math.max(1, columns.size);
    const shown = Math.ceil(count / Math.ceil(count / most));
    el.style.setProperty("--famnb-columns", shown);
    el.classList.toggle("famnb-slim", room / shown < METERS_PX);
  };
  const observer = new ResizeObserver(measure);

  const tellColumns = (said) => {
    for (const id of [...columns.keys()]) if (!said.some((column) => column.id === id)) columns.delete(id);
    for (const column of said) {
      if (!columns.has(column.id)) columns.set(column.id, drawColumn(column.id, outbox));
      columns.get(column.id).tell(column, known.fields, said.length === 1);
    }
    arrange(grid, said.map(({ id }) => columns.get(id).element));
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
    fresh.disabled = !state.rounds.length || !isIdle;
    comparing.disabled = !state.rounds.length || frame.isLost();
    comparing.setAttribute("aria-pressed", Boolean(state.differences));
    adding.disabled = state.full || !isIdle;
    for (const answer of answers) answer.settle();
    for (const missing of flow?.querySelectorAll(".famnb-missing button") ?? []) missing.disabled = !isIdle;
    box.tellTalk(Boolean(state.rounds.length));
  };

  const apply = ({ columns: said, form, pictures, state: told, panel: shown }) => {
    if (said) tellColumns(said);
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
      frame.mount(top, panel, system.element, grid, flow, box.element);
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
        for (const [index, value] of values.entries()) tiles[index].lastChild.textContent = value;
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
      again.title = "Ask this pane again, with its settings as they are now; this answer stays in the ledger";
      parts.meters = make("dl", "famnb-meters", ...tiles);
      parts.tools = make("span", "famnb-tools", pin, again);
      const answer = {
        set,
        settle: () => {
          const isLatest = state.rounds.at(-1)?.cells.some((cell) => cell.pane === pane.id);
          again.hidden = pane.running || !isLatest || !columns.has(column);
          again.disabled = state.busy || frame.isLost();
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
