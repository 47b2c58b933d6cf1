"""What all tests share: a clean environment, one local service, and the same examples on every machine."""

from __future__ import annotations

import collections
import contextlib
import gc
import importlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from famnb import model_colours
from famnb.service import Server
from tests.support.forked_service import serve_forked

settings.register_profile("famnb", deadline=None, derandomize=True)
settings.load_profile("famnb")

_KEPT = {"FAMNB_REQUIRE_BROWSER"}
"""Variables that are the tests' own."""


# Where bytecode is not to be written, each worker and each of the hundreds of processes that tests start would compile
# famnb anew.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# jsonschema, which notebooks are read with, builds a grammar of international addresses at its import, a second and a
# half of every worker, for a format that no schema here has; without the grammar it leaves that format out.
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]  # None: not to be found

# Modules and tests live as long as the run: the collector is to look at them neither while they are made nor later.
gc.disable()


def pytest_collectstart(collector: pytest.Collector) -> None:
    """Have each worker load another part of the modules first, so that where no bytecode is yet, not each compiles all.

    At a first run, in a fresh checkout, that is half of what collecting costs.
    """
    worker = getattr(collector.config, "workerinput", None)
    if worker is None or not isinstance(collector, pytest.Session) or collector.config.args != ["tests"]:
        return
    files = sorted(Path(__file__).parent.rglob("test_*.py"))
    number, count = int(worker["workerid"].removeprefix("gw")), worker["workercount"]
    for file in files[number::count]:
        # What does not load is reported where it is collected.
        with contextlib.suppress(Exception):
            importlib.import_module(".".join(file.relative_to(collector.config.rootpath).with_suffix("").parts))


def pytest_collection_finish() -> None:
    """Collect garbage from now on, of what the tests make."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the files so that parallel workers end at about the same time.

    Files with slow tests come first, then those in the browser, the largest first: they wait more than they compute,
    so they belong beside the many quick ones; and a long file that starts last keeps one worker busy, the others idle.
    """
    sizes = collections.Counter(item.path for item in items)
    slow_files = {item.path for item in items if item.get_closest_marker("slow")}

    def rank(item: pytest.Item) -> tuple[int, int]:
        if item.path in slow_files:
            return 0, 0
        return (1, -sizes[item.path]) if item.get_closest_marker("browser") else (2, 0)

    items.sort(key=rank)


# A shell that starts the tests in the background has interrupts ignored; tests that interrupt calls need them.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No key, address or proxy of this machine reaches a test, and no test this machine's ledger, prices or colours."""
    for name in list(os.environ):
        ours = name.startswith(("FAM_", "FAMNB_")) and name not in _KEPT
        if ours or name.lower().endswith("_proxy") or name.startswith(("OPENAI_", "ANTHROPIC_")):
            monkeypatch.delenv(name)
    # As in a kernel that has just started: no model has a colour yet.
    monkeypatch.setattr(model_colours, "_numbers", {})
    monkeypatch.setenv("FAMNB_LEDGER", str(tmp_path / "ledger.sqlite"))
    monkeypatch.setenv("FAMNB_PRICES", str(tmp_path / "prices.toml"))


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """The local service in its own process, with simulated answers that do not wait."""
    with serve_forked(time_scale=0) as running:
        yield running
