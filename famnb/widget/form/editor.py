"""The composer's form as plain values: reads edits into a `Draft`, and describes the form to the page that draws it.

It carries texts over from endpoint to endpoint, and says what the new endpoint cannot take and what may surprise. It
sends nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from famnb.endpoints import ENDPOINTS, Endpoint, Endpoints
from famnb.endpoints import endpoint as endpoint_of
from famnb.errors import InvalidRequest
from famnb.request import Request
from famnb.request.neutral import FieldPath
from famnb.widget.form import hints
from famnb.widget.form.draft import (
    Draft,
    Reading,
    VariableRow,
    fault_text,
    fill_variables,
    find_variables,
    form_fields,
    read_draft,
    replace_prompt,
    request_of,
    required_texts,
    usage_texts,
    variable_row_label,
)
from famnb.widget.form.fields import FIRST, GROUPS, IMAGES, MODEL, STREAM, FormField
from famnb.widget.form.images import PromptImage
from famnb.widget.form.tool_picker import ToolPicker
from famnb.widget.form.views import FieldView, FormView, GroupView, endpoint_view, field_view


class Editor:
    """What the form holds, edit by edit; every edit is allowed, and `reading` says what is wrong."""

    def __init__(
        self, *, endpoint: str, prompt: str, system: str, tool_picker: ToolPicker, endpoints: Endpoints = ENDPOINTS
    ) -> None:
        """`endpoints` are those of the service that is asked, one of which is chosen first."""
        self.endpoints = endpoints
        """The endpoints to choose from, by name."""
        self.prompt = prompt
        """The text of the prompt box."""
        self.system = system
        """How the model shall behave."""
        self.pictures: tuple[PromptImage, ...] = ()
        """Images that go along with the prompt."""
        self.rows: list[dict[str, str]] = []
        """The table of values for the variables of prompt and system text."""
        self.row = 0
        """The index of the row whose values are sent."""
        self._tool_picker = tool_picker
        self._latest_reading: tuple[Draft, Reading] | None = None
        self._earlier: dict[str, tuple[dict[FieldPath, str], frozenset[FieldPath]]] = {}
        """By endpoint, what its form held when another endpoint was chosen: its texts, and its `_asked_usage`."""
        self._losses: tuple[str, ...] = ()
        self._inferred: set[FieldPath] = set()
        """Fields that were set because another field implies them, and are unset with it."""
        target = endpoint_of(endpoint, endpoints)
        # The APIs do not stream by default, but whoever sits before the page wants to see the answer grow.
        self._use(target, {STREAM: "true", **tool_picker.initial_texts(target)})
        self._ask_usage()

    # What it holds

    @property
    def draft(self) -> Draft:
        """The form with its variables as they were written."""
        return Draft(
            endpoint=self.endpoint.name,
            endpoints=self.endpoints,
            prompt=self.prompt,
            system=self.system,
            pictures=self.pictures,
            raw=dict(self.raw),
        )

    @property
    def reading(self) -> Reading:
        """The request that the form means, with the values of the chosen row, or its faults."""
        return self._read(_fill_draft(self.draft, self.chosen_row))

    def _read(self, draft: Draft) -> Reading:
        # The page shows what is wrong with a draft before it is sent, so to send it needs no second reading.
        if self._latest_reading is None or self._latest_reading[0] != draft:
            self._latest_reading = draft, read_draft(draft)
        return self._latest_reading[1]

    @property
    def answer_type(self) -> Any:
        """The type that an answer shall be JSON of; None if the form does not ask for it."""
        return self._tool_picker.answer_type(self.endpoint, self.raw)

    def request(self, prompt: str, pictures: tuple[PromptImage, ...] | None = None, *, system: str = "") -> Request:
        """Return the request that the form's settings make of a prompt and pictures (None: the form's).

        `system` is the system text if the form has none.

        Raises InvalidRequest, naming the fields, if there are faults or nothing is asked.
        """
        return self._request(prompt, pictures, self.chosen_row, system)

    def turn_request(
        self, prompt: str, pictures: tuple[PromptImage, ...] | None = None, *, system: str = ""
    ) -> Request:
        """Return the request for a turn of a conversation.

        It is the same as `request`, unless the form holds a conversation of its own: there the prompt takes the
        place of the last message.
        """
        if not prompt.strip():
            raise InvalidRequest("prompt: nothing is asked yet; write a prompt")
        pictures = self.pictures if pictures is None else pictures
        draft = self._draft_with(prompt, pictures, self.chosen_row, system)
        reading = self._read(draft)
        request = request_of(draft, reading)
        return replace_prompt(request, draft.prompt, pictures, self.endpoints) if reading.replaced else request

    def row_requests(self) -> dict[str, Request]:
        """Return a request for each row of values, by a label made of them.

        Raises InvalidRequest if no row has values, or for faults.
        """
        names = find_variables(self.prompt, self.system)
        rows = [row for row in self.rows if any(row.get(name) for name in names)]
        if not rows:
            raise InvalidRequest(
                "rows: there are no values yet; write a variable such as {city} in the prompt and fill in the table"
            )
        labels = [variable_row_label(row, names) for row in rows]
        # Two panes of a board cannot have one name.
        unique = [label if labels.count(label) == 1 else f"{label} ({index + 1})" for index, label in enumerate(labels)]
        return {label: self._request(self.prompt, None, row) for label, row in zip(unique, rows, strict=True)}

    def _request(
        self, prompt: str, pictures: tuple[PromptImage, ...] | None, row: VariableRow, system: str = ""
    ) -> Request:
        draft = self._draft_with(prompt, self.pictures if pictures is None else pictures, row, system)
        return request_of(draft, self._read(draft))

    def _draft_with(self, prompt: str, pictures: tuple[PromptImage, ...], row: VariableRow, system: str) -> Draft:
        system = self.system or system
        return _fill_draft(dataclasses.replace(self.draft, prompt=prompt, system=system, pictures=pictures), row)

    @property
    def chosen_row(self) -> VariableRow:
        """The values of variables that are sent."""
        return self.rows[self.row] if 0 <= self.row < len(self.rows) else {}

    # Edits

    def set_text(self, name: str, text: str) -> None:
        """Write the text of a field, by its name, and what it implies. Raises InvalidRequest for an unknown field."""
        field = self._fields.get(name)
        if field is None:
            raise InvalidRequest(f"{name}: {self.endpoint.name} has no such field; it has {', '.join(self._fields)}")
        if text != self.raw.get(field.path, ""):
            # Chosen by the user: from now on it is left alone.
            self._usage.pop(field.path, None)
        self.raw[field.path] = text
        self._inferred.discard(field.path)
        if field.path in self.endpoint.traits.implied:
            self._infer(*self.endpoint.traits.implied[field.path], wanted=bool(text.strip()))
        if field.path == STREAM:
            self._ask_usage()

    def tick(self, box: str, *, is_on: bool) -> None:
        """Ask for the function or the answer type of a box, or no longer."""
        self.raw |= self._tool_picker.texts_with(self.endpoint, self.raw, box, is_on=is_on)

    def choose_endpoint(self, name: str) -> None:
        """Carry over what another endpoint can take, and remember what it cannot."""
        source, target = self.endpoint, endpoint_of(name, self.endpoints)
        # What the form asked for or filled in by itself is no loss, and the target's form does so for itself.
        asked, filled_in = self._asked_usage, required_texts(source, self.endpoints).items()
        chosen = {path: text for path, text in self.raw.items() if path not in asked}
        chosen = {path: text for path, text in chosen.items() if path == MODEL or (path, text) not in filled_in}
        kept, self._losses = hints.carry_over(chosen, source, target, self.endpoints)
        # Fields of both endpoints were carried over; the other fields of the target get back what they held before.
        shared = {field.path for field in self._fields.values()} - {MODEL}
        is_first_visit = name not in self._earlier
        texts, asked_before = self._earlier.get(name, ({}, frozenset()))
        earlier = {path: text for path, text in texts.items() if path not in shared}
        self._earlier[source.name] = dict(self.raw), asked
        self._use(target, {**earlier, **kept})
        self._inferred.update(path for path in asked_before if path in self.raw)
        if is_first_visit or asked_before:
            self._ask_usage()

    def fill(self, draft: Draft) -> None:
        """Fill the form with a draft, and with nothing else."""
        self._losses = ()
        self.prompt, self.system, self.pictures = draft.prompt, draft.system, draft.pictures
        self.rows, self.row = [], 0
        self._use(endpoint_of(draft.endpoint, self.endpoints), draft.raw)

    def _use(self, endpoint: Endpoint, raw: Mapping[FieldPath, str]) -> None:
        """Hold the texts of an endpoint's fields, of which those that fit are used."""
        self.endpoint = endpoint
        """The endpoint that was chosen."""
        self._fields: dict[str, FormField] = {field.name: field for field in form_fields(endpoint)}
        fields = self._fields.values()
        self.raw = {field.path: raw[field.path] for field in fields if field.fits(raw.get(field.path, ""))}
        """The text in each field; those without one are unset."""
        required = required_texts(endpoint, self.endpoints)
        self.raw |= {path: text for path, text in required.items() if not self.raw.get(path)}
        self._inferred = set()
        self._usage = dict(usage_texts(endpoint))
        """What is set because a stream is to tell its usage, and unset without one."""

    @property
    def _asked_usage(self) -> frozenset[FieldPath]:
        """The fields that were set, not by the user, to have a stream tell its usage."""
        return frozenset(self._inferred & self._usage.keys())

    def _ask_usage(self) -> None:
        """Ask a stream for its usage where it would else not tell it, and nothing without a stream."""
        for path, text in self._usage.items():
            self._infer(path, text, wanted=self.raw.get(STREAM) == "true")

    def _infer(self, path: FieldPath, value: str, *, wanted: bool) -> None:
        """Set what another field implies, or unset it with that field; a value that was chosen stays as it is."""
        if self.raw.get(path) and path not in self._inferred:
            return
        self.raw[path] = value if wanted else ""
        if wanted:
            self._inferred.add(path)

    # What the page shows

    def view(self) -> FormView:
        """Return the settings, and what is wrong with them."""
        faults = self.reading.faults
        boxes = self._tool_picker.boxes(self.endpoint, self.raw)
        groups: dict[str, list[FieldView]] = {name: [] for name in (FIRST, *GROUPS)}
        for field in self._fields.values():
            text, fault = self.raw.get(field.path, ""), faults.get(field.path, "")
            groups[field.group].append(field_view(self.endpoint, field, text=text, fault=fault))
        return FormView(
            endpoint=self.endpoint.name,
            endpoints=tuple(map(endpoint_view, self.endpoints.values())),
            groups=tuple(
                GroupView(key=name, boxes=boxes.get(name, ()), fields=tuple(fields))
                for name, fields in groups.items()
                if (fields or name in boxes) and name != IMAGES
            ),
        )

    @property
    def fault(self) -> str:
        """What is wrong with the form, with the name of the first field that has a fault; empty if nothing is."""
        return next(map(fault_text, self.reading.faults.items()), "")

    @property
    def remarks(self) -> tuple[str, ...]:
        """What to know before it is sent: what another endpoint could not take, what is ignored, what may surprise."""
        draft, reading = self.draft, self.reading
        return (*self._losses, *hints.ignored_texts(draft, reading), *hints.hazards(draft, reading))


def _fill_draft(draft: Draft, row: VariableRow) -> Draft:
    return dataclasses.replace(
        draft, prompt=fill_variables(draft.prompt, row), system=fill_variables(draft.system, row)
    )
