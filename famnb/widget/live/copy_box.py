"""A text to look at and to copy; it is sent to the page as a message, so that none of it is saved with the notebook."""

from __future__ import annotations

from typing import Any

import anywidget
import traitlets

COPY_TABS_CLASS = "famnb-inspector"
"""The class of tabs in which such texts stand."""


class CopyBox(anywidget.AnyWidget):
    """A text in a box that scrolls, with a button that copies the whole of it."""

    label = traitlets.Unicode("").tag(sync=True)
    """What the text is, for the button and for screen readers."""

    bare = traitlets.Bool(False).tag(sync=True)
    """Whether there is only the button, the text being shown elsewhere."""

    def __init__(self, label: str, *, bare: bool = False) -> None:
        super().__init__(label=label, bare=bare)
        self._text = self._shown = ""
        self.on_msg(self._on_message)

    def show(self, text: str, *, preview: str | None = None) -> None:
        """Show a text; `shown` is what there is to see of one that is too long to look at."""
        self._text, self._shown = text, text if preview is None else preview
        self._say()

    @property
    def text(self) -> str:
        """What is copied."""
        return self._text

    def _say(self) -> None:
        whole = not self.bare and self._shown == self._text
        self.send({"kind": "text", "text": "" if self.bare else self._shown, "whole": whole})

    def _on_message(self, _widget: object, message: dict[str, Any], _buffers: object) -> None:
        match message:
            case {"kind": "ready"}:
                self._say()
            case {"kind": "copy"}:
                self.send({"kind": "copied", "text": self._text})
            case _:
                pass

    _esm = """
    async function copy(text) {
      try {
        await navigator.clipboard.writeText(text);
      } catch {
        // Away from https and localhost a page has no clipboard of its own, but may copy what is selected.
        const area = document.createElement("textarea");
        area.value = text;
        area.style.cssText = "position:fixed;opacity:0";
        document.body.append(area);
        area.select();
        const done = document.execCommand("copy");
        area.remove();
        if (!done) throw new Error("the browser does not let this page copy");
      }
    }

    export default {
      render({ model, el }) {
        const text = document.createElement("pre");
        text.tabIndex = 0;
        text.setAttribute("role", "region");
        text.setAttribute("aria-label", model.get("label"));
        const button = document.createElement("button");
        button.type = "button";
        button.className = "famnb-button famnb-copy";
        button.textContent = "Copy";
        button.setAttribute("aria-label", `Copy ${model.get("label")}`);
        button.dataset.lmSuppressShortcuts = "true"; // else the notebook takes Enter for its own
        const state = document.createElement("span");
        state.setAttribute("role", "status");
        let whole = true;
        let timer = 0;
        const finish = async (words) => {
          let said = "Copied";
          try {
            await copy(words);
          } catch (error) {
            said = `Not copied: ${error.message}`;
          }
          state.textContent = said;
          clearTimeout(timer);
          timer = setTimeout(() => (state.textContent = ""), 4000);
          button.focus();
        };
        const hear = (message) => {
          if (message.kind === "text") {
            if (text.textContent !== message.text) text.textContent = message.text;
            whole = message.whole;
          } else if (message.kind === "copied") {
            finish(message.text);
          }
        };
        button.addEventListener("click", () => {
          if (whole) finish(text.textContent);
          else model.send({ kind: "copy" });
        });
        const bar = document.createElement("div");
        bar.append(button, state);
        el.classList.add("famnb", "famnb-copyable");
        el.classList.toggle("famnb-bare", model.get("bare"));
        el.append(bar, ...(model.get("bare") ? [] : [text]));
        model.on("msg:custom", hear);
        model.send({ kind: "ready" });
        return () => {
          model.off("msg:custom", hear);
          clearTimeout(timer);
        };
      },
    };
    """
    _css = """
    /* The names of tabs that are not open are too faint to be read by everybody. */
    .famnb-inspector .lm-TabBar-tabLabel { color: var(--jp-ui-font-color1, inherit); }
    .famnb-copyable { position: relative; }
    .famnb-copyable > div {
      position: absolute; top: 6px; right: 6px; display: flex; flex-direction: row-reverse; align-items: center;
      gap: 8px;
    }
    .famnb-copyable.famnb-bare > div { position: static; flex-direction: row; min-height: 28px; }
    .famnb.famnb-copyable pre {
      max-height: 28em; min-height: 1.5em; margin: 0; padding: 8px 12px; padding-right: 5em; overflow: auto;
      border: 1px solid var(--jp-border-color2, rgba(128, 128, 128, 0.4)); border-radius: 6px;
      background: var(--jp-cell-editor-background, rgba(128, 128, 128, 0.06)); color: inherit;
      font: var(--jp-code-font-size, 13px) / 1.45 var(--jp-code-font-family, monospace);
      white-space: pre-wrap; overflow-wrap: anywhere; word-break: normal; user-select: text;
    }
    .famnb-copyable .famnb-copy {
      padding: 1px 10px; border: 1px solid var(--jp-border-color2, rgba(128, 128, 128, 0.4)); border-radius: 6px;
      background: var(--jp-layout-color1, Canvas); color: inherit; font: inherit; cursor: pointer;
    }
    .famnb-copyable .famnb-copy:focus-visible, .famnb-copyable pre:focus-visible {
      outline: 2px solid var(--jp-brand-color1, #1976d2); outline-offset: -1px;
    }
    """
