"""The composer's form as plain values: reads edits into a `Draft`, and describes the form to the page that draws it.

It carries texts over from endpoint to endpoint, and says what the new endpoint cannot take and what may surprise. It
sends nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from famnb.endpoints import ENDPOINTS, Endpoint, Endpoints
from famnb.endpoints import endpoint as endpoint_of
from famnb.errors import InvalidRequest
from famnb.request import Request
from famnb.request.neutral import FieldPath
from famnb.request.structured_output import json_format
from famnb.request.tools import FunctionTool
from famnb.widget.form import hints
from famnb.widget.form.draft import (
    Draft,
    PromptBox,
    Reading,
    fault_text,
    fill_variables,
    form_fields,
    read_draft,
    replace_prompt,
    request_of,
    required_texts,
    usage_texts,
)
from famnb.widget.form.fields import FIRST, FORM, GROUPS, IMAGES, MODEL, STREAM, TOOLS, FormField
from famnb.widget.form.images import PromptImage
from famnb.widget.form.views import BoxView, EndpointView, FieldView, FormView, GroupView


class Editor(PromptBox):
    """What the form holds, edit by edit; every edit is allowed, and `reading` says what is wrong."""

    def __init__(
        self,
        *,
        endpoint: str,
        prompt: str = "",
        system: str = "",
        functions: Mapping[str, FunctionTool] = MappingProxyType({}),
        schema: Any = None,
        endpoints: Endpoints = ENDPOINTS,
    ) -> None:
        """`endpoints` are those of the service that is asked, one of which is chosen first.

        The model may be asked to call the `functions` and to answer with JSON of the type `schema`: each is a box that
        is ticked at first, and counts at endpoints that can carry it.
        """
        self.endpoints = endpoints
        """The endpoints to choose from, by name."""
        super().__init__(prompt, system)
        if schema is not None:
            json_format(schema)  # raises what is wrong with it
        self._functions, self._schema = functions, schema
        self._schema_box = "" if schema is None else f"{getattr(schema, '__name__', 'the given type')} as JSON"
        self._ticked = {*functions, self._schema_box}
        """The boxes that are ticked."""
        self._latest_reading: tuple[Draft, Reading] | None = None
        self._earlier: dict[str, dict[FieldPath, str]] = {}
        """By endpoint, the texts that its form held when another endpoint was chosen."""
        self._losses: tuple[str, ...] = ()
        target = endpoint_of(endpoint, endpoints)
        # The APIs do not stream by default, but whoever sits before the page wants to see the answer grow.
        self._use(target, {STREAM: "true"})
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
            functions=tuple(function for name, function in self._functions.items() if name in self._ticked),
            schema=self._schema if self._schema_box in self._ticked else None,
        )

    @property
    def reading(self) -> Reading:
        """The request that the form means, with the values of the chosen row, or its faults."""
        return self._read(self._fill(self.draft))

    def _read(self, draft: Draft) -> Reading:
        # The page shows what is wrong with a draft before it is sent, so to send it needs no second reading.
        if self._latest_reading is None or self._latest_reading[0] != draft:
            self._latest_reading = draft, read_draft(draft)
        return self._latest_reading[1]

    @property
    def answer_type(self) -> Any:
        """The type that an answer shall be JSON of; None if the form does not ask for it."""
        return self.draft.schema if self.endpoint.traits.format else None

    def request(self, prompt: str, pictures: tuple[PromptImage, ...] | None = None, *, system: str = "") -> Request:
        """Return the request that the form's settings make of a prompt and pictures (None: the form's).

        `system` is the system text if the form has none. Raises InvalidRequest, naming the fields, if there are faults
        or nothing is asked.
        """
        draft = self._draft_with(prompt, pictures, system)
        return request_of(draft, self._read(draft))

    def turn_request(
        self, prompt: str, pictures: tuple[PromptImage, ...] | None = None, *, system: str = ""
    ) -> Request:
        """Return the request for a turn of a conversation.

        It is the same as `request`, unless the form holds a conversation of its own: there the prompt takes the
        place of the last message.
        """
        if not prompt.strip():
            raise InvalidRequest("prompt: nothing is asked yet; write a prompt")
        draft = self._draft_with(prompt, pictures, system)
        reading = self._read(draft)
        request = request_of(draft, reading)
        return replace_prompt(request, draft.prompt, draft.pictures, self.endpoints) if reading.replaced else request

    def _draft_with(self, prompt: str, pictures: tuple[PromptImage, ...] | None, system: str) -> Draft:
        pictures = self.pictures if pictures is None else pictures
        return self._fill(
            dataclasses.replace(self.draft, prompt=prompt, system=self.system or system, pictures=pictures)
        )

    def _fill(self, draft: Draft) -> Draft:
        """Return a draft with the values of the chosen row."""
        row = self.chosen_row
        return dataclasses.replace(
            draft, prompt=fill_variables(draft.prompt, row), system=fill_variables(draft.system, row)
        )

    # Edits

    def set_text(self, name: str, text: str) -> None:
        """Write the text of a field, by its name, and what it implies. Raises InvalidRequest for an unknown field."""
        field = self._fields.get(name)
        if field is None:
            raise InvalidRequest(f"{name}: {self.endpoint.name} has no such field; it has {', '.join(self._fields)}")
        self.raw[field.path] = text
        if field.path in self.endpoint.traits.implied:
            self._infer(*self.endpoint.traits.implied[field.path], wanted=bool(text.strip()))
        if field.path == STREAM:
            self._ask_usage()

    def tick(self, box: str, *, is_on: bool) -> None:
        """Ask for the function or the answer type of a box, or no longer."""
        self._ticked = self._ticked | {box} if is_on else self._ticked - {box}

    def choose_endpoint(self, name: str) -> None:
        """Carry over what another endpoint can take, and remember what it cannot."""
        source, target = self.endpoint, endpoint_of(name, self.endpoints)
        # What the form asked for or filled in by itself is no loss, and the target's form does so for itself.
        usage, filled_in = usage_texts(source).items(), required_texts(source, self.endpoints).items()
        chosen = {
            path: text
            for path, text in self.raw.items()
            if path == MODEL or ((path, text) not in usage and (path, text) not in filled_in)
        }
        kept, self._losses = hints.carry_over(chosen, source, target, self.endpoints)
        # Fields of both endpoints were carried over; the other fields of the target get back what they held before.
        shared = {field.path for field in self._fields.values()} - {MODEL}
        earlier = self._earlier.get(name)
        self._earlier[source.name] = dict(self.raw)
        self._use(target, {**{path: text for path, text in (earlier or {}).items() if path not in shared}, **kept})
        if earlier is None:
            self._ask_usage()

    def fill(self, draft: Draft) -> None:
        """Fill the form with a draft, and with nothing else."""
        self._losses = ()
        self.prompt, self.system, self.pictures = draft.prompt, draft.system, draft.pictures
        self.rows, self.row = [], 0
        self._ticked = set()
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

    def _ask_usage(self) -> None:
        """Ask a stream for its usage where it would else not tell it, and nothing without a stream."""
        for path, text in usage_texts(self.endpoint).items():
            self._infer(path, text, wanted=self.raw.get(STREAM) == "true")

    def _infer(self, path: FieldPath, value: str, *, wanted: bool) -> None:
        """Set what another field implies, or unset it with that field; another value that was chosen stays."""
        if self.raw.get(path, "") in ("", value):
            self.raw[path] = value if wanted else ""

    # What the page shows

    def view(self) -> FormView:
        """Return the settings, and what is wrong with them."""
        faults = self.reading.faults
        boxes: dict[str, tuple[BoxView, ...]] = {}
        if self._functions and self.endpoint.takes_tools:
            # The first line of its description says what it is for.
            boxes[TOOLS] = tuple(
                BoxView(key=name, help=function.description.partition("\n")[0], is_on=name in self._ticked)
                for name, function in self._functions.items()
            )
        if self._schema_box and self.endpoint.traits.format:
            boxes[FORM] = (BoxView(key=self._schema_box, help="", is_on=self._schema_box in self._ticked),)
        groups: dict[str, list[FieldView]] = {name: [] for name in (FIRST, *GROUPS)}
        for field in self._fields.values():
            text, fault = self.raw.get(field.path, ""), faults.get(field.path, "")
            groups[field.group].append(FieldView(key=field.name, control=field, text=text, fault=fault))
        return FormView(
            endpoint=self.endpoint.name,
            endpoints=tuple(EndpointView(key=e.name, title=e.title, path=e.path) for e in self.endpoints.values()),
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
        target = self.endpoint
        missing = [] if target.takes_tools else [*self._functions]
        missing += [] if target.traits.format else filter(None, [self._schema_box])
        boxes = [f"`{box}` is left out: {target.name} cannot carry it" for box in missing if box in self._ticked]
        return (*self._losses, *boxes, *hints.ignored_texts(draft, reading), *hints.hazards(draft, reading))
