"""Events of odd shape: a known event with a malformed field is read as far as it makes sense, and breaks nothing."""

from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from famnb.errors import StreamDecodeError
from famnb.events import Other
from famnb.reply import fold
from famnb.wire import lenient_json, sse
from tests.support.strategies import DIALECTS, NAMES, json_values, read, streams, written

each_dialect = pytest.mark.parametrize("dialect", DIALECTS, ids=NAMES.get)


@each_dialect
@given(data=st.data())
def test_a_malformed_field_breaks_nothing(dialect: ModuleType, data: st.DataObject):
    decoder = sse.Decoder()
    events = decoder.feed(written(dialect, data.draw(streams(dialect))))
    spoilt = [lenient_json.encode(spoil(lenient_json.decode(event), data)) for event in events if event != sse.DONE]
    fold(read(dialect, [sse.encode(event) for event in spoilt]))


def spoil(value: Any, data: st.DataObject) -> Any:
    """The value with one thing somewhere inside it replaced or gone."""
    if not value or not isinstance(value, dict | list) or data.draw(st.integers(0, 3)) == 0:
        return data.draw(json_values)
    where = data.draw(st.sampled_from(sorted(value) if isinstance(value, dict) else range(len(value))))
    if data.draw(st.integers(0, 9)) == 0:
        if isinstance(value, dict):
            return {name: inner for name, inner in value.items() if name != where}
        return value[:where] + value[where + 1 :]
    copy = value.copy()
    copy[where] = spoil(value[where], data)
    return copy


@each_dialect
@given(json_values.map(lenient_json.encode))
def test_any_json_is_an_event(dialect: ModuleType, data: bytes):
    fold(dialect.reader().read(data))


@each_dialect
@pytest.mark.parametrize("data", [b"{", b"nope", b'{"a":}', b"[DONE", b"<html>"])
def test_what_is_not_json_is_a_decode_error(dialect: ModuleType, data: bytes):
    with pytest.raises(StreamDecodeError):
        dialect.reader().read(data)


@each_dialect
@pytest.mark.parametrize("data", [b"[]", b'"x"', b"3", b"null", b"{}"])
def test_json_that_says_nothing_is_other(dialect: ModuleType, data: bytes):
    assert dialect.reader().read(data) == [Other()]


@each_dialect
def test_nothing_counts_after_the_terminator(dialect: ModuleType):
    reader = dialect.reader()
    reader.read(b" [DONE] ")
    assert reader.read(b"{") == []
    assert reader.end() == []
