"""No secret of a client is found anywhere but on its requests, whichever profile it has and wherever it goes."""

import contextlib
import itertools
import logging
import traceback
from pathlib import Path
from typing import Any

import psutil
import pytest

import famnb
from famnb.client.auth import Credential
from famnb.client.retry import Retries
from famnb.errors import FamnbError, InvalidRequest
from famnb.profiles import NAMES, find_profile
from famnb.secret_patterns import MASK
from famnb.widget import Composer
from tests.support.client_shells import reachable
from tests.support.fault_server import Action, FaultServer, chunked, whole
from tests.support.wire_payloads import body, sse_stream

KEY = "vendor-key-0123456789abcdef"
HEADER = "team-header-0123456789abcdef"
QUERY = "query-secret-0123456789abcdef"
UNNAMED = "sk-proj-0123456789abcdef0123"
"""A secret that only its looks give away."""
SECRETS = (KEY, HEADER, QUERY, UNNAMED)
ECHO = f"invalid: {KEY}, {HEADER}, {QUERY} and {UNNAMED}"
OWN: dict[str, Any] = {
    "headers": {"X-Team-Token": HEADER, "X-Route": UNNAMED, "HTTP-Referer": "https://example.com/notebook"},
    "query": {"key": QUERY, "api-version": "preview"},
}
FAULTS = ("refused", "refused in text", "broken", "no answer", "redirected")
"""Each profile meets one of them in turn, and all of them if the whole matrix is asked for."""


def shown_secrets(text: str) -> list[str]:
    return [secret for secret in SECRETS if secret in text]


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        pytest.param(name, fault, marks=() if (i - j) % len(FAULTS) == 0 else pytest.mark.full)
        for (i, name), (j, fault) in itertools.product(enumerate(NAMES), enumerate(FAULTS))
    ],
)
def test_no_secret_is_shown_where_the_service_gives_it_back(name, fault, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    profile = find_profile(name)
    endpoint = next(iter(profile.endpoints))
    script = {
        "refused": whole({"error": {"message": ECHO, "type": ECHO, "code": ECHO}}, 401, x_echo=ECHO, api_key=KEY),
        "refused in text": whole(f"{ECHO} /?key={QUERY}".encode(), 403),
        "broken": chunked(*sse_stream(endpoint, ECHO)[:2], Action.RESET, end=False),
        "no answer": [Action.RESET],
        "redirected": whole(b"", 307, location=f"http://127.0.0.1:1/?key={QUERY}&again={UNNAMED}"),
    }[fault]
    server = FaultServer(script)
    path = tmp_path / "ledger.sqlite"
    options: dict[str, Any] = {"base_url": server.url, "api_key": KEY, "ledger": path, "retries": Retries(tries=1)}
    with famnb.Client(profile=name, **options, **OWN) as client:
        assert not [text for text in reachable(client) if shown_secrets(text)]
        with pytest.raises(FamnbError) as caught:
            client.send(client.compose(endpoint, "Hello", stream=True))
        error = caught.value
        report = traceback.TracebackException.from_exception(error, capture_locals=True)
        trace = "".join(line for line in report.format() if __file__ not in line)
        frame = famnb.calls(client)
        shown = {
            "error": f"{error!r} {error} {vars(error)}",
            "traceback": trace,
            "log": caplog.text,
            "repr": f"{client!r} {error.reply!r}",
            "frame": frame.to_csv(),
            "composer": str(Composer(client).view()),
            "settings": str(client.engine.settings()),
        }
    server.close()
    [received] = server.requests
    assert QUERY in received.path
    assert HEADER in received.headers.values()
    assert {where: shown_secrets(text) for where, text in shown.items() if shown_secrets(text)} == {}
    files = read_files(tmp_path)
    assert [secret for secret in SECRETS if secret.encode() in files] == []
    commands = [" ".join(process.cmdline()) for process in [psutil.Process(), *psutil.Process().children()]]
    assert not shown_secrets(" ".join(commands))


def read_files(folder: Path) -> bytes:
    """All that is in a folder; SQLite takes a write-ahead log away once it is in the file."""
    contents = []
    for file in sorted(folder.iterdir(), reverse=True):
        with contextlib.suppress(FileNotFoundError):
            contents.append(file.read_bytes())
    return b"".join(contents)


@pytest.mark.parametrize("name", NAMES)
def test_a_secret_in_a_prompt_or_an_answer_is_masked_in_place(name: str, tmp_path: Path):
    endpoint = next(iter(find_profile(name).endpoints))
    server = FaultServer(whole(body(endpoint, f"{ECHO} of https://example.com/notebook, preview")))
    options: dict[str, Any] = {"base_url": server.url, "api_key": KEY, "ledger": tmp_path / "ledger.sqlite"}
    with famnb.Client(profile=name, **options, **OWN) as client:
        reply = client.send(client.compose(endpoint, f"My keys: {ECHO}", stream=False))
    server.close()
    files = read_files(tmp_path)
    assert [secret for secret in SECRETS if secret.encode() in files] == []
    assert reply.text == f"invalid: {MASK}, {MASK}, {MASK} and {MASK} of https://example.com/notebook, preview"


def test_a_secret_is_recognized_by_its_name_or_its_looks():
    headers = {"X-Author": "Margaret Hamilton", "Ocp-Apim-Subscription-Key": HEADER, "Authorization": f"Basic {QUERY}"}
    credential = Credential(None, variable="", headers=headers, query={"code": UNNAMED, "region": "westeurope"})
    masked = credential.mask(f"Margaret Hamilton sent {HEADER} and {QUERY} to westeurope with {UNNAMED}")
    assert masked == f"Margaret Hamilton sent {MASK} and {MASK} to westeurope with {MASK}"
    assert credential.open_headers == {"x-author": "Margaret Hamilton"}
    assert credential.open_query == {"region": "westeurope"}


def test_a_run_on_workers_of_a_client_with_more_secrets_than_its_key_is_refused(tmp_path: Path):
    options: dict[str, Any] = {"base_url": "http://127.0.0.1:1", "api_key": KEY, "ledger": tmp_path / "l.sqlite"}
    dask = pytest.importorskip("distributed")
    with (
        dask.Client(n_workers=1, processes=False, dashboard_address=None) as cluster,
        famnb.Client(profile="openai", **options, query={"key": QUERY}) as client,
    ):
        exp = famnb.Experiment(["Hello"], famnb.grid(model="m"), name="far", client=client)
        with pytest.raises(InvalidRequest, match="a secret in the headers= or query= of the client stays"):
            exp.run(on=cluster)
    with famnb.Client(profile="openai", **options, headers={"X-Title": "A notebook"}) as client:
        assert client.engine.settings()["headers"] == {"x-title": "A notebook"}
