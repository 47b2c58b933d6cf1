"""The composer's form: endpoint, first fields and system text at hand, all other fields folded under their headings.

It turns controls into a `Draft` and a draft into controls, carries what it can from endpoint to endpoint, and says what
got lost and what may surprise; sending is left to the composer.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import ipywidgets as widgets

from famnb.endpoints import ENDPOINTS, endpoint
from famnb.errors import InvalidRequest
from famnb.request import Request
from famnb.widget.form import hints
from famnb.widget.form.accordion import Accordion
from famnb.widget.form.controls import MODEL, RequestForm, make_cell, make_control
from famnb.widget.form.draft import Draft, Reading, read_draft, replace_prompt
from famnb.widget.form.fields import FIRST, FORM, GROUPS, IMAGES, TOOLS, FieldPath
from famnb.widget.form.image_picker import ImagePicker
from famnb.widget.form.images import PromptImage
from famnb.widget.form.tool_picker import ToolPicker
from famnb.widget.html import sanitize
from famnb.widget.live.base import CallbackGuard
from famnb.widget.live.prompt_box import PromptBox

_STREAM: FieldPath = ("stream",)


class Editor:
    """The form; `changed` is called after each edit, `guarded` makes callbacks whose errors are shown."""

    def __init__(
        self,
        desk: PromptBox,
        *,
        endpoint: str,
        system: str,
        given: ToolPicker,
        guarded: CallbackGuard,
        changed: Callable[[], object],
    ) -> None:
        self._desk, self._given = desk, given
        self._guarded, self._changed = guarded, changed
        self._left: dict[str, dict[FieldPath, str]] = {}
        """What was filled in at the endpoints that were left."""
        self._losses: tuple[str, ...] = ()
        self._settled = False
        """Whether what the controls say counts, rather than comes from being filled in."""
        self._controls(endpoint, system)
        self._arrange(self._drawn(endpoint, {_STREAM: "true"}))
        given.tick(self.form)

    def settle(self) -> None:
        """Begin to heed the controls, and say what there is to say."""
        self._settled = True
        self._edited()

    @property
    def draft(self) -> Draft:
        """What the form holds."""
        return Draft(
            endpoint=self.form.endpoint.name,
            prompt=self._desk.prompt,
            system=self._system.value,
            pictures=self._attachments.pictures,
            raw=dict(self.form.raw),
        )

    @property
    def reading(self) -> Reading:
        """What that comes to."""
        return read_draft(self.draft)

    def request(self, prompt: str, shown: tuple[PromptImage, ...] | None = None) -> Request:
        """The request that the form's settings make of a prompt, with its own pictures or with those given.

        Raises InvalidRequest, naming the fields, when it is none.
        """
        draft = self.draft
        shown = draft.pictures if shown is None else shown
        reading = read_draft(dataclasses.replace(draft, prompt=prompt, pictures=shown))
        if not prompt.strip() and not reading.replaced:
            raise InvalidRequest("prompt: nothing is asked yet; write a prompt")
        if reading.request is None:
            raise InvalidRequest("; ".join(map(fault_text, reading.faults.items())))
        return reading.request

    def fresh(self, prompt: str, shown: tuple[PromptImage, ...] | None = None) -> Request:
        """The same, with the prompt in the place of what the form's own conversation ends with, if it has one."""
        return replace_prompt(
            self.request(prompt, shown), prompt, self._attachments.pictures if shown is None else shown
        )

    def fill(self, draft: Draft) -> None:
        """Have the form hold a draft and nothing else."""
        self._settled = False
        try:
            left, self._losses = self.form, ()
            self._endpoint.value = draft.endpoint
            self._desk.prompt, self._system.value = draft.prompt, draft.system
            self._attachments.replace(draft.pictures)
            self._arrange(self._drawn(draft.endpoint, draft.raw))
            left.close()
        finally:
            self.settle()

    def _edited(self) -> None:
        """Something was edited: say what is wrong and what may surprise."""
        if not self._settled:
            return
        reading = self.reading
        self.form.show(reading.faults)
        self._given.read()
        self._desk.replaced = reading.replaced
        self._desk.fault = next(map(fault_text, reading.faults.items()), "")
        remarks = [*self._losses, *hints.unsent(self.draft, reading), *hints.hazards(self.draft, reading)]
        self.notes.value = "".join(
            f'<p class="famnb-remark">{sanitize.render_docstring(remark)}</p>' for remark in remarks
        )
        wrong = {field.group for field in self.form.fields if field.path in reading.faults}
        for group in self._groups:
            count = len(self._attachments.pictures) if group == IMAGES else self.form.count_set(group)
            self._settings.mark(group, "to mend" if group in wrong else f"{count} set" if count else "")
        self._changed()

    def _moved(self) -> None:
        """Another endpoint was chosen: carry over what it can take, and say what it cannot."""
        if not self._settled:
            return
        source, target = self.form.endpoint, endpoint(self._endpoint.value)
        kept, self._losses = hints.carry_over(self.form.raw, source, target)
        own = {field.path for field in self.form.fields} - {MODEL}
        before = {path: text for path, text in self._left.get(target.name, {}).items() if path not in own}
        left, self._left[source.name] = self.form, dict(self.form.raw)
        self._arrange(self._drawn(target.name, {**before, **kept}))
        left.close()
        self._edited()

    # How it looks

    def _controls(self, name: str, system: str) -> None:
        """Make the controls that all endpoints share."""
        self._endpoint = make_control(
            widgets.Dropdown,
            title="Endpoint",
            help="Where to send it",
            options=tuple(ENDPOINTS),
            value=endpoint(name).name,
        )
        self._where = widgets.HTML()
        self._place = make_cell(self._endpoint, self._where, kind="endpoint")
        self._system = make_control(
            widgets.Textarea,
            title="System",
            help="How the model shall behave",
            value=system,
            placeholder="not set",
            rows=1,
        )
        self._attachments = ImagePicker(changed=self._guarded(self._edited))
        self._boxes = {TOOLS: widgets.HBox(self._given.tools), FORM: widgets.HBox(self._given.schemas)}
        for box in self._boxes.values():
            box.add_class("famnb-composer-given")
        self._settings = Accordion(draw=self._section, all="All fields")
        self._first = widgets.HBox()
        self._first.add_class("famnb-row")
        self.notes = widgets.HTML()
        """What to know before it is sent."""
        self.parts: list[widgets.Widget] = [
            self._first,
            make_cell(self._system, kind="system"),
            self._settings.bar,
            self._settings.box,
        ]
        """The form from top to bottom."""
        for control, callback in ((self._endpoint, self._moved), (self._system, self._edited)):
            control.observe(_heedless(self._guarded(callback)), "value")
        self._desk.observe(_heedless(self._guarded(self._edited)), "prompt")

    def _drawn(self, name: str, raw: Mapping[FieldPath, str]) -> RequestForm:
        return RequestForm(endpoint(name), raw=raw, changed=self._guarded(self._edited))

    def _arrange(self, form: RequestForm) -> None:
        """Put a form's controls in their places."""
        self.form = form
        at = form.endpoint
        self._where.value = f'<span class="famnb-help">{at.title}: POST {at.path}</span>'
        self._first.children = [self._place, *form.group_controls(FIRST)]
        self._given.attach(form)
        self._settings.arrange(self._groups, [self._hint(group) for group in self._groups])

    @property
    def _groups(self) -> tuple[str, ...]:
        """The headings there are at this endpoint."""
        here = {*self.form.groups, IMAGES}
        return tuple(group for group in GROUPS if group in here)

    def _hint(self, group: str) -> str:
        names = [field.name for field in self.form.fields if field.group == group]
        return f"Show {', '.join(names)}" if names else "Images to send with the prompt"

    def _section(self, group: str) -> list[widgets.Widget]:
        """What stands under a heading."""
        if group == IMAGES:
            return [self._attachments.box]
        before = self._boxes.get(group)
        return [*([before] if before and before.children else []), self.form.section(group)]


def fault_text(fault: tuple[FieldPath, str]) -> str:
    """A fault with the name of its field."""
    path, words = fault
    name = ".".join(path)
    return words if not name or words.startswith(name) else f"{name}: {words}"


def _heedless(callback: Callable[[], None]) -> Callable[[Any], None]:
    """The callback for an observer, whatever it is told."""
    return lambda _: callback()
