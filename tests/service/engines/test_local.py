"""Models on this machine behind all four endpoints, with a tiny model of random weights made here."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pydantic
import pytest

import famnb
from famnb.errors import BadRequestError, ConnectError, InvalidRequest
from tests.support.tiny_engine import write_model
from tests.support.waiting import wait_until


class Weather(pydantic.BaseModel):
    sunny: bool


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    write_model(path, context=1024)
    return path


@pytest.fixture(scope="module")
def client(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[famnb.Client]:
    """A client of the service that `connect` starts for the model."""
    with famnb.connect("local", model=model, ledger=tmp_path_factory.mktemp("ledger") / "local.sqlite") as client:
        yield client


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("endpoint", ["chat", "responses", "web", "messages"])
def test_every_endpoint_is_answered_by_the_model_and_not_simulated(
    client: famnb.Client, endpoint: str, stream: bool
) -> None:
    reply = client.ask("Say something.", endpoint=endpoint, max_tokens=12, stream=stream)
    assert reply.text
    assert (reply.complete, reply.model, reply.service) == (True, "tiny", "llama.cpp")
    assert reply.usage.output_tokens
    assert reply.cost is None
    row = famnb.calls(client.ledger).iloc[-1]
    assert (row["simulated"], row["profile"]) == (False, "local")


def test_an_answer_keeps_its_schema(client: famnb.Client) -> None:
    for endpoint in ("chat", "responses", "web", "messages"):
        assert isinstance(client.ask("Is it?", endpoint=endpoint, schema=Weather, max_tokens=100).parsed, Weather)


def test_another_model_is_refused_with_the_names_of_those_that_run(client: famnb.Client) -> None:
    with pytest.raises(BadRequestError, match="'huge' does not run here; expected one of tiny"):
        client.ask("Hi", model="huge")


def test_an_engine_that_was_killed_is_started_again_by_the_next_call(client: famnb.Client) -> None:
    service = next(
        process
        for process in psutil.Process().children()
        if any("famnb.service.engines.llama_cpp" in word for child in process.children() for word in child.cmdline())
    )
    (engine,) = service.children()
    os.kill(engine.pid, signal.SIGKILL)
    wait_until(lambda: engine not in service.children() or engine.status() == psutil.STATUS_ZOMBIE)
    assert client.ask("Hi again", max_tokens=4).text
    assert service.children()[0].pid != engine.pid


def test_several_models_answer_by_their_names_and_the_first_for_the_documents(model: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.gguf"
    other.write_bytes(model.read_bytes())
    with famnb.serve(model=[model, other], threads=1, parallel=1, ctx=256) as server:
        assert server.models == ("tiny", "other")
        engines = psutil.Process(server.pid).children()
        assert len(engines) == 2
        with famnb.Client(base_url=server.url, api_key=server.key, ledger=tmp_path / "l.sqlite") as client:
            assert client.ask("Hi", model="fam-2-5-pro", endpoint="messages", max_tokens=4).text
        with famnb.Client(
            profile="local", base_url=server.url, api_key=server.key, ledger=tmp_path / "l.sqlite"
        ) as client:
            assert client.ask("Hi", model="other", max_tokens=4).model == "other"
    assert not any(engine.is_running() and engine.status() != psutil.STATUS_ZOMBIE for engine in engines)


def test_a_model_that_cannot_run_is_refused_in_words(model: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"no model")
    with pytest.raises(ConnectError, match="expected a GGUF file"):
        famnb.serve(model=broken)
    with pytest.raises(InvalidRequest, match="model: given beside upstream"):
        famnb.serve(model=model, upstream="http://127.0.0.1:9")
    with pytest.raises(InvalidRequest, match=r'only connect\("local", model=…\)'):
        famnb.connect(model=model)
