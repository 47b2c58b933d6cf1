"""The controls for images that go along with a prompt: upload, address, list and removal.

No widget holds an image's data, since widget state is saved with the notebook.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets as widgets

from famnb.errors import InvalidRequest
from famnb.formatting import format_size, shorten
from famnb.widget.form import images
from famnb.widget.form.controls import make_cell, make_control
from famnb.widget.form.images import LIMIT_BYTES, PromptImage
from famnb.widget.html import notices
from famnb.widget.html.sanitize import SafeHtml

_HELP = f"PNG, JPEG, GIF or WebP of at most {format_size(LIMIT_BYTES)} each, sent with the prompt as data."
_ROW = SafeHtml("<span>{}</span>")


class ImagePicker:
    """A button to upload images, a text box for the address of an image, and the list of the prompt's images."""

    def __init__(self, *, on_change: Callable[[], object]) -> None:
        """`on_change` is called after each change of the list."""
        self._on_change = on_change
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
        help = widgets.HTML(notices.help_text(_HELP))
        address = widgets.HBox([make_cell(self._link, kind="link"), self._add])
        self.box = widgets.VBox([self._upload, help, address, self._trouble, self._list])
        self.box.add_class("famnb-composer-images")
        self._upload.observe(lambda change: self._on_upload(change["new"]), "value")
        self._add.on_click(lambda _: self._on_add_address())

    @property
    def pictures(self) -> tuple[PromptImage, ...]:
        """The images in the list."""
        return self._pictures

    def replace(self, pictures: tuple[PromptImage, ...]) -> None:
        """List these images and no others."""
        if pictures == self._pictures:
            return
        self._pictures = pictures
        for row in self._list.children:
            for widget in row.children:
                widget.close()
            row.close()
        self._list.children = [self._row(index, picture) for index, picture in enumerate(pictures)]
        self._on_change()

    def _row(self, index: int, picture: PromptImage) -> widgets.Widget:
        # A row stays on one line, however long an address or the name of a file is.
        description = shorten(picture.description, 80)
        name = (picture.name or "image")[:30]
        remove = widgets.Button(description=f"Remove {name}", tooltip=f"Do not send {name}")
        remove.on_click(lambda _: self.replace((*self._pictures[:index], *self._pictures[index + 1 :])))
        return widgets.HBox([widgets.HTML(_ROW.format(description)), remove])

    def _on_upload(self, files: Any) -> None:
        """Add the uploaded files, and empty the upload widget, whose value would be saved with the notebook."""
        # Emptying the widget calls this again, with nothing.
        if not files:
            return
        self._upload.value = ()
        pictures, faults = list(self._pictures), []
        for file in files:
            try:
                pictures.append(images.image_from_file(file["name"], bytes(file["content"])))
            except InvalidRequest as error:
                faults.append(str(error))
        self._trouble.value = notices.fault(*faults)
        self.replace(tuple(pictures))

    def _on_add_address(self) -> None:
        try:
            picture = images.image_from_url(self._link.value)
        except InvalidRequest as error:
            self._trouble.value = notices.fault(str(error))
            return
        self._trouble.value = ""
        self._link.value = ""
        self.replace((*self._pictures, picture))
