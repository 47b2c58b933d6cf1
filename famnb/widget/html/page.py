"""A page to be shared: one HTML file that needs no network and no script, and holds the data that it was made of."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from famnb.atomic_write import atomic_write
from famnb.errors import InvalidRequest
from famnb.widget.html.sanitize import SafeHtml

# Nothing is loaded and nothing runs, whatever a model wrote: images and style are part of the page.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_STYLE = SafeHtml(Path(__file__).with_suffix(".css").read_text(encoding="utf-8"))

_PAGE = SafeHtml(
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
    f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    '<meta name="viewport" content="width=device-width,initial-scale=1">'
    '<meta name="referrer" content="no-referrer">'
    "<title>{title}</title><style>{style}</style></head>"
    "<body><main><header>{head}<nav>{links}</nav></header>{sections}<footer>{foot}</footer></main>{data}</body></html>\n"
)
# A template is neither shown nor run. In JSON, `<` stands inside of texts alone, where it has an escape.
_DATA = SafeHtml('<template id="famnb-data">{}</template>')
_DATA_PATTERN = re.compile(r'<template id="famnb-data">(.*?)</template>', re.DOTALL)
_LINK = SafeHtml('<a href="#{anchor}">{title}</a>')
_SECTION = SafeHtml('<section><h2 id="{anchor}">{title}</h2>{html}</section>')


class PageSection(NamedTuple):
    """A part of the page under a heading of its own."""

    title: str
    html: SafeHtml


def page_html(
    title: str, head: SafeHtml, sections: Sequence[PageSection], *, foot: str = "", data: bytes = b""
) -> SafeHtml:
    """Return the whole file: `head` below the title, links to the sections, the sections, `foot`, and JSON to be read.

    With `data`, the foot says how the file is opened again.
    """
    again = " famnb.open(…) opens it again." if data else ""
    json = data.decode().translate({ord(character): f"\\u{ord(character):04x}" for character in "<>&"})
    anchored = [(f"s{number}", section) for number, section in enumerate(sections, start=1)]
    return _PAGE.format(
        title=title,
        style=_STYLE,
        head=head,
        links=SafeHtml().join(_LINK.format(anchor=anchor, title=section.title) for anchor, section in anchored),
        sections=SafeHtml().join(
            _SECTION.format(anchor=anchor, title=section.title, html=section.html) for anchor, section in anchored
        ),
        foot=f"{foot} This file is complete in itself: it loads nothing and runs nothing.{again}",
        data=_DATA.format(SafeHtml(json)) if data else "",
    )


def write_page(path: str | os.PathLike[str], page: SafeHtml) -> Path:
    """Write a page, replacing the file if it exists; return its path. Raises OSError."""
    target = Path(path).expanduser()
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder: give the path of a file, such as {target / 'page.html'}")
    target.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(target, page.encode(), shared=True)
    return target


def read_data(path: str | os.PathLike[str]) -> bytes:
    """Return the JSON of a page that was written with `data`. Raises InvalidRequest if there is none, OSError."""
    file = Path(path).expanduser()
    found = _DATA_PATTERN.search(file.read_text(encoding="utf-8", errors="replace"))
    if found is None:
        raise InvalidRequest(
            f"{file} holds nothing to open; expected a file that famnb saved, such as by `composer.save(path)`"
        )
    return found[1].encode()
