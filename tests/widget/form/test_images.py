"""Images of a prompt: taken by their content, sent as parts, and in no widget's state."""

import base64

import pytest

from famnb.errors import InvalidRequest
from famnb.widget.form.images import LIMIT_BYTES, PromptImage, has_image_data, image_from_url, shorten_image_data

HEADS = {
    "png": b"\x89PNG\r\n\x1a\n",
    "jpeg": b"\xff\xd8\xff\xe0",
    "gif": b"GIF89a",
    "webp": b"RIFF\x00\x00\x00\x00WEBP",
}


def make_url(data: bytes) -> str:
    """A data URL that says nothing of what it holds."""
    return f"data:;base64,{base64.b64encode(data).decode()}"


@pytest.mark.parametrize("kind", HEADS)
def test_an_image_is_what_its_content_says(kind: str):
    data = HEADS[kind] + bytes(range(256))
    picture = image_from_url(make_url(data), name="holiday.bmp")
    assert picture.url.startswith(f"data:image/{kind};base64,")
    assert base64.b64decode(picture.url.partition(",")[2]) == data


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"<svg/>", r"no PNG, JPEG, GIF or WebP image"),
        (b"", r"no PNG"),
        (b"RIFF\x00\x00\x00\x00WAVE", r"no PNG"),
        (HEADS["png"] + b"\x00" * LIMIT_BYTES, r"too large; expected at most 5\.0 MB"),
    ],
)
def test_anything_else_is_refused(data: bytes, words: str):
    with pytest.raises(InvalidRequest, match=f"cat.png: .*{words}"):
        image_from_url(make_url(data), name="cat.png")


@pytest.mark.parametrize(
    "url", ["", "cat.png", "ftp://x/y.png", "https://", "javascript:alert(1)", "https://a b/c", "http://[x"]
)
def test_an_address_is_http_or_data(url: str):
    with pytest.raises(InvalidRequest, match="expected an address such as https://"):
        image_from_url(url)
    assert image_from_url(" https://example.org/cat.png ") == PromptImage("https://example.org/cat.png")


def test_a_text_is_shortened_where_it_has_the_data_of_an_image():
    text = f'{{"url": "{image_from_url(make_url(HEADS["png"] + bytes(3000))).url}"}}'
    assert has_image_data(text)
    assert shorten_image_data(text).endswith('… (3 kB more)"}')
