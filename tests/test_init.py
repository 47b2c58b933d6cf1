"""The public face: what `import famnb` offers, and what it costs."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import famnb
import famnb.errors

HEAVY = ("pandas", "matplotlib", "ipywidgets", "starlette")


def fresh(code: str) -> str:
    """What a new interpreter prints when it runs the code."""
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_importing_famnb_loads_no_heavy_library():
    loaded = fresh(f"import sys, famnb; print([name for name in {HEAVY} if name in sys.modules])")
    assert loaded.strip() == "[]"


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        ("famnb.compose('messages', 'hi')", "[]"),
        ("famnb.Client", "[]"),
        ("famnb.serve", "[]"),
        ("famnb.calls", "['pandas']"),
        ("famnb.plot", "['pandas', 'matplotlib']"),
        ("famnb.scorers", "['pandas']"),
        ("famnb.Composer", "['ipywidgets']"),
        ("famnb.Dashboard", "['ipywidgets']"),
        ("famnb.Board", "['ipywidgets']"),
    ],
)
def test_each_use_loads_only_its_own_libraries(use: str, expected: str):
    loaded = fresh(f"import sys, famnb; {use}; print([name for name in {HEAVY} if name in sys.modules])")
    assert loaded.strip() == expected


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
    own = {
        name
        for name, value in vars(famnb.errors).items()
        if isinstance(value, type) and value.__module__ == "famnb.errors"
    }
    assert len(own) >= 27
    assert all(getattr(famnb, name) is getattr(famnb.errors, name) for name in own)


def test_an_unknown_name_says_what_there_is():
    with pytest.raises(AttributeError, match=r"no 'Composr'; .*Composer"):
        famnb.Composr  # noqa: B018 - the access is the test
