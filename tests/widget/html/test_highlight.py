"""Code is coloured by kind, and never changed."""

import html as stdlib_html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from famnb.widget.html import highlight, sanitize


def test_code_is_coloured_by_kind_in_its_language():
    html = sanitize.render_markdown("```python\nreturn 'a < b'  # no\n```")
    span = '<span style="color:color-mix(in srgb,currentcolor 40%,#8b2fc9)">return </span>'
    assert span in html
    assert "a &lt; b" in html
    assert html.count("<span style=") == 3


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("```klingon\nreturn 1\n```", id="an unknown language"),
        pytest.param("```python\n" + "return 1\n" * 1000 + "```", id="a long block"),
        pytest.param("```python\nreturn '" + "a" * 600 + "'\n```", id="a long line"),
        pytest.param("```bash\nexport KEY=sk-proj-1234567890abcdefghij\n```", id="a key, which spans would hide"),
    ],
)
def test_other_code_stays_plain(code: str):
    assert "<span" not in sanitize.render_markdown(code)


@given(st.sampled_from(sorted(highlight.LANGUAGES)), st.text(alphabet="ab1 \n\"'`<>&/*#${}()[]=-\\\t", max_size=60))
def test_highlighting_changes_no_character(language: str, code: str):
    assert stdlib_html.unescape(re.sub(r"</?span[^>]*>", "", highlight.spans(code, language))) == code
