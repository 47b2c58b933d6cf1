// The turns of a conversation: each can be copied, edited, asked again and changed for another version, and tool calls
// wait for approval.

import { button, copyButton, make, once } from "./dom.js";
import { sendByKeys } from "./prompt.js";

/** A box to say something else in the place of a turn. */
function drawEditor(text, enterSends, ask, close) {
  const area = Object.assign(make("textarea", "famnb-prompt"), { value: text });
  const send = () => {
    if (!sending.disabled) ask(area.value);
  };
  const sending = button("famnb-send", "Ask this instead", "", once(send));
  const bar = make("div", "famnb-bar", sending, button("famnb-cancel", "Cancel", "Esc", close));
  const settle = () => (sending.disabled = !area.value.trim());
  area.addEventListener("input", settle);
  sendByKeys(area, send, enterSends);
  const label = make("label", "famnb-field", make("span", "famnb-label", "Say instead"), area);
  const element = make("div", "famnb-rewrite", label, bar);
  element.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation();
    close();
  });
  settle();
  return { element, area };
}

/**
 * Returns what the talk adds to panes; it is part of a dress (see stream.js).
 * @param {{send: (message: object) => void}} outbox
 * @param {{isBusy: () => boolean, enterSends: () => boolean}} composer
 */
export function dressTurns(outbox, { isBusy, enterSends }) {
  const drawn = new Set();
  let isAsking = false; // whether the turn that is asked next was asked from here
  let isLost = false;
  const wish = (message) => {
    isAsking = true;
    outbox.now(message);
  };

  // The buttons for a tool call that waits.
  const drawQuestion = (pane, group, { call, last }) => {
    const decide = (name, label, approved, rest) =>
      button(
        `famnb-decide ${name}`,
        label,
        "",
        once(() => {
          for (const element of group.querySelectorAll("button")) element.disabled = true;
          outbox.now({ kind: "decide", pane: pane.id, call, approved, rest });
        }),
      );
    group.append(decide("famnb-send", "Approve", true, false), decide("", "Decline", false, false));
    if (!last) group.append(decide("", "Approve all", true, true), decide("", "Decline all", false, true));
  };

  const small = (name, label, title, press) => {
    const element = button(`famnb-small ${name}`, label, "", press);
    if (title) element.title = title;
    return element;
  };

  // What belongs to the prompt of a turn: Copy and Edit.
  const drawPromptTools = (pane, asked) => {
    const [turn, , , text] = pane.turn;
    const edit = small("famnb-edit", "Edit", "Ask something else in its place; this version stays", () => {
      const close = () => {
        editor.element.remove();
        asked.hidden = tools.hidden = false;
        edit.focus();
      };
      const editor = drawEditor(text, enterSends, (prompt) => wish({ kind: "edit", turn, prompt }), close);
      asked.hidden = tools.hidden = true;
      asked.after(editor.element);
      editor.area.focus();
    });
    const copy = copyButton("Copy question", () => text);
    copy.querySelector("button").classList.add("famnb-small");
    const tools = make("span", "famnb-tools", copy, edit);
    return { element: tools, settle: () => (edit.disabled = isBusy() || isLost) };
  };

  // What belongs to the answer of a turn: Regenerate, and its versions.
  const drawAnswerTools = (pane) => {
    const [turn, version, versions] = pane.ending;
    const move = (name, label, arrow, to) => {
      const element = small(`famnb-version ${name}`, label, label, () => outbox.now({ kind: "version", turn, version: to }));
      element.textContent = arrow;
      element.isOut = to < 0 || to >= versions;
      return element;
    };
    const moves = [move("famnb-back", "Previous version", "‹", version - 1), move("famnb-forth", "Next version", "›", version + 1)];
    const place = make("span", "famnb-place", moves[0], `${version + 1} of ${versions}`, moves[1]);
    place.addEventListener("keydown", (event) => {
      const target = { ArrowLeft: moves[0], ArrowRight: moves[1] }[event.key];
      if (target && !target.disabled) target.click();
    });
    const again = small("famnb-again", "Regenerate", "Ask again, with the settings as they are now", once(() => wish({ kind: "again", turn })));
    const element = make("span", "famnb-turn", versions > 1 ? place : null, again);
    element.setAttribute("role", "group");
    element.setAttribute("aria-label", `Turn ${turn + 1}`);
    return {
      element,
      settle: () => {
        again.disabled = isBusy() || isLost;
        for (const button of moves) button.disabled = button.isOut || isBusy() || isLost;
      },
    };
  };

  return {
    draw: (pane, parts) => {
      for (const [index, block] of pane.blocks.entries()) {
        if (block.kind === "verdict") drawQuestion(pane, parts.flow.children[index], block);
      }
      const said = parts.asked.at(-1);
      const tools = [
        pane.turn && said && !pane.running ? drawPromptTools(pane, said) : null,
        pane.ending ? drawAnswerTools(pane) : null,
      ];
      [parts.promptTools, parts.answerTools] = tools.map((tool) => tool?.element);
      const turn = {
        settle: () => tools.forEach((tool) => tool?.settle()),
        end: () => drawn.delete(turn),
      };
      drawn.add(turn);
      turn.settle();
      return turn;
    },
    // What was asked stands first, and what the answer took at its foot, with what can be done about it.
    arrange: (pane, { head, asked, flow, copy, notes, figures, promptTools, answerTools }) => {
      copy.querySelector("button").classList.add("famnb-small");
      const foot = make("div", "famnb-foot", figures, make("span", "famnb-tools", copy, answerTools));
      return [...asked, promptTools, head, flow, ...notes, foot];
    },
    settle: () => {
      for (const turn of drawn) turn.settle();
    },
    /** Returns, once, whether the turn that has begun was asked from here. */
    wasAsked: () => {
      const was = isAsking;
      isAsking = false;
      return was;
    },
    lose: () => {
      isLost = true;
      for (const turn of drawn) turn.settle();
    },
  };
}
