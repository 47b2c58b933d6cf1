"""The panels beside the composer's chat: code that repeats it, past calls, and presets."""

from __future__ import annotations

import json
import os
from typing import Any, Literal, TypeAlias

import msgspec

from famnb.client.client import BaseClient
from famnb.errors import InvalidRequest
from famnb.formatting import format_duration
from famnb.record import Ledger, RecordedCall
from famnb.request import Request
from famnb.widget.composer import presets
from famnb.widget.experiment.rows import RowsTool
from famnb.widget.form import images
from famnb.widget.form.draft import Draft, draft_of, fault_text, read_draft
from famnb.widget.form.editor import Editor
from famnb.widget.form.python_code import Target, available_kinds, write_cell
from famnb.widget.form.views import CodeView
from famnb.widget.html import sanitize, transcript
from famnb.widget.html.sanitize import SafeHtml
from famnb.widget.runtime.intent import intent
from famnb.widget.runtime.view import View

BODY = "JSON body"
"""The kind of code that is no code: exactly what is sent."""


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
    code: str
    """A line that lays it open in an inspector."""


class PresetsView(View, frozen=True):
    """Presets by name, and what became of the last action."""

    names: tuple[str, ...]
    selected: str
    note: str


Panel: TypeAlias = Literal["", "Settings", "Code", "History", "Presets"]


class PanelTool(RowsTool):
    """A tool with the panels: their intents, and what each shows. One is open at a time; the code follows the form."""

    def __init__(self, client: BaseClient, editor: Editor) -> None:
        self._editor = editor
        self._preset_path = presets.default_path()
        self._open_panel: Panel = ""
        self._code_kind = "famnb"
        self._history = HistoryView(filter="", rows=(), note="", call="", transcript=SafeHtml(""), code="")
        self._presets = PresetsView(names=(), selected="", note="")
        super().__init__(client, editor, tools_below=2)

    # What a tool defines

    def code_request(self) -> Request:
        """Return what the code sends; raises InvalidRequest if there is nothing yet."""
        raise NotImplementedError

    def load(self, call: RecordedCall) -> None:
        """Open a call as the chat that it was."""
        raise NotImplementedError

    def fill(self, draft: Draft) -> None:
        """Fill the form with a draft, and with nothing else."""
        with self.lock:
            self._editor.fill(draft)
            self.form_changed()

    # What it shows

    def code_view(self) -> CodeView | None:
        """Return the code, if it is in view."""
        if self._open_panel != "Code":
            return None
        if self._shown_code is None:
            _, self._shown_code = self._write_code()
        return self._shown_code

    @intent
    def show_panel(self, name: Panel) -> None:
        """Show a panel in place of the one that is open, with what it shows at first."""
        self._open_panel = name
        match name:
            case "Code":
                self._shown_code = None
            case "History":
                self.filter_history("")
            case "Presets":
                self._show_presets()

    # Code

    @intent
    def set_code_kind(self, kind: str) -> None:
        """Show the code of another library."""
        self._code_kind, self._shown_code = kind, None

    @intent
    def read_code(self) -> str:
        """Return the whole code, where the page has only the beginnings of images."""
        return self._write_code()[0]

    def _write_code(self) -> tuple[str, CodeView]:
        kind = BODY
        kinds: tuple[str, ...] = (BODY,)
        try:
            request = self.code_request()
        except InvalidRequest as fault:
            reading = self._editor.reading
            code = json.dumps(reading.body, indent=2, ensure_ascii=False)
            note = f"There is no code yet: {fault} · POST {self._editor.endpoint.path}, not valid yet"
        else:
            kinds = (*available_kinds(request, self._client.endpoints), BODY)
            # An SDK that does not speak the new endpoint gives way to the one that does.
            kind = self._code_kind if self._code_kind in kinds else kinds[-2]
            code, note = json.dumps(request.body(), indent=2, ensure_ascii=False), f"POST {self._editor.endpoint.path}"
            if kind != BODY:
                target = Target.of_client(self._client, request.endpoint)
                code, note = write_cell(request, kind=kind, target=target), _code_note(target)
                if self._client.engine.credential.has_more_secrets:
                    note += " · Its other secret headers and parameters are left out."
        language = {BODY: "json", "curl": "bash"}.get(kind, "python")
        html = sanitize.render_code(images.shorten_image_data(code), language)
        return code, CodeView(kinds=kinds, kind=kind, note=note, html=html, is_cell=kind != BODY)

    # Past calls

    @intent
    def filter_history(self, text: str) -> None:
        """List the latest calls that hold a text."""
        rows: tuple[CallRowView, ...] = ()
        if self._ledger is None:
            note = "This client keeps no ledger, so there is no history."
        else:
            rows = tuple(_row_view(row) for row in reversed(_search(self._ledger, text.strip())))
            note = "" if rows else "There are no such calls."
        self._history = HistoryView(filter=text, rows=rows, note=note, call="", transcript=SafeHtml(""), code="")

    @intent
    def show_call(self, call: str) -> None:
        """Show the transcript of a call."""
        self._look_at(call)

    @intent
    def load_call(self, call: str) -> None:
        """Show the transcript of a call, and put its request into the form."""
        self.load(self._look_at(call))
        self._history = msgspec.structs.replace(self._history, note=f"The chat of call {call} is open.")

    def _look_at(self, call_id: str) -> RecordedCall:
        call = (self._ledger or Ledger()).call(call_id)
        self._history = msgspec.structs.replace(
            self._history,
            call=call_id,
            transcript=SafeHtml(transcript.reply_bundle(call.reply)["text/html"]),
            note=f"Call {call_id}",
            code=f'famnb.Inspector("{call_id}")',
        )
        return call

    # Presets

    @intent
    def save_preset(self, name: str) -> None:
        """Save the form under a name."""
        draft = self._editor.draft
        reading = read_draft(draft)
        if reading.request is None:
            raise InvalidRequest("preset: " + "; ".join(map(fault_text, reading.faults.items())))
        presets.save(self._preset_path, name, reading.request, self._client.profile)
        self._show_presets(f"“{name.strip()}” is saved.", selected=name.strip())

    @intent
    def load_preset(self, name: str) -> None:
        """Fill the form with a preset."""
        request = presets.load(self._preset_path, name, self._client.profile)
        self.fill(draft_of(request, self._client.endpoints))
        self._show_presets(f"“{name}” is loaded.", selected=name)

    @intent
    def delete_preset(self, name: str) -> None:
        """Delete a preset."""
        presets.delete(self._preset_path, name)
        self._show_presets(f"“{name}” is deleted.")

    def _show_presets(self, note: str = "", selected: str = "") -> None:
        self._presets = PresetsView(names=presets.names(self._preset_path), selected=selected, note=note)


# More than anyone scrolls through, and few enough to be drawn without a pause; older ones are found by the filter.
HISTORY_LENGTH = 100
"""Calls in the list."""
_SEARCHED = ("prompt", "model", "endpoint", "standing", "error")
"""The columns of a call in which a text is looked for, beside its request's body."""


def _code_note(target: Target) -> str:
    """What to know before the code is run."""
    variable = target.key_variable
    if not variable:
        return "It runs as it stands; no key is sent."
    if not os.getenv(variable):
        return f"It runs once {variable} holds the key, which this kernel's environment does not have."
    return f"It runs as it stands; the key is read from {variable}."


def _search(ledger: Ledger, text: str) -> list[Any]:
    """The latest rows of the ledger that hold a text in any case; without a text, the latest of all."""
    if not text:
        return list(ledger.select(limit=HISTORY_LENGTH))
    # In the body, which is JSON, quotes and line ends are escaped.
    in_json = json.dumps(text, ensure_ascii=False)[1:-1]
    conditions = [f"instr(lower({column}), lower(?))" for column in _SEARCHED]
    conditions.append("request_key IN (SELECT key FROM requests WHERE instr(lower(body), lower(?)))")
    return list(ledger.select(" OR ".join(conditions), [*[text] * len(_SEARCHED), in_json], limit=HISTORY_LENGTH))


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
