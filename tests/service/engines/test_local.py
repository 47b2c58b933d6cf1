"""Models on this machine behind every endpoint, with a tiny model of random weights made here."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pydantic
import pytest

import famnb
from famnb.cli import main
from famnb.endpoints import ENDPOINTS
from famnb.errors import BadRequestError, InvalidRequest
from famnb.service.engines.llama_cpp import EngineOptions, start_engine
from tests.support.service_requests import PATHS, ServiceClient
from tests.support.tiny_engine import write_model
from tests.support.upstream_servers import fetch_reply
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
@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_every_endpoint_is_answered_by_the_model_and_not_simulated(client: famnb.Client, endpoint: str, stream: bool):
    reply = client.ask("Say something.", endpoint=endpoint, max_tokens=12, stream=stream)
    assert reply.text
    assert (reply.complete, reply.model, reply.service) == (True, "tiny", "llama.cpp")
    assert 0 < reply.usage.output_tokens <= 12
    assert reply.usage.source("input_tokens") == "reported"
    assert reply.cost is None
    row = famnb.calls(client.ledger).iloc[-1]
    assert (row["simulated"], row["profile"]) == (False, "local")


def test_an_answer_keeps_its_schema(client: famnb.Client):
    for endpoint in ("chat", "responses", "web", "messages"):
        assert isinstance(client.ask("Is it?", endpoint=endpoint, schema=Weather, max_tokens=100).parsed, Weather)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("endpoint", "fields"),
    [
        ("chat", {"logprobs": True, "top_logprobs": 2}),
        ("responses", {"include": ["message.output_text.logprobs"], "top_logprobs": 2}),
    ],
)
def test_each_token_has_its_probability_and_the_alternatives_if_asked_for(client, endpoint, fields, stream):
    reply = client.ask("Say something.", endpoint=endpoint, max_tokens=5, stream=stream, **fields)
    (entries,) = [json.loads(block.text) for block in reply.blocks if block.kind == "logprobs"]
    assert b"".join(bytes(entry["bytes"]) for entry in entries).decode().strip() == reply.text.strip() != ""
    assert all(entry["logprob"] <= 0 and len(entry["top_logprobs"]) == 2 for entry in entries)


def test_only_a_conversation_goes_on_from_what_was_read(client: famnb.Client):
    """The second of two calls with one prompt would otherwise begin sooner, whatever setting is tried second."""
    for _ in range(3):
        reply = client.ask("Say it once more.", endpoint="web", max_tokens=4, stream=False)
        assert reply.usage.cached_tokens == 0
    talk = client.conversation("web", max_tokens=4, stream=False)
    talk.say("Say it once more.")
    assert talk.say("And again.").usage.cached_tokens > 0


def test_another_model_is_refused_with_the_names_of_those_that_run(client: famnb.Client):
    with pytest.raises(BadRequestError, match="'huge' does not run here; expected one of tiny"):
        client.ask("Hi", model="huge")


def test_a_tool_is_called_on_every_endpoint_and_its_result_read(client: famnb.Client):
    @famnb.tool
    def measure(sunny: bool) -> str:
        """Measure the light."""
        return f"light: {sunny}"

    for endpoint in ("chat", "responses", "web", "messages"):
        reply = client.ask("Is it?", endpoint=endpoint, tools=[measure], auto=True, max_tokens=200)
        contents = [result.content for round_ in reply.rounds for result in round_.results]
        assert contents in (["light: True"], ["light: False"])
        assert reply.text


def test_a_model_whose_template_has_no_tools_says_so(tmp_path: Path):
    path = tmp_path / "plain.gguf"
    write_model(path, context=256, template="{% for m in messages %}{{ m.role }}: {{ m.content }} {% endfor %}a:")
    tool = {"type": "function", "function": {"name": "t", "parameters": {"type": "object"}}}
    with famnb.connect("local", model=path, ledger=tmp_path / "l.sqlite") as client:
        assert client.ask("Hi", endpoint="web", max_tokens=4).text
        with pytest.raises(BadRequestError, match="plain calls none, for its chat template has no place for them"):
            client.ask("Hi", endpoint="web", tools=[tool], max_tokens=4)


def test_prompts_are_counted_by_the_models_own_tokenizer_and_check_passes(model, monkeypatch, capsys):
    with famnb.serve(model=model) as server, ServiceClient(server) as api:
        # The tiny model's tokens are bytes; one begins each prompt, with a space.
        count = 2 + len("user: Größe 11\nassistant:".encode())
        assert {fetch_reply(api, endpoint, "Größe 11").usage.input_tokens for endpoint in PATHS} == {count}
        monkeypatch.setenv("FAM_BASE_URL", server.url)
        monkeypatch.setenv("FAM_API_KEY", server.key)
        assert main(["check"]) == 0
    assert f"{2 * len(ENDPOINTS)} of {2 * len(ENDPOINTS)} calls passed" in capsys.readouterr().out


def test_an_engine_answers_only_the_service_that_has_its_key(model: Path):
    with contextlib.closing(start_engine(EngineOptions("tiny", str(model)))) as child:
        body, keys = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 4}, (child.message["key"], "other")
        url = f"{child.message['url']}/v1/chat/completions"
        answers = [httpx.post(url, json=body, headers={"authorization": f"Bearer {key}"}) for key in keys]
    assert [answer.status_code for answer in answers] == [200, 401]


def test_an_engine_that_was_killed_is_started_again_by_the_next_call(client: famnb.Client):
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


def test_nothing_is_left_of_a_kernel_that_was_killed(model: Path, tmp_path: Path):
    script = (
        "import sys, time, famnb, psutil; "
        f"client = famnb.connect('local', model={str(model)!r}, ledger={str(tmp_path / 'l.sqlite')!r}); "
        "print([child.pid for child in psutil.Process().children(recursive=True)], flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as kernel:
        assert kernel.stdout is not None
        pids = json.loads(next(line for line in kernel.stdout if line.startswith("[")))
        assert len(pids) == 2, "the service and the engine"
        kernel.kill()
    wait_until(lambda: not any(map(is_alive, pids)))


def test_several_models_answer_by_their_names_and_the_first_for_the_documents(model: Path, tmp_path: Path):
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "text.gguf"], "text.gguf did not load: .* no GGUF file"),
        (["--model", "cut.gguf"], "cut.gguf did not load: .* it may be broken"),
        (["--model", "none.gguf"], "there is no file .*; expected one of smollm2, or a .gguf file"),
        (["--model", "smollm2"], "not on this machine yet; fetch it: famnb model get smollm2"),
        (["--model", "tiny.gguf", "--model", "tiny.gguf"], "two models have one name"),
        (["--model", "tiny.gguf", "--port", "TAKEN"], "cannot listen at .* choose another host or port"),
        (["--model", "tiny.gguf", "--upstream", "http://127.0.0.1:9"], "leave one out"),
    ],
)
def test_what_keeps_a_model_from_running_is_said_with_what_to_do(
    arguments, message, model, tmp_path, capsys, monkeypatch
):
    monkeypatch.setenv("FAMNB_MODELS", str(tmp_path / "models"))
    contents = {"text": b"no model", "tiny": model.read_bytes(), "cut": model.read_bytes()[:-20_000]}
    for name, content in contents.items():
        (tmp_path / f"{name}.gguf").write_bytes(content)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        names = {"TAKEN": str(taken.getsockname()[1])}
        words = [str(tmp_path / word) if word.endswith(".gguf") else names.get(word, word) for word in arguments]
        assert main(["serve", *words]) == 1
    assert re.search(message, capsys.readouterr().err)


def test_only_the_local_profile_runs_a_model(model: Path):
    with pytest.raises(InvalidRequest, match=r'only connect\("local", model=…\)'):
        famnb.connect(model=model)


def is_alive(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
