"""Completion of endpoints, models and fields, as an IPython shell offers it with its other completions."""

from collections.abc import Iterator
from typing import get_args

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

import famnb
from famnb.endpoints import ENDPOINTS, EndpointName, ModelName
from famnb.widget import install_completion


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    """A shell that completes what famnb takes."""
    InteractiveShell.clear_instance()
    ipython = InteractiveShell.instance(config=Config(HistoryManager={"enabled": False}))
    ipython.user_ns |= {"famnb": famnb, "client": famnb.Client(base_url="http://127.0.0.1:9", api_key="k")}
    install_completion(ipython)
    install_completion(ipython)
    yield ipython
    InteractiveShell.clear_instance()


def complete(shell: InteractiveShell, code: str) -> list[str]:
    """What the shell offers at the end of some code."""
    with provisionalcompleter():
        return [completion.text for completion in shell.Completer.completions(code, len(code))]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("client.ask('Hi', endpoint='", sorted(ENDPOINTS)),
        ('client.ask("Hi (now)", endpoint="me', ["messages"]),
        ("famnb.compose('re", ["responses"]),
        ("client.ask('Hi', model='fam-2", ["fam-2-5-mini", "fam-2-5-pro"]),
        ("client.ask('Hi', endpoint='chat', model='", ["fam-mini"]),
        ("famnb.grid(model=['fam-mini', 'fam-2-5-m", ["fam-2-5-mini"]),
        ("famnb.Board(client, [{'endpoint': 'w", ["web"]),
        ("famnb.Experiment(\n    ['Hi'],\n    [{'model': 'fam-m", ["fam-mini"]),
    ],
)
def test_values_are_completed_and_nothing_else_is_offered(shell: InteractiveShell, code: str, expected: list[str]):
    assert complete(shell, code) == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("client.ask('Hi', mod", "model="),
        ("client.ask('Hi', temp", "temperature="),
        ("client.ask('Hi', endpoint='web', resp", "response_format="),
        ("famnb.compose('responses', 'Hi', ins", "instructions="),
        ("famnb.MessagesRequest(thi", "thinking="),
        ("client.ask(len('Hi'), top", "top_p="),
    ],
)
def test_fields_are_completed_beside_the_arguments(shell: InteractiveShell, code: str, expected: str):
    assert expected in complete(shell, code)


@pytest.mark.parametrize(
    "code",
    [
        *("client.ask('Hi', endpoint='chat').tem", "len('Hi', temp", "temperatur", "client.send(temp"),
        "client.ask('Hi', endpoint='messages', sto",
    ],
)
def test_elsewhere_there_are_no_fields_and_none_of_another_endpoint(shell: InteractiveShell, code: str):
    assert {"temperature=", "store="}.isdisjoint(complete(shell, code))


def test_editors_know_the_same_names():
    names, _ = get_args(EndpointName)
    assert get_args(names) == tuple(ENDPOINTS)
    models = {name for literal in get_args(ModelName) for name in get_args(literal)}
    assert models == {model for endpoint in ENDPOINTS.values() for model in endpoint.models}


def test_a_request_explains_its_fields():
    text = famnb.MessagesRequest.__doc__ or ""
    assert "max_tokens (int, at least 1, default 512)\n    Maximum tokens to generate, thinking included." in text
    for endpoint in ENDPOINTS.values():
        described = [line.split(" ")[0] for line in (endpoint.request.__doc__ or "").splitlines() if " (" in line]
        assert set(endpoint.request.model_fields) <= set(described)
    mistral = famnb.profiles.find_profile("mistral").endpoints["chat"].request
    assert "random_seed (int, at least 0)\n" in (mistral.__doc__ or "")
