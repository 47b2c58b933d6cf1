"""JSON laid out while it grows: the same as when it is whole, and only ever added to."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from famnb.widget.html.transcript import JsonLayout, indent_json, is_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES.filter(lambda value: isinstance(value, list | dict)), st.data())
def test_any_cut_is_laid_out_like_the_whole(value: object, data: st.DataObject):
    text = json.dumps(value, indent=data.draw(st.sampled_from([None, 1, 7])))
    cut = data.draw(st.integers(0, len(text)))
    layout = JsonLayout()
    assert layout.add(text[:cut]) + layout.add(text[cut:]) == json.dumps(value, indent=2)
    assert indent_json(text) == json.dumps(value, indent=2)


def test_an_incomplete_text_is_readable():
    assert JsonLayout().add('{"a":[1,{"b":"x, {') == '{\n  "a": [\n    1,\n    {\n      "b": "x, {'


@pytest.mark.parametrize("text", ["Hello, {you}: fine", '{"a": 1', "[" * 100_000, "12", ""])
def test_what_is_no_json_object_stays_as_it_is(text: str):
    assert indent_json(text) == text
    assert not is_json(text)
