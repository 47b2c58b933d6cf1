"""An invalid key is refused before anything is sent, and a valid one is found nowhere but on the request."""

import copy
import gc
import json
import pickle
import traceback
from pathlib import Path

import pytest

import famnb
from famnb.api import AsyncClient, Client
from famnb.client.auth import Credential
from famnb.client.retry import Retries
from famnb.errors import CredentialError, FamnbError
from famnb.secret_patterns import MASK
from tests.support.client_shells import KEY, reachable
from tests.support.fault_server import chunked, whole
from tests.support.wire_payloads import body, request, sse_stream

STREAM = request("web")
WHOLE = request("web", stream=False)


@pytest.mark.parametrize(
    "key", ["", " ", "a key", "key\n", "\tkey", "key\r\nX-Evil: 1", "schlüssel", "key\u2028", "key\x00", b"key", 5]
)
def test_an_invalid_key_is_refused_without_showing_it(key):
    with pytest.raises(CredentialError, match="api_key") as caught:
        Client(base_url="http://127.0.0.1:1", api_key=key)
    if key not in ("", " "):
        assert str(key) not in str(caught.value)


def test_the_key_comes_from_the_environment(monkeypatch, serve):
    server = serve(whole(body("web", "Hello")))
    monkeypatch.setenv("FAM_API_KEY", KEY)
    with Client(base_url=server.url) as client:
        client.send(WHOLE)
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    monkeypatch.delenv("FAM_API_KEY")
    with pytest.raises(CredentialError, match="FAM_API_KEY"):
        Client(base_url=server.url)


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_client_says_where_it_leads_and_shows_no_key(kind):
    client = kind(base_url="http://127.0.0.1:1", api_key=KEY)
    assert repr(client) == f"<{kind.__name__} http://127.0.0.1:1>"
    assert not [text for text in reachable(client) if KEY in text]
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be pickled"):
            attempt(client)


def test_a_finished_call_holds_no_key(serve, connect, recorder):
    client = connect(serve(chunked(*sse_stream("web", "Hello"))), ledger=recorder)
    stream = client.engine.start(STREAM)
    reply = stream.result()
    assert not [text for text in reachable([stream.exchange, reply, recorder.exchanges]) if KEY in text]
    gc.collect()
    headers = [item for item in gc.get_objects() if isinstance(item, dict) and "authorization" in item]
    assert not [item for item in headers if KEY in str(item.values())]


# Pieces that are looked for have letters which no hexadecimal id of a call can have.
SIGNS = 'fam/key+wxyz=456"78&ab\\c<d>e'
"""A key of which other programs escape nearly every sign."""


@pytest.mark.parametrize(
    ("written", "status"),
    [
        (r'{"detail": "bad fam\/key+wxyz=456\"78&ab\\c<d>e"}', 401),
        (r'{"detail": "bad fam/key\u002Bwxyz=456\u002278\u0026ab\\c\u003Cd\u003Ee"}', 401),
        ("bad fam/key+wxyz=456&#34;78&amp;ab\\c&lt;d&gt;e", 401),
        ("bad fam/key&#x2B;wxyz=456&quot;78&amp;ab\\c&lt;d&gt;e", 500),
        ("fam%2Fkey%2Bwxyz%3D456%2278%26ab%5cc%3Cd%3Ee", 307),
    ],
    ids=["slashes escaped", "escapes of JSON", "HTML", "other HTML", "an address"],
)
def test_a_key_that_is_echoed_escaped_is_masked(serve, connect, recorder, written, status):
    script = whole(written.encode(), status, location=f"http://127.0.0.1:1/?k={written}" if status == 307 else "/")
    client = Client(base_url=serve(script).url, api_key=SIGNS, ledger=recorder, retries=Retries(tries=1))
    with client, pytest.raises(FamnbError, match=r"\[key\]") as caught:
        client.send(WHOLE)
    texts = reachable([str(caught.value), vars(caught.value), recorder.exchanges])
    assert not [text for text in texts if "wxyz" in text]


@pytest.mark.parametrize(("key", "piece"), [(KEY, b"key-0123"), (SIGNS, b"wxyz")], ids=["plain", "signs"])
def test_a_key_in_a_prompt_is_sent_and_not_kept(serve, tmp_path, key, piece):
    server = serve(whole(body("web", "Hello")))
    ledger = famnb.Ledger(tmp_path / "calls.sqlite")
    question = request("web", f"Why does {key} not work?", stream=False)
    with famnb.Client(base_url=server.url, api_key=key, ledger=ledger) as client:
        call = ledger.call(client.send(question).call_id)
    assert key in json.loads(server.requests[0].body)["messages"][0]["content"]
    assert call.row["prompt"] == call.request.messages[0].content == f"Why does {MASK} not work?"
    assert ledger.recall(question).reply == call.reply
    ledger.close()
    kept = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert MASK.encode() in kept
    assert piece not in kept


@pytest.mark.parametrize(
    ("key", "address"), [(KEY, "nonsense"), (f"{KEY} and more", "http://127.0.0.1:1"), (KEY, "http://127.0.0.1:x")]
)
@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_refusal_at_the_door_leaves_no_key_in_its_frames(monkeypatch, kind, key, address):
    """IPython's verbose tracebacks show the variables of every frame, and whatever attribute a line names."""
    monkeypatch.setenv("FAM_API_KEY", key)
    with pytest.raises(FamnbError) as caught:
        kind(base_url=address, api_key=key)
    inner = caught.value.__traceback__.tb_next
    assert not [text for frame, _ in traceback.walk_tb(inner) for text in reachable(frame.f_locals) if KEY in text]


def test_no_line_of_the_package_shows_the_environment_beside_an_error():
    """A verbose traceback evaluates `os.environ` where a shown line names it, and the key may be in it."""
    package = Path(famnb.__file__).parent
    named = {path.relative_to(package).as_posix() for path in package.rglob("*.py") if "os.environ" in path.read_text()}
    assert named == {
        "secret_patterns.py",
        "service/process.py",
        "service/__main__.py",
    }  # none of which a user's call is in


def test_headers_that_are_secrets_are_recorded_masked(serve, connect, recorder):
    answer = whole(body("web", "Hello"), set_cookie="session=1", x_request_id="req_1")
    connect(serve(answer), ledger=recorder).send(WHOLE)
    headers = dict(recorder.exchanges[0].response_headers)
    assert (headers["set-cookie"], headers["x-request-id"]) == (MASK, "req_1")
    assert Credential("k").mask("a kind word") == "a kind word"
