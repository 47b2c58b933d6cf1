"""Images of a prompt: taken by their content, sent as parts, and in no widget's state."""

import base64

import pytest

from famnb.errors import InvalidRequest
from famnb.widget.form import images
from famnb.widget.form.images import LIMIT_BYTES, PromptImage

HEADS = {
    "png": b"\x89PNG\r\n\x1a\n",
    "jpeg": b"\xff\xd8\xff\xe0",
    "gif": b"GIF89a",
    "webp": b"RIFF\x00\x00\x00\x00WEBP",
}
DATA = HEADS["png"] + b"\x00" * 3000


@pytest.mark.parametrize("kind", HEADS)
def test_an_image_is_what_its_content_says(kind: str):
    data = HEADS[kind] + bytes(range(256))
    picture = images.image_from_file("holiday.bmp", data)
    assert picture.url.startswith(f"data:image/{kind};base64,")
    assert base64.b64decode(picture.url.partition(",")[2]) == data


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"<svg/>", r"no PNG, JPEG, GIF or WebP image"),
        (b"", r"no PNG"),
        (b"RIFF\x00\x00\x00\x00WAVE", r"no PNG"),
        (HEADS["png"] + b"\x00" * LIMIT_BYTES, r"5\.0 MB is too large; expected at most 5\.0 MB"),
    ],
)
def test_anything_else_is_refused(data: bytes, words: str):
    with pytest.raises(InvalidRequest, match=f"cat.png: .*{words}"):
        images.image_from_file("cat.png", data)


@pytest.mark.parametrize("url", ["", "cat.png", "ftp://x/y.png", "https://", "javascript:alert(1)", "https://a b/c"])
def test_an_address_is_http_or_data(url: str):
    with pytest.raises(InvalidRequest, match="expected an address such as https://"):
        images.image_from_url(url)
    assert images.image_from_url(" https://example.org/cat.png ") == PromptImage("https://example.org/cat.png")
    assert images.image_from_url(images.image_from_file("a", DATA).url).is_upload


def test_a_text_is_shortened_where_it_has_the_data_of_an_image():
    text = f'{{"url": "{images.image_from_file("a", DATA).url}"}}'
    assert images.has_image_data(text)
    assert images.shorten_image_data(text).endswith('… (3 kB more)"}')
