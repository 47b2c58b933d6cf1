"""Keeps a notebook from taking the keys that are meant for a list of choices or a button.

MERGED: What every view of ours shares that must be heard while a cell runs, and after its page was reloaded.
MERGED: What goes wrong in a callback, in words under the widget, where a log would hide it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import anywidget

from famnb.widget.html import notices

SHORTCUT_CLASS = "famnb-keys"
"""The class of boxes whose lists, buttons and boxes to tick keep their keys."""


class ShortcutGuard(anywidget.AnyWidget):
    """Shows nothing; while it is on the page, controls in boxes of the class hear their own keys, and lists align.

    A button that opens something says whether it is open.
    """

    _esm = f"""
    export default {{
      render() {{
        const keys = ".{SHORTCUT_CLASS} :is(select, button, input[type=checkbox])";
        const keep = ({{ target }}) => {{
          if (!target.matches?.(keys)) return;
          target.dataset.lmSuppressShortcuts = "true";
          if (target.matches(".widget-toggle-button")) {{
            target.setAttribute("aria-expanded", target.classList.contains("mod-active"));
          }}
        }};
        const later = (event) => requestAnimationFrame(() => keep(event));
        document.addEventListener("focusin", keep);
        document.addEventListener("click", later);
        return () => {{
          document.removeEventListener("focusin", keep);
          document.removeEventListener("click", later);
        }};
      }},
    }};
    """
    # The arrow of an ipywidgets list is black, also on a dark page; the browser's own is not.
    _css = f"""
    .{SHORTCUT_CLASS} select[size] {{ font: 12px var(--jp-code-font-family, monospace); }}
    .{SHORTCUT_CLASS} select:not([size]) {{ appearance: auto; background-image: none; }}
    """


FRONT = Path(__file__).parents[1] / "front"
"""The folder of the pages' own code and style."""


class BaseWidget(anywidget.AnyWidget):
    """A widget whose page is heard also where ipykernel remembers that another subshell handled it."""

    def _send(self, msg: Any, buffers: Any = None) -> None:
        super()._send(msg, buffers)
        # ipykernel 7.4 has what the page says next handled by the subshell whose request came last before this message.
        # A reload deletes that one, and nothing would be heard any more; a running cell keeps it busy. Without this
        # memory it is the subshell that the page asks for.
        if self.comm is not None:
            self.comm.__dict__.pop("_reply_subshell_id", None)


CallbackGuard: TypeAlias = Callable[[Callable[[], object]], Callable[[], None]]
"""Makes a callback one whose errors are shown."""


def guard_callbacks(guard: threading.RLock, trouble: Any) -> CallbackGuard:
    """What makes a callback one that holds the guard, and whose errors stand in that HTML widget."""

    def guarded(callback: Callable[[], object]) -> Callable[[], None]:
        def call() -> None:
            with guard:
                try:
                    callback()
                except Exception as error:
                    trouble.value = notices.failure(error)

        return call

    return guarded
