"""What all widgets share: the front end's modules joined into one, and a base class that the page can always reach.

A tool is one widget, drawn by plain ES modules:

    front/form.js, talk.js, … ── join_front ── `_esm` ──► page ── messages ──► `_on_message` ── Python decides
                                                           ▲                                        │
                                                           └── snapshot, changes: numbered ◄────────┘

- Python keeps the truth (requests, validation, calls, rendering and cleaning of Markdown) and describes what is to be
  drawn; the page draws it and reports what the user does. Of the widget's model it uses only `get`, `set`,
  `save_changes`, `on`, `off` and `send`, so that it works in JupyterLab, Notebook, VS Code, Colab and marimo.
- What is said goes by messages, not traits: nothing of it is saved as widget state. Each message has a number; a page
  that is new or misses one says `ready` and gets a snapshot (`live_view` has the rules). `stream.js: liveWidget` is
  the page's half, and takes a "dress": what a tool adds to the panes, such as composer.js and board.js. Tools without
  streams are a `described.DescribedWidget`, whose page's half is `described.js: describedWidget`.
- The modules import one another as files. They are joined without a bundler, since a widget's `_esm` is one module.
- What is joined is 17 to 75 kB. In an IPython kernel it is sent once, as the text of a model that all widgets refer to,
  and each widget's own `_esm` is loader.js. It is not asked for by a message: a kernel that runs a cell may not answer.
- One style sheet, style.css, whose variables follow the host's theme.
- Without a kernel the output holds plain HTML and text; a page that loses its kernel goes grey and says so.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import anywidget
import traitlets
from IPython import get_ipython
from ipywidgets import widget_serialization

from famnb.widget.runtime.front_end import SharedText, share_text

FRONT = Path(__file__).parents[1] / "front"
"""The folder of the front end: ES modules and style sheets."""
_IMPORT = re.compile(r'^import \{[^}]*\} from "\./([\w.]+)";\n', re.MULTILINE)


def join_front(name: str) -> str:
    """Return a module of the front end and all that it imports as one module, without imports.

    A widget's `_esm` is a single module, and the page serves no folder from which it could import others. All modules
    share one scope then, so no two may declare the same name at their top level.
    """
    sources: dict[str, str] = {}

    def collect(name: str) -> None:
        if name in sources:
            return
        source = (FRONT / name).read_text(encoding="utf-8")
        for imported in _IMPORT.findall(source):
            collect(imported)
        sources[name] = _IMPORT.sub("", source)

    collect(name)
    *imported, last = sources.values()
    return "\n".join([*(re.sub("^export ", "", source, flags=re.MULTILINE) for source in imported), last])


_LOADER = join_front("loader.js")


class BaseWidget(anywidget.AnyWidget):
    """A widget that receives the messages of its page while a cell runs, and after the page was reloaded.

    A class declares its front end as `_esm = join_front("board.js")` and `_css`, both texts.
    """

    _front_module = traitlets.Instance(SharedText, allow_none=True).tag(sync=True, **widget_serialization)
    """What loader.js imports; None where the widget is sent its whole front end."""
    _front_style = traitlets.Instance(SharedText, allow_none=True).tag(sync=True, **widget_serialization)

    def __init__(self, **traits: Any) -> None:
        # With an IPython kernel there is Jupyter's widget manager: in JupyterLab, Notebook, VS Code, Colab, and where
        # their saved state is shown. marimo has none, and loads once by itself what is the same in several widgets.
        if getattr(get_ipython(), "kernel", None) is not None:
            traits |= {"_front_module": share_text(str(self._esm)), "_front_style": share_text(str(self._css))}
            traits |= {"_esm": _LOADER, "_css": ""}
        super().__init__(**traits)

    def _send(self, msg: Any, buffers: Any = None) -> None:
        # `_send` is private to ipywidgets (8.1): all messages and trait updates go through it, and
        # there is no public place for this.
        super()._send(msg, buffers)
        # `_reply_subshell_id` is private to ipykernel (7.4, comm/comm.py): each message that is sent sets it to
        # the subshell whose request is being handled, and the next message from the page is then handled by that one
        # instead of the one that the page asks for. A running cell keeps that subshell busy, and a reload of the page
        # deletes it: no message of the page would arrive any more. Other versions and kernels have no such attribute.
        if self.comm is not None:
            self.comm.__dict__.pop("_reply_subshell_id", None)
