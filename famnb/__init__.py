"""famnb: a notebook workbench and measuring instrument for a text-generation API.

The public names stand in `__init__.pyi`. Each loads its module on first use, so that `import famnb` costs next to
nothing. Exceptions can be imported from here, too, but live in `famnb.errors`, so that `famnb.` completes to few names.
"""

import ast
import contextlib
import gc
import importlib
from collections.abc import Iterator
from pathlib import Path

__version__ = "0.1.0"

# The stub is what type checkers and editors read; a second list here would one day differ from it.
_stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
_MODULES = {
    alias.name: statement.module
    for statement in _stub.body
    if isinstance(statement, ast.ImportFrom)
    for alias in statement.names
    if alias.name != "*"
}
"""The module of each public name; None for a name that is a module itself."""

__all__ = sorted(_MODULES)


# What is imported stays, so that looking through it for garbage, as Python does some hundred times, finds nothing: a
# twelfth of the time until a first client is ready.
@contextlib.contextmanager
def _pause_garbage_collection() -> Iterator[None]:
    """While the body runs, no garbage is collected."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def __getattr__(name: str) -> object:
    if name in _MODULES:
        with _pause_garbage_collection():
            parent = importlib.import_module(f"famnb.{_MODULES[name] or name}")
        if _MODULES[name] and not hasattr(parent, name):
            # A module of a package, such as `scorers`, is its attribute only once something has imported it.
            importlib.import_module(f"{parent.__name__}.{name}")
        value = getattr(parent, name) if _MODULES[name] else parent
    else:
        errors = importlib.import_module("famnb.errors")
        if not name[:1].isupper() or not hasattr(errors, name):
            raise errors.UnknownName(
                f"famnb has no {name!r}; it has {', '.join(__all__)}, and the exceptions of famnb.errors"
            )
        value = getattr(errors, name)
    # From now on an ordinary attribute, which Python finds without this function.
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
