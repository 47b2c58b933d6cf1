"""The front end's modules and style sheets, and how they reach a page: once a kernel, without a bundler.

    front/tools/board.js ── read_modules ── text of a SharedText model ── loader.js ── blob URLs, imports first

Each module stays a module with a scope of its own. In an IPython kernel the text is sent once for each kind of tool, as
a model that all tools of the kind refer to; loader.js makes a URL of each source only once a page, so tools share the
modules that both of them import. It is not asked for by a message: a kernel that runs a cell may not answer.
"""

from __future__ import annotations

import functools
import json
import posixpath
import re
from pathlib import Path

import traitlets
from ipywidgets import Widget

FRONT = Path(__file__).parents[1] / "front"
"""The folder of the front end: ES modules and style sheets."""
# The only form of import that the modules may use (eslint has the rule).
_IMPORT = re.compile(r'from "(\.[^"]+)"')
_STYLE_ORDER = ("theme.css", "base.css")


@functools.cache
def read_modules(entry: str) -> str:
    """Return a module of the front end and all that it imports as JSON: [name, source] each, imports first.

    In the sources an imported module is named as "front:NAME", with NAME relative to the folder `front`.
    """
    sources: dict[str, str] = {}

    def collect(name: str) -> None:
        if name in sources:
            return

        def resolve(path: str) -> str:
            return posixpath.normpath(posixpath.join(posixpath.dirname(name), path))

        source = (FRONT / name).read_text(encoding="utf-8")
        for path in _IMPORT.findall(source):
            collect(resolve(path))
        sources[name] = _IMPORT.sub(lambda match: f'from "front:{resolve(match[1])}"', source)

    collect(entry)
    return json.dumps(list(sources.items()))


@functools.cache
def read_style() -> str:
    """Return the style sheet of all tools: the host's theme, what all share, then each component's."""
    folder = FRONT / "style"
    names = [*_STYLE_ORDER, *sorted(path.name for path in folder.glob("*.css") if path.name not in _STYLE_ORDER)]
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in names)


@functools.cache
def read_loader(entry: str = "") -> str:
    """Return the module that loads a tool's front end, with that of `entry` in it where it is not shared."""
    loader = (FRONT / "runtime" / "loader.js").read_text(encoding="utf-8")
    return loader.replace("const MODULES = null;", f"const MODULES = {read_modules(entry)};") if entry else loader


class SharedText(Widget):  # type: ignore[misc]  # ipywidgets has no types
    """A text for the page, which other widgets refer to: a model without a view."""

    text = traitlets.Unicode().tag(sync=True)


_shared_texts: dict[str, SharedText] = {}


def share_text(text: str) -> SharedText:
    """Return the model of a text, the same one for as long as the kernel has not closed it."""
    shared = _shared_texts.get(text)
    # `Widget.close_all` closes these as well.
    if shared is None or shared.comm is None:
        shared = _shared_texts[text] = SharedText(text=text)
    return shared
