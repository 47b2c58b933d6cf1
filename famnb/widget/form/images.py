"""Images that go along with a prompt: checked by their content, and kept as data URLs in this process only."""

from __future__ import annotations

import base64
import binascii
import dataclasses
import re
from urllib.parse import urlsplit

from famnb.errors import InvalidRequest
from famnb.formatting import format_size

# JupyterLab's own connection carries little more than twice that in one message.
LIMIT_BYTES = 5 * 1024 * 1024
"""The size of the largest image that is accepted."""
KINDS = ("PNG", "JPEG", "GIF", "WebP")
_LONG_DATA = re.compile(r"(data:image/[\w.+-]+;base64,[A-Za-z0-9+/=]{16})([A-Za-z0-9+/=]{64,})")


@dataclasses.dataclass(frozen=True, slots=True)
class PromptImage:
    """An image by its address, which for an upload is its data."""

    url: str
    """An http(s) or data URL."""
    name: str = ""
    """The name of the uploaded file; empty for a link."""

    @property
    def is_upload(self) -> bool:
        """Whether its data is sent with the request."""
        return self.url.startswith("data:")

    @property
    def description(self) -> str:
        """The address of a link; name, kind and size of an upload."""
        if not self.is_upload:
            return self.url
        kind, _, data = self.url.removeprefix("data:image/").partition(";base64,")
        return f"{self.name or 'image'}, {kind}, {format_size(len(data) * 3 // 4)}"


def image_from_file(name: str, data: bytes) -> PromptImage:
    """Return an image file as a data URL.

    Raises InvalidRequest unless it is a PNG, JPEG, GIF or WebP of at most LIMIT_BYTES.
    """
    if len(data) > LIMIT_BYTES:
        limit = format_size(LIMIT_BYTES)
        raise InvalidRequest(f"{name}: {format_size(len(data))} is too large; expected at most {limit}: scale it")
    kind = _sniff_kind(data)
    if kind is None:
        raise InvalidRequest(f"{name}: its content is no {', '.join(KINDS[:-1])} or {KINDS[-1]} image; convert it")
    return PromptImage(f"data:image/{kind.lower()};base64,{base64.b64encode(data).decode()}", name)


def image_from_url(url: str, *, name: str = "") -> PromptImage:
    """Return an image by its http(s) or data URL; `name` is that of its file. Raises InvalidRequest for other text."""
    url = url.strip()
    if url.startswith("data:"):
        try:
            data = base64.b64decode(url.partition(";base64,")[2], validate=True)
        except binascii.Error:
            data = b""
        return dataclasses.replace(image_from_file(name or "this data URL", data), name=name)
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc or any(map(str.isspace, url)):
        raise InvalidRequest(f"image: expected an address such as https://example.org/cat.png, got {url[:60]!r}")
    return PromptImage(url)


def _sniff_kind(data: bytes) -> str | None:
    """Return the kind of image by its first bytes, whatever the file is called; None for anything else."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "PNG"
    if data.startswith(b"\xff\xd8\xff"):
        return "JPEG"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "GIF"
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "WebP"
    return None


def shorten_image_data(text: str) -> str:
    """Return the text for reading, with only the beginning of each image's data."""
    return _LONG_DATA.sub(lambda match: f"{match[1]}… ({format_size(len(match[2]) * 3 // 4)} more)", text)


def has_image_data(text: str) -> bool:
    """Return whether a text has an image's data."""
    return bool(_LONG_DATA.search(text))
