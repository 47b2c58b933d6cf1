"""Calls that are shared."""

import msgspec
import pytest

from famnb.errors import InvalidRequest
from famnb.record import Ledger
from famnb.record.ratings import RecordedScore, read_scores, save
from famnb.record.shared import SharedRecord, open_shared, share_calls
from tests.support.exchanges import exchange, spoken


def test_shared_calls_are_read_as_they_were(ledger: Ledger):
    call = exchange()
    ledger.on_close(call).result()
    save(ledger, [RecordedScore(call_id=call.id, scorer="exact", value=1.0)])
    data = msgspec.json.encode(share_calls(ledger, [call.id, "call_missing"]))
    opened = open_shared(msgspec.json.decode(data, type=SharedRecord))
    assert opened.call(call.id).reply == call.reply
    assert opened.call(call.id).reply.timing == call.reply.timing
    assert [score.value for score in read_scores(opened, [call.id])] == [1.0]


def test_a_key_is_shared_neither_whole_nor_in_pieces(ledger: Ledger):
    call = exchange(spoken("The key is sk-abcdefgh", "ijklmnop123456."), prompt="Is sk-abcdefghijklmnop123456 a key?")
    ledger.on_close(call).result()
    shared = share_calls(ledger, [call.id])
    opened = open_shared(shared).call(call.id)
    assert (opened.row["prompt"], opened.reply.text) == ("Is [key] a key?", "The key is [key]*.")
    assert b"sk-abc" not in msgspec.json.encode(shared.calls[0].body)


def test_columns_of_a_strange_file_do_not_become_sql(ledger: Ledger):
    call = exchange()
    ledger.on_close(call).result()
    (shared,) = share_calls(ledger, [call.id]).calls
    strange = msgspec.structs.replace(shared, row={**shared.row, "id) VALUES (1); DROP TABLE calls; --": 1})
    assert len(open_shared(SharedRecord((strange,)))) == 1
    with pytest.raises(InvalidRequest, match="damaged"):
        open_shared(SharedRecord((msgspec.structs.replace(shared, row={}),)))
