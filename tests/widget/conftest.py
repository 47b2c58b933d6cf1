"""A stream that a test scripts, and outputs whose contents a test can see."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

import famnb
from famnb.widget.runtime.tool import BaseTool
from tests.support.scripted_stream import ScriptedStream


@pytest.fixture
def client(server: famnb.service.Server, tmp_path: Path) -> Iterator[famnb.Client]:
    """A client of the local service with a ledger of its own."""
    with famnb.Client(base_url=server.url, api_key=server.key, ledger=tmp_path / "ledger.sqlite") as client:
        yield client


@pytest.fixture(scope="package")
def vendor_service() -> Iterator[famnb.service.Server]:
    """The local service, which speaks the vendors' dialects and answers at once."""
    with famnb.serve(time_scale=0, compat=True) as server:
        yield server


@pytest.fixture
def stream() -> ScriptedStream:
    """A stream that has said nothing yet."""
    return ScriptedStream()


@pytest.fixture
def outputs(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """What composers and boards put into their outputs, in order."""
    bundles: list[dict[str, str]] = []
    monkeypatch.setattr("famnb.widget.runtime.output.Output.replace", lambda _self, bundle: bundles.append(bundle))
    return bundles


_numbers = itertools.count(1)


def ask(tool: BaseTool, intent: str, /, **args: object) -> None:
    """Have a tool receive an intent of its page."""
    send_message(tool, kind="intent", id=next(_numbers), name=intent, args=args)


def send_message(tool: BaseTool, **message: object) -> None:
    """Have a tool receive what its page sends."""
    tool.receive(message)
