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
_STYLE = """
:root{color-scheme:light dark;--ink:#1f2328;--soft:#59636e;--line:#d9dee3;--ground:#fff;--card:#f6f8fa;--mark:#0072b2;
--warn:#fff6e0;--warn-line:#e69f00}
@media screen and (prefers-color-scheme:dark){:root{--ink:#e8ecf0;--soft:#a5afba;--line:#343c45;--ground:#111418;
--card:#1a1f25;--mark:#56b4e9;--warn:#2c2410;--warn-line:#e69f00}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);font:15px/1.55 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:1020px;margin:0 auto;padding:40px 24px 64px}
header p{color:var(--soft);margin:0}
h1{font-size:30px;line-height:1.2;margin:2px 0 6px;letter-spacing:-0.01em;overflow-wrap:anywhere}
h2{font-size:19px;margin:44px 0 10px;padding-top:14px;border-top:1px solid var(--line)}
h3{font-size:15px;margin:22px 0 6px}
nav{margin:18px 0 0;font-size:13.5px;display:flex;flex-wrap:wrap;gap:4px 16px}
a{color:var(--mark);text-decoration:none}a:hover{text-decoration:underline}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(135px,1fr));gap:10px;margin:22px 0 0;padding:0}
.facts div{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:10px 14px}
.facts dt{color:var(--soft);font-size:12.5px}
.facts dd{margin:2px 0 0;font-size:18px;font-weight:600;overflow-wrap:anywhere}
.banner.banner{color:var(--ink);background:var(--warn);border-left:4px solid var(--warn-line);
border-radius:4px;padding:10px 14px;margin:22px 0 0}
.lines{padding:0;list-style:none;margin:0}
.lines li{border-left:3px solid var(--mark);padding:3px 0 3px 14px;margin:0 0 10px}
header .verdict p{color:inherit}.verdict{margin:22px 0 0}.verdict>div>p:first-child{font-size:19px;line-height:1.4}
.soft{color:var(--soft);font-size:13.5px}
.wide{overflow-x:auto;margin:10px 0}
table{font-size:13.5px;width:100%;border-collapse:collapse;font-variant-numeric:tabular-nums}
caption{text-align:left;color:var(--soft);font-size:13px;padding-bottom:4px}
th{font-weight:600;color:var(--soft);text-align:left;border-bottom:1px solid var(--line)}
td,th{padding:6px 12px 6px 0;vertical-align:top}td{border-bottom:1px solid var(--line)}
th{vertical-align:bottom}
td:last-child,th:last-child{padding-right:0}td:first-child{min-width:9em;overflow-wrap:anywhere}
figure{margin:16px 0;text-align:center}figure img{max-width:100%;height:auto}
pre{white-space:pre-wrap;overflow-wrap:anywhere;font-size:13px}
details{border:1px solid var(--line);border-radius:8px;padding:8px 14px;margin:10px 0}
summary{cursor:pointer;font-weight:600}
.answers{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,400px),1fr));gap:12px;margin-top:10px}
.answer{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:10px 14px;min-width:0}
.answer>h4{margin:0 0 4px;font-size:13.5px;color:var(--mark)}
footer{margin-top:48px;padding-top:14px;border-top:1px solid var(--line);color:var(--soft);font-size:13px}
[style^="text-align:left"]{overflow-wrap:anywhere}
@page{size:A4;margin:14mm}
@media print{body{font-size:12px}main{max-width:none;padding:0}h1{font-size:24px}
table{font-size:10.5px}.wide,[style*="overflow-x"]{overflow:visible!important}
td,th{padding:4px 8px 4px 0}td:first-child{min-width:6em}
nav{display:none}footer{margin-top:12px;break-before:avoid}h2{margin-top:26px}h2,h3,summary{break-after:avoid}
figure,tr,.facts div,.banner,.lines li{break-inside:avoid}a{color:inherit}
figure img{width:100%;max-height:230mm;object-fit:contain}
.facts{grid-template-columns:repeat(6,1fr);gap:6px}.facts div{padding:6px 8px}.facts dd{font-size:13px}
.verdict>div>p:first-child{font-size:14px}.soft{font-size:11px}
.answers{grid-template-columns:repeat(auto-fit,minmax(31%,1fr));gap:8px}.answer{font-size:10.5px;padding:6px 8px}
/* What is folded on the screen cannot be unfolded on paper; Chromium from 131 on. */
details::details-content{content-visibility:visible;block-size:auto}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
"""

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
    json = data.decode()
    for character in "<>&":
        json = json.replace(character, f"\\u{ord(character):04x}")
    anchored = [(f"s{number}", section) for number, section in enumerate(sections, start=1)]
    return _PAGE.format(
        title=title,
        style=SafeHtml(_STYLE),
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
