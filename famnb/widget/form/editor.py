"""The composer's form as plain values: reads edits into a `Draft`, and describes the form to the page that draws it.

It carries texts over from endpoint to endpoint, and says what the new endpoint cannot take and what may surprise. It
sends nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from famnb.endpoints import ENDPOINTS, Endpoint, Endpoints, compose
from famnb.endpoints import endpoint as endpoint_of
from famnb.errors import InvalidRequest
from famnb.request import Request
from famnb.request.neutral import FieldPath
from famnb.request.structured_output import json_format
from famnb.request.tools import FunctionTool
from famnb.widget.form.draft import (
    UNWRITTEN,
    Draft,
    PromptBox,
    Reading,
    carry_over,
    fill_variables,
    form_fields,
    join_content,
    read_draft,
    required_texts,
    write_fields,
)
from famnb.widget.form.fields import FIRST, FORM, GROUPS, MODEL, STREAM, TOOLS, FormField
from famnb.widget.form.images import PromptImage
from famnb.widget.runtime.view import View


class FieldView(View, frozen=True):
    """A field of a request; its key is its name, such as thinking.budget_tokens."""

    key: str
    control: FormField
    text: str
    """What the control holds; empty if the field is not set."""
    fault: str
    """What is wrong with it."""


class BoxView(View, frozen=True):
    """A check box that asks for a function or for an answer of a type; its key is its name."""

    key: str
    help: str
    is_on: bool


class GroupView(View, frozen=True):
    """Fields under a heading, which is the key; empty for those above all headings."""

    key: str
    boxes: tuple[BoxView, ...]
    fields: tuple[FieldView, ...]


class FormView(View, frozen=True):
    """The settings of a request."""

    endpoint: str
    endpoints: tuple[str, ...]
    """Those that can be chosen."""
    help: str
    """What the chosen one is, and its path."""
    groups: tuple[GroupView, ...]


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
        self.losses: tuple[str, ...] = ()
        """What the endpoint cannot carry of what was asked of another one."""
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
        return self._read(self.draft)

    def _read(self, draft: Draft) -> Reading:
        prompt, system = (fill_variables(text, self.chosen_row) for text in (draft.prompt, draft.system))
        draft = dataclasses.replace(draft, prompt=prompt, system=system)
        # The page shows what is wrong with a draft before it is sent, so to send it needs no second reading.
        if self._latest_reading is None or self._latest_reading[0] != draft:
            self._latest_reading = draft, read_draft(draft)
        return self._latest_reading[1]

    def request(self, prompt: str = "", pictures: Sequence[PromptImage] = (), *, system: str = "") -> Request:
        """Return the request that the form's settings make of a prompt; `system` counts if the form has none.

        In a conversation that the settings hold, the prompt takes the place of the last message; without a prompt that
        is sent as it stands, and without either the prompt is `UNWRITTEN`. Raises InvalidRequest, naming the fields, if
        there are faults.
        """
        system, pictures = self.system or system, tuple(pictures)
        reading = self._read(dataclasses.replace(self.draft, prompt=prompt, system=system, pictures=pictures))
        request = reading.valid_request()
        if not reading.replaced or not prompt.strip():
            return request
        if request.turns()[-1].role != "user":
            field = request.prompt_field
            raise InvalidRequest(f"{field}: it does not end with what a user says, so there is nothing to continue")
        return request.with_content(join_content(fill_variables(prompt, self.chosen_row), pictures))

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
        defaults = {**write_fields(source, source.traits.usage_fields), **required_texts(source, self.endpoints)}
        chosen = {path: text for path, text in self.raw.items() if path == MODEL or defaults.get(path) != text}
        kept, self.losses = carry_over(chosen, source, target, self.endpoints)
        # Fields of both endpoints were carried over; the other fields of the target get back what they held before.
        shared = {field.path for field in self._fields.values()} - {MODEL}
        earlier = self._earlier.get(name)
        self._earlier[source.name] = dict(self.raw)
        self._use(target, {**{path: text for path, text in (earlier or {}).items() if path not in shared}, **kept})
        if earlier is None:
            self._ask_usage()

    def fill(self, draft: Draft) -> None:
        """Fill the form with a draft, and with nothing else but the values of variables."""
        self.losses = ()
        self.prompt, self.system, self.pictures = draft.prompt, draft.system, draft.pictures
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
        for path, text in write_fields(self.endpoint, self.endpoint.traits.usage_fields).items():
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
            endpoints=tuple(self.endpoints),
            help=f"{self.endpoint.title}: POST {self.endpoint.path}",
            groups=tuple(
                GroupView(key=name, boxes=boxes.get(name, ()), fields=tuple(fields))
                for name, fields in groups.items()
                if fields or name in boxes
            ),
        )

    @property
    def fault(self) -> str:
        """What is wrong with the form, with the name of the first field that has a fault; empty if nothing is."""
        return next(iter(self.reading.fault_texts), "")

    @property
    def remarks(self) -> tuple[str, ...]:
        """What to know before it is sent: what another endpoint could not take, what is ignored, what may surprise."""
        draft, reading, target = self.draft, self.reading, self.endpoint
        missing = [] if target.takes_tools else [*self._functions]
        missing += [] if target.traits.format else filter(None, [self._schema_box])
        boxes = [f"`{box}` is left out: {target.name} cannot carry it" for box in missing if box in self._ticked]
        remarks = [*self.losses, *boxes]
        clause = f"`{target.request.prompt_field}` is sent as it stands"
        if reading.replaced and draft.system.strip() and target.traits.system_field is None:
            remarks.append(f"The system text is not sent: {clause}; write a system message there.")
        if reading.replaced and draft.pictures:
            remarks.append(f"The images are not sent: {clause}; write them there.")
        if reading.request is None:
            return tuple(remarks)
        if draft.pictures and not target.traits.documents_images:
            names = " and ".join(other.name for other in self.endpoints.values() if other.traits.documents_images)
            names = names or "no endpoint"
            remarks.append(f"The API's document names images at {names} only: {target.name} may refuse them.")
        if draft.system.strip():
            remarks += compose(target.name, UNWRITTEN, system=draft.system, endpoints=self.endpoints).losses
        return (*remarks, *reading.request.hints())
