"""The images that go along with a prompt: uploaded or linked, listed, taken away; their data is in no widget."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets as widgets

from famnb.errors import InvalidRequest
from famnb.formatting import format_size
from famnb.widget.form import images
from famnb.widget.form.controls import make_cell, make_control
from famnb.widget.form.images import LIMIT_BYTES, PromptImage
from famnb.widget.html import sanitize

_HELP = f"PNG, JPEG, GIF or WebP of at most {format_size(LIMIT_BYTES)} each, sent with the prompt as data."


class ImagePicker:
    """A button to upload images, a box for the address of one, and the list of those that are there."""

    def __init__(self, *, changed: Callable[[], object]) -> None:
        self._changed = changed
        self._pictures: tuple[PromptImage, ...] = ()
        self._upload = widgets.FileUpload(
            accept=".png,.jpg,.jpeg,.gif,.webp", multiple=True, description="Upload images", tooltip=_HELP
        )
        self._link = make_control(
            widgets.Text, title="Address of an image", help="The service fetches it", placeholder="https://…"
        )
        self._add = widgets.Button(description="Add address", tooltip="Send the image at this address too")
        self._list = widgets.VBox()
        self._list.add_class("famnb-composer-list")
        self._trouble = widgets.HTML()
        help = widgets.HTML(f'<span class="famnb-help">{_HELP}</span>')
        linked = make_cell(self._link, kind="link")
        self.box = widgets.VBox([self._upload, help, widgets.HBox([linked, self._add]), self._trouble, self._list])
        self.box.add_class("famnb-composer-images")
        self._upload.observe(lambda change: self._uploaded(change["new"]), "value")
        self._add.on_click(lambda _: self._linked())

    @property
    def pictures(self) -> tuple[PromptImage, ...]:
        """The images that are there."""
        return self._pictures

    def replace(self, shown: tuple[PromptImage, ...]) -> None:
        """Have these images and no others."""
        if shown == self._pictures:
            return
        self._pictures = shown
        for row in self._list.children:
            for widget in row.children:
                widget.close()
            row.close()
        self._list.children = [self._row(place, picture) for place, picture in enumerate(shown)]
        self._changed()

    def _row(self, place: int, picture: PromptImage) -> widgets.Widget:
        words = sanitize.escape(
            picture.description if len(picture.description) <= 80 else picture.description[:79] + "…"
        )
        name = (picture.name or "image")[:30]
        remove = widgets.Button(description=f"Remove {name}", tooltip=f"Do not send {name}")
        remove.on_click(
            lambda _: self.replace(tuple(each for number, each in enumerate(self._pictures) if number != place))
        )
        return widgets.HBox([widgets.HTML(f"<span>{words}</span>"), remove])

    def _uploaded(self, files: Any) -> None:
        """Take in what was uploaded, and have the widget forget it: what it holds is saved with the notebook."""
        if not files:
            return
        self._upload.value = ()
        taken, faults = list(self._pictures), []
        for file in files:
            try:
                taken.append(images.image_from_file(file["name"], bytes(file["content"])))
            except InvalidRequest as fault:
                faults.append(str(fault))
        self._say(*faults)
        self.replace(tuple(taken))

    def _linked(self) -> None:
        try:
            picture = images.image_from_url(self._link.value)
        except InvalidRequest as fault:
            self._say(str(fault))
            return
        self._say()
        self._link.value = ""
        self.replace((*self._pictures, picture))

    def _say(self, *faults: str) -> None:
        self._trouble.value = "".join(
            f'<p class="famnb-fault" role="alert">{sanitize.escape(fault)}</p>' for fault in faults
        )
