"""The list of a prompt's images: what is uploaded or linked is listed, and in no widget's state."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

import ipywidgets as widgets
import pytest

from famnb.widget.form.image_picker import ImagePicker

DATA = b"\x89PNG\r\n\x1a\n" + b"\x00" * 3000


def upload(picker: ImagePicker, *files: tuple[str, bytes]) -> None:
    """What the page does when files are chosen."""
    picker._upload.value = tuple(
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
    """One item for each change of the list."""
    return []


@pytest.fixture
def picker(edits: list[int]) -> ImagePicker:
    """A picker without images."""
    return ImagePicker(on_change=lambda: edits.append(1))


def test_uploads_are_listed_removed_and_forgotten_by_the_widget(picker: ImagePicker, edits: list[int]):
    """The bytes stay on the Python side: no widget's state has them."""
    upload(picker, ("<b>a.png", DATA), ("notes.txt", b"text"))
    (picture,) = picker.pictures
    assert picture.description == "<b>a.png, png, 3 kB"
    assert picker._upload.value == ()
    assert "notes.txt" in picker._trouble.value
    state: Any = widgets.Widget.get_manager_state()
    assert base64.b64encode(DATA).decode()[:200] not in str(state)
    assert "AAAAAAAAAAAAAAAA" not in str(state)
    (row,) = picker._list.children
    assert "&lt;b&gt;a.png" in row.children[0].value
    row.children[1].click()
    assert picker.pictures == ()
    assert edits == [1, 1]


def test_addresses_are_added_beside_uploads(picker: ImagePicker):
    """In the order given; what is no address stays in its text box with the reason."""
    upload(picker, ("a.png", DATA))
    picker._link.value = "https://example.org/cat.png"
    picker._add.click()
    picker._link.value = "cat"
    picker._add.click()
    assert [picture.description for picture in picker.pictures] == ["a.png, png, 3 kB", "https://example.org/cat.png"]
    assert picker._link.value == "cat"
    assert "expected an address" in picker._trouble.value
