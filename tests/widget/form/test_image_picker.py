"""The list of a prompt's images: what is uploaded or linked is listed, and in no widget's state."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

import ipywidgets as widgets
import pytest

from famnb.widget.form.image_picker import ImagePicker

DATA = b"\x89PNG\r\n\x1a\n" + b"\x00" * 3000


def upload(box: ImagePicker, *files: tuple[str, bytes]) -> None:
    """What the page does when files are chosen."""
    box._upload.value = tuple(
        {
            "name": name,
            "type": "image/png",
            "size": len(data),
            "last_modified": datetime.now(UTC),
            "content": memoryview(data),
        }
        for name, data in files
    )


@pytest.fixture
def edits() -> list[int]:
    """One item for each time the box said that it changed."""
    return []


@pytest.fixture
def box(edits: list[int]) -> ImagePicker:
    """A box without images."""
    return ImagePicker(changed=lambda: edits.append(1))


def test_uploads_are_listed_removed_and_forgotten_by_the_widget(box: ImagePicker, edits: list[int]):
    """The bytes stay on the Python side: no widget's state has them."""
    upload(box, ("<b>a.png", DATA), ("notes.txt", b"text"))
    (picture,) = box.pictures
    assert picture.description == "<b>a.png, png, 3 kB"
    assert box._upload.value == ()
    assert "notes.txt" in box._trouble.value
    state: Any = widgets.Widget.get_manager_state()
    assert base64.b64encode(DATA).decode()[:200] not in str(state)
    assert "AAAAAAAAAAAAAAAA" not in str(state)
    (row,) = box._list.children
    assert "&lt;b&gt;a.png" in row.children[0].value
    row.children[1].click()
    assert box.pictures == ()
    assert edits == [1, 1]


def test_addresses_are_added_beside_uploads(box: ImagePicker):
    """In the order given; what is no address stays in its box with the reason."""
    upload(box, ("a.png", DATA))
    box._link.value = "https://example.org/cat.png"
    box._add.click()
    box._link.value = "cat"
    box._add.click()
    assert [picture.description for picture in box.pictures] == ["a.png, png, 3 kB", "https://example.org/cat.png"]
    assert box._link.value == "cat"
    assert "expected an address" in box._trouble.value
