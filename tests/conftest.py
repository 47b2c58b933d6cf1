"""What all tests share: a clean environment, one local service, and the same examples on every machine."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling

from famnb import model_colours
from famnb.client import connected
from famnb.service import Server, serve

settings.register_profile("famnb", deadline=None, derandomize=True, max_examples=50)
settings.register_profile("quick", settings.get_profile("famnb"), max_examples=20)

_KEPT = {"FAMNB_REQUIRE_BROWSER"}
"""Variables that are the tests' own."""


# Where bytecode is not to be written, each worker and each of the hundreds of processes that tests start would compile
# famnb anew.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A shell that starts the tests in the background has interrupts ignored; tests that interrupt calls need them.
signal.signal(signal.SIGINT, signal.default_int_handler)


# Before any fixture: one of a module or of the session may set prices.
os.environ["FAMNB_KEEP_PRICES"] = "0"


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("quick" if "not full" in config.option.markexpr else "famnb")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have parallel workers begin with what waits more than it computes, beside the many quick tests."""
    long_files = {item.path for item in items if item.get_closest_marker("browser") or item.get_closest_marker("full")}
    items.sort(key=lambda item: item.path not in long_files)


class BrowserScheduling(LoadFileScheduling):
    """A file is one worker's, but for those in the browser: half of them are one worker's, the others another's.

    Each worker has a Chromium and a JupyterLab of its own, which take longer to start than most tests take.
    """

    def _split_scope(self, nodeid: str) -> str:
        folder, _, name = nodeid.partition("/test_")
        if folder == "tests/browser":
            return "tests/browser, A to L" if name < "m" else "tests/browser, M to Z"
        return super()._split_scope(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    return BrowserScheduling(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.fixture(scope="session", autouse=True)
def other_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What fixtures of a module or of the session record and set is not in this machine's ledger and prices."""
    folder = tmp_path_factory.mktemp("session")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAMNB_LEDGER", str(folder / "ledger.sqlite"))
        patch.setenv("FAMNB_PRICES", str(folder / "prices.toml"))
        yield


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No key, address or proxy of this machine reaches a test, and no test this machine's ledger, prices or colours."""
    for name in list(os.environ):
        ours = name.startswith(("FAM_", "FAMNB_")) and name not in _KEPT
        if ours or name.lower().endswith("_proxy") or name.startswith(("OPENAI_", "ANTHROPIC_")):
            monkeypatch.delenv(name)
    # As in a kernel that has just started: no model has a colour yet, and no client is connected.
    monkeypatch.setattr(model_colours, "_numbers", {})
    monkeypatch.setattr(connected, "client", None)
    monkeypatch.setenv("FAMNB_LEDGER", str(tmp_path / "ledger.sqlite"))
    monkeypatch.setenv("FAMNB_PRICES", str(tmp_path / "prices.toml"))
    monkeypatch.setenv("FAMNB_KEEP_PRICES", "0")


@pytest.fixture
def ipython() -> Iterator[Any]:
    """A shell of IPython without a history."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    InteractiveShell.clear_instance()
    yield InteractiveShell.instance(config=Config(HistoryManager={"enabled": False}))
    InteractiveShell.clear_instance()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """The local service in its own process, with simulated answers that do not wait."""
    with serve(time_scale=0) as running:
        yield running
