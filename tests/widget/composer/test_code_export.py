"""The code that repeats a call: it runs as it stands, says the same to the service, and holds no key."""

import ast
import inspect
import operator
import subprocess
import sys
from typing import Any

import anthropic
import openai
import pytest

import famnb
from famnb.endpoints import ENDPOINTS, compose
from famnb.profiles import NAMES, find_profile
from famnb.reply import fold
from famnb.request import Request
from famnb.service.process import KEY_VARIABLE, SERVICE_URL
from famnb.widget.form.python_code import Target, available_kinds, is_extra, write_call, write_cell

PROMPT = "Say “hi” to O'Hara:\n\t\"twice\", it's 5 $HOME `ls` \\n \U0001f600\u2028"


@pytest.fixture
def env(server: famnb.service.Server, monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    """What a notebook's kernel knows of the embedded service, with a proxy that nobody must use."""
    monkeypatch.setenv(SERVICE_URL, server.url)
    monkeypatch.setenv(KEY_VARIABLE, server.key)
    monkeypatch.setenv("FAMNB_LEDGER", f"{tmp_path}/calls.sqlite")


def make_request(name: str, *, stream: bool) -> Request:
    """A request of that endpoint with what is hard to quote."""
    extra: dict[str, Any] = {"tools": [{"type": "function", "function": {"name": "look"}}]} if name == "web" else {}
    return compose(name, PROMPT, system="Be brief.", max_tokens=40, thinking=16, stream=stream, **extra)


def run_cell(cell: str) -> str:
    """Run a cell in a process of its own; returns what it prints, its last expression included."""
    if cell.startswith("%%bash\n"):
        command = ["bash", "-euc", cell.removeprefix("%%bash\n")]
    else:
        command = [sys.executable, "-c", print_last_value(cell)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert process.returncode == 0, process.stderr
    return process.stdout


def print_last_value(cell: str) -> str:
    """The code of a cell that prints its last expression."""
    tree = ast.parse(cell)
    last = tree.body[-1]
    if isinstance(last, ast.Expr):
        tree.body[-1] = ast.parse(f"print({ast.unparse(last.value)})").body[0]
    return ast.unparse(tree)


def read_text(wire: str, name: str) -> str:
    """The answer's text in the bytes of a stream."""
    reader = ENDPOINTS[name].dialect.reader()
    blocks = [line.removeprefix("data: ") for line in wire.split("\n") if line.startswith("data: ")]
    return fold(event for block in blocks for event in reader.read(block.encode())).text


def run_cells(client: famnb.Client, request: Request, target: Target) -> dict[str, str]:
    """Run the cell of each kind, none of which has the key: each gets the answer that the client gets; return them."""
    words = client.send(request).text.split()[:3]
    cells = {}
    for kind in available_kinds(request, target.profile.endpoints):
        cells[kind] = write_cell(request, kind=kind, target=target)
        assert client.engine.credential.mask(cells[kind]) == cells[kind]
        output = run_cell(cells[kind])
        if request.streams and kind == "curl":
            output = read_text(output, request.endpoint)
        assert all(word in output for word in words), (kind, output)
    return cells


@pytest.mark.usefixtures("env")
# Each cell of each kind is a process: all endpoints streamed and one whole show all that differs, by default one.
@pytest.mark.parametrize(
    ("name", "stream"),
    [
        ("messages", True),
        pytest.param("messages", False, marks=pytest.mark.full),
        *(pytest.param(name, True, marks=pytest.mark.full) for name in ENDPOINTS if name != "messages"),
    ],
)
def test_every_cell_runs_and_gets_the_same_answer(name: str, stream: bool, server: famnb.service.Server):
    """famnb, curl and the SDK, whole and streamed: the simulated answer quotes what was asked."""
    request = make_request(name, stream=stream)
    with famnb.Client(base_url=server.url, api_key=server.key) as client:
        cells = run_cells(client, request, Target(server.url))
    assert len(cells) == 3


def test_a_long_call_has_an_argument_a_line():
    assert write_call("f", 1, text="x" * 100) == f"f(\n    1,\n    text={'x' * 100!r},\n)"


@pytest.mark.full
@pytest.mark.parametrize(
    ("profile", "endpoint", "fields"),
    [
        ("openai", "responses", {"include": ["reasoning.encrypted_content"]}),
        ("openai", "chat", {"seed": 7, "extra_body": {"new_field": 1}}),
        ("anthropic", "messages", {"top_k": 5, "temperature": 0.5}),
        ("openrouter", "chat", {"provider": {"order": ["a"]}, "top_k": 5}),
        ("vllm", "messages", {}),
    ],
)
def test_a_vendor_s_cell_connects_as_that_vendor_wants_it(
    profile, endpoint, fields, vendor_service, monkeypatch, tmp_path
):
    """With its profile, its paths and headers, its key's own variable; the SDK gets what it has no parameter for."""
    value = find_profile(profile)
    variable, service = value.key_variables[0], vendor_service
    monkeypatch.setenv(variable, service.key)
    monkeypatch.setenv("FAMNB_LEDGER", str(tmp_path / "calls.sqlite"))
    with famnb.Client(profile=profile, base_url=service.url, api_key=service.key) as client:
        request = client.compose(endpoint, PROMPT, system="Be brief.", max_tokens=40, stream=True, **fields)
        cells = run_cells(client, request, Target(service.url, value))
    assert [variable in cells[kind] for kind in cells] == [kind != "famnb" for kind in cells]


def test_what_a_profile_sends_is_written_out():
    """Header of the key, version, query, and the vendor's own address where that is asked, else any other."""
    request = make_request("messages", stream=False)
    target = Target("https://api.example.com")
    assert "famnb.Client(base_url='https://api.example.com')" in write_cell(request, kind="famnb", target=target)
    curl = write_cell(request, kind="curl", target=target)
    assert all(words in curl for words in ("'https://api.example.com/v1/messages'", "$FAM_API_KEY"))
    request = (
        find_profile("anthropic").endpoints["messages"].request.compose("Hi", system=None, thinking=None, model="m")
    )
    target = Target("https://api.anthropic.com", find_profile("anthropic"))
    assert "client = famnb.Client(profile='anthropic')" in write_cell(request, kind="famnb", target=target)
    curl = write_cell(request, kind="curl", target=target)
    assert """-H "x-api-key: $ANTHROPIC_API_KEY" -H 'anthropic-version: 2023-06-01'""" in curl
    azure = Target("https://mine.openai.azure.com", find_profile("azure"), query={"api-version": "preview"})
    request = find_profile("azure").endpoints["chat"].request.compose("Hi", system=None, thinking=None, model="m")
    curl = write_cell(request, kind="curl", target=azure)
    assert "'https://mine.openai.azure.com/openai/v1/chat/completions?api-version=preview'" in curl
    assert '-H "api-key: $AZURE_OPENAI_API_KEY"' in curl
    assert "default_query={'api-version': 'preview'}" in write_cell(request, kind="openai", target=azure)
    local = Target("http://127.0.0.1:11434", find_profile("ollama"))
    request = find_profile("ollama").endpoints["chat"].request.compose("Hi", system=None, thinking=None, model="m")
    assert "client = famnb.Client(profile='ollama')" in write_cell(request, kind="famnb", target=local)
    assert "authorization" not in write_cell(request, kind="curl", target=local)


def test_a_client_s_own_headers_go_along_and_its_secrets_do_not():
    """In every kind of cell; what a header or parameter hides is left out."""
    secret = "s3cr3t-0123456789-abcdef"
    options: dict[str, Any] = {"base_url": "https://gate.example.com", "api_key": secret}
    options |= {"headers": {"x-team": "it's $ours", "x-auth-token": secret}, "query": {"v": "2", "api_key": secret}}
    with famnb.Client(profile="openai", **options) as client:
        request = client.compose("chat", "Hi")
        target = Target.of_client(client, "chat")
    for kind in available_kinds(request, target.profile.endpoints):
        cell = write_cell(request, kind=kind, target=target)
        assert secret not in cell
        assert "x-team" in cell
        assert ("v=2" in cell) or ("{'v': '2'}" in cell)
    assert """-H 'x-team: it'"'"'s $ours'""" in write_cell(request, kind="curl", target=target)


@pytest.mark.parametrize("name", NAMES)
def test_the_sdks_get_every_field_that_they_have_a_parameter_for_and_no_other(name: str):
    """What a profile adds to its dialect goes into `extra_body`, unless it is one of the SDK's own parameters."""
    clients = {"openai": openai.OpenAI(api_key="k"), "anthropic": anthropic.Anthropic(api_key="k")}
    for endpoint in find_profile(name).endpoints.values():
        sdk = endpoint.conventions.sdk
        method = operator.attrgetter(f"{sdk.method}.create")(clients[sdk.package])
        parameters = inspect.signature(method).parameters
        missing = {field for field in endpoint.request.model_fields if field not in parameters}
        assert {field for field in missing if not is_extra(endpoint, field)} == set(), endpoint.name
