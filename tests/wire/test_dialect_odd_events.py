"""Events of odd shape break nothing; of known ones with malformed fields `test_response_reader_fuzz.py` tries many."""

from types import ModuleType

import pytest
from hypothesis import given

from famnb.errors import StreamDecodeError
from famnb.events import Other
from famnb.reply import fold
from famnb.wire import lenient_json
from tests.support.strategies import DIALECTS, NAMES, json_values

each_dialect = pytest.mark.parametrize("dialect", DIALECTS, ids=NAMES.get)


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
