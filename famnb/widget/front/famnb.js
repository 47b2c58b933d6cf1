// The browser's half of the live view and of the composer's prompt box. It draws what the kernel says and reports what
// the reader does; every decision is taken in Python. Texts become text nodes; HTML is inserted only where Python made
// it (sanitize.render_markdown: rendered from Markdown and sanitised). Joined with clipboard.js.

const PAGE = globalThis.crypto?.randomUUID?.() ?? String(Math.random()); // tells a reloaded page from the first one
// A kernel that can hear Stop has answered by then; after that it is interrupted through the server.
const ACKNOWLEDGE_MS = 300;
// Changes come up to 18 times a second: without a pause each would ask for a whole snapshot again.
const ASK_AGAIN_MS = 1000;
const LOST = "The kernel has ended. What had come is kept in the ledger.";

function make(tag, name, ...children) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

function button(name, label, keys, press) {
  const element = make("button", `famnb-button ${name}`, label, keys ? make("kbd", "", keys) : null);
  element.type = "button";
  element.setAttribute("aria-label", label);
  element.title = keys ? `${label} (${keys})` : label;
  element.dataset.lmSuppressShortcuts = "true"; // else the notebook takes Enter and single letters for its own
  element.addEventListener("click", press);
  return element;
}

// A button that copies what `text()` returns when it is pressed, and says beside it whether that worked.
function copyButton(label, text) {
  const status = make("span", "famnb-hint");
  status.setAttribute("role", "status");
  const press = button("famnb-copy", label, "", async () => {
    status.textContent = (await copyText(text())) ? "copied" : "could not be copied";
    setTimeout(() => (status.textContent = ""), 2000);
  });
  return make("span", "famnb-copier", status, press);
}

// The text of elements as the page shows it, without the buttons in it.
function visibleText(elements) {
  const hide = (hidden) => elements.forEach((element) => element.classList.toggle("famnb-copying", hidden));
  hide(true);
  const text = elements.map((element) => element.innerText.trim()).join("\n\n");
  hide(false);
  return text;
}

// Interrupts the kernel through the server, by HTTP: a cell that runs blocking code does not hear messages.
async function interruptKernel(kernel) {
  const config = JSON.parse(document.getElementById("jupyter-config-data")?.textContent || "{}");
  const base = config.baseUrl || document.body.dataset.baseUrl || "/";
  const xsrf = /(?:^|; )_xsrf=([^;]*)/.exec(document.cookie)?.[1];
  const headers = {};
  if (xsrf) headers["X-XSRFToken"] = decodeURIComponent(xsrf);
  if (config.token) headers.Authorization = `token ${config.token}`;
  const url = `${base}api/kernels/${encodeURIComponent(kernel)}/interrupt`;
  const answer = await fetch(url, { method: "POST", credentials: "same-origin", headers });
  if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
}

// Returns a function that keeps a box scrolled to its end, unless the reader scrolled up. It is called after all changes
// of a message, so that the page is laid out once.
function followEnd(box) {
  let isNearEnd = true;
  let lastTop = 0;
  const update = () => {
    isNearEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 24;
  };
  box.addEventListener("scroll", update);
  return () => {
    if (box.scrollTop < lastTop) update(); // the reader has scrolled up, and the event is still on its way
    if (!isNearEnd) return;
    box.scrollTop = 1e7; // beyond every end; reading scrollHeight here would lay the page out once more
    lastTop = box.scrollTop;
  };
}

// One block of a reply. `settled` holds finished Markdown as HTML, `tail` the text that is still growing.
function drawBlock(block) {
  if (block.kind === "verdict") return drawQuestion(block);
  const settled = make("div", "famnb-settled");
  const tail = make("div", "famnb-tail");
  const common = block.kind === "code" ? "" : " jp-RenderedHTMLCommon";
  const body = make("div", `famnb-body famnb-${block.kind}${common}`, settled, tail);
  let element = body;
  let summary = null;
  if (block.kind === "thinking") {
    summary = make("summary", "", block.label);
    summary.dataset.lmSuppressShortcuts = "true";
    element = make("details", "famnb-details", summary, body);
    element.open = block.open;
  } else {
    summary = make("div", "famnb-label", block.label);
    const copy = block.kind === "code" ? copyButton("Copy code", () => tail.textContent) : null;
    element = make("div", "", copy ? make("div", "famnb-codehead", summary, copy) : summary, body);
  }
  const addCopyButtons = () => {
    for (const pre of settled.querySelectorAll(":not(.famnb-codebox) > pre")) {
      const box = make("div", "famnb-codebox");
      pre.replaceWith(box);
      box.append(copyButton("Copy code", () => pre.textContent), pre);
    }
  };
  settled.innerHTML = block.html; // clean HTML made by sanitize.render_markdown
  addCopyButtons();
  tail.append(block.tail);
  return {
    element,
    answer: block.kind === "text" ? body : null,
    follow: block.kind === "thinking" ? followEnd(body) : null,
    text: (text) => tail.append(text),
    settle: (html, rest) => {
      settled.insertAdjacentHTML("beforeend", html); // clean HTML made by sanitize.render_markdown
      addCopyButtons();
      tail.replaceChildren(rest);
    },
    close: (html, rest) => {
      settled.innerHTML = html; // clean HTML made by sanitize.render_markdown
      addCopyButtons();
      tail.replaceChildren(rest);
    },
    fold: (label) => {
      summary.textContent = label;
      element.open = false;
    },
  };
}

function drawPane(pane, { stop, board, talk }) {
  const blocks = pane.blocks.map(drawBlock);
  const flow = make("div", "famnb-flow", ...blocks.map((block) => block.element));
  const follow = board ? followEnd(flow) : null;
  const state = make("span", "famnb-state");
  state.setAttribute("role", "status");
  const clock = make("span", "famnb-clock");
  const stopping = button("famnb-stop", "Stop", "", () => stop(pane.id));
  const marks = pane.badges.map(([text, tone]) => make("span", `famnb-badge famnb-${tone}`, text));
  const head = make("div", "famnb-head", make("strong", "", pane.label ?? pane.head), ...marks, state, clock);
  if (pane.running && pane.stop) head.append(stopping);
  const beside = (board ?? talk)?.draw(pane, head, flow);
  const asked = pane.asked.map(([role, text]) =>
    make("div", "famnb-asked", role === "user" ? null : make("strong", "famnb-role", role), text),
  );
  for (const element of asked) element.dir = "auto";
  const copy = copyButton("Copy answer", () => visibleText(blocks.map(({ answer }) => answer).filter(Boolean)));
  const after = [
    copy,
    pane.failure ? make("p", "famnb-failure", pane.failure) : null,
    ...pane.notes.map((note) => make("p", "famnb-note", note)),
    pane.figures ? make("p", "famnb-note", pane.figures) : null,
  ];
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
    const text = pane.running ? waiting : (pane.doing ?? "");
    // Only a change: screen readers may say a status again whenever it is written.
    if (state.textContent !== text) state.textContent = text;
    copy.hidden = !blocks.some(({ answer }) => answer);
    stopping.disabled = Boolean(pane.stopping || pane.lost);
    element.classList.toggle("famnb-running", pane.running && !pane.lost);
    blocks.at(-1)?.follow?.();
    follow?.();
  };
  const element = make("article", "famnb-pane", head, beside?.element, ...asked, flow, ...after);
  element.classList.toggle("famnb-later", pane.turn === null);
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

// Each makes one change of pane.py to what is known of a pane and to its views: [change, block number, …]
const changes = {
  open: (pane, drawn, number, kind, label) => {
    pane.blocks[number] = { kind, label, open: true, html: "", tail: "" };
    for (const view of drawn) view.open(pane.blocks[number]);
  },
  text: (pane, drawn, number, text) => {
    pane.blocks[number].tail += text;
    for (const view of drawn) view.block(number).text(text);
  },
  settle: (pane, drawn, number, html, rest) => {
    pane.blocks[number].html += html;
    pane.blocks[number].tail = rest;
    for (const view of drawn) view.block(number).settle(html, rest);
  },
  close: (pane, drawn, number, html, rest) => {
    pane.blocks[number].html = html;
    pane.blocks[number].tail = rest;
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

// The box where a prompt is written and sent; only the models of composer and board have a `prompt`.
function drawPrompt(model, send, stop, board, talk) {
  const area = make("textarea", "famnb-prompt");
  area.rows = 3;
  area.value = model.get("prompt");
  const label = make("label", "famnb-field", make("span", "famnb-label", "Prompt"), area);
  const sending = button("famnb-send", board ? "Send to all" : "Send", "Ctrl+Enter", (event) => {
    if (event.detail < 2) send(area.value); // ignores the second click of a double click
  });
  const stopping = button("famnb-stop", board ? "Stop all" : "Stop", "Esc", stop);
  const hint = make("span", "famnb-hint");
  hint.setAttribute("role", "status");
  const element = make("div", "famnb-ask", label, make("div", "famnb-bar", sending, stopping, (board ?? talk)?.toggle, hint), board?.winners);
  area.addEventListener("input", () => {
    model.set("prompt", area.value);
    model.save_changes();
    waited = false;
    settle();
  });
  const keys = (event) => {
    const sends = event.key === "Enter" && (event.ctrlKey || event.metaKey);
    const stops = event.key === "Escape" && model.get("busy");
    if (!sends && !stops) return;
    event.preventDefault();
    event.stopPropagation();
    if (stops) stop();
    else if (!sending.disabled) send(area.value);
  };
  let waited = false; // whether a reply was awaited and nothing was written since
  function settle() {
    const busy = model.get("busy");
    waited ||= busy;
    const empty = !area.value.trim() && !model.get("replaced");
    area.placeholder = model.get("replaced") ? "The conversation in the form is sent instead" : "Ask something";
    sending.disabled = busy || Boolean(model.get("fault")) || empty;
    stopping.disabled = !busy;
    const over = board ? "All answers have ended." : "The reply has ended.";
    const idle = waited ? over : empty ? "Write a prompt to send." : "";
    hint.textContent = busy ? "" : model.get("fault") || idle;
  }
  const changed = () => {
    if (area.value !== model.get("prompt")) area.value = model.get("prompt");
    settle();
  };
  const names = ["change:prompt", "change:busy", "change:fault", "change:replaced"];
  for (const name of names) model.on(name, changed);
  const lock = () => {
    sending.disabled = true;
    hint.textContent = "Waiting for the kernel …";
  };
  const lose = () => {
    sending.disabled = stopping.disabled = true;
    hint.textContent = "The kernel has ended: run this cell again.";
  };
  const end = () => {
    for (const name of names) model.off(name, changed);
  };
  settle();
  return { element, area, settle, keys, lock, lose, end };
}

// ---- The board: panes side by side, each with its meters and a pin for the winner; only its model has `labels`.

function drawBoard(model) {
  const pins = new Map();
  const drawn = new Set();
  const pin = (label, text) => {
    const element = button("famnb-pin", text, "", () => model.send({ kind: "pin", label }));
    element.settle = () => {
      const won = model.get("pinned") === label;
      element.textContent = won ? `★ ${text === label ? label : "Winner"}` : text;
      element.setAttribute("aria-pressed", won);
      element.setAttribute("aria-label", `${label}: pin as winner`);
      element.title = won ? "Take the mark away" : "Pin as winner";
    };
    element.settle();
    return element;
  };
  const toggle = button("famnb-toggle", "Differences", "", () => model.send({ kind: "differences" }));
  toggle.title = "Mark the words that differ from the pinned answer, or else from the first";
  for (const label of model.get("labels")) pins.set(label, pin(label, label));
  const winners = make("div", "famnb-bar famnb-winners", make("span", "famnb-hint", "Winner:"), ...pins.values());
  winners.setAttribute("role", "group");
  winners.setAttribute("aria-label", "Winner");
  const settle = () => {
    toggle.setAttribute("aria-pressed", model.get("differences"));
    winners.hidden = !model.get("ended") || drawn.size > 0;
    for (const element of pins.values()) element.settle();
    for (const pane of drawn) pane.settle();
  };
  const names = ["change:pinned", "change:differences", "change:ended"];
  for (const name of names) model.on(name, settle);
  settle();
  return {
    toggle,
    winners,
    settle,
    draw: (pane, head, flow) => {
      flow.tabIndex = 0; // it scrolls by itself, so keys must reach it
      flow.setAttribute("role", "region");
      flow.setAttribute("aria-label", `${pane.label}: answer`);
      const tiles = pane.meters.map(([name]) => make("div", "", make("dt", "", name), make("dd")));
      const pinning = pin(pane.label, "Pin");
      const set = (values) => {
        for (const [index, value] of values.entries()) {
          tiles[index].lastChild.textContent = value;
          tiles[index].hidden = !value;
        }
      };
      set(pane.meters.map(([, figure]) => figure));
      head.firstChild.after(pinning);
      const target = pane.label.includes(pane.head) ? null : make("div", "famnb-hint", pane.head);
      const element = make("div", "", target, make("dl", "famnb-meters", ...tiles));
      const tile = {
        element,
        set,
        settle: () => {
          pinning.settle();
          pinning.closest(".famnb-pane")?.classList.toggle("famnb-won", model.get("pinned") === pane.label);
        },
        end: () => drawn.delete(tile),
      };
      drawn.add(tile);
      return tile;
    },
    end: () => {
      for (const name of names) model.off(name, settle);
    },
  };
}

// ---- End of the board.

// ---- The conversation: turns that can be edited, asked again and changed for another version, tool calls that wait for
// approval, and a box for the next turn; only the composer's model has `turns`.

// Whether a tool may run; its buttons are the conversation's.
function drawQuestion(block) {
  const element = make("div", "famnb-verdict", make("span", "famnb-label", block.label));
  element.setAttribute("role", "group");
  element.setAttribute("aria-label", block.label);
  element.tabIndex = -1;
  return { element, answer: null, follow: null };
}

// Ignores the second click of a double click.
const once = (act) => (event) => {
  if (event.detail < 2) act();
};

// A box to write in, with a button and keys that send it.
function drawWriter(label, action, send) {
  const area = make("textarea", "famnb-prompt");
  area.rows = 2;
  const sending = button("famnb-send", action, "Ctrl+Enter", once(() => send(area.value)));
  const bar = make("div", "famnb-bar", sending);
  const element = make("div", "famnb-ask", make("label", "famnb-field", make("span", "famnb-label", label), area), bar);
  let barred = false;
  const settle = (now = barred) => {
    barred = now;
    sending.disabled = barred || !area.value.trim();
  };
  area.addEventListener("input", () => settle());
  area.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    event.stopPropagation();
    if (!sending.disabled) send(area.value);
  });
  settle();
  return { element, area, bar, settle };
}

function drawTalk(model, el, stop) {
  const drawn = new Set();
  let sent = false; // whether what is in the box for the next turn is on its way
  let opening = false; // whether the box shall have the focus once it is there
  let asking = false; // whether the turn that is asked next was asked from here
  const wish = (message) => {
    asking = true;
    model.send(message);
  };
  const next = drawWriter("Next turn", "Reply", (prompt) => {
    sent = true;
    next.settle(true);
    wish({ kind: "reply", prompt });
  });
  next.element.classList.add("famnb-reply");
  next.area.placeholder = "Reply, with the settings that the form has now";
  const hint = make("span", "famnb-hint");
  next.bar.append(hint);
  const toggle = button("famnb-toggle", "Continue", "", () => {
    opening = !model.get("talking");
    model.send({ kind: "talk", on: opening });
  });
  toggle.title = "Reply, edit a turn, ask again, go back to another version";
  const settle = () => {
    const [busy, talking, fault] = ["busy", "talking", "fault"].map((name) => model.get(name));
    el.classList.toggle("famnb-talking", talking);
    toggle.hidden = !model.get("turns");
    toggle.setAttribute("aria-expanded", talking);
    toggle.setAttribute("aria-pressed", talking);
    if (busy && sent) next.area.value = "";
    sent &&= !busy;
    hint.textContent = busy ? "" : fault;
    next.settle(busy || Boolean(fault));
    for (const turn of drawn) turn.settle(busy);
    if (!talking || !opening) return;
    opening = false;
    next.area.focus();
  };
  const keys = (event) => {
    if (event.key !== "Escape" || !model.get("busy") || event.defaultPrevented) return;
    event.preventDefault();
    event.stopPropagation();
    stop();
  };
  el.addEventListener("keydown", keys);
  const names = ["change:busy", "change:talking", "change:turns", "change:fault"];
  for (const name of names) model.on(name, settle);

  const ask = (pane, group, { call, last }) => {
    const decide = (name, label, approved, rest) =>
      button(
        `famnb-decide ${name}`,
        label,
        "",
        once(() => {
          for (const element of group.querySelectorAll("button")) element.disabled = true;
          model.send({ kind: "decide", pane: pane.id, call, approved, rest });
        }),
      );
    group.append(decide("famnb-send", "Approve", true, false), decide("", "Decline", false, false));
    if (!last) group.append(decide("", "Approve all", true, true), decide("", "Decline all", false, true));
  };

  const manage = (pane, head) => {
    const [turn, version, versions, text] = pane.turn;
    const go = (name, label, arrow, to) => {
      const element = button(`famnb-version ${name}`, label, "", () => model.send({ kind: "version", turn, version: to }));
      element.textContent = arrow;
      element.outOfRange = to < 0 || to >= versions;
      return element;
    };
    const edit = button("famnb-edit", "Edit", "", () => {
      const asked = [...head.parentElement.querySelectorAll(":scope > .famnb-asked")].at(-1);
      const close = () => {
        writer.element.remove();
        asked.hidden = edit.open = edit.disabled = false;
        edit.focus();
      };
      const writer = drawWriter("Say instead", "Ask this instead", (prompt) => wish({ kind: "edit", turn, prompt }));
      writer.bar.append(button("famnb-cancel", "Cancel", "Esc", close));
      writer.element.addEventListener("keydown", (event) => {
        if (event.key !== "Escape") return;
        event.preventDefault();
        event.stopPropagation();
        close();
      });
      writer.area.value = text;
      writer.settle();
      asked.hidden = edit.open = edit.disabled = true;
      asked.after(writer.element);
      writer.area.focus();
    });
    const again = button("famnb-again", "Regenerate", "", once(() => wish({ kind: "again", turn })));
    again.title = "Ask again, with the settings that the form has now";
    const moves = [go("famnb-back", "Previous version", "‹", version - 1), go("famnb-forth", "Next version", "›", version + 1)];
    const position = make("span", "famnb-place", moves[0], `${version + 1} of ${versions}`, moves[1]);
    const group = make("span", "famnb-turn", versions > 1 ? position : null, edit, again);
    group.setAttribute("role", "group");
    group.setAttribute("aria-label", `Turn ${turn + 1}`);
    head.append(group);
    return (busy) => {
      group.hidden = busy;
      edit.disabled = Boolean(edit.open);
      for (const move of moves) move.disabled = move.outOfRange;
    };
  };

  settle();
  return {
    element: next.element,
    area: next.area,
    toggle,
    settle,
    taken: () => {
      sent = false;
      asking &&= model.get("busy");
      settle();
    },
    // Whoever asks reads the answer from its beginning, which may be out of sight.
    arrive: (drawn) => {
      if (!asking || !drawn) return;
      asking = false;
      drawn.element.scrollIntoView({ block: "start" });
    },
    lose: () => {
      for (const element of el.querySelectorAll(":is(.famnb-turn, .famnb-verdict, .famnb-reply) button")) element.disabled = true;
      hint.textContent = "The kernel has ended: run this cell again.";
    },
    draw: (pane, head, flow) => {
      const manages = pane.turn && manage(pane, head);
      for (const [index, block] of pane.blocks.entries()) if (block.kind === "verdict") ask(pane, flow.children[index], block);
      const turn = { settle: (busy) => manages?.(busy), end: () => drawn.delete(turn) };
      drawn.add(turn);
      turn.settle(model.get("busy"));
      return turn;
    },
    end: () => {
      el.removeEventListener("keydown", keys);
      for (const name of names) model.off(name, settle);
    },
  };
}

// ---- End of the conversation.

export default () => {
  let panes = []; // what is known, in the shape of a snapshot
  let sequence = null; // of the last message that was understood; null: a snapshot is needed
  const views = new Set();
  let heard = false; // whether the kernel acknowledged the last stop
  let asked = 0; // when a snapshot was asked for last

  // Question and answer may both be dropped on the way, so it is asked again for as long as there is news.
  const ask = (model) => {
    if (asked && performance.now() - asked < ASK_AGAIN_MS) return;
    asked = performance.now();
    model.send({ kind: "ready", page: PAGE });
  };

  const finish = (drawn) => {
    drawn?.end();
    drawn?.beside?.end();
  };

  // What is drawn anew in place of a pane's button that has the focus gets it.
  const focusing = (view, change) => {
    const active = document.activeElement;
    const before = [...view.drawn.values()].find(({ element }) => element.contains(active));
    change();
    if (before === undefined) return;
    const same = ({ turn }) => turn !== undefined && turn === before.turn;
    const pane = (view.drawn.get(before.id) ?? [...view.drawn.values()].find(same))?.element;
    const buttons = [...(pane?.querySelectorAll("button:enabled, [tabindex]") ?? [])].filter((element) => element.checkVisibility());
    const alike = (name) => buttons.find((element) => active.classList.contains(name) && element.classList.contains(name));
    const twin = buttons.find((element) => element.className === active.className) ?? alike("famnb-version");
    const writing = [view.talk?.area, view.box?.area].find((area) => area?.checkVisibility());
    // A key that is held down must not decide about the next call too.
    const question = active.closest(".famnb-verdict") && (pane?.querySelector(".famnb-verdict") ?? writing);
    const target = question ?? twin ?? (view.talk ? writing : (buttons[0] ?? writing));
    target?.focus({ preventScroll: true });
  };

  const draw = (view) =>
    focusing(view, () => {
      view.drawn.forEach(finish);
      view.drawn = new Map(panes.map((pane) => [pane.id, drawPane(pane, view)]));
      view.flow.replaceChildren(...[...view.drawn.values()].map((drawn) => drawn.element));
      (view.board ?? view.talk)?.settle();
      view.talk?.arrive(view.drawn.get(panes.find(({ running }) => running)?.id));
    });

  // One pane among others has ended: the others are left alone.
  const renew = (view, pane) =>
    focusing(view, () => {
      const before = view.drawn.get(pane.id);
      finish(before);
      const drawn = drawPane(pane, view);
      view.drawn.set(pane.id, drawn);
      before.element.replaceWith(drawn.element);
      (view.board ?? view.talk)?.settle();
    });

  const hear = (model, message) => {
    if (message.kind === "stopping") {
      heard = true;
    } else if (message.kind === "taken") {
      for (const view of views) {
        view.box?.settle();
        view.talk?.taken();
      }
    } else if (message.kind === "snapshot") {
      sequence = message.seq;
      asked = 0;
      panes = message.panes;
      views.forEach(draw);
    } else if (message.kind === "changes") {
      if (sequence === null || message.seq !== sequence + 1) {
        sequence = null;
        ask(model);
        return;
      }
      sequence = message.seq;
      const touched = [];
      for (const pane of panes.filter((pane) => pane.id in message.panes)) {
        const drawn = [...views].map((view) => view.drawn.get(pane.id));
        for (const [change, ...details] of message.panes[pane.id]) changes[change](pane, drawn, ...details);
        touched.push(...drawn);
      }
      for (const drawn of touched) drawn.settle();
      for (const pane of message.anew ?? []) {
        const index = panes.findIndex(({ id }) => id === pane.id);
        pane.blocks ??= panes[index].blocks; // null: the changes have shown them already
        panes[index] = pane;
        for (const view of views) renew(view, pane);
      }
    }
  };

  const lose = () => {
    for (const pane of panes.filter((pane) => pane.running)) {
      pane.lost = true;
      for (const view of views) view.drawn.get(pane.id)?.settle();
    }
    for (const view of views) {
      view.box?.lose();
      view.talk?.lose();
    }
  };

  const stop = (model, ids) => {
    heard = false;
    for (const id of ids.length ? ids : [""]) model.send({ kind: "stop", pane: id });
    for (const pane of panes.filter((pane) => ids.includes(pane.id))) {
      pane.stopping = true;
      for (const view of views) view.drawn.get(pane.id).settle();
    }
    if (!model.get("blocking")) return;
    setTimeout(() => {
      if (heard || !panes.some((pane) => pane.running)) return;
      interruptKernel(model.get("kernel_id")).catch((error) => {
        const text = `The kernel is busy and could not be interrupted from here (${error.message}): press the notebook's stop button.`;
        for (const view of views) for (const id of ids) view.drawn.get(id)?.say(text);
      });
    }, ACKNOWLEDGE_MS);
  };

  return {
    initialize({ model }) {
      model.on("msg:custom", (message) => hear(model, message));
      // Jupyter's models say so when their kernel is gone; others never do.
      model.on("comm_live_update", lose);
      ask(model);
    },
    render({ model, el }) {
      const flow = make("div", "famnb-panes");
      const board = model.get("labels") ? drawBoard(model) : undefined;
      const running = () => panes.filter((pane) => pane.running).map((pane) => pane.id);
      const talk = model.get("turns") === undefined ? undefined : drawTalk(model, el, () => stop(model, running()));
      const view = { flow, board, talk, drawn: new Map(), stop: (id) => stop(model, [id]) };
      const send = (prompt) => {
        view.box.lock();
        model.send({ kind: "send", prompt });
      };
      const composing = model.get("prompt") !== undefined;
      view.box = composing ? drawPrompt(model, send, () => stop(model, running()), board, talk) : null;
      (board ? el : view.box?.element)?.addEventListener("keydown", view.box.keys);
      flow.classList.toggle("famnb-board", Boolean(board));
      el.classList.add("famnb");
      el.append(...[view.box?.element, flow, talk?.element].filter(Boolean));
      views.add(view);
      draw(view);
      return () => {
        views.delete(view);
        view.drawn.forEach(finish);
        view.box?.end();
        (board ?? talk)?.end();
      };
    },
  };
};
