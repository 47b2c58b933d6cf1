"""The public face: what `import famnb` offers, and what it costs."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import famnb
import famnb.errors

HEAVY = ("numpy", "pandas", "scipy", "matplotlib", "matplotlib.pyplot", "ipywidgets", "starlette")


def list_loaded(*steps: str) -> list[str]:
    """Which heavy libraries a new interpreter has loaded after each step."""
    code = "\n".join(f"{step}; print([name for name in {HEAVY} if name in sys.modules])" for step in steps)
    command = [sys.executable, "-c", f"import sys\n{code}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def test_each_use_loads_only_its_own_libraries():
    light = ("import famnb", "famnb.compose('messages', 'hi')", "famnb.Client", "famnb.serve")
    figures = ["numpy", "pandas", "scipy", "matplotlib"]
    assert list_loaded(*light, "famnb.calls", "famnb.scorers", "famnb.plot") == [
        *["[]"] * 4,
        *(str(figures[:count]) for count in (2, 3, 4)),
    ]
    # A form says what its request can cost before anything has to be computed of recorded calls.
    tools = ("famnb.Composer", "famnb.Dashboard", "famnb.Board")
    assert list_loaded("import famnb", *tools) == ["[]", *["['ipywidgets']"] * 3]


def test_all_is_alphabetical_and_each_name_loads():
    assert list(famnb.__all__) == sorted(famnb.__all__)
    assert all(getattr(famnb, name) is not None for name in famnb.__all__)


def test_the_stub_has_the_same_names():
    stub = ast.parse(Path(famnb.__file__).with_suffix(".pyi").read_text())
    imports = [statement for statement in stub.body if isinstance(statement, ast.ImportFrom) and statement.level]
    names = {alias.name: statement.module for statement in imports for alias in statement.names if alias.name != "*"}
    assert set(names) >= set(famnb.__all__)
    for name, module in names.items():
        path = f"famnb.{module}" if module else "famnb"
        # In this order: what is a module is an attribute of its package once it is loaded.
        assert getattr(famnb, name) is getattr(importlib.import_module(path), name)


def test_completion_offers_public_names_only():
    assert dir(famnb) == famnb.__all__
    assert len(famnb.__all__) <= 30
    assert not [name for name in famnb.__all__ if hasattr(famnb.errors, name)]


def test_every_exception_can_be_imported_from_the_top():
    names = {
        name
        for name, value in vars(famnb.errors).items()
        if isinstance(value, type) and value.__module__ == "famnb.errors"
    }
    assert len(names) >= 27
    assert all(getattr(famnb, name) is getattr(famnb.errors, name) for name in names)


def test_an_unknown_name_says_what_there_is():
    with pytest.raises(AttributeError, match=r"no 'Composr'; .*Composer"):
        famnb.Composr  # noqa: B018 - the access is the test
