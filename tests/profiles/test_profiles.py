"""Profiles: each vendor gets its own path, headers and fields, and its answers are read like any other."""

import dataclasses
import inspect
import json
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import famnb
from famnb.api import Client
from famnb.client.ask_fields import Fields
from famnb.errors import CredentialError, InvalidRequest
from famnb.profiles import NAMES, VENDOR_NAMES, compatible, find_profile
from famnb.request.chat import ChatRequest
from famnb.service import Server
from famnb.service import serve as serve_service
from tests.profiles.vendors import PATHS, VENDORS, Trip, weather
from tests.support.fault_server import FaultServer, chunked, whole
from tests.support.wire_payloads import body, sse_stream

KEY = "vendor-key-0123456789abcdef"


@pytest.fixture(scope="module")
def service() -> Iterator[Server]:
    """The local service, which speaks the vendors' dialects."""
    with serve_service(time_scale=0, compat=True) as running:
        yield running


def test_a_keyless_service_gets_no_key(monkeypatch: pytest.MonkeyPatch):
    server = FaultServer(whole(body("chat", "Hello.")), whole(body("chat", "Hello.")))
    for variable in ("VLLM_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    with Client(profile="vllm", base_url=server.url) as client:
        client.send(client.compose("chat", "Hello"))
    monkeypatch.setenv("VLLM_API_KEY", KEY)
    with Client(profile="vllm", base_url=server.url) as client:
        client.send(client.compose("chat", "Hello"))
    server.close()
    assert [received.headers.get("authorization") for received in server.requests] == [None, f"Bearer {KEY}"]
    with pytest.raises(CredentialError, match="OPENAI_API_KEY"):
        Client(profile="openai")


@pytest.mark.parametrize(
    ("profile", "address", "base"),
    [
        ("openai", None, "https://api.openai.com/v1"),
        ("openai", "https://gateway.example/v1", "https://gateway.example/v1"),
        ("gemini", None, "https://generativelanguage.googleapis.com/v1beta/openai"),
        ("openrouter", None, "https://openrouter.ai/api/v1"),
        ("openrouter", "https://openrouter.ai/api/v1/", "https://openrouter.ai/api/v1"),
        ("azure", "https://mine.openai.azure.com", "https://mine.openai.azure.com/openai/v1"),
        ("azure", "https://mine.openai.azure.com/openai/v1/", "https://mine.openai.azure.com/openai/v1"),
        ("ollama", None, "http://127.0.0.1:11434/v1"),
        ("open", "http://gpu:8080", "http://gpu:8080/v1"),
        ("open", "https://gateway.example/proxy", "https://gateway.example/proxy/v1"),
        ("open", "https://api.groq.com/openai/v1", "https://api.groq.com/openai/v1"),
        ("open", "https://api.z.ai/api/paas/v4", "https://api.z.ai/api/paas/v4"),
        ("open", "https://x.example/v1beta/openai/", "https://x.example/v1beta/openai"),
        ("open", "https://x.example/v1/p/endpoints/openapi", "https://x.example/v1/p/endpoints/openapi"),
    ],
)
def test_an_address_may_be_given_as_the_vendor_writes_it(profile: str, address: str | None, base: str):
    client = Client(profile=profile, base_url=address, api_key=KEY)
    assert client.engine.make_exchange(client.compose("chat", "Hello")).url == f"{base}/chat/completions"


def test_an_address_comes_from_the_vendor_s_variable(monkeypatch: pytest.MonkeyPatch):
    for host, address in {
        "gpu:8080": "http://gpu:8080",
        "gpu": "http://gpu:11434",
        ":8080": "http://127.0.0.1:8080",
        "0.0.0.0": "http://0.0.0.0:11434",
        "::1": "http://[::1]:11434",
        "[::1]:80": "http://[::1]:80",
        "https://ollama.example/api": "https://ollama.example/api",
    }.items():
        monkeypatch.setenv("OLLAMA_HOST", host)
        assert Client(profile="ollama").base_url() == address
    with pytest.raises(InvalidRequest, match=r"base_url: unset; pass base_url=$"):
        Client(profile="open")
    with pytest.raises(InvalidRequest, match="openai has one address"):
        Client(profile="openai", api_key=KEY, alt_base_url="https://example.com")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"profile": "opanai"}, "no profile 'opanai'; expected one of fam, openai"),
        ({"profile": 5}, "profile: expected one of fam, openai, .* got 5"),
        ({"headers": "x"}, "headers: expected texts by name, got a str"),
        ({"headers": {"a b": "c"}}, "'a b' is no name of a header"),
        ({"headers": {"x-secret": "one\r\ntwo"}}, "the value of 'x-secret' is not a text of printable ASCII$"),
        ({"query": {"key": 5}}, "query: expected texts by name; the value of 'key' is not a text$"),
        ({"query": KEY}, "query: expected texts by name, got a str$"),
        ({"verify": 3}, "verify: expected True, False, a file"),
        ({"verify": "/nowhere.pem"}, "verify: no certificates can be read from '/nowhere.pem'"),
    ],
)
def test_invalid_settings_are_refused(arguments: dict[str, Any], message: str):
    with pytest.raises((InvalidRequest, CredentialError), match=message):
        Client(**{"profile": "open", "base_url": "http://127.0.0.1:1", **arguments})


@pytest.mark.parametrize(("name", "endpoint"), VENDORS)
def test_a_request_survives_its_record(name: str, endpoint: str):
    request = famnb.compose(
        endpoint,
        "Where to?",
        endpoints=find_profile(name).endpoints,
        system="Be brief.",
        max_tokens=9000,
        thinking=2000,
        tools=[weather],
        schema=Trip if find_profile(name).endpoints[endpoint].traits.format else None,
        extra_body={"new_field": {"deep": [1]}},
    )
    again = type(request).from_body(request.body())
    assert again.with_losses(request.losses) == request
    assert request.body()["new_field"] == {"deep": [1]}
    assert request.replace(temperature=0.5).body()["new_field"] == {"deep": [1]}
    assert [hint for hint in request.hints() if "new_field" in hint]
    assert [tool.name for tool in request.settings().tools] == ["weather"]


def test_a_field_that_is_not_known_is_refused_with_the_way_out():
    endpoints = find_profile("openai").endpoints
    with pytest.raises(InvalidRequest, match=r"'seed'.*extra_body=\{'sede': …\}"):
        famnb.compose("chat", "Hello", endpoints=endpoints, sede=1)
    with pytest.raises(InvalidRequest, match="no endpoint 'web'; expected one of responses, chat"):
        famnb.compose("web", "Hello", endpoints=endpoints)


def test_editors_complete_every_field_that_ask_takes():
    endpoints = [endpoint for name in NAMES if name != "local" for endpoint in find_profile(name).endpoints.values()]
    known = {name for endpoint in endpoints for name in endpoint.request.model_fields}
    prompts = {endpoint.request.prompt_field for endpoint in endpoints}
    assert set(Fields.__annotations__) == known - prompts - set(inspect.signature(Client.ask).parameters)


def test_the_default_profile_is_as_strict_as_before(service: Server):
    with Client(base_url=service.url, api_key=service.key) as strict:
        request = famnb.compose("chat", "Hello", endpoints=find_profile("openai").endpoints, seed=1)
        with pytest.raises(InvalidRequest, match="seed: no such field"):
            strict.send(request)
        with pytest.raises(InvalidRequest, match="seed: no endpoint has such a field"):
            strict.ask("Hello", seed=1)
    with Client(profile="open", base_url=service.url, api_key=service.key) as client:
        reply = client.send(
            ChatRequest(model="fam-mini", messages=[{"role": "user", "content": "Hello"}], max_tokens=5)
        )
    assert reply.status == "incomplete"
    assert reply.request.body()["max_tokens"] == 5


@pytest.mark.parametrize(
    ("name", "endpoint"), [("openai", "chat"), ("openai", "responses"), ("anthropic", "messages"), ("open", "chat")]
)
def test_a_service_is_used_through_its_profile(service: Server, name: str, endpoint: str):
    with Client(profile=name, base_url=service.url, api_key=service.key) as client:
        whole_reply = client.ask("Say hello.", endpoint=endpoint, stream=False, max_tokens=60)
        streamed = client.ask("Say hello.", endpoint=endpoint, max_tokens=60)
        with_tools = client.ask("How is the weather in Oslo?", endpoint=endpoint, tools=[weather], auto=True)
        trip = client.ask("Plan a trip.", endpoint=endpoint, schema=Trip, max_tokens=2000)
        thoughtful = client.ask("Why?", endpoint=endpoint, thinking=1024, max_tokens=2000)
        talk = client.conversation(endpoint, tools=[weather], auto=True, max_tokens=2000)
        talk.say("How is the weather in Oslo?")
        talk.say("And tomorrow?")
        with pytest.raises(famnb.errors.BadRequestError):
            client.ask("Hello", endpoint=endpoint, extra_body={"temperature": "hot"})
    for reply in (whole_reply, streamed):
        assert reply.text
        assert reply.usage.source("output_tokens") == "reported"
    assert [result.content for result in with_tools.rounds[0].results] == ["4 degrees in Oslo"]
    assert with_tools.text
    assert isinstance(trip.parsed, Trip)
    assert thoughtful.thinking or thoughtful.request.settings().effort == "medium"
    assert len(talk.turns) == 2


def test_one_experiment_asks_several_vendors(service: Server, tmp_path: Path):
    ledger = famnb.Ledger(tmp_path / "ledger.sqlite")
    options: dict[str, Any] = {"base_url": service.url, "api_key": service.key, "ledger": ledger}
    clients = {name: famnb.Client(profile=name, **options) for name in ("openai", "anthropic", "open")}
    try:
        exp = famnb.Experiment(
            ["Say hello.", "Say goodbye."],
            famnb.grid(client=clients, max_tokens=40),
            name="vendors",
            client=clients["openai"],
        )
        report = exp.run()
        frame = exp.frame()
        with pytest.raises(InvalidRequest, match="top_k: no endpoint has such a field"):
            famnb.Experiment(
                ["Say hello."], famnb.grid(client=clients, top_k=5), name="wrong", client=clients["openai"]
            )
        seeded = famnb.grid(client=clients["open"], endpoint="chat", model="my-model", seed=[1, 2])
        again = famnb.Experiment(["Say hello."], seeded, name="seeds", client=clients["openai"], max_tokens=40)
        again.run()
    finally:
        for client in clients.values():
            client.close()
    assert report.completed == 6
    assert frame.groupby("variant", observed=True)["profile"].unique().map(list).to_dict() == {
        "openai": ["openai"],
        "anthropic": ["anthropic"],
        "open": ["open"],
    }
    assert sorted(again.frame()["seed"]) == [1, 2]
    assert set(again.frame()["model"]) == {"my-model"}


def readme_rows() -> list[list[str]]:
    """The rows of README's table of vendors: with, key, client, model, address, endpoints."""
    readme = (Path(famnb.__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    table = readme.partition("## Use it with a vendor")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ") and "`famnb." in line]
    return [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows]


def test_readme_has_every_profile():
    rows = readme_rows()
    assert sorted(row[2].split('"')[1] for row in rows) == sorted(VENDOR_NAMES)
    for _, key, client, _, address, endpoints in rows:
        profile = find_profile(client.split('"')[1])
        assert list(profile.endpoints) == endpoints.split(", ")
        assert (
            (f"`{profile.key_variables[:1][0]}`" == key) if profile.needs_key else "`" not in key or "api_key=" in key
        )
        assert address == "`base_url=`" or address == "".join(f"`{name}`" for name in profile.url_variables)


def test_help_has_every_profile():
    assert [name for name in VENDOR_NAMES if f'"{name}"' not in (Client.__doc__ or "")] == []
    assert [name for name in compatible.PROFILES if f"\n{name} " not in (compatible.__doc__ or "")] == []


@pytest.mark.parametrize("row", readme_rows(), ids=lambda row: row[0])
def test_readme_s_three_lines_ask_a_vendor(row: list[str], monkeypatch: pytest.MonkeyPatch):
    _, key, client_line, model_cell, *_ = row
    name, model = client_line.split('"')[1], model_cell.strip("`") if "`" in model_cell else "my-model"
    profile = find_profile(name)
    endpoint = next(iter(profile.endpoints))
    server = FaultServer(chunked(*sse_stream(endpoint, "It scatters.")))
    if profile.needs_key:
        monkeypatch.setenv(key.strip("`"), KEY)

    def connect(name: str) -> famnb.Client:
        return famnb.connect(dataclasses.replace(find_profile(name), base_url=server.url))

    names = {"famnb": types.SimpleNamespace(connect=connect, Client=famnb.Client), "address": server.url}
    client = eval(client_line.strip("`").replace("base_url=…", "base_url=address"), names)
    with client:
        reply = client.ask("Why is the sky blue?", model=model)
    server.close()
    [received] = server.requests
    assert (reply.text, json.loads(received.body)["model"]) == ("It scatters.", model)
    assert received.path == PATHS[name][endpoint]
    assert (KEY in str([*received.headers.values()])) == profile.needs_key
    assert model in profile.endpoints[endpoint].models or model == "my-model"


def test_one_vendor_s_answer_is_not_replayed_for_another(service: Server, tmp_path: Path):
    ledger = famnb.Ledger(tmp_path / "ledger.sqlite")
    options: dict[str, Any] = {"base_url": service.url, "api_key": service.key, "ledger": ledger}
    with famnb.Client(profile="openai", **options) as client:
        request = client.compose("responses", "Hello", max_output_tokens=20)
        client.send(request)
    with famnb.Client(profile="azure", replay="only", **options) as other, pytest.raises(famnb.errors.NotRecorded):
        other.send(request)
    with famnb.Client(profile="openai", replay="only", **options) as same:
        assert same.send(request).replayed


def test_what_all_variants_share_is_checked_by_each_one_s_own_profile(service: Server, tmp_path: Path):
    ledger = tmp_path / "ledger.sqlite"
    with famnb.Client(profile="open", base_url=service.url, api_key=service.key, ledger=ledger) as client:
        variants = famnb.grid(client=client, endpoint="chat", model=["a", "b"])
        exp = famnb.Experiment(["Hello"], variants, name="shared", presence_penalty=0.5)
        assert [cell.request.body()["presence_penalty"] for cell in exp.cells] == [0.5, 0.5]
        with pytest.raises(InvalidRequest, match="did you mean 'repeats'"):
            famnb.Experiment(["Hello"], variants, name="shared", repeat=3)


def test_a_profile_of_one_s_own_in_ten_lines(tmp_path: Path):
    with FaultServer(*[whole(body("chat", "Hello."))] * 3) as server:
        famnb.profiles.register(
            famnb.profiles.Profile(
                name="mine",
                endpoints=famnb.profiles.vendor_endpoints(
                    ("my-model",), famnb.profiles.find_profile("open").endpoints["chat"].request
                ),
                base_url=server.url,
                key_variables=("MINE_API_KEY",),
                headers={"x-team": "blue"},
            )
        )
        ledger = famnb.Ledger(tmp_path / "ledger.sqlite")
        with famnb.Client(profile="mine", api_key=KEY, ledger=ledger) as client:
            reply = client.ask("Hello", seed=1, extra_body={"new_field": 1})
            exp = famnb.Experiment(["Why?"], famnb.grid(client=client, seed=[1]), name="mine")
            exp.run(progress=False)
        with famnb.Client(profile="mine", api_key=KEY, ledger=ledger, replay="only") as again:
            assert again.ask("Hello", seed=1, extra_body={"new_field": 1}).replayed
        assert server.requests[0].headers["x-team"] == "blue"
    recorded = ledger.call(reply.call_id).request
    assert (type(recorded), recorded.seed, recorded.extra_body) == (type(reply.request), 1, {"new_field": 1})
    assert set(famnb.calls(ledger)["profile"]) == {"mine"}
    assert ledger.replay(famnb.calls(ledger)["call_id"][0]).result().text == "Hello."
    with pytest.raises(InvalidRequest, match="'openai' is a profile of famnb's own"):
        famnb.profiles.register(find_profile("openai"))


def test_the_models_that_a_vendor_lists():
    listed = whole({"object": "list", "data": [{"id": "small"}, {"id": "large"}]})
    with FaultServer(get=listed) as server, Client(profile="groq", base_url=server.url, api_key=KEY) as client:
        assert client.models() == ["small", "large"]
        server.get = whole({"error": {"message": f"{KEY} may not"}}, status=403)
        with pytest.raises(famnb.errors.PermissionDeniedError) as caught:
            client.models()
    assert KEY not in str(caught.value)


def test_a_token_in_a_header_takes_the_place_of_the_key(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("AZURE_OPENAI_API_KEY", raising=False)
    with FaultServer(whole(body("chat", "Hello."))) as server:
        headers = {"authorization": "Bearer entra-token-0123456789"}
        with Client(profile="azure", base_url=server.url, headers=headers) as client:
            assert client.send(client.compose("chat", "Hello", model="mine")).text == "Hello."
        [request] = server.requests
    assert (request.headers["authorization"], "api-key" in request.headers) == (headers["authorization"], False)


def test_connect_takes_the_address_of_a_vendor(capsys: pytest.CaptureFixture[str]):
    with famnb.connect("vllm", base_url="http://gpu:9000/v1") as client:
        assert client.base_url() == "http://gpu:9000"
    assert "http://gpu:9000" in capsys.readouterr().out
