"""Images that go along with a prompt: checked by their content, and kept as data URLs in this process only."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import re

from famnb.errors import InvalidRequest
from famnb.formatting import format_size
from famnb.widget.html.transcript import describe_picture

# JupyterLab's own connection carries little more than twice that in one message.
LIMIT_BYTES = 5 * 1024 * 1024
"""The size of the largest image that is accepted."""
_BEGINNINGS = {"png": rb"\x89PNG\r\n\x1a\n", "jpeg": rb"\xff\xd8\xff", "gif": rb"GIF8[79]a", "webp": rb"RIFF....WEBP"}
_LINK = re.compile(r"https?://[^\s/?#\[\]]+(?:[/?#]\S*)?", re.IGNORECASE)
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
        return describe_picture(self.url, self.name or "image") if self.is_upload else self.url


def image_from_url(url: str, *, name: str = "") -> PromptImage:
    """Return an image by its http(s) or data URL; `name` is that of its file.

    Raises InvalidRequest for other text, and for data that is not a PNG, JPEG, GIF or WebP of at most LIMIT_BYTES.
    """
    url = url.strip()
    if not url.startswith("data:"):
        if not _LINK.fullmatch(url):
            raise InvalidRequest(f"image: expected an address such as https://example.org/cat.png, got {url[:60]!r}")
        return PromptImage(url)
    title, data = name or "this data URL", b""
    with contextlib.suppress(ValueError):
        data = base64.b64decode(url.partition(";base64,")[2], validate=True)
    if len(data) > LIMIT_BYTES:
        raise InvalidRequest(f"{title}: it is too large; expected at most {format_size(LIMIT_BYTES)}: scale it")
    # By its first bytes, whatever the file is called.
    kind = next((kind for kind, pattern in _BEGINNINGS.items() if re.match(pattern, data, re.DOTALL)), None)
    if kind is None:
        raise InvalidRequest(f"{title}: its content is no PNG, JPEG, GIF or WebP image; convert it")
    return PromptImage(f"data:image/{kind};base64,{base64.b64encode(data).decode()}", name)


def shorten_image_data(text: str) -> str:
    """Return the text for reading, with only the beginning of each image's data."""
    return _LONG_DATA.sub(lambda match: f"{match[1]}… ({format_size(len(match[2]) * 3 // 4)} more)", text)


def has_image_data(text: str) -> bool:
    """Return whether a text has an image's data."""
    return bool(_LONG_DATA.search(text))
