"""Images that go along with a prompt: checked by their content, kept as data URLs in this process and nowhere else.

Whatever a widget holds may be saved with the notebook. So texts for widgets name the data of an image by its digest
(`shelved`), and become the real thing again on the way to the service (`restored`).
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import hashlib
import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from famnb.errors import InvalidRequest
from famnb.formatting import format_size

LIMIT_BYTES = 5 * 1024 * 1024
"""The largest image taken; JupyterLab's own connection carries little more than twice that at once."""
KINDS = ("PNG", "JPEG", "GIF", "WebP")
_DATA = re.compile(r"data:image/[\w.+-]+;base64,[A-Za-z0-9+/=]{64,}")
_NAMED = re.compile(r"famnb-image:[0-9a-f]{32}")
_SHORT = re.compile(r"(data:image/[\w.+-]+;base64,[A-Za-z0-9+/=]{16})([A-Za-z0-9+/=]{64,})")
_shelf: dict[str, str] = {}


@dataclasses.dataclass(frozen=True, slots=True)
class PromptImage:
    """An image by its address, which for an upload is its data."""

    url: str
    """An http(s) or data URL."""
    name: str = ""
    """What the file was called; empty for a link."""

    @property
    def is_upload(self) -> bool:
        """Whether its data travels with the request."""
        return self.url.startswith("data:")

    @property
    def description(self) -> str:
        """What it is, in a few words."""
        if not self.is_upload:
            return self.url
        kind, _, data = self.url.removeprefix("data:image/").partition(";base64,")
        return f"{self.name or 'image'}, {kind}, {format_size(len(data) * 3 // 4)}"


def image_from_file(name: str, data: bytes) -> PromptImage:
    """An image file as a picture; raises InvalidRequest for anything but a PNG, JPEG, GIF or WebP of moderate size."""
    if len(data) > LIMIT_BYTES:
        limit = format_size(LIMIT_BYTES)
        raise InvalidRequest(f"{name}: {format_size(len(data))} is too large; expected at most {limit}: scale it")
    kind = _kind(data)
    if kind is None:
        raise InvalidRequest(f"{name}: its content is no {', '.join(KINDS[:-1])} or {KINDS[-1]} image; convert it")
    return PromptImage(f"data:image/{kind.lower()};base64,{base64.b64encode(data).decode()}", name)


def image_from_url(url: str) -> PromptImage:
    """An image by its address; raises InvalidRequest for what is none."""
    url = url.strip()
    if url.startswith("data:"):
        try:
            data = base64.b64decode(url.partition(";base64,")[2], validate=True)
        except binascii.Error:
            data = b""
        return dataclasses.replace(image_from_file("this data URL", data), name="")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc or any(map(str.isspace, url)):
        raise InvalidRequest(f"image: expected an address such as https://example.org/cat.png, got {url[:60]!r}")
    return PromptImage(url)


def _kind(data: bytes) -> str | None:
    """The kind of image that bytes begin like, whatever their file is called."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "PNG"
    if data.startswith(b"\xff\xd8\xff"):
        return "JPEG"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "GIF"
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "WebP"
    return None


def hide_image_data(text: str) -> str:
    """A text with a name in the place of each image's data."""
    return _DATA.sub(lambda match: _named(match[0]), text)


def restore_image_data(text: str) -> str:
    """A text with the data in the place of each name that stands for an image here."""
    return _NAMED.sub(lambda match: _shelf.get(match[0], match[0]), text)


def shorten_image_data(text: str) -> str:
    """A text to look at, with the beginning of each image's data only."""
    return _SHORT.sub(lambda match: f"{match[1]}… ({format_size(len(match[2]) * 3 // 4)} more)", text)


def has_image_data(text: str) -> bool:
    """Whether a text has, or names, an image's data."""
    return bool(_DATA.search(text) or _NAMED.search(text))


def without_uploads(pictures: Iterable[PromptImage]) -> tuple[PromptImage, ...]:
    """Those of the pictures that are elsewhere."""
    return tuple(picture for picture in pictures if not picture.is_upload)


def _named(url: str) -> str:
    name = f"famnb-image:{hashlib.blake2b(url.encode(), digest_size=16).hexdigest()}"
    _shelf[name] = url
    return name
