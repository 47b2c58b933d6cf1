"""The panels beside the composer's talk, as the page draws them: code, past calls and presets."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

from famnb.client.client import BaseClient
from famnb.errors import FamnbError, InvalidRequest
from famnb.formatting import format_duration
from famnb.record import Ledger, RecordedCall
from famnb.request import Request
from famnb.widget.composer import presets
from famnb.widget.composer.code_export import available_kinds, write_cell
from famnb.widget.form import images
from famnb.widget.form.draft import Draft
from famnb.widget.form.editor import Editor
from famnb.widget.form.python_code import Target
from famnb.widget.html import sanitize, transcript

BODY = "JSON body"
"""The kind of code that is no code: exactly what is sent."""


class Panels:
    """What the panels show. One is open at a time; that of the code follows the form.

    Every answer is what a panel shows from then on: its `name`, and what the front end's panels.js draws of it.
    """

    def __init__(
        self,
        client: BaseClient,
        editor: Editor,
        *,
        request: Callable[[], Request],
        fill: Callable[[Draft], object],
        open_call: Callable[[RecordedCall], object],
    ) -> None:
        """`request` returns what the code shall send, `fill` and `open_call` fill the form."""
        self._client, self._editor = client, editor
        self._request, self._fill, self._open_call = request, fill, open_call
        ledger = getattr(client, "ledger", None)
        self._ledger = ledger if isinstance(ledger, Ledger) else None
        self._preset_path = presets.default_path()
        self.open_name = ""
        """The panel that is open; empty if none is."""
        self.code = ""
        """The code that was shown last, whole, where the page has only the beginnings of images."""
        self._kind = "famnb"

    def answer(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """Carry out a message of the page; returns what its panel shows now, or None for a message that is none."""
        match message:
            case {"kind": "panel", "name": str(name)}:
                self.open_name = name
                return self.refresh()
            case {"kind": "code", "as": str(kind)}:
                self._kind = kind
                return self._show_code()
            case {"kind": "history", "filter": str(text)}:
                return self._show_history(text.strip())
            case {"kind": "call", "do": str(action), "id": str(call_id)}:
                return self._guard("History", lambda: self._show_call(call_id, action))
            case {"kind": "preset", "do": str(action), "name": str(name)}:
                return self._guard("Presets", lambda: self._use_preset(action, name))
            case _:
                return None

    def refresh(self) -> dict[str, Any] | None:
        """Return what the open panel shows now."""
        match self.open_name:
            case "Code":
                return self._show_code()
            case "History":
                return self._show_history("")
            case "Presets":
                return self._guard("Presets", lambda: self._show_presets())
            case _:
                return None

    @staticmethod
    def _guard(name: str, action: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Show in the panel itself why its action failed; any other error is a defect, and shows below the prompt."""
        try:
            return action()
        except (FamnbError, KeyError, OSError) as error:
            return {"name": name, "fault": str(error)}

    # Code

    def _show_code(self) -> dict[str, Any]:
        try:
            request = self._request()
        except InvalidRequest as fault:
            reading = self._editor.reading
            self.code = json.dumps(reading.body, indent=2, ensure_ascii=False)
            note = f"There is no code yet: {fault}"
            return self._code_panel([BODY], BODY, note, f"POST {reading.path}, not valid yet")
        kinds = [*available_kinds(request, self._client.endpoints), BODY]
        # An SDK that does not speak the new endpoint gives way to the one that does.
        kind = self._kind if self._kind in kinds else kinds[-2]
        if kind == BODY:
            self.code = json.dumps(request.body(), indent=2, ensure_ascii=False)
            return self._code_panel(kinds, kind, f"POST {self._editor.reading.path}", "")
        target = Target.of_client(self._client, request.endpoint)
        self.code = write_cell(request, kind=kind, target=target)
        extra = (
            "Its other secret headers and parameters are left out."
            if self._client.engine.credential.has_more_secrets
            else ""
        )
        return self._code_panel(kinds, kind, _code_note(target), extra)

    def _code_panel(self, kinds: list[str], kind: str, note: str, extra: str) -> dict[str, Any]:
        preview = images.shorten_image_data(self.code)
        language = {BODY: "json", "curl": "bash"}.get(kind, "python")
        return {
            "name": "Code",
            "kinds": kinds,
            "kind": kind,
            "note": " · ".join(part for part in (note, extra) if part),
            # Plain texts, as in `pane`.
            "html": str(sanitize.render_code(preview, language)),
            "is_cell": kind != BODY,
        }

    # Past calls

    def _show_history(self, text: str) -> dict[str, Any]:
        if self._ledger is None:
            return {"name": "History", "rows": [], "note": "This client keeps no ledger, so there is no history."}
        rows = [_describe_row(row) for row in reversed(_search(self._ledger, text))]
        return {"name": "History", "rows": rows, "note": "" if rows else "There are no such calls."}

    def _show_call(self, call_id: str, action: str) -> dict[str, Any]:
        """Show a call's transcript; with the action `open` its request is put into the form too."""
        if self._ledger is None:
            return self._show_history("")
        call = self._ledger.call(call_id)
        if action == "open":
            self._open_call(call)
        return {
            "name": "History",
            "call": call_id,
            "html": str(transcript.reply_bundle(call.reply)["text/html"]),
            "note": f"Call {call_id} is in the form." if action == "open" else f"Call {call_id}",
            "code": f'famnb.Inspector("{call_id}")',
        }

    # Presets

    def _show_presets(self, *lines: str, selected: str = "") -> dict[str, Any]:
        return {"name": "Presets", "names": presets.names(self._preset_path), "lines": lines, "selected": selected}

    def _use_preset(self, action: str, name: str) -> dict[str, Any]:
        match action:
            case "save":
                losses = presets.save(self._preset_path, name, self._editor.draft, profile=self._client.profile)
                return self._show_presets(f"“{name.strip()}” is saved.", *losses, selected=name.strip())
            case "load":
                draft, losses = presets.load(self._preset_path, name, profile=self._client.profile)
                self._fill(draft)
                return self._show_presets(f"“{name}” is loaded.", *losses, selected=name)
            case "delete":
                presets.delete(self._preset_path, name)
                return self._show_presets(f"“{name}” is deleted.")
            case _:
                return self._show_presets()


# More than anyone scrolls through, and few enough to be drawn without a pause; older ones are found by the filter.
HISTORY_LENGTH = 100
"""Calls in the list."""
_FILTER_COLUMNS = ("prompt", "model", "endpoint", "standing", "error")
_FILTER = " OR ".join(
    [
        *(f"{column} LIKE ? ESCAPE '\\'" for column in _FILTER_COLUMNS),
        "request_key IN (SELECT key FROM requests WHERE body LIKE ? ESCAPE '\\')",
    ]
)
"""The SQL condition for a call that has a text in one of these columns, or in the request's body."""


def _code_note(target: Target) -> str:
    """What to know before the code is run."""
    variable = target.key_variable
    if not variable:
        return "It runs as it stands; no key is sent."
    if not os.getenv(variable):
        return f"It runs once {variable} holds the key, which this kernel's environment does not have."
    return f"It runs as it stands; the key is read from {variable}."


def _search(ledger: Ledger, text: str) -> list[Any]:
    """The latest rows of the ledger that hold a text, by _FILTER; without a text, the latest of all."""
    if not text:
        return list(ledger.select(limit=HISTORY_LENGTH))
    # In the body, which is JSON, quotes and line ends are escaped.
    in_json = json.dumps(text, ensure_ascii=False)[1:-1]
    patterns = [*[_like_pattern(text)] * len(_FILTER_COLUMNS), _like_pattern(in_json)]
    return list(ledger.select(_FILTER, patterns, limit=HISTORY_LENGTH))


def _like_pattern(text: str) -> str:
    """The pattern of SQL's LIKE for values that hold a text, whatever is in it; the escape character is a backslash."""
    # The backslash first, or it would double those that the others add.
    for character in "\\%_":
        text = text.replace(character, f"\\{character}")
    return f"%{text}%"


def _describe_row(row: Any) -> dict[str, str]:
    """A call as one row of the list."""
    # For the row alone: this reads neither the body nor the recorded reads.
    started_at = RecordedCall(row=row, body={}, load=tuple).started_at.astimezone()
    duration = "" if row["e2e_s"] is None else format_duration(row["e2e_s"], brief=True)
    return {
        "id": row["id"],
        "when": f"{started_at:%d %b %H:%M}",
        "prompt": " ".join(sanitize.visible(row["prompt"] or "").split())[:200],
        "facts": " · ".join(str(fact) for fact in (row["endpoint"], row["model"], row["standing"], duration) if fact),
    }
