"""A key that a stream brings, whole or in pieces, is masked in all that is kept of it."""

import pytest

import famnb
from famnb.errors import StreamDecodeError
from famnb.events import Delta
from famnb.secret_patterns import MASK
from tests.support.client_shells import KEY, reachable
from tests.support.fault_server import chunked
from tests.support.wire_payloads import closing, delta, opening, request

STREAM = request("web")


@pytest.mark.parametrize("endpoint", ["web", "messages", "responses"])
@pytest.mark.parametrize("size", [1, 7, 20, 100])
def test_a_key_in_an_answer_is_kept_nowhere_whichever_its_pieces(serve, connect, tmp_path, endpoint, size):
    text = f"{KEY}, your key is {KEY}!"
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    script = [*opening(endpoint), *(delta(endpoint, piece) for piece in pieces), *closing(endpoint, text)]
    ledger = famnb.Ledger(tmp_path / "calls.sqlite")
    stream = connect(serve(chunked(*script)), ledger=ledger).engine.start(request(endpoint))
    reply = stream.result()
    again = ledger.call(reply.call_id).reply
    assert reply.text == again.text
    assert reply.text.replace("*", "") == f"{MASK}, your key is {MASK}!"
    assert (reply.usage, reply.timing, reply.complete) == (again.usage, again.timing, True)
    sent = b"".join(data for read in again.reads for data in read.data).decode()
    assert not [shown for shown in (KEY[:12], KEY[-12:]) if shown in sent]
    words = "".join(event.text for event in reply.events if isinstance(event, Delta))
    assert words.replace("*", "") == f"{MASK}, your key is {MASK}!"


def test_a_key_in_pieces_is_masked_in_a_broken_stream_too(serve, connect, recorder):
    pieces = [delta("web", piece) for piece in (KEY[:9], KEY[9:], " is it")]
    client = connect(serve(chunked(*pieces, b"data: {broken\n\n")), ledger=recorder)
    with pytest.raises(StreamDecodeError) as caught:
        client.send(STREAM)
    assert caught.value.reply.text == f"{MASK}* is it"
    assert caught.value.reply.status == recorder.exchanges[0].reply.status == "failed"
    assert not [text for text in reachable(recorder.exchanges) if KEY[9:] in text]
