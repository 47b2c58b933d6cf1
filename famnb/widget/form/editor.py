"""The composer's form: endpoint, first fields and system text on top, all other fields in an accordion.

It turns controls into a `Draft` and a draft into controls, carries texts over from endpoint to endpoint, and shows what
the new endpoint cannot take and what may surprise. It sends nothing; the composer does.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import ipywidgets as widgets

from famnb.endpoints import ENDPOINTS, endpoint
from famnb.errors import InvalidRequest
from famnb.request import Request
from famnb.request.neutral import FieldPath
from famnb.widget.form import hints
from famnb.widget.form.accordion import Accordion
from famnb.widget.form.controls import RequestForm, make_cell, make_control
from famnb.widget.form.draft import Draft, Reading, read_draft, replace_prompt
from famnb.widget.form.fields import FIRST, FORM, GROUPS, IMAGES, MODEL, STREAM, TOOLS
from famnb.widget.form.image_picker import ImagePicker
from famnb.widget.form.images import PromptImage
from famnb.widget.form.tool_picker import ToolPicker
from famnb.widget.html import notices, sanitize
from famnb.widget.live.base import CallbackGuard
from famnb.widget.live.prompt_box import PromptBox


class Editor:
    """The form above the prompt box."""

    def __init__(
        self,
        prompt_box: PromptBox,
        *,
        endpoint: str,
        system: str,
        tool_picker: ToolPicker,
        guard: CallbackGuard,
        on_change: Callable[[], object],
    ) -> None:
        """`on_change` is called after each edit; `guard` makes callbacks whose errors are shown."""
        self._prompt_box, self._tool_picker = prompt_box, tool_picker
        self._guard, self._on_change = guard, on_change
        self._earlier: dict[str, tuple[dict[FieldPath, str], frozenset[FieldPath]]] = {}
        """By endpoint, the texts that its form held when another endpoint was chosen, and its `asked_usage`."""
        self._losses: tuple[str, ...] = ()
        self._is_listening = False
        """Whether changes of the controls come from the user, rather than from filling the form."""
        self._make_controls(endpoint, system)
        # The APIs do not stream by default, but whoever sits before the page wants to see the answer grow.
        form = self._make_form(endpoint, {STREAM: "true"})
        form.ask_usage()
        self._arrange(form)
        tool_picker.tick(self.form)

    def listen(self) -> None:
        """Begin to react to the controls, and show the faults and remarks there are."""
        self._is_listening = True
        self._on_edit()

    @property
    def draft(self) -> Draft:
        """What the form holds."""
        return Draft(
            endpoint=self.form.endpoint.name,
            prompt=self._prompt_box.prompt,
            system=self._system.value,
            pictures=self._images.pictures,
            raw=dict(self.form.raw),
        )

    @property
    def reading(self) -> Reading:
        """The request that the form means, or its faults."""
        return read_draft(self.draft)

    def request(self, prompt: str, pictures: tuple[PromptImage, ...] | None = None) -> Request:
        """Return the request that the form's settings make of a prompt and pictures (None: the form's).

        Raises InvalidRequest, naming the fields, if there are faults or nothing is asked.
        """
        draft = self.draft
        pictures = draft.pictures if pictures is None else pictures
        reading = read_draft(dataclasses.replace(draft, prompt=prompt, pictures=pictures))
        if not prompt.strip() and not reading.replaced:
            raise InvalidRequest("prompt: nothing is asked yet; write a prompt")
        if reading.request is None:
            raise InvalidRequest("; ".join(map(fault_text, reading.faults.items())))
        return reading.request

    def turn_request(self, prompt: str, pictures: tuple[PromptImage, ...] | None = None) -> Request:
        """Return the request for a turn of a conversation.

        It is the same as `request`, unless the form holds a conversation of its own: there the prompt takes the
        place of the last message.
        """
        pictures = self._images.pictures if pictures is None else pictures
        return replace_prompt(self.request(prompt, pictures), prompt, pictures)

    def fill(self, draft: Draft) -> None:
        """Fill the form with a draft, and with nothing else."""
        self._is_listening = False
        try:
            old_form, self._losses = self.form, ()
            self._endpoint.value = draft.endpoint
            self._prompt_box.prompt, self._system.value = draft.prompt, draft.system
            self._images.replace(draft.pictures)
            self._arrange(self._make_form(draft.endpoint, draft.raw))
            # Only now, since the page must not show controls that are closed.
            old_form.close()
        finally:
            self.listen()

    def _on_edit(self) -> None:
        """Show what is wrong and what may surprise after an edit."""
        if not self._is_listening:
            return
        reading = self.reading
        self.form.show(reading.faults)
        self._tool_picker.read()
        self._prompt_box.replaced = reading.replaced
        self._prompt_box.fault = next(map(fault_text, reading.faults.items()), "")
        remarks = [*self._losses, *hints.ignored_texts(self.draft, reading), *hints.hazards(self.draft, reading)]
        self.notes.value = notices.remark(*map(sanitize.render_docstring, remarks))
        faulty_groups = {field.group for field in self.form.fields if field.path in reading.faults}
        for group in self._groups:
            count = len(self._images.pictures) if group == IMAGES else self.form.count_set(group)
            self._settings.mark(group, "to mend" if group in faulty_groups else f"{count} set" if count else "")
        self._on_change()

    def _on_endpoint_change(self) -> None:
        """Carry over what the new endpoint can take, and show what it cannot."""
        if not self._is_listening:
            return
        source, target = self.form.endpoint, endpoint(self._endpoint.value)
        # What the form asked for by itself is no loss, and the target's form asks for itself.
        asked = self.form.asked_usage
        chosen = {path: text for path, text in self.form.raw.items() if path not in asked}
        kept, self._losses = hints.carry_over(chosen, source, target)
        # Fields of both endpoints were carried over; the other fields of the target get back what they held before.
        shared = {field.path for field in self.form.fields} - {MODEL}
        is_first_visit = target.name not in self._earlier
        texts, asked_before = self._earlier.get(target.name, ({}, frozenset()))
        earlier = {path: text for path, text in texts.items() if path not in shared}
        old_form, self._earlier[source.name] = self.form, (dict(self.form.raw), asked)
        form = self._make_form(target.name, {**earlier, **kept})
        form.adopt_usage(asked_before)
        if is_first_visit or asked_before:
            form.ask_usage()
        self._arrange(form)
        old_form.close()
        self._on_edit()

    # Layout

    def _make_controls(self, name: str, system: str) -> None:
        """Make the controls that all endpoints share."""
        self._endpoint = make_control(
            widgets.Dropdown,
            title="Endpoint",
            help="Where to send it",
            options=tuple(ENDPOINTS),
            value=endpoint(name).name,
        )
        self._address = widgets.HTML()
        self._endpoint_cell = make_cell(self._endpoint, self._address, kind="endpoint")
        self._system = make_control(
            widgets.Textarea,
            title="System",
            help="How the model shall behave",
            value=system,
            placeholder="not set",
            rows=1,
        )
        self._images = ImagePicker(on_change=self._guard(self._on_edit))
        self._checkboxes = {TOOLS: widgets.HBox(self._tool_picker.tools), FORM: widgets.HBox(self._tool_picker.schemas)}
        for box in self._checkboxes.values():
            box.add_class("famnb-composer-given")
        self._settings = Accordion(draw=self._section, all_name="All fields")
        self._first_row = widgets.HBox()
        self._first_row.add_class("famnb-row")
        self.notes = widgets.HTML()
        """What to know before it is sent."""
        self.parts: list[widgets.Widget] = [
            self._first_row,
            make_cell(self._system, kind="system"),
            self._settings.bar,
            self._settings.box,
        ]
        """The form from top to bottom."""
        for control, callback in ((self._endpoint, self._on_endpoint_change), (self._system, self._on_edit)):
            control.observe(_as_observer(self._guard(callback)), "value")
        self._prompt_box.observe(_as_observer(self._guard(self._on_edit)), "prompt")

    def _make_form(self, name: str, raw: Mapping[FieldPath, str]) -> RequestForm:
        return RequestForm(endpoint(name), raw=raw, on_change=self._guard(self._on_edit))

    def _arrange(self, form: RequestForm) -> None:
        """Put a form's controls in their places."""
        self.form = form
        self._address.value = notices.help_text(f"{form.endpoint.title}: POST {form.endpoint.path}")
        self._first_row.children = [self._endpoint_cell, *form.group_controls(FIRST)]
        self._tool_picker.attach(form)
        self._settings.arrange(self._groups, [self._hint(group) for group in self._groups])

    @property
    def _groups(self) -> tuple[str, ...]:
        """The headings of this endpoint, in their order."""
        groups = {*self.form.groups, IMAGES}
        return tuple(group for group in GROUPS if group in groups)

    def _hint(self, group: str) -> str:
        names = [field.name for field in self.form.fields if field.group == group]
        return f"Show {', '.join(names)}" if names else "Images to send with the prompt"

    def _section(self, group: str) -> list[widgets.Widget]:
        """Return the controls under a heading."""
        if group == IMAGES:
            return [self._images.box]
        checkboxes = self._checkboxes.get(group)
        return [*([checkboxes] if checkboxes and checkboxes.children else []), self.form.section(group)]


def fault_text(fault: tuple[FieldPath, str]) -> str:
    """Return a fault with the name of its field."""
    path, text = fault
    name = ".".join(path)
    return text if not name or text.startswith(name) else f"{name}: {text}"


def _as_observer(callback: Callable[[], None]) -> Callable[[Any], None]:
    """Return a callback that takes, and ignores, what an observer is called with."""
    return lambda _: callback()
