"""Notes on calls."""

import pickle

import pytest

import famnb
from famnb.errors import InvalidRequest
from famnb.record import Ledger
from famnb.reply import Reply
from tests.support.exchanges import exchange


def test_a_note_is_a_column_of_the_frame(ledger: Ledger):
    noted, other = exchange(), exchange()
    for call in (noted, other):
        ledger.on_close(call).result()
    noted.reply.note("first")
    noted.reply.note("too long,\n key sk-abcdefghijklmnop123456")
    frame = famnb.calls(ledger).set_index("call_id")
    assert frame["note"].fillna("").to_dict() == {noted.id: "too long, key [key]", other.id: ""}
    assert "note" in repr(famnb.calls(ledger))
    ledger.note(noted.id, "")
    assert famnb.calls(ledger)["note"].isna().all()


def test_a_note_outlives_the_end_of_the_call(ledger: Ledger):
    call = exchange()
    ledger.on_open(call)
    ledger.note(call.id, "slow today")
    ledger.on_close(call).result()
    assert ledger.call(call.id).note == "slow today"


def test_a_reply_that_was_read_or_copied_is_noted_in_its_ledger(ledger: Ledger):
    call = exchange()
    ledger.on_close(call).result()
    pickle.loads(pickle.dumps(ledger.call(call.id).reply)).note("copied")
    assert ledger.call(call.id).note == "copied"


def test_what_was_not_recorded_cannot_be_noted(ledger: Ledger):
    with pytest.raises(InvalidRequest, match="not recorded"):
        Reply().note("lost")
    with pytest.raises(KeyError, match="no call 'call_missing'"):
        ledger.note("call_missing", "lost")
