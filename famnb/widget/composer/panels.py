"""What the panels beside the composer's chat show: code that repeats it, past calls, and presets."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from famnb.client.client import BaseClient
from famnb.formatting import format_duration
from famnb.record import Ledger, RecordedCall
from famnb.request import Request
from famnb.widget.form import images
from famnb.widget.form.python_code import Target, available_kinds, write_cell
from famnb.widget.form_tool import CodeView
from famnb.widget.html import sanitize
from famnb.widget.html.sanitize import SafeHtml
from famnb.widget.runtime.view import View

BODY = "JSON body"
"""The kind of code that shows exactly what is sent."""


class CallRowView(View, frozen=True):
    """A past call in the list; its key is its id."""

    key: str
    when: str
    prompt: str
    facts: str


class HistoryView(View, frozen=True):
    """Past calls, and the one that is looked at."""

    filter: str
    rows: tuple[CallRowView, ...]
    note: str
    call: str
    """The id of the call that is looked at; empty if none is."""
    transcript: SafeHtml


class PresetsView(View, frozen=True):
    """Presets by name, and what became of the last action."""

    names: tuple[str, ...]
    selected: str = ""
    note: str = ""


def write_code(request: Request, client: BaseClient, kind: str) -> tuple[str, CodeView]:
    """Return code that sends a request again by a client, of that kind if there is such code for it, and its view."""
    kinds = (*available_kinds(request, client.endpoints), BODY)
    # An SDK that does not speak the new endpoint gives way to the one that does.
    kind = kind if kind in kinds else kinds[-2]
    if kind == BODY:
        return write_body(request.body(), f"POST {client.endpoints[request.endpoint].path}", kinds)
    target = Target.of_client(client, request.endpoint)
    variable, code = target.key_variable, write_cell(request, kind=kind, target=target)
    if not variable:
        note = "It runs as it stands; no key is sent."
    elif os.getenv(variable):
        note = f"It runs as it stands; the key is read from {variable}."
    else:
        note = f"It runs once {variable} holds the key, which this kernel's environment does not have."
    if client.engine.credential.has_more_secrets:
        note += " · Its other secret headers and parameters are left out."
    return code, _view_code(code, kinds, kind, note)


def write_body(body: Mapping[str, Any], note: str, kinds: tuple[str, ...] = (BODY,)) -> tuple[str, CodeView]:
    """Return the body of a request, right or wrong, as JSON, and its view."""
    code = json.dumps(body, indent=2, ensure_ascii=False)
    return code, _view_code(code, kinds, BODY, note)


def _view_code(code: str, kinds: tuple[str, ...], kind: str, note: str) -> CodeView:
    language = {BODY: "json", "curl": "bash"}.get(kind, "python")
    html = sanitize.render_code(images.shorten_image_data(code), language)
    return CodeView(kinds=kinds, kind=kind, note=note, html=html, is_cell=kind != BODY)


# More than anyone scrolls through, and few enough to be drawn without a pause; older ones are found by the filter.
HISTORY_LENGTH = 100
"""Calls in the list."""
_SEARCHED = ("prompt", "model", "endpoint", "standing", "error")
"""The columns of a call in which a text is looked for, beside its request's body."""


def list_calls(ledger: Ledger, text: str) -> HistoryView:
    """Return the latest calls that hold a text in any case."""
    conditions = [f"instr(lower({column}), lower(?))" for column in _SEARCHED]
    conditions.append("request_key IN (SELECT key FROM requests WHERE instr(lower(body), lower(?)))")
    # In the body, which is JSON, quotes and line ends are escaped.
    values = [*[text.strip()] * len(_SEARCHED), json.dumps(text.strip(), ensure_ascii=False)[1:-1]]
    found = ledger.select(" OR ".join(conditions), values, limit=HISTORY_LENGTH)
    rows, note = tuple(map(_row_view, reversed(found))), "" if found else "There are no such calls."
    return HistoryView(filter=text, rows=rows, note=note, call="", transcript=SafeHtml(""))


def _row_view(row: Any) -> CallRowView:
    # For the row alone: this reads neither the body nor the recorded reads.
    started_at = RecordedCall(row=row, body={}).started_at.astimezone()
    duration = "" if row["e2e_s"] is None else format_duration(row["e2e_s"], brief=True)
    return CallRowView(
        key=row["id"],
        when=f"{started_at:%d %b %H:%M}",
        prompt=" ".join(sanitize.visible(row["prompt"] or "").split())[:200],
        facts=" · ".join(str(fact) for fact in (row["endpoint"], row["model"], row["standing"], duration) if fact),
    )
