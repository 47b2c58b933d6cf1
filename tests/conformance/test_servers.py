"""Foreign servers, each used through the profiles that it speaks: by Client and by Composer.

    pytest -m conformance tests/conformance/test_servers.py     all of them, each installed from its registry
    pytest -m full tests/conformance/test_servers.py            llama.cpp's alone

A server is kept where the clients of `test_clients.py` are.
"""

import contextlib
import dataclasses
import functools
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import famnb
from famnb.errors import APIStatusError
from famnb.service import serve
from famnb.widget import Composer
from tests.conformance.clients import Client as Package
from tests.conformance.environments import Environment
from tests.support.composers import send_prompt, wait_until_idle, write_field
from tests.support.tiny_engine import ENGINE_KEY, run_engine

KEY = "sk-foreign-0123456789abcdef"
PACKAGES = {
    "aimock": Package("@copilotkit/aimock", "server", "aimock_server.mjs", ("@copilotkit/aimock",)),
    "litellm": Package("litellm", "server", "litellm_proxy.py", ("litellm[proxy]",)),
}
BLUE = "Why is the sky blue?"
CAP = 300
# Its own tokens are capped at 4,096 with those of the answer.
TOO_LONG = "long " * 4000


@dataclasses.dataclass(frozen=True)
class Use:
    """A server that is used through one endpoint of a profile."""

    server: str
    profile: str
    endpoint: str
    model: str
    path: str = ""
    """What follows the server's address."""

    def __str__(self) -> str:
        return f"{self.server}-{self.profile}-{self.endpoint}"


USES = (
    Use("aimock", "openai", "chat", "gpt-5.4-mini"),
    Use("aimock", "openai", "responses", "gpt-5.4-mini"),
    Use("aimock", "azure", "chat", "gpt-5.4-mini"),
    Use("aimock", "azure", "responses", "gpt-5.4-mini"),
    Use("aimock", "anthropic", "messages", "claude-haiku-4-5"),
    Use("aimock", "openrouter", "chat", "openai/gpt-5.4-mini", "/api"),
    Use("litellm", "open", "chat", "chat-model"),
    Use("litellm", "open", "responses", "chat-model"),
    Use("litellm", "open", "messages", "claude-model"),
    Use("litellm", "openai", "chat", "chat-model"),
    Use("litellm", "anthropic", "messages", "claude-model"),
    Use("llama.cpp", "open", "chat", "tiny"),
)


@famnb.tool
def weather(city: str) -> str:
    """The weather of a city right now."""
    return f"4 degrees in {city}"


def uses(*, of_engine: bool = True) -> Any:
    """Parametrize a test by what is used; the engine's tiny model does not think, and answers whoever has its key."""
    rows = []
    for use in USES:
        is_engine = use.server == "llama.cpp"
        marks = pytest.mark.full if is_engine else pytest.mark.conformance
        if of_engine or not is_engine:
            rows.append(pytest.param(use, id=str(use), marks=marks))
    return pytest.mark.parametrize("use", rows)


@pytest.fixture(scope="module")
def address(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], str]]:
    """Gives the address of a server, which is installed and started when it is first asked for."""
    with contextlib.ExitStack() as stack:

        @functools.cache
        def find(name: str) -> str:
            if name == "llama.cpp":
                return stack.enter_context(run_engine(tmp_path_factory.mktemp("model")))
            package = PACKAGES[name]
            if package.is_javascript and not shutil.which("npm"):
                pytest.skip("npm is not installed")
            environment = Environment(package, cache)
            environment.install()
            service = stack.enter_context(serve(time_scale=0, compat=True))
            settings = {"key": KEY, "url": service.url, "service_key": service.key}
            return stack.enter_context(environment.serve(settings))

        yield find


@pytest.fixture
def connect(
    address: Callable[[str], str], tmp_path: Path, request: pytest.FixtureRequest, record_property: Callable[..., None]
) -> Iterator[Callable[..., famnb.Client]]:
    """Makes a client of what is used."""
    clients: list[famnb.Client] = []

    def make(use: Use, *, key: str = "") -> famnb.Client:
        base_url = f"{address(use.server)}{use.path}"
        ledger = tmp_path / "ledger.sqlite"
        key = key or (os.environ[ENGINE_KEY] if use.server == "llama.cpp" else KEY)
        clients.append(famnb.Client(profile=use.profile, base_url=base_url, api_key=key, ledger=ledger))
        record_property("client", f"famnb {use.profile} {use.endpoint}")
        record_property("version", famnb.__version__)
        record_property("service", use.server)
        record_property("case", request.node.originalname.removeprefix("test_").replace("_", " "))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


def ask(client: famnb.Client, use: Use, prompt: str, **fields: Any) -> Any:
    return client.ask(prompt, **{"endpoint": use.endpoint, "model": use.model, "max_tokens": CAP, **fields})


def check_answer(use: Use, reply: Any, text: str) -> None:
    """An answer with its tokens, as far as its server counts them."""
    assert reply.status == "completed", reply
    assert reply.finish_reason == "stop"
    assert not reply.warnings
    match use.server:
        case "aimock":
            assert reply.text == text
            assert (reply.usage.input_tokens, reply.usage.output_tokens) == (11, 7)
            # Only this vendor says what a call costs.
            assert (reply.cost is not None and float(reply.cost.usd) == 0.25) == (use.profile == "openrouter")
        case "litellm":
            assert reply.text.startswith("## ")
            assert reply.usage.input_tokens > 3
            assert reply.usage.output_tokens > 50
        case "llama.cpp":
            assert reply.text
            assert reply.usage.source("output_tokens") == "reported"


@uses()
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_an_answer_with_its_tokens(use: Use, stream: bool, connect: Callable[..., famnb.Client]):
    client = connect(use)
    reply = ask(client, use, "Say hello.", stream=stream)
    check_answer(use, reply, "Hello from afar.")
    assert reply.streamed == stream
    row = famnb.calls(client).iloc[-1][["profile", "endpoint", "model", "status"]]
    assert row.tolist() == [use.profile, use.endpoint, use.model, "completed"]


@uses(of_engine=False)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_thinking(use: Use, stream: bool, connect: Callable[..., famnb.Client]):
    """Shown by aimock and on messages; our service behind the proxy counts it on chat, and shows none."""
    has_budget = use.endpoint == "messages" or use.profile == "openrouter"
    expected = contextlib.nullcontext() if has_budget else pytest.warns(UserWarning, match="nearest reasoning effort")
    with expected:
        reply = ask(connect(use), use, BLUE, thinking=1024, stream=stream, max_tokens=4000)
    check_answer(use, reply, "It scatters.")
    if use.server == "aimock":
        assert reply.thinking == "Blue light is short."
    elif use.endpoint == "messages":
        assert reply.thinking
    elif use.endpoint == "chat":
        assert reply.usage.reasoning_tokens > 0


@uses(of_engine=False)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_tool_and_its_result(use: Use, stream: bool, connect: Callable[..., famnb.Client]):
    reply = ask(connect(use), use, "How is the weather in Oslo?", tools=[weather], auto=True, stream=stream)
    assert [result.content for step in reply.rounds for result in step.results] == ["4 degrees in Oslo"]
    check_answer(use, reply, "It is cold in Oslo.")
    if use.server == "litellm":
        assert "4 degrees" in reply.text


@uses()
def test_a_conversation(use: Use, connect: Callable[..., famnb.Client]):
    talk = connect(use).conversation(use.endpoint, model=use.model, max_tokens=CAP)
    talk.say("Say hello.")
    check_answer(use, talk.say("Now say hello again."), "Hello from afar.")


@uses()
def test_a_refusal(use: Use, connect: Callable[..., famnb.Client]):
    """What the server says is wrong, without the key."""
    prompt, model, message = {
        "aimock": ("Please fail.", use.model, "no such thing"),
        "litellm": ("Hello", "no-such-model", "no-such-model"),
        "llama.cpp": (TOO_LONG, use.model, "context"),
    }[use.server]
    with pytest.raises(APIStatusError, match=message) as caught:
        ask(connect(use), use, prompt, model=model, stream=True)
    assert caught.value.status == 400
    assert KEY not in f"{caught.value!r} {caught.value.body}"


@uses(of_engine=False)
def test_a_wrong_key_is_refused(use: Use, connect: Callable[..., famnb.Client]):
    """LiteLLM without a database says 400, and why."""
    wrong = "sk-wrong-0123456789abcdef"
    with pytest.raises(APIStatusError) as caught:
        ask(connect(use, key=wrong), use, "Say hello.")
    assert caught.value.status == (400 if use.server == "litellm" else 401)
    assert wrong not in f"{caught.value!r} {caught.value.body}"


@uses()
def test_a_composer(use: Use, connect: Callable[..., famnb.Client]):
    """A talk of two turns, and a tool that runs and goes back."""
    # The engine's tiny model would call a tool at once, with any letters for a city.
    tools = [] if use.server == "llama.cpp" else [weather]
    composer = Composer(connect(use), endpoint=use.endpoint, tools=tools, auto=bool(tools))
    write_field(composer, "model", use.model)
    for number, prompt in enumerate(("Say hello.", "Now say hello again."), start=1):
        send_prompt(composer, prompt)
        wait_until_idle(composer, replies=number)
        assert composer.reply.error is None
        check_answer(use, composer.reply, "Hello from afar.")
    if tools:
        send_prompt(composer, "How is the weather in Oslo?")
        wait_until_idle(composer)
        assert [result.content for step in composer.reply.rounds for result in step.results] == ["4 degrees in Oslo"]
